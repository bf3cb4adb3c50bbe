import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.posterior import fit
from countleak.lab.bench.worlds import Setting


@pytest.mark.parametrize(
    ("setting", "picked", "least"),
    [
        (Setting(), "gaussian noise of SD", 0.965),
        (Setting(kind="wrong"), "grossly wrong", 0.95),
        (Setting(kind="two groups"), "noise differs by server", 0.92),
        (Setting(101, 300, 2.0, 12 / 101, "suppressed"), "suppressed", 0.985),
        (Setting(80, 60, 4.0, 0.4, "cells"), "uniform noise: no answer is further than 4", 0.98),
        (Setting(100, 60, 1.0), "too few answers", 0.7),
    ],
    ids=lambda case: getattr(case, "kind", str(case)),
)
def test_auto_picks_by_what_it_sees_and_says_why(setting, picked, least):
    world = setting.world(1)
    guess = AutoDecoder(prove=False).decode(world.transcript)
    assert picked in guess.basis.picked_because
    assert (guess.values == world.secret).mean() >= least


def test_auto_fits_once(monkeypatch):
    """The eigenvectors and the least squares of the diagnosis serve the decoder as well."""
    calls = {"eigh": 0, "box_least_squares": 0}

    def counted(name, function):
        def call(*given, **named):
            calls[name] += 1
            return function(*given, **named)

        return call

    monkeypatch.setattr(np.linalg, "eigh", counted("eigh", np.linalg.eigh))
    monkeypatch.setattr(
        fit, "box_least_squares", counted("box_least_squares", fit.box_least_squares)
    )
    guess = AutoDecoder().decode(Setting(60, 400, 3.0).world(1).transcript)
    assert "gaussian" in guess.basis.picked_because
    assert calls == {"eigh": 1, "box_least_squares": 1}


def test_known_people_are_used_and_counted():
    world = Setting(60, 240, 4.0).world(0)
    guess = AutoDecoder(known={3: int(world.secret[3])}).decode(world.transcript)
    assert guess.basis.known == 1
    assert guess.values[3] == world.secret[3]
    assert guess.probability[3] == world.secret[3]
