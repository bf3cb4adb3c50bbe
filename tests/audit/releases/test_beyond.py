"""Disclosures, members, data sets and probabilities of tables, against all tables that fit."""

from collections import Counter
from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.noise import Range, Shape
from countleak.attack.rules import Rules
from countleak.audit.releases import audit_tables
from countleak.audit.releases.disclosures import disclosures
from countleak.audit.releases.likely import (
    Posterior,
    fitted_rates,
    likely_counts,
    likely_disclosures,
)
from countleak.audit.releases.membership import IN, OUT, UNKNOWN, membership, person_of
from countleak.audit.releases.model import Stated
from countleak.audit.releases.reading import Published, Release
from countleak.audit.releases.records import reconstruct_records
from countleak.errors import InputError

REGIONS, STATUS = ("Hull", "Leeds"), ("A", "B", "C")
MOST = 5


def audited(counts, hidden=(), rule=None):
    """Region x status with margins; the cells ``hidden`` are not shown."""
    cells = dict(zip(product(REGIONS, STATUS), counts, strict=True))
    numbers = []
    for at, (region, status) in enumerate(product((*REGIONS, "Total"), (*STATUS, "Total"))):
        value = sum(
            count
            for (r, s), count in cells.items()
            if region in (r, "Total") and status in (s, "Total")
        )
        numbers.append(Published((region, status), None if at in hidden else value))
    rules = Rules(Shape.EXACT, suppressed=rule)
    return audit_tables([Stated(Release("t", ("region", "status"), "n", tuple(numbers)), rules)])


def fitting(audit):
    """All tables that fit; the total must be shown."""
    model = audit.model
    every = np.array(list(product(range(MOST + 1), repeat=model.ledger.cells)))
    sums = every @ model.ledger.A.toarray().T
    return every[((sums >= model.ledger.low) & (sums <= model.ledger.high)).all(axis=1)]


# The grand total, the last of the twelve numbers, is shown.
tables = st.tuples(
    st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6),
    st.sets(st.integers(0, 10), max_size=6),
).filter(lambda case: sum(case[0]) <= MOST)


@settings(max_examples=12, deadline=None)
@given(tables)
def test_what_is_said_of_groups_and_people_holds_in_all_tables_that_fit(case):
    audit = audited(*case)
    every = fitting(audit)
    shape = tuple(len(axis.groups) for axis in audit.model.axes)
    cubes = every.reshape(-1, *shape)
    found = disclosures(audit, "status")
    assert found.exact
    told = {(each.cell.get("region"), each.value) for each in found.found}
    expected = set()
    for at, region in ((None, None), *enumerate(REGIONS)):
        groups = cubes.sum(axis=1) if at is None else cubes[:, at]
        held = np.flatnonzero(groups.any(axis=0))
        parent = region is not None and (None, STATUS[held[0]]) in expected if held.size else False
        if groups.sum(axis=1).min() > 0 and held.size == 1 and not parent:
            expected.add((region, STATUS[held[0]]))
    assert told <= expected
    assert len(expected - told) == found.unproven
    for each in found.found:
        assert each.others.low == each.others.high == 0
        assert each.others.equation
        assert each.members.low >= 1
    for at, region in enumerate(REGIONS):
        counts = cubes[:, at, 0]
        said = membership(audit, {"region": region, "status": "A"})
        assert (said.low, said.high) == (counts.min(), counts.max())
        verdict = IN if counts.min() else UNKNOWN if counts.max() else OUT
        assert said.verdict == verdict
        follows = membership(audit, {"region": region}).follows["status"]
        assert set(follows) == {STATUS[k] for k in range(3) if cubes[:, at, k].any()}


@settings(max_examples=12, deadline=None)
@given(tables)
def test_probabilities_are_those_of_all_tables_that_fit(case):
    audit = audited(*case)
    every, rate = fitting(audit), fitted_rates(audit.model)
    weight = np.array(
        [exp(sum(k * log(r) - lgamma(k + 1) for k, r in zip(x, rate, strict=True)))
         for x in every.tolist()]
    )  # fmt: skip
    weight /= weight.sum()
    posterior = Posterior(audit.model)
    beliefs = likely_counts(audit, posterior)
    assert not beliefs.withdrawn
    by_cell = {tuple(group.cell.items()): group for group in audit.groups}
    for belief in beliefs.beliefs:
        counts = every[:, by_cell[tuple(belief.cell.items())].cells].sum(axis=1)
        exact = np.bincount(counts, weights=weight, minlength=len(belief.probability))
        assert np.allclose(exact, belief.probability)
    for cell, value, chance in likely_disclosures(audit, "status", posterior).found:
        at = [k for k, region in enumerate(REGIONS) if region in cell.values()] or [0, 1]
        others = [k for k in range(3) if STATUS[k] != value]
        counts = every.reshape(-1, 2, 3)[:, at][:, :, others].sum(axis=(1, 2))
        assert np.isclose(weight[counts == 0].sum(), chance)
        assert chance >= 0.95


def test_a_written_data_set_counts_to_what_was_published(tmp_path):
    audit = audited([1, 0, 2, 0, 1, 1], hidden={0, 1, 4, 5})
    found = reconstruct_records(audit.model)
    found.write(tmp_path / "people.csv")
    header, *rows = (tmp_path / "people.csv").read_text().splitlines()
    assert header == "region,status"
    people = Counter(tuple(row.split(",")) for row in rows)
    for number in audit.model.numbers:
        if number.value is not None:
            region, status = number.cell.values()
            assert number.value == sum(
                count
                for (r, s), count in people.items()
                if region in (r, "Total") and status in (s, "Total")
            )
    # One person of Hull and one of Leeds can change places.
    assert found.variability.at_least == 2
    assert found.share == 2 / 5
    with pytest.raises(InputError, match="cannot be written"):
        found.write(tmp_path / "people.csv")


def test_published_whole_the_data_are_determined():
    found = reconstruct_records(audited([1, 0, 2, 0, 1, 1]).model)
    assert found.record()["differ_at_most"] == 0
    assert str(found) == "The data are determined: 5 people, and no other data set fits."


def test_rates_are_products_of_shares():
    rate = fitted_rates(audited([2, 4, 6, 1, 2, 3]).model)
    assert np.allclose(rate, [2, 4, 6, 1, 2, 3], rtol=1e-3)


def test_a_rule_narrows_what_is_likely():
    audit = audited([2, 2, 3, 2, 2, 3], hidden={0, 1, 4, 5}, rule=Range(1, 2))
    # Four in each row and column that are at most two each: all is known.
    assert all(interval.pinned for interval in audit.intervals)
    assert likely_counts(audit, Posterior(audit.model)).beliefs == ()


@pytest.mark.parametrize("text", ["Leeds", "region=", "region=Leeds,region=Hull", "=Leeds"])
def test_a_person_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="cannot be read"):
        person_of(text)


def test_people_and_columns_that_no_table_has_are_refused():
    audit = audited([1, 0, 2, 0, 1, 1])
    with pytest.raises(InputError, match="no table has a dimension 'sex'"):
        disclosures(audit, "sex")
    with pytest.raises(InputError, match="region has no 'York'"):
        membership(audit, {"region": "York"})
