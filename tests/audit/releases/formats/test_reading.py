"""Files that are too large, or made to be, end with one line before they are read."""

from zipfile import ZIP_DEFLATED, ZipFile

import duckdb
import pytest

from countleak.audit.releases.formats import read_rows
from countleak.errors import InputError


def refused(path):
    with pytest.raises(InputError) as raised:
        read_rows(path)
    assert "\n" not in str(raised.value)
    return str(raised.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "px", "xlsx", "xml"])
def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path, ending):
    assert refused(tmp_path / f"t.{ending}").startswith("no such file; check the name")


@pytest.mark.parametrize("ending", ["json", "px", "xlsx", "xml"])
def test_a_huge_file_is_not_read(tmp_path, ending):
    with (tmp_path / f"t.{ending}").open("wb") as file:
        file.truncate(2**29)
    assert refused(tmp_path / f"t.{ending}").startswith("larger than 256 MiB")


def test_a_workbook_that_unpacks_to_much_is_not_unpacked(tmp_path):
    with (
        ZipFile(tmp_path / "t.xlsx", "w", ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w") as sheet,
    ):
        for _ in range(2**4 + 1):
            sheet.write(bytes(2**24))
    assert refused(tmp_path / "t.xlsx").startswith("too large when unpacked")


def test_entities_that_multiply_are_not_expanded(tmp_path):
    pytest.importorskip("sdmx")
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE l [<!ENTITY a0 "x">{entities}]><l>&a11;</l>'
    (tmp_path / "t.xml").write_text(bomb)
    assert refused(tmp_path / "t.xml").startswith("not SDMX data that can be read")


def test_a_parquet_file_of_many_rows_is_counted_first(tmp_path):
    rows = "SELECT range AS id, 1 AS n FROM range(3000000)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 't.parquet'}'")
    assert refused(tmp_path / "t.parquet").startswith("more than 2,000,000 numbers")
