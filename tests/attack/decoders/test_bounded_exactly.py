"""Bounded answers against the enumeration of all bits: proofs and probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.decoders.bounded import Bounded
from countleak.attack.noise import Noise, Shape
from countleak.attack.posterior import enumeration
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.transcript import Answers, Transcript
from tests.attack.decoders.every_fit import KINDS, posterior_of, small_system

# Answers that are not whole are read to a sixteenth of a person; that a count was not suppressed is
# weighed with e^-10 where it is impossible.
TOLERANCE = {"fractions": 0.15, "both": 5e-3}
# Kinds of which some counts between the ends of an interval are impossible as well.
GAPS = {"both"}


def check(kind, seed, most=10):
    small = small_system(kind, seed, most)
    probability, forced = posterior_of(small, kind)
    guess = Bounded(small.noise, prior=small.prior).decode(small.transcript)
    assert not (guess.proven & ~forced).any()
    if kind not in GAPS:
        assert guess.proven.tolist() == forced.tolist()
    assert (guess.values[forced] == small.secret[forced]).all()
    assert guess.basis.exact
    assert guess.probability == pytest.approx(probability, abs=TOLERANCE.get(kind, 1e-5))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 10**6))
def test_proofs_and_probabilities_are_those_of_all_bits(kind, seed):
    check(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_proof_is_wrong_among_thousands(kind):
    for seed in range(1000):
        check(kind, 10**7 + seed, most=11)


@pytest.mark.parametrize("kind", ["exact", "uniform", "suppressed"])
@pytest.mark.parametrize("seed", range(3))
def test_samples_stand_in_where_not_all_can_be_listed(kind, seed, monkeypatch):
    monkeypatch.setattr(enumeration, "MOST", 1)
    small = small_system(kind, seed + 20)
    probability, forced = posterior_of(small, kind)
    guess = Bounded(small.noise, prior=small.prior).decode(small.transcript)
    assert guess.proven.tolist() == forced.tolist()
    assert np.abs(guess.probability - probability).mean() < 0.1


def test_who_is_in_the_same_queries_has_the_share_of_ones():
    # Of five people in all three queries two have a 1; a sixth is in none.
    matrix = np.zeros((3, 6), np.int8)
    matrix[:, :5] = 1
    queries = Queries(np.arange(6), matrix, Subsets())
    transcript = Transcript.of(queries, Answers.to_all(np.full(3, 2.0)))
    guess = Bounded(Noise(shape=Shape.EXACT)).decode(transcript)
    assert guess.probability[:5] == pytest.approx(0.4)
    # Under a flat prior of the rate: (2 + 1) / (5 + 2).
    assert guess.probability[5] == pytest.approx(3 / 7)


def test_what_is_proven_tells_of_the_rate_and_what_was_known_beforehand_does_not():
    matrix = np.vstack([np.eye(9, 10, dtype=np.int8), np.zeros((1, 10), np.int8)])
    queries = Queries(np.arange(10), matrix, Subsets())
    exact = Noise(shape=Shape.EXACT)
    transcript = Transcript.of(queries, Answers.to_all(np.append(np.ones(9), 0.0)))
    assert Bounded(exact).decode(transcript).probability[9] == pytest.approx(10 / 11)
    known = Bounded(exact, known=dict.fromkeys(range(9), 1)).decode(transcript)
    assert known.probability[9] == pytest.approx(1 / 2)
    assert known.proven.tolist() == [True] * 9 + [False]


@pytest.mark.parametrize("seed", range(10))
def test_wrong_rules_claim_nobody_and_say_so(seed):
    # Noise of up to 4, stated as none: no bits give these answers exactly.
    rng = np.random.default_rng([7, seed])
    matrix = rng.integers(0, 2, (40, 12)).astype(np.int8)
    answers = matrix.astype(np.int64) @ rng.integers(0, 2, 12) + rng.integers(-4, 5, 40)
    queries = Queries(np.arange(12), matrix, Subsets())
    transcript = Transcript.of(queries, Answers.to_all(1.0 * answers))
    guess = Bounded(Noise(shape=Shape.EXACT)).decode(transcript)
    assert not guess.claimed.any() and not guess.proven.any()
    assert guess.probability is None and "no bits fit every interval" in guess.basis.proofs


@pytest.mark.parametrize("bound", [0.5, 2.0, 2.5])
@pytest.mark.parametrize("rounding", [{"base": 5}, {"base": 4}, {"base": 3, "random": True}])
def test_noise_before_rounding_need_not_be_whole(bound, rounding):
    base, at_random = rounding["base"], rounding.get("random", False)
    noise = Noise(shape=Shape.UNIFORM, bound=bound, base=base, random_rounding=at_random)
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 60, 20_000)
    moved = counts + rng.uniform(-bound, bound, counts.size)
    values = base * np.floor(moved / base + (rng.random(counts.size) if at_random else 0.5))
    # Where the bound and half a step make a whole number it is reached by an exact tie alone.
    assert noise.reach - 1 <= np.abs(values - counts).max() <= noise.reach
