"""What labels of published tables stand for."""

import pytest

from countleak.audit.releases.axes import Band, axis_of, band_of
from countleak.errors import InputError


@pytest.mark.parametrize(
    ("label", "band"),
    [
        ("30-64", Band(30, 64)),
        ("30 to 64", Band(30, 64)),
        ("30–64", Band(30, 64)),  # noqa: RUF001
        ("65+", Band(65, None)),
        ("65 and over", Band(65, None)),
        (">= 65", Band(65, None)),
        ("> 64", Band(65, None)),
        ("<5", Band(0, 4)),
        ("under 5", Band(0, 4)),
        ("≤4", Band(0, 4)),
        ("7", Band(7, 7)),
        ("<0", None),
        ("64-30", None),
        ("Leeds", None),
        ("", None),
    ],
)
def test_bands_are_whole_numbers(label, band):
    assert band_of(label) == band


def test_bands_are_refined_and_written_as_they_were():
    axis = axis_of("age", ["<5", "5-64", "65+", "5-29", "30-64", "35-64", "Total"])
    assert axis.groups == ("<5", "5-29", "30-34", "35-64", "65+")
    assert axis.members["5-64"] == (1, 2, 3)
    assert axis.members["30-64"] == (2, 3)
    assert axis.members["Total"] == (0, 1, 2, 3, 4)


def test_numbers_that_nobody_published_make_no_group():
    assert axis_of("year", ["2020", "2022"]).groups == ("2020", "2022")


def test_labels_that_are_no_bands_have_nobody_in_common():
    axis = axis_of("region", ["Leeds", "York", "All regions"])
    assert axis.groups == ("Leeds", "York")
    assert axis.members["All regions"] == axis.everything


def test_code_lists_need_not_be_nested():
    trees = [
        {"North": ("Leeds", "York"), "South": ("Kent",)},
        {"Cities": ("Leeds", "Kent"), "Rest": ("York",)},
    ]
    axis = axis_of("region", ["North", "South", "Cities", "Rest"], trees)
    assert set(axis.groups) == {"Leeds", "York", "Kent"}
    north, cities = set(axis.members["North"]), set(axis.members["Cities"])
    assert [axis.groups[at] for at in north & cities] == ["Leeds"]


def test_a_code_list_that_goes_round_is_named():
    with pytest.raises(InputError, match="'A' is a part of itself"):
        axis_of("region", ["A"], [{"A": ("B",), "B": ("A",)}])
