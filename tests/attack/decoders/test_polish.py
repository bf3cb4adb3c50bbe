from itertools import product

import numpy as np

from benchmarks.worlds import Setting
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished, descend


def test_descent_ends_where_no_two_bits_are_better():
    rng = np.random.default_rng(2)
    A = rng.integers(0, 2, (40, 12)).astype(float)
    b = A @ rng.integers(0, 2, 12) + rng.normal(0, 3, 40)
    x = descend(A, b, np.zeros(12))
    least = ((b - A @ x) ** 2).sum()
    for i, j in product(range(12), repeat=2):
        other = x.copy()
        other[i] = 1 - other[i]
        if i != j:
            other[j] = 1 - other[j]
        assert ((b - A @ other) ** 2).sum() >= least - 1e-9


def test_polishing_finds_whole_secrets_more_often_and_proves_it():
    setting, plain, polished = Setting(50, 350, 2.0), 0, 0
    for number in range(12):
        world = setting.world(number)
        plain += (LeastSquares().decode(world.transcript).values == world.secret).all()
        guess = Polished().decode(world.transcript)
        polished += (guess.values == world.secret).all()
        assert guess.basis.polish.optimal == "proven"
        assert guess.basis.polish.squares_at_least == guess.basis.polish.squares
    assert polished > plain
    unproven = Polished(prove_up_to=0).decode(world.transcript).basis.polish
    assert unproven.optimal == "not proven"
    assert unproven.squares_at_least <= unproven.squares
