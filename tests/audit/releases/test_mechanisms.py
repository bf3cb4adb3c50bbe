"""Mechanisms stated in a `releases.toml`: what they are as rules, and what they pin together."""

from itertools import product

import numpy as np
import pytest

from countleak.attack.ledger.bounds import Bounder
from countleak.attack.noise import Below, Range, Shape
from countleak.attack.perturbation import Perturbation
from countleak.attack.rules import Rules
from countleak.audit.releases import audit_tables
from countleak.audit.releases.formats import Why
from countleak.audit.releases.mechanisms import (
    marks_of,
    reach_by_chance,
    read_p_table,
    rules_of,
)
from countleak.audit.releases.model import Stated, model_of
from countleak.audit.releases.reading import Published, Release
from countleak.errors import InputError


@pytest.mark.parametrize(
    ("record", "rules"),
    [
        ({"exact": True}, Rules(Shape.EXACT)),
        (
            {"rounded_to": 5, "suppressed": "0..7"},
            Rules(Shape.EXACT, base=5, suppressed=Range(0, 7)),
        ),
        (
            {"rounded_to": 3, "rounding": "controlled"},
            Rules(Shape.EXACT, base=3, random_rounding=True),
        ),
        ({"noise_within": 2}, Rules(Shape.UNIFORM, bound=2)),
        ({"noise_sd": 4}, Rules(Shape.GAUSSIAN, sigma=4)),
        ({"noise_sd": 4, "noise_law": "Laplace"}, Rules(Shape.LAPLACE, sigma=4)),
        (
            {"perturbed_within": 2, "not_shown_below": 3},
            Rules(keys=Perturbation.within(2), sticky=True, suppressed=Below(3)),
        ),
    ],
)
def test_a_record_is_the_rules_it_states(record, rules):
    assert rules_of("r.toml", record) == rules


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"exact": True, "noise_sd": 4}, "exact and noise_sd exclude each other"),
        ({"noise_within": 2, "noise_sd": 4}, "exclude each other"),
        ({"exact": False}, "exact is False"),
        ({"rounding": "random"}, "rounding needs its base"),
        ({"rounded_to": 1}, "write a whole number from 2"),
        ({"noise_sd": -1}, "write a number above 0"),
        ({"noise_law": "Laplace"}, "without noise_sd"),
        ({"noise_sd": 1, "noise_law": "Cauchy"}, "write one of normal, Laplace"),
        ({"perturbed_within": 0.5}, "a whole number from 1"),
        ({"suppressed": "1..4", "not_shown_below": 5}, "exclude each other"),
        ({"p_table": "none.csv"}, "none.csv: no such file"),
    ],
)
def test_what_cannot_be_a_rule_is_named(record, complaint):
    with pytest.raises(InputError, match=complaint):
        rules_of("r.toml", record)


def test_marks_are_reasons_or_counts():
    found = marks_of("r.toml", {"c": "primary", "x": "secondary", "<5": "1..4"})
    assert found == {"c": Why.PRIMARY, "x": Why.SECONDARY, "<5": Range(1, 4)}
    with pytest.raises(InputError, match="the mark c is 'secret'"):
        marks_of("r.toml", {"c": "secret"})


@pytest.mark.parametrize(
    "text",
    ["pcv,ckey,pvalue\n1,0,-1\n1,1,1\n2,0,0\n", "i,j,p,v\n1,0,0.5,-1\n1,2,0.5,1\n2,2,1,0\n"],
)
def test_p_tables_of_two_offices_are_read(tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    assert read_p_table(tmp_path / "p.csv") == Perturbation(
        (frozenset({0}), frozenset({-1, 1}), frozenset({0}))
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a,b\n1,2\n", "has the columns"), ("pcv,pvalue\n1,x\n", "p.csv line 2: no whole numbers")],
)
def test_a_damaged_p_table_gets_one_line(tmp_path, text, complaint):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_p_table(tmp_path / "p.csv")


@pytest.mark.parametrize("law", [Shape.GAUSSIAN, Shape.LAPLACE])
def test_noise_of_a_stated_sd_stays_within_its_reach_in_99_of_100_tables(law):
    rng, numbers, tables = np.random.default_rng(5), 50, 4000
    draw = rng.normal if law is Shape.GAUSSIAN else rng.laplace
    scale = 4.0 if law is Shape.GAUSSIAN else 4.0 / np.sqrt(2)
    reach, words = reach_by_chance(Rules(law, sigma=4.0), numbers, whole=False)
    broken = (np.abs(draw(0, scale, (tables, numbers))) > reach).any(axis=1).mean()
    # Five standard errors of a share of 0.01 are 0.008.
    assert 0.002 < broken < 0.018
    assert words.endswith("of their counts, which 1 of 100 such tables breaks")


def margins(counts, shown):
    """All margins of yes/no variables as one table."""
    numbers = []
    for labels in product(("yes", "no", "Total"), repeat=counts.ndim):
        at = tuple({"yes": 0, "no": 1, "Total": slice(None)}[label] for label in labels)
        numbers.append(Published(labels, shown(int(np.sum(counts[at])))))
    return Release("margins", tuple("abcdef"[: counts.ndim]), "n", tuple(numbers))


@pytest.mark.parametrize("people", [150, 1000])
def test_all_margins_of_six_variables_pin_every_cell_though_redacted_and_rounded(people):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(people, rng.dirichlet(np.ones(64))).reshape((2,) * 6)
    release = margins(counts, lambda count: None if count <= 7 else 5 * ((count + 2) // 5))
    rules = rules_of("r.toml", {"rounded_to": 5, "suppressed": "0..7"})
    bounder = Bounder(model_of([Stated(release, rules)]).ledger)
    intervals = [bounder.interval(np.array([cell])) for cell in range(64)]
    assert [each.low for each in intervals] == counts.ravel().tolist()
    assert all(each.pinned for each in intervals)


def table(name, numbers):
    cells = tuple(Published((sex,), count) for sex, count in numbers.items())
    return Release(name, ("sex",), "n", cells)


def test_what_follows_from_likely_noise_rests_on_its_chance():
    exact = Stated(table("exact", {"Total": 9}), Rules(Shape.EXACT))
    rules = rules_of("r.toml", {"noise_sd": 0.2})
    within, words = reach_by_chance(rules, 2, whole=False)
    noisy = Stated(table("noisy", {"F": 7.9}), rules, (words,), within)
    hidden = Stated(table("hidden", {"M": None}), Rules(Shape.EXACT))
    result = audit_tables([exact, noisy, hidden])
    found = {finding.name: finding for finding in result.findings}
    assert (found["M"].low, found["M"].high) == (1, 1)
    assert "which 1 of 100 such tables breaks" in found["M"].rests_on
    assert "the rules stated" not in found["M"].rests_on


def test_a_rounded_number_of_which_others_tell_more_is_a_finding():
    rounded = Stated(table("rounded", {"F": 0, "M": 10}), rules_of("r.toml", {"rounded_to": 5}))
    exact = Stated(table("exact", {"M": 9, "Total": 10}), Rules(Shape.EXACT))
    assert audit_tables([rounded]).findings == ()
    assert [(f.name, f.low, f.high) for f in audit_tables([rounded, exact]).findings] == [
        ("F", 1, 1)
    ]


def test_cell_keys_show_the_same_people_alike():
    rules = rules_of("r.toml", {"perturbed_within": 2})
    first = Stated(table("first", {"F": 7, "M": 5}), rules)
    assert audit_tables([first, Stated(table("second", {"F": 7}), rules)]).contradiction is None
    result = audit_tables([first, Stated(table("second", {"F": 6}), rules)])
    assert str(result.contradiction).startswith(
        "These numbers cannot all be true of the same people: first: F (7) [5 to 9]; second: F (6)"
    )


def test_a_number_that_the_rules_do_not_give_is_named():
    stated = Stated(table("t", {"F": 7}), rules_of("r.toml", {"rounded_to": 5}))
    with pytest.raises(InputError, match=r"t: F \(7\) is a number that no count gives"):
        model_of([stated])


def test_secondary_marks_lie_above_the_threshold_and_unknown_ones_anywhere():
    rules = rules_of("r.toml", {"exact": True, "suppressed": "0..4"})
    marked = (
        Published(("a",), None, None, "c", Why.PRIMARY),
        Published(("b",), None, None, "x", Why.SECONDARY),
        Published(("c",), None, None, "n", Why.UNKNOWN),
        Published(("d",), None, Range(0, 2), "<3", Why.PRIMARY),
    )
    ledger = model_of([Stated(Release("t", ("k",), "n", marked), rules)]).ledger
    assert ledger.low.tolist() == [0, 5, 0, 0]
    assert ledger.high.tolist() == [4, np.inf, np.inf, 2]
