import numpy as np
import pytest

from countleak.attack.posterior import messages
from countleak.attack.posterior.messages import pass_messages
from countleak.attack.solvers.squares import NormalEquations, box_least_squares


def asked(seed, n, m, sd, rate=0.5):
    """Secrets (n,) and the equations of m random subsets, with rounded Gaussian noise."""
    rng = np.random.default_rng(seed)
    secret = (rng.random(n) < rate).astype(np.int64)
    A = rng.integers(0, 2, (m, n)).astype(np.int8)
    b = A.astype(float) @ secret + np.rint(rng.normal(0, sd, m))
    return secret, NormalEquations.of(A, b)


@pytest.mark.parametrize("seed", range(3))
def test_fewer_answers_than_people_are_enough(seed):
    secret, equations = asked(seed, 1000, 700, 2)
    found = pass_messages(equations)
    assert found.settled
    assert ((found.probability >= 0.5) == secret).mean() >= 0.99
    # Rounding to whole people adds 1/12.
    assert found.variance == pytest.approx(4 + 1 / 12, rel=0.2)
    assert found.rate == pytest.approx(secret.mean(), abs=0.01)


def test_half_as_many_nearly_exact_answers_reach_beyond_least_squares():
    ours, theirs = [], []
    for seed in range(3):
        secret, equations = asked(seed, 600, 300, 0.5)
        ours.append(((pass_messages(equations).probability >= 0.5) == secret).mean())
        theirs.append(((box_least_squares(equations).x >= 0.5) == secret).mean())
    assert np.mean(ours) > np.mean(theirs) + 0.02


@pytest.mark.parametrize(
    ("m", "sd", "rate"), [(100, 4, 0.5), (150, 2, 0.5), (300, 4, 0.5), (150, 2, 0.1), (600, 4, 0.3)]
)
def test_the_share_right_is_as_expected(m, sd, rate):
    differences, claims = [], []
    for seed in range(12):
        secret, equations = asked(seed, 300, m, sd, rate)
        found = pass_messages(equations)
        right = (found.probability >= 0.5) == secret
        differences.append(found.expected_right - right.mean())
        claims.append(right[np.abs(found.probability - 0.5) >= 0.45])
    error = np.std(differences) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 0.01 + 3 * error
    claimed = np.concatenate(claims)
    assert claimed.sum() >= 0.95 * claimed.size - 3 * np.sqrt(0.05 * claimed.size)


def test_messages_that_still_move_have_not_settled(monkeypatch):
    _, equations = asked(0, 200, 140, 2)
    assert pass_messages(equations).settled
    monkeypatch.setattr(messages, "ROUNDS", 3)
    assert not pass_messages(equations).settled
