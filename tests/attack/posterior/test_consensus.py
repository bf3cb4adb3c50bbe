"""Several ladders together: whether they agree, which of them to believe, and how far."""

import numpy as np
import pytest
from scipy.stats import norm

from countleak.attack.noise import Values
from countleak.attack.posterior.consensus import (
    SETTLED,
    agree,
    leading,
    overstated,
    taken_down,
)
from countleak.attack.posterior.ladders import Outcome
from countleak.attack.posterior.messages import Messages
from countleak.attack.posterior.secret_draws import Bits, OneOf

N = 2000
NOBODY = np.zeros(N, np.bool_)


def outcome(probability, likelihood=-1000.0, *, kind=None, offset=0.0):
    """A ladder that ended with these probabilities."""
    values = Values(np.array([2.0]), offset, 0.0)
    entropy = (kind or Bits()).entropy(probability)
    nothing = np.zeros((1, 1))
    return Outcome(probability, values, np.array([0.5]), nothing, 0.0, likelihood, entropy)


def frozen(rng, clue, count):
    """Ladders stuck each in a draw of its own, given what the answers say of everyone."""
    return [(rng.random(clue.size) < clue).astype(float) for _ in range(count)]


def clues(rng, n=N):
    """Probabilities of ones, some of them sure, and secrets drawn from them."""
    clue = norm.cdf(rng.normal(0, 2, n))
    return clue, rng.random(n) < clue


def test_ladders_that_agree_are_averaged_as_they_are():
    rng = np.random.default_rng(0)
    clue, _ = clues(rng)
    runs = [outcome(np.clip(clue + rng.normal(0, 0.01, N), 0, 1)) for _ in range(4)]
    assert abs(overstated(runs, Bits(), NOBODY)) < SETTLED
    found = agree(runs, Bits(), None, NOBODY)
    assert found.doubt == "" and len(found.leaders) == 4
    assert found.probability == pytest.approx(np.mean([r.probability for r in runs], axis=0))


@pytest.mark.parametrize("count", [3, 4, 6])
def test_frozen_ladders_are_no_surer_than_they_are_right(count):
    rng = np.random.default_rng(1)
    right, promised = [], []
    for _ in range(5):
        clue, secret = clues(rng)
        runs = [outcome(p) for p in frozen(rng, clue, count)]
        found = agree(runs, Bits(), None, NOBODY)
        assert found.doubt.startswith("chains disagree")
        sure = np.maximum(found.probability, 1 - found.probability)
        claimed = sure >= 0.85
        right.append(((found.probability >= 0.5) == secret)[claimed])
        promised.append(sure[claimed])
    # Each ladder alone is certain of everything; the share right is that of the clues.
    claimed = np.concatenate(right)
    assert claimed.mean() >= np.concatenate(promised).mean() - 3 * np.sqrt(0.13 / claimed.size)


def test_fewer_claims_are_made_where_chains_disagree():
    rng = np.random.default_rng(2)
    clue, _ = clues(rng)
    members = [np.stack([1 - p, p]) for p in frozen(rng, clue, 5)]
    lowered, average = taken_down(members), np.mean(members, axis=0)
    assert (lowered.max(axis=0) <= average.max(axis=0) + 1e-12).all()
    assert (lowered.max(axis=0) >= 0.99).sum() < (average.max(axis=0) >= 0.99).sum()
    assert lowered.sum(axis=0) == pytest.approx(np.ones(N))
    undecided = np.isclose(average[0], 0.5)
    assert ((lowered.argmax(axis=0) == average.argmax(axis=0)) | undecided).all()


def test_values_are_taken_down_as_bits_are():
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([0.3, 0.3, 0.3], N)
    draws = [[rng.choice(3, p=share) for share in shares] for _ in range(4)]
    kind = OneOf(3)
    runs = [outcome(kind.bits_of(np.array(d)).astype(float), kind=kind) for d in draws[1:]]
    found = agree(runs, kind, None, np.tile(NOBODY, 3))
    lowered = found.probability.reshape(3, N)
    assert lowered.sum(axis=0) == pytest.approx(np.ones(N))
    right = lowered.argmax(axis=0) == np.array(draws[0])
    assert right.mean() >= lowered.max(axis=0).mean() - 0.03


def test_a_lost_ladder_counts_in_the_disagreement():
    rng = np.random.default_rng(4)
    secret = rng.integers(0, 2, N).astype(float)
    lost = rng.integers(0, 2, N).astype(float)
    runs = [outcome(secret, -900.0), outcome(secret, -901.0), outcome(lost, -4000.0)]
    found = agree(runs, Bits(), None, NOBODY)
    assert len(found.leaders) == 2 and found.doubt == ""
    assert np.array_equal(found.probability, secret)
    # Half of the lost ladder's bits are a third and two thirds of the way off.
    assert found.disagreement == pytest.approx(2 / 9, abs=0.02)


def test_a_place_found_once_must_be_above_all_places_between_the_others():
    rng = np.random.default_rng(5)
    secret, *others = (rng.integers(0, 2, N).astype(float) for _ in range(4))
    open_places = Bits().entropy(np.mean(others, axis=0))
    glass = [outcome(p, -3000.0) for p in others]
    just_below, just_above = -3000 + open_places, -3000 + open_places + 50
    assert len(leading([outcome(secret, just_below), *glass], Bits(), None)) == 4
    assert len(leading([outcome(secret, just_above), *glass], Bits(), None)) == 1
    # Message passing that came to the same place is a second witness.
    witness = Messages(secret, 4.0, 0.5, settled=True)
    assert len(leading([outcome(secret, -2900.0), *glass], Bits(), witness)) == 1
    moving = Messages(secret, 4.0, 0.5, settled=False)
    assert len(leading([outcome(secret, -2900.0), *glass], Bits(), moving)) == 4


def test_settled_messages_help_ladders_that_do_not_agree():
    rng = np.random.default_rng(6)
    clue, _ = clues(rng)
    ladders = frozen(rng, clue, 4)
    runs = [outcome(p) for p in ladders]
    alone = agree(runs, Bits(), None, NOBODY).probability

    def with_messages(variance, settled, runs=runs):
        return agree(runs, Bits(), Messages(clue, variance, 0.5, settled), NOBODY)

    both = with_messages(4.0, True)
    assert both.probability == pytest.approx(0.75 * clue + 0.25 * alone)
    assert "message passing" in both.doubt
    assert np.array_equal(with_messages(4.0, False).probability, alone)
    # Far more noise than the ladders leave: the messages diverged.
    assert np.array_equal(with_messages(40.0, True).probability, alone)
    shifted = [outcome(p, offset=1.5) for p in ladders]
    assert np.array_equal(with_messages(4.0, True, shifted).probability, alone)
    vague = Messages(0.5 + (clue - 0.5) / 4, 4.0, 0.5, settled=True)
    found = agree(runs, Bits(), vague, NOBODY)
    assert found.probability == pytest.approx(0.75 * alone + 0.25 * vague.probability)


def test_what_is_known_stays_and_does_not_make_the_rest_surer():
    rng = np.random.default_rng(7)
    clue, secret = clues(rng)
    known = np.arange(N) < N // 2
    runs = [outcome(np.where(known, secret, p)) for p in frozen(rng, clue, 4)]
    found = agree(runs, Bits(), None, known)
    assert np.array_equal(found.probability[known], secret[known])
    alone = [outcome(run.probability[~known]) for run in runs]
    assert overstated(runs, Bits(), known) == overstated(alone, Bits(), known[~known])
    rest = agree(alone, Bits(), None, known[~known])
    assert found.probability[~known] == pytest.approx(rest.probability)
