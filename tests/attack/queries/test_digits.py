from itertools import islice

import duckdb
import numpy as np
import pytest

from countleak.attack.queries.arithmetic import Exact, Float64
from countleak.attack.queries.digits import (
    CONSTANTS,
    SWEEP_EXPONENTS,
    digit_queries,
    first_primes,
    fragile,
)
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import random_subsets
from countleak.errors import InputError


@pytest.fixture(scope="module")
def attack(bank):
    return digit_queries(bank.ids)


def test_the_attack_has_3500_queries_and_a_prime_of_the_sweep_50(attack):
    assert len(attack) == 3500
    assert len(digit_queries(np.arange(1000, 1003), primes=51, exponents=SWEEP_EXPONENTS)) == 2550


def test_about_half_of_the_people_each(attack):
    # Digits of small powers of small ids are not quite fair: c = 5 and e = 0.5 see few digits.
    assert abs(attack.matrix.mean() - 0.5) < 0.01


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_duckdb_selects_exactly_the_row_for_all_3500(bank, attack, every):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE loans (client_id INTEGER)")
    connection.executemany("INSERT INTO loans VALUES (?)", [[i] for i in bank.ids.tolist()])
    for at, row in islice(enumerate(attack.matrix), 0, None, every):
        where = attack.predicate(at, ("client_id",)).sql("duckdb")
        found = connection.execute(f"SELECT client_id FROM loans WHERE {where} ORDER BY 1")
        assert np.array_equal(found.fetchnumpy()["client_id"], bank.ids[row == 1])


def selected(connection, queries, positions, kind):
    """Whom the rows select, and whom PostgreSQL selects by the SQL of them."""
    connection.execute(f"CREATE TEMPORARY TABLE loans (client_id {kind})".encode())
    connection.execute("INSERT INTO loans SELECT unnest(%s::int[])", [queries.ids.tolist()])
    for at in positions:
        where = queries.predicate(at, ("client_id",)).sql("postgres")
        statement = f"SELECT array_agg(client_id ORDER BY client_id) FROM loans WHERE {where}"
        (found,) = connection.execute(statement.encode()).fetchone()
        yield queries.ids[queries.matrix[at] == 1].tolist(), found
    connection.execute("DROP TABLE loans")


def test_postgres_in_doubles_selects_exactly_the_row_for_all_3500(attack, postgres):
    pairs = selected(postgres.connection, attack, range(3500), "double precision")
    for row, found in pairs:
        assert found == row


def test_postgres_in_decimals_selects_exactly_the_row_of_numeric_arithmetic(bank, postgres):
    queries = digit_queries(bank.ids[::8], primes=4, exponents=(0.5, 0.7, 1.9), arithmetic=postgres)
    for row, found in selected(postgres.connection, queries, range(len(queries)), "integer"):
        assert found == row


def test_half_of_the_constants_mean_an_even_digit():
    # Digit 2 of y even; by its definition, not through the SQL.
    ids = np.arange(1000, 1200)
    row = digit_queries(ids, primes=2, exponents=(0.5,), constants=(50,)).matrix[1]
    digits = [int(f"{(3 * i) ** 0.5:.8f}".split(".")[1][1]) for i in ids]
    assert row.tolist() == [int(digit % 2 == 0) for digit in digits]


def test_the_other_half_mean_a_digit_below_five():
    ids = np.arange(1000, 1200)
    row = digit_queries(ids, primes=2, exponents=(0.5,), constants=(100,)).matrix[1]
    digits = [int(f"{(3 * i) ** 0.5:.8f}".split(".")[1][2]) for i in ids]
    assert row.tolist() == [int(digit < 5) for digit in digits]
    assert {c // 5 for c in CONSTANTS[::2]} | {c // 10 for c in CONSTANTS[1::2]} == {
        10**k for k in range(5)
    }


def test_fragile_queries_are_where_float64_and_exact_differ(bank):
    ids = bank.between(10000, 12000).ids
    by_float, by_exact = (digit_queries(ids, arithmetic=a) for a in (Float64(), Exact()))
    marks = fragile(by_float)
    assert np.array_equal(marks, (by_float.matrix != by_exact.matrix).any(axis=1))
    exponents = by_float.parameters["exponent"]
    assert not marks[exponents < 1].any()
    assert marks[exponents == 1.9].mean() > 0.3
    with pytest.raises(InputError, match="subsets queries are not fragile; only digits can be"):
        fragile(random_subsets(ids, 3, np.random.default_rng(0)))


def test_without_the_fragile_queries_the_recorded_residuals_shrink(recorded):
    found = recorded["10000-12000"]
    transcript = found.log.transcript(found.people.ids)
    queries = transcript.queries
    residual = transcript.values - queries.dot(found.secret.astype(float))
    sound = ~fragile(queries)
    assert residual.std() > 3.9
    assert residual[sound].std() < 3.7


def test_primes():
    assert first_primes(6) == [2, 3, 5, 7, 11, 13]
    assert first_primes(59)[-1] == 277


def test_bad_parameters_are_refused():
    with pytest.raises(InputError, match="ask at least one"):
        digit_queries(np.array([1, 2]), primes=0)
    for ids in ([-1, 2], [1, 10**13]):
        with pytest.raises(InputError, match="ids must lie between"):
            digit_queries(np.array(ids))
    for exponent in (0.0, 7.5, 0.12345, np.nan):
        with pytest.raises(InputError, match="at most 3 decimals"):
            digit_queries(np.array([1, 2]), exponents=(exponent,))


@pytest.mark.parametrize("ids", [["1", "2"], [2**70, 1], [(1, 1), (1, 2)], [1.5, 2.5]])
def test_digits_demand_whole_numbers(ids):
    array = np.array(ids) if isinstance(ids[0], float) else id_array(ids)
    with pytest.raises(InputError, match=r"powers of whole-number ids, .*; ask subsets instead"):
        digit_queries(array)


def test_digits_demand_one_id_column():
    queries = digit_queries(np.array([1, 2]), primes=1)
    with pytest.raises(InputError, match="powers of one id column; ask subsets instead"):
        queries.predicate(0, ("a", "b"))


def test_a_digit_query_names_its_column_whatever_it_is_called(postgres):
    queries = digit_queries(np.arange(1, 60), primes=2, exponents=(0.5,))
    for name in ("order", "my id", 'a"b', "größe", "a.b", "id; DROP TABLE x"):
        quoted = '"' + name.replace('"', '""') + '"'
        table = f"(SELECT i::float8 AS {quoted} FROM generate_series(1, 59) AS s (i)) AS t"
        for at in range(len(queries)):
            where = queries.predicate(at, (name,))
            expected = [(float(i),) for i in queries.ids[queries.matrix[at] == 1]]
            for system, dialect in ((postgres.connection, "postgres"), (duckdb, "duckdb")):
                statement = f"SELECT {quoted} FROM {table} WHERE {where.sql(dialect)} ORDER BY 1"
                text = statement.encode() if dialect == "postgres" else statement
                assert system.execute(text).fetchall() == expected
