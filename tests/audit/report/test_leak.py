import numpy as np

from countleak.audit.report.leak import draw_leak, draw_residuals
from countleak.audit.scores import Score

GROWTH = [(100, Score(4, 4, 2, 2)), (200, Score(4, 4, 4, 2))]


def test_the_picture_shows_growth_baseline_and_people(tmp_path):
    x, secret = np.array([0.1, 0.9, 0.4, 1.0]), np.array([0, 1, 1, 1], dtype=np.int8)
    for name in ("leak.svg", "leak.png"):
        draw_leak(GROWTH, x, secret, "Four people", tmp_path / name)
    drawn = (tmp_path / "leak.svg").read_text()
    assert "Four people" in drawn
    assert "guessing without any answer" in drawn
    assert "wrong" in drawn
    assert (tmp_path / "leak.png").read_bytes().startswith(b"\x89PNG")


def test_residuals_stand_side_by_side_with_mean_and_sd(tmp_path):
    draw_residuals(
        {"one": np.array([-1.0, 1.0]), "other": np.array([3.0, 3.0])}, tmp_path / "residuals.svg"
    )
    drawn = (tmp_path / "residuals.svg").read_text()
    assert "one: mean +0.00, SD 1.00" in drawn
    assert "other: mean +3.00, SD 0.00" in drawn


def test_titles_agree_with_their_curves_and_every_bar_is_on_its_axis(tmp_path):
    x, secret = np.array([0.9, 0.1, 0.4, 1.0]), np.array([1, 0, 1, 1], dtype=np.int8)
    draw_leak(GROWTH, x, secret, "Four people", tmp_path / "leak.svg")
    drawn = (tmp_path / "leak.svg").read_text()
    assert "The more answers, the more secrets recovered" in drawn
    assert "people, the lowest value first" in drawn
    draw_residuals({"wide": np.array([-40.0, 0.0, 40.0])}, tmp_path / "wide.svg")
    assert "\N{MINUS SIGN}40" in (tmp_path / "wide.svg").read_text()
