import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.least_squares import LeastSquares


def test_standard_errors_cover():
    setting, far = Setting(60, 600, 3.0), []
    for number in range(4):
        world = setting.world(number)
        guess = LeastSquares().decode(world.transcript)
        assert guess.basis.sigma == pytest.approx(3.0, rel=0.15)
        far.append(guess.basis.mean_standard_error)
    # 1/se^2 is about m/(4 sigma^2) - n/(4 sigma^2), and 4 from the bit's own variance.
    assert np.mean(far) == pytest.approx((540 / 36 + 4) ** -0.5, rel=0.15)
