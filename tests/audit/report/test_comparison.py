import pytest

from countleak.audit.report.comparison import compare, difference_of
from countleak.audit.report.report import read_report
from countleak.audit.report.to_html import comparison_to_html
from countleak.audit.scores import wilson


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        # Newcombe (1998), table II, method 10, for p1 - p2: here the first is b.
        ((48, 80), (56, 70), 0.0524, 0.3339),
        ((3, 10), (9, 10), 0.1705, 0.8090),
        ((2, 7), (6, 7), 0.0582, 0.8062),
        ((56, 56), (29, 29), -0.1170, 0.0642),
    ],
)
def test_the_interval_is_newcombes(a, b, low, high):
    found = difference_of("right", (a[0] / a[1], wilson(*a)), (b[0] / b[1], wilson(*b)))
    assert found.interval == pytest.approx((low, high), abs=2e-3)
    assert found.beyond_chance == (low > 0)


def test_before_and_after(leaking, hopeless, unknown):
    before, after = read_report(leaking.folder), read_report(hopeless.folder)
    less = compare(before, after)
    assert less.headline.startswith("Less leaks: the advantage over guessing is")
    assert less.differences[0].beyond_chance
    assert {change.what for change in less.changes} >= {"verdict", "noise left over"}
    assert compare(after, before).headline.startswith("More leaks")
    same = compare(before, before)
    assert same.headline.startswith("No difference beyond chance")
    assert same.changes == ()
    assert "no proof" in same.cautions[-1]
    without = compare(before, read_report(unknown.folder))
    assert [each.what for each in without.differences] == [
        "share expected right, by the attack itself"
    ]
    assert any("not a success rate" in caution for caution in without.cautions)


def test_the_page_says_it_too(leaking, valued):
    before, after = read_report(leaking.folder), read_report(valued.folder)
    page = comparison_to_html(compare(before, after), before, after)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "different secrets" in page
