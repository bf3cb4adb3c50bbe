"""What tables tell of their rules, and the `releases.toml` that is proposed."""

import tomllib

import numpy as np
import pytest

from countleak.audit.releases.description import read_releases
from countleak.audit.releases.guessing import proposed, totals_of
from countleak.audit.releases.reading import Published, Release

PARTS = {"UKA": (20, 21), "UKB": (17, 29), "FR1": (5, 40), "FR2": (31, 8)}


def release(cells):
    numbers = tuple(Published(labels, value) for labels, value in cells.items())
    return Release("t", ("area", "sex"), "n", numbers)


def with_totals(parts, order):
    """The parts with their countries and both sexes added."""
    rows = {area: np.array(both) for area, both in parts.items()}
    rows["UK"] = rows["UKA"] + rows["UKB"]
    rows["FR"] = rows["FR1"] + rows["FR2"]
    rows["EU"] = rows["UK"] + rows["FR"]
    return release(
        {
            (area, sex): int(count)
            for area in order
            for sex, count in zip("FMT", [*rows[area], rows[area].sum()], strict=True)
        }
    )


def test_totals_are_found_by_their_codes_their_places_and_their_sums():
    order = ("UKA", "UKB", "UK", "FR1", "FR2", "FR", "EU")
    assert totals_of(with_totals(PARTS, order)) == {
        "area": {"UK": ("UKA", "UKB"), "FR": ("FR1", "FR2"), "EU": ("UK", "FR")},
        "sex": {"T": ("F", "M")},
    }


def test_no_totals_are_seen_where_none_are():
    rng = np.random.default_rng(2)
    for _ in range(50):
        cells = {(area, sex): int(rng.integers(0, 9)) for area in "ABCDE" for sex in "FMX"}
        assert totals_of(release(cells)) == {}
    for _ in range(4):
        cells = {(f"r{at}", "F"): int(rng.integers(0, 3000)) for at in range(300)}
        assert totals_of(release(cells)) == {}


@pytest.fixture
def proposal(tmp_path):
    def proposal(text):
        path = tmp_path / "t.csv"
        path.write_text(text)
        described = read_releases([path])
        return described, proposed(described.tables, described.trees, [path])

    return proposal


def test_totals_are_used_said_and_proposed(proposal):
    described, text = proposal(
        "sex,age,n\nF,<30,21\nF,30+,32\nM,<30,40\nM,30+,50\nT,<30,61\nT,30+,82\n"
    )
    assert described.trees == {"sex": ({"T": ("F", "M")},)}
    assert described.tables[0].inferred == (
        "its counts are exact",
        "its sex 'T' is 'F', 'M' together, as its numbers are",
    )
    assert tomllib.loads(text)["hierarchy"] == {"sex": [{"T": ["F", "M"]}]}


def test_a_common_divisor_is_proposed_with_the_threshold_before_it(proposal):
    rows = [f"{area},{sex},{10 + 5 * at}" for at, area in enumerate("ABCDEF") for sex in "FM"]
    described, text = proposal("\n".join(["area,sex,n", *rows, "G,F,<8", "G,M,0"]) + "\n")
    table = tomllib.loads(text)["table"][0]
    assert (table["rounded_to"], table["rounding"], table["suppressed"]) == (5, "random", "1..7")
    assert described.tables[0].rules.base == 5


def test_marks_are_listed_to_be_said_what_they_mean(proposal):
    _, text = proposal("area,sex,n\nA,F,<5\nA,M,0\nB,F,x\nB,M,12\n")
    table = tomllib.loads(text)["table"][0]
    assert table["marks"] == {"<5": "primary", "x": "unknown"}
    assert table["suppressed"] == "1..4"


def test_what_is_proposed_can_be_read(proposal, tmp_path):
    described, text = proposal('"a ""q"" b",n\nF,<5\nM,x\nT\\,12\n')
    (tmp_path / "releases.toml").write_text(text)
    again = read_releases([tmp_path / "releases.toml"])
    assert [n.labels for n in again.tables[0].release.numbers] == [("F",), ("M",), ("T\\",)]
    assert described.tables[0].release.dimensions == again.tables[0].release.dimensions
