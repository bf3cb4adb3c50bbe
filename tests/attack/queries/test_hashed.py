import duckdb
import numpy as np
import pytest

from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.hashed import hashed_queries, random_hashed
from countleak.attack.queries.ids import id_array
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError

BY_ID = np.array([0, 1, 2, 3, 4, 1000, 2**31 - 1, 2**31, 2**32 + 5, 2**33 + 7, 2**34 - 1])
BY_PLACE = np.array([-(2**40), -7, 3, 12, 2**34, 2**62])
LAST = 2**32 - 1


def bit(i, j, seed):
    """The bit of row i and column j in exact arithmetic, straight from its definition."""

    def key(v, s):
        v = (v * 0x1E3779B1 + s) & LAST
        v = ((v ^ v >> 16) * 0x21F0AAAD) & LAST
        v = ((v ^ v >> 15) * 0x735A2D97) & LAST
        return v ^ v >> 15

    h = key(16 * (i // 128) + i % 16, seed) ^ key(j // 4, ~seed & LAST)
    h = (h * 0x7FEB352D) & LAST
    h = ((h ^ h >> 15) * 0x735A2D97) & LAST
    return (h ^ h >> 16) >> 8 * (j % 4) + i % 128 // 16 & 1


def test_rows_are_those_of_the_definition():
    rows = np.array([0, 15, 16, 127, 128, 2**20 + 77])
    matrix = hashed_queries(BY_ID, rows, 123456789).matrix
    expected = [[bit(i, j, 123456789) for j in BY_ID.tolist()] for i in rows.tolist()]
    assert matrix.tolist() == expected


@pytest.mark.parametrize("ids", [BY_ID, BY_PLACE], ids=["by id", "by place"])
@pytest.mark.parametrize(
    "dialect", ["duckdb", "postgres", pytest.param("sqlite", marks=pytest.mark.slow)]
)
def test_the_sql_selects_the_row(postgres, dialect, ids):
    queries = random_hashed(ids, 6, np.random.default_rng(0))
    connection = {"duckdb": duckdb.connect, "sqlite": sqlite}.get(
        dialect, lambda: postgres.connection
    )()
    connection.execute("CREATE TEMPORARY TABLE hashes (id bigint)")
    # Somebody with two rows, and others below and above.
    others = [-(2**41), int(ids[2]), 2**63 - 1]
    for person in [*reversed(ids.tolist()), *others]:
        connection.execute(f"INSERT INTO hashes VALUES ({person})")
    asked = SqlQuestions("hashes", ("id",), None, PLAIN, dialect)
    for at, row in enumerate(queries.matrix):
        where = asked.parts_of(queries, at).where
        found = connection.execute(f"SELECT DISTINCT id FROM hashes WHERE {where} ORDER BY id")
        assert [i for (i,) in found.fetchall()] == ids[row == 1].tolist()
    connection.execute("DROP TABLE hashes")


def sqlite():
    import sqlite3

    return sqlite3.connect(":memory:")


def test_they_are_as_good_as_random():
    matrix = hashed_queries(np.arange(512), np.arange(2048), 1).matrix
    signs = 2.0 * matrix - 1
    # Four standard errors of 1,048,576 entries, and five of shares and correlations.
    assert abs(signs.mean()) < 4 / 1024
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(2048)
    for rows in (signs, signs.T):
        together = (rows.T @ rows / len(rows))[np.triu_indices(rows.shape[1], 1)]
        assert np.abs(together).max() * np.sqrt(len(rows)) < 6
        assert abs(together.std() * np.sqrt(len(rows)) - 1) < 0.02
    # The singular values of a random matrix (Marchenko and Pastur 1967).
    singular = np.linalg.svd(signs / np.sqrt(2048), compute_uv=False)
    assert singular[-1] > 0.47 and singular[0] < 1.53


def test_the_seed_is_part_of_the_fingerprint():
    # The same keys of rows by another seed: only the columns differ.
    one = hashed_queries(np.arange(50), np.array([1]), 5)
    other = hashed_queries(np.arange(50), np.array([0]), 5 + 0x1E3779B1)
    assert one.parameters["key"].tolist() == other.parameters["key"].tolist()
    assert one.digest != other.digest


def test_a_file_holds_the_seed(tmp_path):
    queries = random_hashed(np.arange(1000), 300, np.random.default_rng(0))
    some = queries.take(np.array([250, 3, 3]))
    for asked in (queries, some, random_hashed(BY_PLACE, 9, np.random.default_rng(1))):
        write_queries(tmp_path / "q.jsonl", asked)
        back = read_queries(tmp_path / "q.jsonl")
        assert back.digest == asked.digest
        assert (back.matrix == asked.matrix).all()
        assert len((tmp_path / "q.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("wrong", ['"seed":-1', '"seed":"1"', '"rows":[1],"seed":1'])
def test_a_damaged_seed_is_an_error(tmp_path, wrong):
    write_queries(tmp_path / "q.jsonl", hashed_queries(np.arange(9), np.arange(3), 77))
    text = (tmp_path / "q.jsonl").read_text()
    (tmp_path / "q.jsonl").write_text(text.replace('"seed":77', wrong))
    with pytest.raises(InputError, match=r"q\.jsonl line 1: .*run `countleak plan` again"):
        read_queries(tmp_path / "q.jsonl")


def test_only_whole_numbers_have_a_hash():
    with pytest.raises(InputError, match="take whole-number ids"):
        random_hashed(id_array(["a", "b"]), 5, np.random.default_rng(0))
