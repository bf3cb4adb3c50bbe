import duckdb
import numpy as np
import pytest

from countleak.diffix.databases.duck import PREPARED, PREPARED_CHARACTERS, Duck
from countleak.diffix.sql.statement import Column, Kind
from countleak.errors import InputError, TargetError
from tests.diffix.conftest import salt_number

COLUMNS = {
    "uid": np.array([1, 1, 2, 3, 4, 5]),
    "name": np.array(["a", "b", "b", "ö", "", "x'y"]),
    "size": np.array([0.1, 0.1, -0.0, 2.5, 1e9, 3.0]),
}


@pytest.fixture
def duck():
    return Duck.of_columns(COLUMNS, salt_number(0), table="t", user="uid")


def test_columns_are_typed_and_counted(duck):
    assert duck.table.columns == {"uid": Kind.WHOLE, "name": Kind.TEXT, "size": Kind.NUMBER}
    assert duck.table.single == frozenset()
    # name: 4 of 5 values have one user, 4/6 > 1/2; size: all 5 do, 5/6.
    assert duck.table.isolating == {"uid", "name", "size"}


def test_hashes_are_those_of_the_salt(duck):
    for name, kind in duck.table.columns.items():
        rows = duck.rows(f'SELECT "{name}", "value hash of {name}" FROM t WHERE uid IS NOT NULL')
        for value, found in rows:
            assert found == salt_number(0).value(duck.table, Column(name, kind), value)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY t TO 'out.csv'",
        "ATTACH 'other.db'",
        "SET threads = 2",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT * FROM '/etc/passwd'",
    ],
)
def test_the_database_itself_has_its_doors_closed(duck, statement):
    with pytest.raises(TargetError, match="could not compute"):
        duck.rows(statement)


def test_files_load_alike(tmp_path, duck):
    given = duckdb.connect(str(tmp_path / "t.duckdb"))
    given.register(
        "source", {k: v.astype(object) if v.dtype.kind == "U" else v for k, v in COLUMNS.items()}
    )
    given.execute("CREATE TABLE t AS SELECT * FROM source")
    given.execute(f"COPY t TO '{tmp_path / 't.csv'}' (FORCE_QUOTE *)")
    given.execute(f"COPY t TO '{tmp_path / 't.parquet'}'")
    given.close()
    expected = duck.rows("SELECT * FROM t ORDER BY ALL")
    for name in ("t.duckdb", "t.parquet"):
        loaded = Duck.of_file(tmp_path / name, salt_number(0), table="t", user="uid")
        assert loaded.table == duck.table
        assert loaded.rows("SELECT * FROM t ORDER BY ALL") == expected
    csv = Duck.of_file(tmp_path / "t.csv", salt_number(0), table="t", user="uid")
    assert csv.rows("SELECT count(uid), count(*) FROM t") == [(6, 7)]


def test_tables_that_cannot_be_asked_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Duck.of_file(tmp_path / "absent.csv", salt_number(0), table="t", user="uid")
    (tmp_path / "odd.parquet").write_text("nonsense")
    with pytest.raises(InputError, match=r"odd\.parquet"):
        Duck.of_file(tmp_path / "odd.parquet", salt_number(0), table="t", user="uid")
    with pytest.raises(InputError, match="no column 'who'"):
        Duck.of_columns(COLUMNS, salt_number(0), table="t", user="who")


def test_another_salt_needs_another_load(duck):
    with pytest.raises(InputError, match="another salt"):
        duck.dialect(salt_number(1))


def test_prepared_statements_do_not_pile_up(duck):
    for number in range(2 * PREPARED):
        assert duck.rows(f"SELECT {number} + $1", [0.5]) == [(number + 0.5,)]
    assert duck.rows("SELECT $1, $2", ["it's", float("inf")]) == [("it's", float("inf"))]
    with pytest.raises(TargetError):
        duck.rows("SELECT nothing FROM t WHERE uid = $1", [1.0])
    kept = duck._connection.execute("SELECT count(*) FROM duckdb_prepared_statements()").fetchall()
    assert kept == [(PREPARED,)]


def test_prepared_statements_are_kept_up_to_a_number_of_characters(duck):
    """What is prepared takes some hundred bytes per character: one user's would fill the memory."""
    for length in (PREPARED_CHARACTERS // 4, 2 * PREPARED_CHARACTERS):
        for number in range(8):
            text = f"SELECT {number} + $1{' ' * length}"
            assert duck.rows(text, [0.5]) == [(number + 0.5,)]
    assert duck.rows("SELECT $1", [1.0]) == [(1.0,)]
    kept = duck._connection.execute("SELECT name FROM duckdb_prepared_statements()").fetchall()
    assert len(kept) == 1
