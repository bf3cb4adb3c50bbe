import numpy as np

from countleak.figures import draw_leak
from countleak.scores import Score

GROWTH = [(100, Score(4, 1, 1, 1, 1, 2)), (200, Score(4, 2, 2, 0, 0, 2))]


def test_the_picture_shows_growth_baseline_and_people(tmp_path):
    x, secret = np.array([0.1, 0.9, 0.4, 1.0]), np.array([0, 1, 1, 1], dtype=np.int8)
    for name in ("leak.svg", "leak.png"):
        draw_leak(GROWTH, x, secret, "Four people", tmp_path / name)
    drawn = (tmp_path / "leak.svg").read_text()
    assert "Four people" in drawn
    assert "guessing without any answer" in drawn
    assert "wrong" in drawn
    assert (tmp_path / "leak.png").read_bytes().startswith(b"\x89PNG")
