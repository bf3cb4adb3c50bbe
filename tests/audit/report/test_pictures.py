"""The pictures of a report, as files and in a browser: nothing of them is cut off."""

import re

import numpy as np
import pytest

from countleak.audit.report.diagnosis import draw_calibration
from countleak.audit.report.growth import Growth, Point
from countleak.audit.report.leak import draw_leak
from countleak.audit.report.pictures import growth_picture, people_picture, residuals_picture
from countleak.audit.report.report import AtRisk, Class
from countleak.audit.report.residuals import Bar, Residuals
from countleak.audit.report.svg import doubling_ticks, round_ticks
from countleak.audit.scores import Bin, Calibration, Score

INSIDE = """() => {
  const svg = document.querySelector('svg'), box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const at = text.getBoundingClientRect();
    return at.width && (at.left < box.left || at.right > box.right || at.top < box.top
      || at.bottom > box.bottom);
  }).map(text => text.textContent);
}"""


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.0, 1.0, 6, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.4, 1.0, 6, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        (-15.5, 18.5, 8, [-15, -10, -5, 0, 5, 10, 15]),
        (3.0, 3.0, 5, [3.0]),
    ],
)
def test_ticks_are_round_and_lie_on_the_axis(low, high, most, expected):
    ticks = round_ticks(low, high, most)
    assert ticks == pytest.approx(expected)


def test_ticks_of_a_logarithmic_axis_are_few():
    assert doubling_ticks(50, 400) == pytest.approx([50, 100, 200])
    assert doubling_ticks(10, 10_000) == pytest.approx([10, 100, 1000, 10_000])


def test_one_point_is_no_curve():
    one = Point(100, 1.0, (0.9, 1.0), 0.99, (0.9, 1.0))
    assert growth_picture(Growth((one,)), 0.5) is None


def ticks(picture):
    """The ticks across a picture, from left to right; those of the other axis end with %."""
    return re.findall(r'class="tick"[^>]*>([^<%]+)<', str(picture))[::-1]


def test_ticks_that_would_run_together_are_left_out():
    near = tuple(Point(m, 0.9, None, None, None) for m in (1000, 3000, 5500, 6000))
    assert ticks(growth_picture(Growth(near), None)) == ["1,000", "3,000", "6,000"]
    bars = tuple(Bar(200.0 * k, 0.02, None) for k in range(-22, 18))
    long = ticks(residuals_picture(Residuals(40, 0, 1, None, 200.0, bars, 0), "its units"))
    assert long == ["\N{MINUS SIGN}4,000", "\N{MINUS SIGN}2,000", "0", "2,000"]


@pytest.mark.parametrize("total", [1, 40, 399, 400, 401, 5000, 99_999])
def test_squares_stand_for_everyone(total):
    classes = tuple(
        Class(f"class {k}", 0.0, int(share))
        for k, share in enumerate(np.diff([0, total // 3, total // 2, total]))
    )
    drawn = str(people_picture(AtRisk(classes, 0, 0, False, (), 0)))
    each = -(-total // 400)
    assert drawn.count("h8v8h-8z") == -(-total // each) <= 400


def test_no_word_of_a_picture_is_cut_off(browser, tmp_path):
    draw_leak(
        [(100, Score(4, 4, 2, 2)), (3500, Score(4, 4, 4, 2))],
        np.array([0.1, 0.9, 0.4, 1.0]),
        np.array([0, 1, 1, 1], dtype=np.int8),
        "Four people",
        tmp_path / "leak.svg",
    )
    bins = (Bin(100, 0.55, 20), Bin(3, 0.8, 0), Bin(1200, 0.99, 1190))
    draw_calibration(Calibration(bins, 0.1, 0.1), tmp_path / "calibration.svg")
    for name in ("leak.svg", "calibration.svg"):
        with browser.visit((tmp_path / name).as_uri(), offline=True) as visit:
            assert visit.page.evaluate(INSIDE) == []
