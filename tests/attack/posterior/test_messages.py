import numpy as np
import pytest

from countleak.attack.posterior.messages import pass_messages
from countleak.attack.solvers.squares import NormalEquations


@pytest.mark.parametrize("seed", range(3))
def test_fewer_answers_than_people_are_enough(seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, 1000)
    A = rng.integers(0, 2, (700, 1000)).astype(np.int8)
    b = A.astype(float) @ secret + np.rint(rng.normal(0, 2, 700))
    probability = pass_messages(NormalEquations.of(A, b))
    assert ((probability >= 0.5) == secret).mean() >= 0.99
