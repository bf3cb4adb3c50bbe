"""Predictions against attacks solved by scipy and by a plain sampler, and against known laws."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from countleak.audit.budget.evolution import (
    DECODERS,
    SIGNS,
    SUBSETS,
    Attack,
    OutOfTime,
    decoders_for,
    fixed_point,
    genie_bound,
    large_n_limit,
    subsets_of,
)
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, Uniform
from countleak.errors import InputError, NoPrediction
from tests.audit.budget import attacks

LP, LS, BAYES, BOUNDED = DECODERS
THREE = (LP, LS, BAYES)


def noise_of(mechanism):
    return {
        Gaussian: lambda rng, m: rng.normal(0, mechanism.sigma, m),
        Laplace: lambda rng, m: rng.laplace(0, mechanism.sigma / sqrt(2), m),
        Uniform: lambda rng, m: rng.integers(-mechanism.bound, mechanism.bound + 1, m),
    }[type(mechanism)]


def loss_of(mechanism):
    if isinstance(mechanism, Laplace):
        return lambda r: np.abs(r) * sqrt(2) / mechanism.sigma
    return lambda r: r**2 / (2 * mechanism.sigma**2)


def simulate(attack, decoder, trials, seed=11):
    rng = np.random.default_rng(seed)
    right = []
    for _ in range(trials):
        A, x, b = attacks.draw(
            rng, attack.people, attack.queries, attack.prior, noise_of(attack.mechanism),
            attack.family,
        )  # fmt: skip
        if decoder is BAYES:
            bits = attacks.bayes(A, b, loss_of(attack.mechanism), attack.prior, rng)
        else:
            bits = getattr(attacks, decoder.name)(A, b)
        right.append((bits == x).mean())
    return np.mean(right), np.std(right) / sqrt(trials)


@pytest.mark.parametrize(
    ("attack", "decoder", "trials"),
    [
        (Attack(60, 400, Gaussian(4.0)), LS, 100),
        (Attack(60, 120, Gaussian(4.0)), LP, 60),
        (Attack(60, 120, Gaussian(4.0), family=SIGNS), LS, 100),
        (Attack(60, 250, Laplace(4.0)), LP, 60),
        (Attack(60, 250, Uniform(7)), LP, 60),
        (Attack(40, 160, Gaussian(4.0), prior=0.2), BAYES, 30),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (Attack(60, 120, Gaussian(4.0)), LS, 100),
                (Attack(60, 400, Gaussian(4.0)), LP, 30),
                (Attack(60, 300, Gaussian(4.0), prior=0.2), LS, 100),
                (Attack(60, 300, Gaussian(4.0), prior=0.2), LP, 40),
                (Attack(60, 300, Gaussian(4.0), family=subsets_of(0.2)), LS, 100),
                (Attack(60, 250, Laplace(4.0)), LS, 60),
                (Attack(40, 160, Gaussian(4.0)), BAYES, 30),
                (Attack(40, 160, Laplace(4.0)), BAYES, 30),
            )
        ),
    ],
    ids=lambda value: getattr(value, "name", str(value)[:90]),
)
def test_predictions_are_what_other_solvers_reach(attack, decoder, trials):
    accuracy, error = simulate(attack, decoder, trials)
    assert fixed_point(attack, decoder).accuracy == pytest.approx(accuracy, abs=0.01 + 3 * error)


@pytest.mark.parametrize("m", [200, 450])
def test_a_posterior_that_knows_a_hard_bound_is_what_message_passing_reaches(m):
    attack = Attack(300, m, Uniform(12), family=SIGNS)
    rng = np.random.default_rng(3)
    right = []
    for _ in range(12):
        A, x, b = attacks.draw(rng, 300, m, 0.5, noise_of(attack.mechanism), SIGNS)
        right.append((attacks.messages(A, b, 12) == x).mean())
    error = np.std(right) / sqrt(12)
    predicted = fixed_point(attack, BOUNDED).accuracy
    assert predicted == pytest.approx(np.mean(right), abs=0.01 + 3 * error)
    assert predicted > fixed_point(attack, LS).accuracy + 0.01


@pytest.mark.parametrize(
    ("m", "lp", "ls", "bayes"),
    [(150, 0.723, 0.744, 0.750), (750, 0.908, 0.951, 0.955), (1750, 0.979, 0.994, 0.997)],
)
def test_predictions_are_near_what_was_measured_of_full_decoders(m, lp, ls, bayes):
    attack = Attack(100, m, Gaussian(4.0))
    for decoder, measured in zip(THREE, (lp, ls, bayes), strict=True):
        assert fixed_point(attack, decoder).accuracy == pytest.approx(measured, abs=0.015)


def test_yardsticks_are_the_formulas():
    attack = Attack(100, 1050, Gaussian(4.0))
    assert large_n_limit(attack) == pytest.approx(norm.cdf(sqrt(1050) / 16))
    assert genie_bound(attack) == pytest.approx(norm.cdf(sqrt(1050 / 8) / 4))
    assert genie_bound(Attack(100, 1050, Laplace(4.0))) is None


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(20, 400),
    ratio=st.floats(0.6, 30),
    sigma=st.floats(1, 20),
    prior=st.floats(0.05, 0.95),
    family=st.sampled_from([SUBSETS, SIGNS, subsets_of(0.3)]),
)
def test_more_answers_help_more_noise_hinders_and_no_one_beats_the_genie(
    n, ratio, sigma, prior, family
):
    m = round(n * ratio)
    attack = Attack(n, m, Gaussian(sigma), prior, family)
    for decoder in THREE:
        here = fixed_point(attack, decoder).accuracy
        # Rounding at 1/2 is not what is best for a skewed prior, so only the posterior's
        # accuracy is sure to move one way at every point.
        if decoder is BAYES or prior == 0.5:
            more = fixed_point(Attack(n, 2 * m, Gaussian(sigma), prior, family), decoder).accuracy
            noisier = fixed_point(
                Attack(n, m, Gaussian(2 * sigma), prior, family), decoder
            ).accuracy
            assert noisier <= here + 1e-9
            assert here <= more + 1e-9
        assert here <= genie_bound(attack) + 1e-9
    bayes = fixed_point(attack, BAYES).accuracy
    assert attack.baseline - 1e-9 <= bayes


def test_the_secret_and_its_opposite_are_alike():
    for decoder in THREE:
        few = fixed_point(Attack(100, 300, Gaussian(4.0), prior=0.2), decoder).accuracy
        many = fixed_point(Attack(100, 300, Gaussian(4.0), prior=0.8), decoder).accuracy
        assert few == pytest.approx(many, abs=1e-7)


def test_a_posterior_that_knows_a_hard_bound_gets_far_more_than_the_variance_gives():
    attack = Attack(100, 350, Uniform(7))
    assert fixed_point(attack, LS).accuracy < 0.9
    assert fixed_point(attack, BOUNDED).accuracy > 0.999


@pytest.mark.parametrize(
    ("attack", "decoder"),
    [
        (Attack(150, 50, Gaussian(1.0)), LP),
        (Attack(150, 50, Gaussian(1.0)), LS),
        (Attack(1000, 500, Gaussian(0.3)), LP),
        (Attack(1000, 500, Gaussian(0.3)), BAYES),
    ],
    ids=str,
)
def test_where_the_recursion_has_no_solution_it_says_so(attack, decoder):
    with pytest.raises(NoPrediction, match=r"plan with more than half as many queries as people"):
        fixed_point(attack, decoder)


def test_bad_attacks_are_refused():
    for values, complaint in (
        ((1, 10, Gaussian(1.0)), "at least 2 and 1"),
        ((10, 0, Gaussian(1.0)), "at least 2 and 1"),
        ((10, 10, Gaussian(1.0), 0.0), "prior is 0"),
        ((10, 10, Gaussian(1.0), 1.5), "prior is 1.5"),
    ):
        with pytest.raises(InputError, match=complaint):
            Attack(*values)
    with pytest.raises(InputError, match="density is 1"):
        subsets_of(1.0)
    with pytest.raises(NoPrediction, match="plan with a base up to 7"):
        Attack(100, 300, RoundedToBase(20))


@pytest.mark.parametrize("decoder", THREE, ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("people", "queries", "mechanism", "prior", "family"),
    [
        (2, 10**12, Gaussian(1e-3), 0.5, SUBSETS),
        (10**9, 1, Gaussian(1e6), 1e-6, SIGNS),
        (3, 10**12, Laplace(1e6), 0.999, subsets_of(1e-6)),
        (10**4, 10**12, Laplace(1e-3), 0.5, subsets_of(1e-6)),
        (10**9, 10**9, Gaussian(1e6), 1 - 1e-6, subsets_of(0.999)),
    ],
)
def test_the_ends_of_every_range_give_a_share_or_no_prediction(
    people, queries, mechanism, prior, family, decoder
):
    try:
        accuracy = fixed_point(Attack(people, queries, mechanism, prior, family), decoder).accuracy
    except NoPrediction as error:
        assert "\n" not in str(error)
    else:
        assert 0 <= accuracy <= 1


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Attack(100, 300, Gaussian(1e-300)), "sigma is 1e-300; the closed form holds"),
        (lambda: Attack(100, 300, Gaussian(1e8)), "sigma is 1e[+]08; the closed form holds"),
        (lambda: Attack(100, 300, Gaussian(1e300)), "sigma is 1e[+]300; it must lie"),
        (lambda: Attack(100, 300, Gaussian(float("nan"))), "sigma is nan"),
        (lambda: Attack(10**5000, 300, Gaussian(4.0)), "goes up to 1e[+]09 and"),
        (lambda: Attack(100, 10**5000, Gaussian(4.0)), "and 1e[+]12"),
        (lambda: Attack(100, 300, Gaussian(4.0), prior=1e-300), "prior is 1e-300"),
        (lambda: Attack(100, 300, Gaussian(4.0), prior=float("nan")), "prior is nan"),
    ],
)
def test_what_the_closed_form_cannot_hold_is_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_an_error_of_too_many_values_has_no_prediction():
    with pytest.raises(NoPrediction, match="normal noise of the same variance"):
        fixed_point(Attack(100, 300, Uniform(10**9)), BOUNDED)


def test_decoders_are_those_that_know_the_noise():
    assert [each.name for each in decoders_for(Gaussian(4.0))] == ["lp", "ls", "bayes"]
    assert [each.name for each in decoders_for(Laplace(4.0))] == ["lp", "ls", "bayes"]
    for bounded in (Uniform(6), RoundedToBase(5)):
        assert [each.name for each in decoders_for(bounded)] == ["lp", "ls", "bounded"]
        with pytest.raises(InputError, match="bayes is no decoder for noise with a hard bound"):
            fixed_point(Attack(100, 300, bounded), BAYES)
    with pytest.raises(InputError, match="predict one of lp, ls, bayes"):
        fixed_point(Attack(100, 300, Gaussian(4.0)), BOUNDED)


def test_a_prediction_that_takes_too_long_is_given_up():
    with pytest.raises(OutOfTime, match="300 answers about 100 people take too long"):
        fixed_point(Attack(100, 300, Gaussian(4.0)), BAYES, until=0.0)
