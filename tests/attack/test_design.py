import numpy as np
import pytest

from countleak.attack.design import SURE, Belief, Information, Variance, believe, choose
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.errors import InputError, ShapeError

SIGMA = 2.5


def small_world(seed, m=30, n=6, asked=12):
    rng = np.random.default_rng(seed)
    pool = Queries(np.arange(n), rng.integers(0, 2, size=(m, n), dtype=np.int8), Subsets())
    probability = rng.uniform(0.05, 0.95, size=n)
    return pool, believe(pool.matrix[:asked], probability, SIGMA), np.arange(asked, m)


def weights(pool, position, belief):
    return np.append(pool.matrix[position, belief.unsure], 1.0)


def after(pool, chosen, belief):
    """The covariance after answers to the chosen queries, from the definition."""
    precision = np.linalg.inv(belief.covariance)
    for position in chosen:
        q = weights(pool, position, belief)
        precision = precision + np.outer(q, q) / belief.sigma**2
    return np.linalg.inv(precision)


def log_det(covariance):
    return np.linalg.slogdet(covariance)[1]


def bits_variance(covariance):
    return np.trace(covariance[:-1, :-1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("goal", "loss"), [(Information(), log_det), (Variance(), bits_variance)], ids=["D", "A"]
)
def test_each_choice_is_the_best_of_all_that_are_left(seed, goal, loss):
    pool, belief, candidates = small_world(seed)
    chosen = choose(pool, candidates, belief, 7, goal).tolist()
    for k, position in enumerate(chosen):
        losses = {
            other: loss(after(pool, [*chosen[:k], other], belief))
            for other in candidates.tolist()
            if other not in chosen[:k]
        }
        # Queries about the same people are equally good.
        assert losses[position] == pytest.approx(min(losses.values()), rel=1e-9)


def test_the_best_single_question_about_one_unsure_person_is_about_that_person():
    probability = np.array([0.5, 0.9999, 0.0001, 0.9999])
    matrix = np.array([[1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.int8)
    pool = Queries(np.arange(4), matrix, Subsets())
    many = np.random.default_rng(0).integers(0, 2, size=(400, 4), dtype=np.int8)
    belief = believe(many, probability, SIGMA)
    assert belief.unsure.tolist() == [0]
    for goal in (Information(), Variance()):
        assert choose(pool, np.arange(4), belief, 1, goal).tolist() == [0]


def test_two_people_who_may_be_exchanged_are_told_apart_by_a_question_about_one():
    covariance = np.array([[0.25, -0.24, 0.0], [-0.24, 0.25, 0.0], [0.0, 0.0, 0.1]])
    belief = Belief(np.array([0.5, 0.5]), np.array([0, 1]), covariance, SIGMA)
    pool = Queries(np.arange(2), np.array([[1, 1], [1, 0], [0, 0]], dtype=np.int8), Subsets())
    assert choose(pool, np.arange(3), belief, 1).tolist() == [1]


def test_a_belief_has_the_variances_that_the_decoder_found():
    rng = np.random.default_rng(3)
    asked = rng.integers(0, 2, size=(60, 20), dtype=np.int8)
    # Less than the answers alone leave open, so that a precision of one's own can make up for it.
    probability = rng.choice([0.03, 0.05, 0.96, 0.0001], size=20)
    belief = believe(asked, probability, 4.0)
    variance = probability * (1 - probability)
    assert belief.unsure.tolist() == np.flatnonzero(variance > SURE).tolist()
    assert np.diag(belief.covariance)[:-1] == pytest.approx(variance[belief.unsure], rel=0.02)
    assert np.linalg.eigvalsh(belief.covariance).min() > 0


def test_all_that_is_left_where_it_is_less_than_a_batch_and_nobody_twice():
    pool, belief, candidates = small_world(1)
    assert sorted(choose(pool, candidates, belief, 500).tolist()) == candidates.tolist()
    assert choose(pool, candidates[:0], belief, 5).size == 0


def test_when_everyone_is_sure_questions_can_still_be_chosen():
    pool, _, candidates = small_world(2)
    belief = believe(pool.matrix[:12], np.zeros(6), SIGMA)
    assert belief.unsure.size == 0
    assert len(set(choose(pool, candidates, belief, 5).tolist())) == 5


def test_bad_input():
    pool, belief, candidates = small_world(0)
    with pytest.raises(InputError, match="a batch of 0 questions"):
        choose(pool, candidates, belief, 0)
    with pytest.raises(ShapeError, match="a pool over 3 people, but 6 known"):
        choose(Queries(np.arange(3), pool.matrix[:, :3], Subsets()), candidates, belief, 1)
    with pytest.raises(ShapeError, match="queries over 3 people, but 6 known"):
        believe(pool.matrix[:, :3], np.full(6, 0.5), 1.0)
    with pytest.raises(InputError, match="sigma is 0; it must be above 0"):
        believe(pool.matrix, np.full(6, 0.5), 0.0)
