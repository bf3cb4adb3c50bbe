"""Cures of published tables, against all tables that fit what is still shown."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.noise import Below, Range, Shape
from countleak.attack.perturbation import Perturbation
from countleak.attack.rules import Rules
from countleak.audit.releases import audit_tables
from countleak.audit.releases.cure import TIME_IS_UP, cure, forms
from countleak.audit.releases.cure.coarsening import Coarsen
from countleak.audit.releases.cure.rounding import Round, nearest
from countleak.audit.releases.cure.suppress import Suppress
from countleak.audit.releases.cure.writing import write_tables
from countleak.audit.releases.description import Described, read_releases
from countleak.audit.releases.findings import groups_of
from countleak.audit.releases.formats import Why
from countleak.audit.releases.model import Stated, model_of
from countleak.audit.releases.reading import Published, Release
from countleak.errors import InputError

REGIONS, SEXES = ("Hull", "Leeds", "York"), ("F", "M")
MOST = 6
SMALL = 2


def table(counts, rule):
    """Region x sex with all margins; counts of one or two are hidden."""
    cells = dict(zip(product(REGIONS, SEXES), counts, strict=True))
    numbers = []
    for region, sex in product((*REGIONS, "Total"), (*SEXES, "Total")):
        value = sum(
            count
            for (r, s), count in cells.items()
            if region in (r, "Total") and sex in (s, "Total")
        )
        hidden = 0 < value <= SMALL
        numbers.append(Published((region, sex), None if hidden else value))
    rules = Rules(Shape.EXACT, suppressed=Range(1, SMALL) if rule else None)
    return Stated(Release("t", ("region", "sex"), "n", tuple(numbers)), rules)


def given_away(described):
    """The groups that all tables of up to MOST people a cell give away."""
    model = model_of(described.tables, described.trees)
    every = np.array(list(product(range(MOST + 1), repeat=model.ledger.cells)))
    sums = every @ model.ledger.A.toarray().T
    fitting = every[((sums >= model.ledger.low) & (sums <= model.ledger.high)).all(axis=1)]
    assert fitting.size
    if fitting.max() == MOST:
        # Larger counts would fit too.
        return []
    found = []
    for group in groups_of(model, SMALL):
        counts = fitting[:, group.cells].sum(axis=1)
        low, high = counts.min(), counts.max()
        if group.stated is not None:
            width = group.stated[1] - group.stated[0]
            telling = high - low < min(width, 2) and (high == low or low > 0)
        else:
            telling = low > 0 and high <= SMALL and high - low <= 1
        if telling:
            found.append((group.cell, low, high))
    return found


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.booleans())
def test_after_a_cure_other_tables_fit_for_every_group(counts, rule):
    stated = table(counts, rule)
    audit = audit_tables([stated])
    for remedy in (Suppress(), Round(), Coarsen()):
        found = cure(audit, remedy)
        if rule and found.failure:
            # What the rule alone pins, no published number can hide; or it leaves gaps.
            assert found.findings > 0 or any(each.not_looked_at for each in found.after)
            assert "are still pinned" in str(found)
            continue
        assert found.failure is None
        assert all(each.clean for each in found.after)
        for form in forms(found.described):
            assert given_away(form) == []
        assert bool(found.changes) == bool(audit.findings or audit.unproven)


def test_numbers_that_are_not_needed_are_shown_again():
    stated = table([1, 5, 6, 7, 5, 3], rule=False)
    found = cure(audit_tables([stated]), Suppress())
    assert found.failure is None
    # One number in a table with margins takes three more to hide.
    assert found.cost["numbers hidden"] == 3
    hidden = {number.labels for number in found.described.tables[0].release.numbers
              if number.value is None}  # fmt: skip
    for labels in hidden - {("Hull", "F")}:
        numbers = tuple(
            old if new.labels == labels else new
            for old, new in zip(
                stated.release.numbers, found.described.tables[0].release.numbers, strict=True
            )
        )
        release = Release("t", ("region", "sex"), "n", numbers)
        assert audit_tables([Stated(release, Rules(Shape.EXACT))]).findings


NOISES = (
    Rules(Shape.EXACT, base=5, random_rounding=True),
    Rules(Shape.UNIFORM, bound=1, suppressed=Range(1, 2)),
    Rules(Shape.LAPLACE, sigma=0.5, base=3),
    Rules(Shape.EXACT, suppressed=Below(4)),
    Rules(keys=Perturbation.within(2), sticky=True),
    Rules(keys=Perturbation.of_table([(1, -1), (1, 1), (2, 0), (2, 1)]), sticky=True),
)


@pytest.mark.parametrize("rules", NOISES)
def test_rules_are_written_as_they_were_stated(rules, tmp_path):
    numbers = table([3, 6, 9, 6, 3, 6], rule=False).release.numbers
    numbers = (
        replace(numbers[0], value=None),
        *(replace(n, value=n.value * 5) for n in numbers[1:]),
    )
    stated = Stated(Release("t", ("region", "sex"), "n", numbers), rules)
    again = read_releases([write_tables(Described((stated,), {}), tmp_path / "new")[-1]])
    assert again.tables[0].rules == rules


@pytest.mark.parametrize("remedy", [Round(), Coarsen()])
def test_what_is_not_exact_is_neither_rounded_nor_merged(remedy):
    exact = table([5, 5, 5, 5, 5, 1], rule=False)
    pinned = audit_tables([replace(exact, rules=Rules(Shape.UNIFORM, bound=0.25))])
    assert pinned.findings
    assert cure(pinned, remedy).failure == "no published number is left to change"


def test_noisy_numbers_are_hidden_and_shown_again_as_the_ranges_that_they_are():
    noisy = replace(table([5, 5, 5, 5, 5, 1], rule=False), rules=Rules(Shape.UNIFORM, bound=0.25))
    found = cure(audit_tables([noisy]), Suppress())
    assert found.failure is None
    assert all(each.clean for each in found.after)
    assert found.cost["numbers hidden"] == 3


def test_tables_that_contradict_each_other_are_not_cured():
    stated = table([1, 5, 6, 7, 5, 3], rule=False)
    first, *others = stated.release.numbers[1:]
    odd = (stated.release.numbers[0], replace(first, value=first.value + 1), *others)
    audit = audit_tables([stated, Stated(Release("u", ("region", "sex"), "n", odd), stated.rules)])
    assert audit.contradicts and not audit.clean
    found = cure(audit, Suppress())
    assert found.failure == "the tables contradict each other"
    assert "still pinned" not in str(found)
    record = found.record()
    assert record["findings_after"] is None and not record["exact_after"]


def test_a_rule_that_some_marks_do_not_share_is_not_written_for_them(tmp_path):
    stated = table([0, 5, 6, 7, 5, 3], rule=False)
    first, second, *others = stated.release.numbers
    numbers = (replace(first, value=None, why=Why.SECONDARY), replace(second, value=None), *others)
    mixed = Stated(
        Release("t", ("region", "sex"), "n", numbers), Rules(Shape.EXACT, suppressed=Range(1, 6))
    )
    paths = write_tables(Described((mixed,), {}), tmp_path / "new")
    assert "suppressed" not in paths[-1].read_text()


def test_time_that_runs_out_is_no_cure():
    audit = audit_tables([table([1, 5, 6, 7, 5, 3], rule=False)])
    found = cure(audit, Suppress(), time_limit=0.0)
    assert found.failure == TIME_IS_UP
    assert "still pinned" in str(found)
    assert found.record()["findings_after"] == len(audit.findings) > 0


def test_noisy_tables_cannot_be_rounded_and_the_cure_says_so():
    stated = table([1, 5, 6, 7, 5, 3], rule=False)
    audit = audit_tables([stated])
    found = cure(audit, Round(bases=()))
    assert found.failure == "no published number is left to change"


@pytest.mark.parametrize("remedy", [Suppress(), Round(), Coarsen()])
def test_written_tables_are_read_as_cured_and_nothing_is_overwritten(remedy, tmp_path):
    found = cure(audit_tables([table([1, 5, 6, 7, 5, 3], rule=True)]), remedy)
    paths = write_tables(found.described, tmp_path / "new")
    again = read_releases([paths[-1]])
    assert audit_tables(again.tables, again.trees).clean
    with pytest.raises(InputError, match="is there already"):
        write_tables(found.described, tmp_path / "new")


def test_the_nearest_multiple_is_the_upper_of_two():
    assert [nearest(value, 10) for value in (0, 4, 5, 14, 15, 24)] == [0, 0, 10, 10, 20, 20]
    assert [nearest(value, 3) for value in (0, 1, 2, 4, 5)] == [0, 0, 3, 3, 6]
