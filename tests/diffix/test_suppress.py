import numpy as np

from countleak.diffix.suppress import Threshold


def test_thresholds_are_rounded_normals_of_mean_4_and_half_an_sd_a_layer():
    drawn = np.array([Threshold().draw(range(4 * k, 4 * k + 4)) for k in range(8000)])
    # Four layers: round(N(4, 1)), no less than 2. By the normal law P(2) = .0668 (all below 2.5),
    # P(3) = .2417, P(4) = .3829, P(5) = .2417, P(6) = .0606; five standard errors are .027.
    shares = [(drawn == k).mean() for k in (2, 3, 4, 5, 6)]
    assert np.allclose(shares, [0.0668, 0.2417, 0.3829, 0.2417, 0.0606], atol=0.027)
    assert drawn.min() == 2
