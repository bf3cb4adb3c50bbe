"""Files of any format as rows: CSV, Parquet and XLSX here, the others by those that know them."""

import json
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from countleak.audit.releases.formats import jsonstat, px, sdmx
from countleak.audit.releases.formats.rows import MOST_NUMBERS, Rows, require_few, text_of
from countleak.audit.tables import read_parquet, read_table
from countleak.errors import InputError, MissingExtra
from countleak.files import Name, is_file, read_text

# A file that is read whole is no larger, and a workbook no larger when it is unpacked.
MOST_BYTES = 2**28
WHOLE = (".json", ".px", ".xlsx", ".xml")


def read_rows(path: Name, count: str | None = None) -> Rows:
    """The rows of a file, of any format; ``count`` chooses one of several measures."""
    suffix = Path(path).suffix.lower()
    if suffix in WHOLE:
        _require_small(path)
    match suffix:
        case ".parquet":
            return _parquet(path)
        case ".xlsx":
            return _sheet(path)
        case ".json":
            return _json(path, count)
        case ".xml":
            return sdmx.from_file(path)
        case ".px":
            return px.read_px(path, count)
    return _csv(path)


def _csv(path: Name) -> Rows:
    if Path(path).is_file():
        require_few(path, _lines(path) - 1)
    names, rows = read_table(path)
    return sdmx.from_csv(path, names, rows) if sdmx.is_csv(names) else Rows(names, rows)


def _lines(path: Name) -> int:
    """How many lines a file has, or that it has too many."""
    lines = 0
    try:
        with Path(path).open("rb") as file:
            while lines <= MOST_NUMBERS + 1 and (block := file.read(2**20)):
                lines += block.count(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return lines


def _json(path: Name, count: str | None) -> Rows:
    text = read_text(path)
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", type(error).__name__)
        raise InputError(f"{path}: not JSON ({what}); is the file cut off?") from None
    if isinstance(record, dict) and {"dataSets", "structure"} <= {*record, *_inner(record)}:
        return sdmx.from_file(path)
    return jsonstat.read_dataset(path, record, count)


def _inner(record: dict[str, Any]) -> set[str]:
    """The fields inside ``data``, where SDMX-JSON has them from 1.0 on."""
    data = record.get("data")
    fields = set(data) if isinstance(data, dict) else set()
    return fields | ({"structure"} if "structures" in fields else set())


def _parquet(path: Name) -> Rows:
    # Loaded here: most of countleak needs no database.
    import duckdb

    if is_file(path):
        try:
            with duckdb.connect() as connection:
                require_few(path, connection.from_parquet(str(Path(path))).shape[0])
        except duckdb.Error:
            # What is wrong with it is said when it is read.
            pass
    columns = read_parquet(path)
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    texts = [[text_of(value) for value in row] for row in values]
    return Rows(list(columns), list(enumerate(texts, 1)), unit="row")


def _sheet(path: Name) -> Rows:
    """The first sheet of a workbook."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("an XLSX file", "tables") from None
    try:
        _require_unpacked_small(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        values = book.worksheets[0].iter_rows(values_only=True)
        rows = [[text_of(v) for v in row] for row in islice(values, MOST_NUMBERS + 2)]
        book.close()
    except InputError:
        raise
    except (OSError, ValueError, KeyError, IndexError, BadZipFile) as error:
        raise InputError(f"{path}: not an XLSX file that can be read ({error})") from None
    except Exception as error:
        # A damaged archive raises whatever its parts do.
        raise InputError(f"{path}: not an XLSX file ({type(error).__name__})") from None
    numbered = [(at, row) for at, row in enumerate(rows, 1) if any(row)]
    if not numbered:
        raise InputError(f"{path}: the first sheet is empty")
    require_few(path, len(numbered) - 1)
    header = numbered[0][1]
    while header and not header[-1]:
        header = header[:-1]
    _check_sheet(path, header, numbered)
    return Rows(header, [(at, row[: len(header)]) for at, row in numbered[1:]], unit="row")


def _check_sheet(path: Name, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    """Raise unless there is one header row and as many columns below it."""
    if "" in header or len(set(header)) < len(header):
        raise InputError(
            f"{path} row {rows[0][0]}: the header has empty or equal names; write one header row "
            "without merged cells, and below it one row per cell of the table"
        )
    for at, row in rows[1:]:
        if any(row[len(header) :]):
            raise InputError(f"{path} row {at}: more fields than the header has; fix the row")


def _require_unpacked_small(path: Name) -> None:
    with ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > MOST_BYTES:
            raise InputError(f"{path}: too large when unpacked; write the sheet as CSV or Parquet")


def _require_small(path: Name) -> None:
    if not is_file(path):
        raise InputError(f"{path}: no such file; check the name")
    if Path(path).stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: larger than 256 MiB; split it, or write it as CSV or Parquet")
