"""The teachers' notebook runs without a page, and what is dragged changes what it shows."""

import importlib.util
import socket
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


@pytest.fixture
def served():
    """The address of the notebook as a class sees it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["run", str(NOTEBOOK), "--headless", "--no-token", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", *command, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # It says where it listens once it does.
    while (line := server.stdout.readline()) and "URL" not in line:
        pass
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.communicate(timeout=30)


@pytest.mark.slow
def test_less_noise_on_the_slider_gives_everyone_away(browser, served):
    with browser.visit(served) as visit:
        known = visit.page.get_by_text("secrets guessed right").first
        known.wait_for(timeout=120_000)
        assert known.inner_text() == "41 of 50 secrets guessed right"
        noise = visit.page.get_by_role("slider").nth(1)
        noise.focus()
        visit.page.keyboard.press("Home")
        visit.page.get_by_text("50 of 50 secrets guessed right").first.wait_for(timeout=120_000)
        assert noise.get_attribute("aria-valuenow") == "0.5"
