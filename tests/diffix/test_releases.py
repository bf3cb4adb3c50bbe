import numpy as np
import pytest

import countleak as cl
from countleak.attack.queries.digits import digit_queries_of
from countleak.diffix.releases import RELEASES, release_of
from countleak.diffix.salt import Salt
from countleak.errors import InputError, Refused
from tests.diffix.conftest import loans_engine

DIGITS = "floor(10 * pow((client_id * 2),0.7) + 0.5) = floor(10 * pow((client_id * 2), 0.7))"
ATTACK = f"WHERE {DIGITS} AND status = 'C' AND client_id BETWEEN 2000 AND 3000"


def noise(bank, release, text, exact, salts=100):
    answers = [
        loans_engine(bank, release, salt).ask(text).rows[0].values[-1] for salt in range(salts)
    ]
    return np.array(answers) - exact


@pytest.mark.slow
def test_paper_has_sd_1_a_condition(bank):
    people = bank.between(2000, 2999)
    queries = digit_queries_of(people.ids, np.array([2]), np.array([10]), np.array([0.7]))
    exact = queries.dot(people.truth(cl.Bit("status = 'C'")).astype(float))[0]
    found = noise(bank, "paper", f"SELECT count(*) FROM loans {ATTACK}", exact)
    # Three conditions and rounding; four standard errors of an SD over 100 salts are 28%.
    assert abs(found.std() / np.sqrt(3 + 1 / 12) - 1) < 0.28


def test_tables_have_two_layers_of_sd_1_in_all(bank):
    exact = ((bank.columns["status"] == "C") & (bank.columns["duration"] == 12)).sum()
    text = "SELECT count(*) FROM loans WHERE status = 'C' AND duration = 12"
    found = noise(bank, "tables", text, exact)
    assert abs(found.std() / np.sqrt(2 + 1 / 12) - 1) < 0.28


def test_the_attack_still_works_on_the_papers_words(bank):
    people, secret = bank.between(2000, 2999), cl.Bit("status = 'C'")
    system = cl.Diffix(bank, secret, "paper", Salt(b"a salt for tests"))
    run = cl.reconstruct(cl.digit_queries(people.ids, primes=5), system)
    assert cl.score(run.guess, people.truth(secret)).accuracy >= 0.95


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM loans WHERE status <> 'C'",
        "SELECT count(*) FROM loans WHERE amount BETWEEN 0 AND 10",
        "SELECT count(*) FROM loans WHERE status IN ('A', 'B')",
        "SELECT count(*) FROM loans WHERE floor(amount) = 3",
        "SELECT count(*) FROM loans WHERE client_id = 3",
        "SELECT client_id, count(*) FROM loans GROUP BY 1",
        "SELECT count(*) FROM loans WHERE floor_by(client_id, 10) = 20",
        "SELECT substring(status, 2, 1), count(*) FROM loans GROUP BY 1",
        "SELECT floor_by(amount, 3), count(*) FROM loans GROUP BY 1",
        "SELECT floor_by(amount + 1, 10), count(*) FROM loans GROUP BY 1",
        "SELECT sum(amount) FROM loans",
        f"SELECT count(*) FROM loans {ATTACK}",
    ],
)
def test_tables_refuse_all_but_tables(bank, text):
    with pytest.raises(Refused):
        loans_engine(bank, "tables").ask(text)


def test_tables_answer_generalised_groups(bank):
    engine = loans_engine(bank, "tables")
    rows = engine.ask("SELECT floor_by(amount, 50000), count(*) FROM loans GROUP BY 1").rows
    amounts, counts = np.unique(bank.columns["amount"] // 50_000 * 50_000, return_counts=True)
    exact = dict(zip(amounts.tolist(), counts.tolist(), strict=True))
    shown = {row.values[0]: row.values[1] for row in rows if row.values[0] != "*"}
    assert len(shown) > 5
    assert {type(amount) for amount in shown} == {int}
    assert all(abs(exact[amount] - count) <= 8 for amount, count in shown.items())
    cell = "SELECT count(*) FROM loans WHERE floor_by(amount, 50000) = 50000 AND status = 'C'"
    assert engine.ask(cell).rows[0].released


def test_tables_group_by_ranges_of_the_user_id_as_pg_diffix_does(bank):
    text = "SELECT floor_by(client_id, 1000), count(*) FROM loans GROUP BY 1"
    rows = loans_engine(bank, "tables").ask(text).rows
    ids, counts = np.unique(bank.ids // 1000 * 1000, return_counts=True)
    exact = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    assert len(rows) == len(exact)
    assert all(abs(exact[row.values[0]] - row.values[1]) <= 8 for row in rows)


def test_only_tables_know_their_functions(bank):
    with pytest.raises(Refused, match="do not exist in this release"):
        loans_engine(bank).ask("SELECT round_by(amount, 10), count(*) FROM loans GROUP BY 1")


def test_18_3_lets_clear_conditions_on_isolating_columns_pass(bank):
    engine = loans_engine(bank, "18.3")
    assert "amount" in engine.database.table.isolating
    assert (
        engine.ask("SELECT count(*) FROM loans WHERE amount BETWEEN 0 AND 200000").rows[0].released
    )
    engine.ask("SELECT count(*) FROM loans WHERE amount = 5000")
    with pytest.raises(Refused, match="The column `amount` is isolating"):
        engine.ask("SELECT count(*) FROM loans WHERE floor(amount / 10) = 5")
    with pytest.raises(Refused, match="The column `amount` is isolating"):
        engine.ask("SELECT floor(amount / 10), count(*) FROM loans GROUP BY 1")


def test_releases_go_by_name():
    assert [release_of(name).name for name in RELEASES] == ["18.1", "18.3", "paper", "tables"]
    with pytest.raises(InputError, match=r"choose 18\.1, 18\.3, paper, tables"):
        release_of("17")
