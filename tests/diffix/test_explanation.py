"""What is said of an answer is what made the answer."""

import pytest

import countleak as cl
from countleak.diffix.explanation import CELL, GENERIC, explain
from countleak.diffix.noise import STAR
from countleak.diffix.salt import Salt
from countleak.errors import Refused

DIGIT = (
    "floor(100 * pow(client_id * 2, 0.7) + 0.5) = floor(100 * pow(client_id * 2, 0.7)) "
    "AND status = 'C' AND client_id BETWEEN 2000 AND 3000"
)
WHERE = {
    "": 1,
    "WHERE status = 'C'": 2,
    "WHERE status <> 'C'": 3,
    f"WHERE {DIGIT}": 4,
    "WHERE duration IN (12, 24) AND status LIKE '%C%'": 6,
    "WHERE amount IS NOT NULL AND duration = 12": 4,
    "WHERE status = 'C' AND status = 'C'": 2,
}


@pytest.fixture(scope="module")
def systems(bank):
    salt = Salt(b"a salt for tests")
    return {name: cl.Diffix(bank, release=name, salt=salt).engine for name in ("18.1", "tables")}


@pytest.mark.parametrize("where", WHERE)
def test_the_layers_make_the_noise_and_the_noise_makes_the_answer(systems, where):
    engine = systems["18.1"]
    explanation = explain(engine, f"SELECT count(*) FROM loans {where}")
    (bucket,) = explanation.buckets
    counted = [layer for layer in bucket.layers if not layer.repeated]
    assert len(counted) == WHERE[where]
    assert sum(layer.noise for layer in counted) == pytest.approx(bucket.noise)
    assert bucket.sd == pytest.approx(2 * len(counted) ** 0.5)
    (row,) = explanation.answer.rows
    assert row.values == (max(round(bucket.users + bucket.noise), 2),)
    assert explanation.answer == engine.ask(f"SELECT count(*) FROM loans {where}")


def test_the_truth_is_the_count_of_the_people(systems, bank):
    (bucket,) = explain(
        systems["18.1"], "SELECT count(*) FROM loans WHERE status = 'C' AND duration = 12"
    ).buckets
    held = (bank.column("status") == "C") & (bank.column("duration") == 12)
    assert bucket.users == held.sum()


def test_the_condition_that_costs_no_noise_is_named(systems):
    explanation = explain(systems["18.1"], f"SELECT count(*) FROM loans WHERE {DIGIT}")
    assert explanation.silent == (explanation.conditions[0],)
    assert "pow(client_id * 2, 0.7)" in explanation.silent[0]
    sources = [layer.source for layer in explanation.buckets[0].layers]
    assert sources == ["status = 'C'"] * 2 + ["2000 <= client_id < 3000"] * 2
    assert [layer.users for layer in explanation.buckets[0].layers] == [False, True] * 2


def test_a_suppressed_count_is_told_as_one(systems):
    explanation = explain(systems["18.1"], "SELECT count(*) FROM loans WHERE client_id = 2")
    (bucket,) = explanation.buckets
    assert bucket.users == 1 < bucket.threshold
    assert not bucket.released
    assert not explanation.answer.rows[0].released


def test_groups_are_told_by_their_keys_and_shown_rows_are_those_that_pass(systems):
    question = "SELECT status, count(*) FROM loans WHERE duration = 12 GROUP BY status"
    explanation = explain(systems["18.1"], question)
    shown = {row.values[0]: row.values[1] for row in explanation.answer.rows}
    passed = {b.key[0]: round(b.users + b.noise) for b in explanation.buckets if b.released}
    # Those that do not pass are merged into a row of their own.
    assert {key: max(count, 2) for key, count in passed.items()} == {
        key: count for key, count in shown.items() if key != STAR
    }
    assert {layer.source for layer in explanation.buckets[0].layers} == {
        "duration = 12",
        "GROUP BY status",
    }


def test_what_comes_from_no_one_condition_says_so(systems):
    assert explain(systems["18.1"], "SELECT count(*) FROM loans").buckets[0].layers[0].source == (
        GENERIC
    )
    cell = explain(systems["tables"], "SELECT count(*) FROM loans WHERE status = 'C'").buckets[0]
    assert {layer.source for layer in cell.layers} == {CELL}


def test_noise_of_a_sum_is_not_told_as_if_it_were_a_count(systems):
    assert not explain(systems["18.1"], "SELECT sum(amount) FROM loans").counts_users


def test_a_refusal_stays_one(systems):
    with pytest.raises(Refused, match="OR"):
        explain(systems["18.1"], "SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'")
