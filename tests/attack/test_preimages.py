"""The counts that stated rules leave behind a number, against all counts tried one by one."""

from math import inf

import pytest

from countleak.attack.noise import Below, Range, Shape
from countleak.attack.perturbation import Perturbation
from countleak.attack.preimages import counts_behind, counts_hidden, counts_kept_back
from countleak.attack.rules import Rules
from countleak.errors import InputError

COUNTS = range(40)
PTABLE = Perturbation.of_table([(1, -1), (1, 2), (2, -2), (2, 1), (3, 0), (4, -1), (4, 1)])


def nearest(count):
    """Half a base may go either way."""
    return {base for base in range(0, 60, 5) if abs(base - count) * 2 <= 5}


def either(count):
    return {count // 3 * 3, -(-count // 3) * 3}


def keyed(count):
    spread = {0: (0,), 1: (-1, 2), 2: (-2, 1), 3: (0,), 4: (-1, 1)}
    return {count + added for added in spread.get(count, range(-2, 3))}


@pytest.mark.parametrize(
    ("rules", "shown", "hidden"),
    [
        (Rules(Shape.EXACT), lambda c: {c}, lambda c: False),
        (Rules(Shape.EXACT, suppressed=Range(1, 4)), lambda c: {c}, lambda c: 1 <= c <= 4),
        (Rules(Shape.EXACT, base=5), nearest, lambda c: False),
        (Rules(Shape.EXACT, base=5, suppressed=Range(0, 7)), nearest, lambda c: c <= 7),
        (Rules(Shape.EXACT, base=5, suppressed=Range(0, 8)), nearest, lambda c: c <= 8),
        (Rules(Shape.EXACT, base=3, random_rounding=True), either, lambda c: False),
        (Rules(Shape.UNIFORM, bound=2), lambda c: set(range(c - 2, c + 3)), lambda c: False),
        (Rules(keys=PTABLE), keyed, lambda c: False),
        (Rules(keys=PTABLE, suppressed=Range(0, 2)), keyed, lambda c: c <= 2),
    ],
)
def test_what_is_left_is_the_span_of_what_is_possible(rules, shown, hidden):
    for number in range(30):
        possible = [c for c in COUNTS if number in shown(c) and not hidden(c)]
        expected = (min(possible), max(possible)) if possible else None
        assert counts_behind(rules, number) == expected, number
    unseen = [c for c in COUNTS if hidden(c)]
    assert counts_hidden(rules) == ((min(unseen), max(unseen)) if unseen else (0, inf))


def test_a_threshold_on_what_is_shown_bounds_what_is_not():
    rules = Rules(keys=PTABLE, suppressed=Below(4))
    assert counts_hidden(rules) == (0, max(c for c in COUNTS if min(keyed(c)) < 4))
    rounded = Rules(Shape.EXACT, base=5, suppressed=Below(10))
    # 7 and less become 5 or 0.
    assert counts_hidden(rounded) == (0, 7)


def test_what_was_not_hidden_for_its_size_lies_above_the_threshold():
    assert counts_kept_back(Rules(Shape.EXACT, suppressed=Range(0, 4))) == (5, inf)
    # A 0 that is shown otherwise may still be one that protects others.
    assert counts_kept_back(Rules(Shape.EXACT, suppressed=Range(1, 4))) == (0, inf)


def test_noise_without_bound_bounds_counts_only_as_far_as_is_said():
    rules = Rules(sigma=4.0)
    assert counts_behind(rules, 10.5) == (0, inf)
    assert counts_behind(rules, 10.5, within=3.0) == (8, 13)
    assert counts_behind(rules, -9.0, within=3.0) is None


def test_any_perturbation_within_a_bound_leaves_nobody_as_nobody():
    within = Perturbation.within(2)
    assert [within.counts_behind(number) for number in (0, 1, 5)] == [(0, 2), (1, 3), (3, 7)]
    assert Rules(keys=within).words == (
        "counts are perturbed by cell keys, by at most 2, and 0 not at all",
    )


@pytest.mark.parametrize("rows", [[], [(2, 1)], [(1, 0), (3, 1)], [(-1, 0), (1, 0)]])
def test_a_p_table_needs_every_count(rows):
    with pytest.raises(InputError, match="a row for each count from 1"):
        Perturbation.of_table(rows)
