import numpy as np
import pytest

import countleak as cl
from countleak.audit.report.residuals import FAR, residuals_of


def test_a_histogram_and_its_law_hold_all_that_is_near(leaking, hopeless):
    for each in (leaking, hopeless):
        transcript, guess = each.result.transcript, each.result.guess
        found = residuals_of(transcript, guess)
        left = transcript.residuals(guess.probability)
        assert found.sd == pytest.approx(left.std())
        assert found.mean == pytest.approx(left.mean())
        near = np.abs(left - left.mean()) <= FAR * left.std()
        assert found.beyond == (~near).sum()
        assert sum(bar.share for bar in found.bars) == pytest.approx(near.mean())
    # The histogram ends where the residuals do, the law a little later.
    known = residuals_of(leaking.result.transcript, leaking.result.guess)
    assert 0.9 < sum(bar.law for bar in known.bars) <= 1.001
    assert known.shape == "normal"


def test_wide_bars_of_whole_answers_take_in_whole_numbers():
    people = cl.generated_census(200, seed=3)
    pool = cl.random_subsets(people.ids, 600, np.random.default_rng(5))
    system = cl.SimulatedDiffix(sigma=40.0, suppressing=False, clamped=False)
    result = cl.audit(
        people, secret="sex = 1", target=system, queries=pool, decoder=cl.decoders.LeastSquares()
    )
    found = residuals_of(result.transcript, result.guess)
    assert found.width > 1
    assert found.width == int(found.width)
    assert all(bar.law is None for bar in found.bars), "least squares knows no law"


def test_noise_that_differs_is_told_by_group():
    people = cl.generated_bank(seed=7).between(2000, 2999)
    queries = cl.digit_queries(people.ids, primes=8)
    truth = people.truth("status = 'C'").astype(float)
    rng = np.random.default_rng(2)
    odd = queries.parameters["exponent"] == 1.9
    noise = rng.normal(0, np.where(odd, 6.0, 2.0))
    transcript = cl.Transcript(queries, queries.dot(truth) + noise, np.ones(len(queries), bool))
    guess = cl.decoders.LeastSquares().decode(transcript)
    found = residuals_of(transcript, guess)
    assert found.by == "exponent"
    assert [group.value for group in found.groups if group.odd] == ["1.9"]


def test_too_few_answers_leave_nothing_to_draw(leaking):
    few = leaking.result.transcript.take(np.arange(10))
    assert residuals_of(few, leaking.result.guess) is None
