"""Whatever tables were made by, the counts that they were made of are among those left."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.audit.releases import audit_tables
from countleak.audit.releases.mechanisms import rules_of
from countleak.audit.releases.model import Stated
from countleak.audit.releases.reading import Published, Release

REGIONS, SEXES = ("a", "b", "c"), ("f", "m")


def made(record, count, rng, key):
    """A count as a mechanism shows it, None where it does not; simulated here, by its own words."""
    low, _, high = record.get("suppressed", "-1..-1").partition("..")
    if int(low) <= count <= int(high):
        return None
    number = count
    if base := record.get("rounded_to"):
        up = rng.random() < count % base / base
        near = (count + base // 2) // base
        number = base * (near if "rounding" not in record else count // base + up)
    if bound := record.get("noise_within"):
        number = count + int(rng.integers(-bound, bound + 1))
    if (bound := record.get("perturbed_within")) and count:
        number = max(0, count + key % (2 * bound + 1) - bound)
    return None if number < record.get("not_shown_below", -99) else number


RECORDS = (
    {"exact": True},
    {"exact": True, "suppressed": "1..3"},
    {"exact": True, "suppressed": "0..2"},
    {"rounded_to": 3, "rounding": "random"},
    {"rounded_to": 5, "suppressed": "0..4"},
    {"rounded_to": 3, "not_shown_below": 3},
    {"noise_within": 1},
    {"noise_within": 2, "not_shown_below": 2},
    {"perturbed_within": 2},
    {"perturbed_within": 1, "not_shown_below": 2},
)


def released(name, record, counts, rng):
    """A table of all cells and margins, by region and sex."""
    numbers = []
    for i, j in product(range(4), range(3)):
        at = (i if i < 3 else slice(None), j if j < 2 else slice(None))
        labels = ((*REGIONS, "Total")[i], (*SEXES, "Total")[j])
        shown = made(record, int(np.sum(counts[at])), rng, key=7 * i + 3 * j)
        numbers.append(Published(labels, shown))
    return Stated(Release(name, ("region", "sex"), "n", tuple(numbers)), rules_of("r", record))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 8), min_size=6, max_size=6),
    st.lists(st.sampled_from(RECORDS), min_size=1, max_size=2),
    st.integers(0, 99),
)
def test_the_truth_is_left(counts, records, seed):
    counts, rng = np.array(counts).reshape(3, 2), np.random.default_rng(seed)
    tables = [released(f"t{at}", record, counts, rng) for at, record in enumerate(records)]
    result = audit_tables(tables)
    assert result.contradiction is None
    for group, interval in zip(result.groups, result.intervals, strict=True):
        assert interval.low <= counts.ravel()[group.cells].sum() <= interval.high
    for finding in result.findings:
        at = tuple(
            names.index(finding.cell[axis])
            if finding.cell.get(axis, "Total") != "Total"
            else slice(None)
            for axis, names in (("region", REGIONS), ("sex", SEXES))
        )
        assert finding.low <= counts[at].sum() <= finding.high
        assert finding.rests_on.startswith("the rules stated")
