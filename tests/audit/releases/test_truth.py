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


def places_of(label, names):
    """The places of a label: one, all, or all but one."""
    if label == "Total":
        return list(range(len(names)))
    if label.startswith("all but "):
        return [at for at, name in enumerate(names) if name != label.removeprefix("all but ")]
    return [names.index(label)]


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
        at = np.ix_(
            *(
                places_of(finding.cell.get(axis, "Total"), names)
                for axis, names in (("region", REGIONS), ("sex", SEXES))
            )
        )
        assert finding.low <= counts[at].sum() <= finding.high
        assert finding.rests_on.startswith("the rules stated")


def table(name, record, dimensions, *numbers):
    published = tuple(Published(tuple(labels), value) for *labels, value in numbers)
    return Stated(Release(name, dimensions, "n", published), rules_of("r", record))


def test_a_finer_table_hides_no_finding_of_a_coarser_one():
    # One person aged 0 to 30 in York, whom another table has by finer ages of everybody.
    first = table(
        "t0",
        {"exact": True},
        ("region", "age"),
        ("Leeds", "0-30", 10),
        ("Total", "0-30", 11),
        ("Leeds", "31+", 9),
        ("York", "31+", 8),
    )
    finer = table("t1", {"exact": True}, ("age",), ("0-15", 6), ("16-30", 5), ("31+", 17))
    for tables in ([first], [first, finer]):
        (finding,) = audit_tables(tables).findings
        assert (finding.name, finding.low, finding.high) == ("York, 0-30", 1, 1)


def test_what_two_bands_pin_between_them_is_found_where_a_third_table_cuts_it():
    bands = [("30-64", 10), ("65+", 5)], [("35-64", 9), ("65+", 5)], [("30-31", 0), ("32-99", 15)]
    tables = [
        table(f"t{at}", {"noise_within": 2} if at == 2 else {"exact": True}, ("age",), *some)
        for at, some in enumerate(bands)
    ]
    found = {finding.name: (finding.low, finding.high) for finding in audit_tables(tables).findings}
    assert found == {"30-64 but not 35-64": (1, 1)}


def test_rounded_numbers_below_a_threshold_are_those_of_small_multiples():
    # Only 0 is a multiple of 3 below 3, and only 0 and 1 are rounded to it.
    rounded = table(
        "t0", {"rounded_to": 3, "not_shown_below": 3}, ("age",), ("0", None), ("1", None), ("2", 6)
    )
    exact = table("t1", {"exact": True}, ("age",), ("0-1", 2), ("2", 6))
    found = {each.name: each.low for each in audit_tables([rounded, exact]).findings}
    assert found == {"0": 1, "1": 1}
