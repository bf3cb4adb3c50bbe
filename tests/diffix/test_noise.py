import numpy as np
from scipy.stats import kstest

from countleak.diffix.noise import gaussian, total


def test_seeds_draw_a_standard_normal():
    drawn = np.array([gaussian(seed, "count") for seed in range(20_000)])
    # 20,000 draws pass a Kolmogorov-Smirnov test of N(0, 1) at any usual level.
    assert kstest(drawn, "norm").pvalue > 0.01
    assert abs(drawn.std() - 1) < 5 / np.sqrt(2 * drawn.size)


def test_a_seed_draws_the_same_number_everywhere_and_another_for_another_purpose():
    # The number is part of the contract: an upgrade that changed it would let noise be averaged.
    assert f"{gaussian(1, 'count'):.12f}" == "-0.386046082457"
    pairs = np.array([(gaussian(s, "count"), gaussian(s, "threshold")) for s in range(5000)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5 / np.sqrt(5000)


def test_layers_add_up():
    sums = [total(range(4 * k, 4 * k + 4), "count", 2.0) for k in range(5000)]
    assert abs(np.std(sums) / 4 - 1) < 5 / np.sqrt(2 * 5000)
