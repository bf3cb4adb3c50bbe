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
        ("Y30T34", Band(30, 34)),
        ("Y_GE65", Band(65, None)),
        ("Y_LT5", Band(0, 4)),
        ("Y7", Band(7, 7)),
        ("From 15 to 24 years", Band(15, 24)),
        ("Aged 65 years and over", Band(65, None)),
        ("under 5 years old", Band(0, 4)),
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


def test_a_label_is_broken_down_by_all_code_lists():
    trees = [{"North": ("Leeds", "York")}, {"Leeds": ("East", "West")}]
    axis = axis_of("region", ["North", "Leeds", "York"], trees)
    assert set(axis.groups) == {"East", "West", "York"}
    assert set(axis.members["Leeds"]) < set(axis.members["North"])


def test_code_lists_that_break_a_label_down_differently_are_named():
    trees = [{"UK": ("North", "South")}, {"UK": ("Cities", "Rest")}]
    with pytest.raises(InputError, match="'UK' is made of 'North', 'South' by one code list"):
        axis_of("region", ["UK"], trees)
    trees += [{"North": ("a", "b"), "South": ("c",), "Cities": ("a", "c"), "Rest": ("b",)}]
    assert set(axis_of("region", ["UK", "Cities", "North"], trees).groups) == {"a", "b", "c"}


def test_a_label_that_no_code_list_has_is_named():
    trees = [{"North": ("Leeds", "York")}]
    assert axis_of("region", ["North", "Leeds", "Total"], trees).groups == ("Leeds", "York")
    with pytest.raises(InputError, match="the code lists of 'region' do not have 'Leed'"):
        axis_of("region", ["North", "Leed"], trees)


def test_deep_and_shared_code_lists_end():
    deep = {f"a{at}": (f"a{at + 1}",) for at in range(5000)}
    with pytest.raises(InputError, match="more than 100 levels"):
        axis_of("region", ["a0"], [deep])
    # Every label has two parts that share all of theirs: 2 to the 60 ways down.
    shared = {f"{c}{at}": (f"a{at + 1}", f"b{at + 1}") for at in range(60) for c in "ab"}
    assert set(axis_of("region", ["a0", "b0"], [shared]).groups) == {"a60", "b60"}
