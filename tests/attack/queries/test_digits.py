import duckdb
import numpy as np
import pytest
from countleak.GONE import PaperName

from countleak.attack.queries.arithmetic import Exact, Float64
from countleak.attack.queries.digits import (
    CONSTANTS,
    SWEEP_EXPONENTS,
    digit_queries,
    first_primes,
    float64_predicate,
    fragile,
)
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


def test_duckdb_selects_exactly_the_row_for_all_3500(bank, attack):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE loans (client_id INTEGER)")
    connection.executemany("INSERT INTO loans VALUES (?)", [[i] for i in bank.ids.tolist()])
    for row, where in zip(attack.matrix, attack.where, strict=True):
        found = connection.execute(f"SELECT client_id FROM loans WHERE {where} ORDER BY 1")
        assert np.array_equal(found.fetchnumpy()["client_id"], bank.ids[row == 1])


def test_postgres_with_casts_selects_exactly_the_row_for_all_3500(bank, attack, postgres):
    connection = postgres.connection
    connection.execute("CREATE TEMPORARY TABLE loans (client_id integer)")
    connection.execute("INSERT INTO loans SELECT unnest(%s::int[])", [bank.ids.tolist()])
    parameters = (attack.parameters[name].tolist() for name in ("prime", "constant", "exponent"))
    for row, *query in zip(attack.matrix, *parameters, strict=True):
        where = float64_predicate("client_id", *query)
        statement = f"SELECT array_agg(client_id ORDER BY client_id) FROM loans WHERE {where}"
        (found,) = connection.execute(statement.encode()).fetchone()
        assert found == bank.ids[row == 1].tolist()
    connection.execute("DROP TABLE loans")


def test_the_paper_names_every_query_of_the_attack():
    assert PaperName(p=2, j=2, e=0.7, m=5).constant == 100
    names = {PaperName.of(2, constant, 0.7) for constant in CONSTANTS}
    assert {(name.j, name.m) for name in names} == {(j, m) for j in range(1, 6) for m in (2, 5)}
    assert all(PaperName.of(2, name.constant, 0.7) == name for name in names)
    with pytest.raises(InputError, match="no name in the paper"):
        PaperName.of(2, 7, 0.7)


def test_the_modulus_2_name_means_an_even_digit():
    # Digit j of y even; by its definition, not through the SQL.
    ids = np.arange(1000, 1200)
    name = PaperName(p=3, j=2, e=0.5, m=2)
    row = digit_queries(ids, primes=2, exponents=(0.5,), constants=(name.constant,)).matrix[1]
    digits = [int(f"{(3 * i) ** 0.5:.8f}".split(".")[1][1]) for i in ids]
    assert row.tolist() == [int(digit % 2 == 0) for digit in digits]


def test_fragile_queries_are_where_float64_and_exact_differ(bank):
    ids = bank.between(10000, 12000).ids
    by_float, by_exact = (digit_queries(ids, arithmetic=a) for a in (Float64(), Exact()))
    marks = fragile(by_float)
    assert np.array_equal(marks, (by_float.matrix != by_exact.matrix).any(axis=1))
    exponents = by_float.parameters["exponent"]
    assert not marks[exponents < 1].any()
    assert marks[exponents == 1.9].mean() > 0.3
    with pytest.raises(InputError, match="only digit queries"):
        fragile(random_subsets(ids, 3, np.random.default_rng(0)))


def test_without_the_fragile_queries_the_recorded_residuals_shrink(recorded):
    found = recorded["10000-12000"]
    queries, answers = found.log.queries(found.people.ids), found.log.answers()
    residual = answers.values - queries.dot(found.secret.astype(float))
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
