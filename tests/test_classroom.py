"""The teachers' notebook runs without a page, and what is dragged changes what it shows."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "classroom.py"


@pytest.fixture(scope="module")
def lesson():
    spec = importlib.util.spec_from_file_location("classroom", NOTEBOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def shown(app, **dragged):
    """What the notebook holds after the sliders were dragged."""
    _, names = app.run(defs=dragged)
    return names


def test_little_noise_and_many_questions_give_everyone_away(lesson, capsys):
    names = shown(lesson, n=50, sigma=0.5, m=600)
    assert (names["guess"].values == names["truth"]).all()
    assert "50 of 50 secrets recovered" in capsys.readouterr().out


def test_much_noise_and_few_questions_give_little_away(lesson):
    score = shown(lesson, n=50, sigma=20.0, m=60)["score"]
    assert score.accuracy < score.baseline + 0.1


def test_the_curve_rises_towards_its_prediction(lesson):
    curve = shown(lesson, n=100, sigma=4.0, m=300)["curve"]
    ours, predicted = (
        [row["share right"] for row in curve if row["what"] == what]
        for what in ("this class", "predicted")
    )
    assert predicted == sorted(predicted)
    assert ours[-1] > ours[0]
    # One class of 100: twice the standard error of its share right.
    assert ours[-1] == pytest.approx(predicted[-1], abs=0.06)


def test_every_slider_position_can_be_shown(lesson):
    for n in (20, 100):
        for sigma in (0.5, 20.0):
            for m in (10, 600):
                assert shown(lesson, n=n, sigma=sigma, m=m)["curve"]


def test_the_notebook_is_as_marimo_wants_it():
    command = [sys.executable, "-m", "marimo", "check", "--strict", str(NOTEBOOK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sliders_are_on_the_page(tmp_path):
    page = tmp_path / "classroom.html"
    command = [sys.executable, "-m", "marimo", "export", "html", str(NOTEBOOK), "-o", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    assert all(label in text for label in ("people", "noise (standard deviation)", "questions"))
