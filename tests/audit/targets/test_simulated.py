import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.rules import count_intervals
from countleak.attack.secrets import Bit, Number
from countleak.attack.transcript import Transcript
from countleak.audit.people import People, generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
    Uniform,
)
from countleak.errors import InputError

MANY = np.full(40_000, 30.0)


def noise(mechanism, seed=0):
    return mechanism.release(MANY, np.random.SeedSequence(seed)).values - MANY


@pytest.mark.parametrize(
    ("mechanism", "sd"),
    [
        # Rounding to whole numbers adds the variance of a uniform on [-1/2, 1/2].
        (SimulatedDiffix(4.0), np.sqrt(16 + 1 / 12)),
        (SimulatedDiffix(4.0, rounded=False), 4.0),
        (Gaussian(2.5), 2.5),
        (Laplace(2.5), 2.5),
        # Uniform on the 2b + 1 whole numbers of [-b, b]: variance b (b + 1) / 3.
        (Uniform(5), np.sqrt(10.0)),
    ],
)
def test_noise_has_mean_zero_and_the_stated_sd(mechanism, sd):
    drawn = noise(mechanism)
    # Five standard errors; the fourth moment of Laplace noise is 6, the largest here.
    assert abs(drawn.mean()) < 5 * sd / 200
    assert abs(drawn.std() / sd - 1) < 5 * np.sqrt(5) / 2 / 200


KEEPING_RULES = st.one_of(
    st.builds(SimulatedDiffix, st.floats(0.1, 9), st.booleans(), st.booleans(), st.booleans()),
    st.builds(Gaussian, st.floats(0.1, 9)),
    st.builds(Laplace, st.floats(0.1, 9)),
    st.builds(Uniform, st.integers(1, 9)),
    st.builds(RoundedToBase, st.integers(2, 12), st.booleans()),
)


@given(KEEPING_RULES, st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(0, 99))
def test_every_mechanism_keeps_to_its_own_rules(mechanism, counts, seed):
    rules, counts = mechanism.rules, np.array(counts)
    # Query i counts the first counts[i] of 40 people, all of whom have the secret.
    queries = Queries(np.arange(40), (np.arange(40) < counts[:, None]).astype(np.int8), Subsets())
    answers = mechanism.release(counts.astype(float), np.random.SeedSequence(seed))
    transcript = Transcript.of(queries, answers)
    rules.check(transcript)
    intervals = count_intervals(transcript, rules.noise())
    assert (intervals is None) == isinstance(mechanism, SimulatedDiffix | Gaussian | Laplace)
    assert intervals is None or intervals.holds(np.ones(40, np.int8))
    if rules.suppressed is None:
        assert answers.released.all()
    else:
        assert not answers.released[counts < rules.suppressed.minimum].any()


def test_the_bounds_that_mechanisms_state_are_reached():
    """Otherwise a wider bound than the true one would pass for a rule kept."""
    counts = np.arange(4000.0)
    for mechanism in (Uniform(3), RoundedToBase(5), RoundedToBase(4), RoundedToBase(5, True)):
        answers = mechanism.release(counts, np.random.SeedSequence(0))
        assert np.abs(answers.values - counts).max() == mechanism.rules.noise().reach


def test_whole_numbers_where_promised():
    assert (noise(SimulatedDiffix(4.0)) % 1 == 0).all()
    assert (noise(SimulatedDiffix(4.0, rounded=False)) % 1 != 0).any()
    assert set(np.unique(noise(Uniform(2)))) == {-2, -1, 0, 1, 2}


def test_low_counts_are_suppressed_by_a_noisy_threshold():
    counts = np.repeat(np.arange(8.0), 5000)
    released = SimulatedDiffix(4.0).release(counts, np.random.SeedSequence(1)).released
    share = released.reshape(8, 5000).mean(axis=1)
    # The threshold is max(2, N(4, 0.5)): 3 passes with Phi(-2) = .023, 4 with 1/2, 5 with .977.
    assert np.allclose(share, [0, 0, 0, 0.0228, 0.5, 0.9772, 1, 1], atol=0.03)
    assert share[0] == share[1] == 0


def test_each_part_has_a_switch_that_leaves_the_others_alone():
    counts = np.repeat(np.arange(8.0), 100)
    seed = 3
    full = SimulatedDiffix(4.0).release(counts, np.random.SeedSequence(seed))
    open_ = SimulatedDiffix(4.0, suppressing=False).release(counts, np.random.SeedSequence(seed))
    free = SimulatedDiffix(4.0, suppressing=False, clamped=False).release(
        counts, np.random.SeedSequence(seed)
    )
    assert not full.released.all()
    assert open_.released.all()
    assert np.array_equal(full.values[full.released], open_.values[full.released])
    assert open_.values.min() == 0
    assert np.array_equal(np.maximum(free.values, 0), open_.values)
    assert free.values.min() < 0


@pytest.mark.parametrize("base", [3, 5, 10])
def test_rounding_to_a_base(base):
    counts = np.arange(1000.0)
    fixed = RoundedToBase(base).release(counts, np.random.SeedSequence(0)).values
    drawn = RoundedToBase(base, random=True).release(counts, np.random.SeedSequence(0)).values
    assert (fixed % base == 0).all()
    assert np.abs(fixed - counts).max() <= base / 2
    assert (drawn % base == 0).all()
    assert np.abs(drawn - counts).max() < base
    # Random rounding is right on average: SD at most base/2 a count.
    assert abs((drawn - counts).mean()) < 5 * base / 2 / np.sqrt(1000)


def target(mechanism, seed=0):
    people = People(np.arange(100, 140), {"s": np.tile(["a", "b"], 20)})
    return Simulated(people, Bit("s = a"), mechanism, seed)


def test_a_run_replays_bit_for_bit_whole_or_resumed():
    queries = random_subsets(np.arange(100, 140), 60, np.random.default_rng(0))
    whole = ask(queries, target(SimulatedDiffix(4.0)))
    (part,) = target(SimulatedDiffix(4.0)).answer(queries, np.array([7, 50]))
    assert np.array_equal(part.values, whole.values[[7, 50]], equal_nan=True)
    assert not np.array_equal(
        whole.values, ask(queries, target(SimulatedDiffix(4.0), 1)).values, equal_nan=True
    )


def test_ids_that_are_not_there_count_as_nobody():
    queries = random_subsets(np.arange(120, 160), 50, np.random.default_rng(0))
    counted = ask(queries, target(RoundedToBase(2))).values
    present = (np.arange(120, 160) < 140) & (np.arange(120, 160) % 2 == 0)
    assert np.array_equal(counted, 2 * np.floor(queries.dot(present.astype(float)) / 2 + 0.5))


@pytest.mark.parametrize(
    ("mechanism", "sd"), [(Gaussian(4.0), 4.0), (TwoSubsets(Gaussian(4.0)), 4.0 * np.sqrt(2))]
)
def test_sign_queries_carry_the_noise_of_one_answer_or_of_two(mechanism, sd):
    queries = random_signs(np.arange(100, 140), 20_000, np.random.default_rng(0))
    secret = (np.arange(100, 140) % 2 == 0).astype(float)
    residual = ask(queries, target(mechanism)).values - queries.dot(secret)
    assert abs(residual.std() / sd - 1) < 5 / np.sqrt(2 * 20_000)


def test_two_subsets_are_suppressed_when_either_half_is():
    queries = random_signs(np.arange(100, 120), 500, np.random.default_rng(0))
    answers = ask(queries, target(TwoSubsets(SimulatedDiffix(4.0))))
    ones = (np.arange(100, 120) % 2 == 0).astype(float)
    fewest = np.minimum((queries.matrix > 0) @ ones, (queries.matrix < 0) @ ones)
    # Counts of 1 are always held back and those of 6 never; 10 ones make halves of at most 5.
    assert not answers.released[fewest <= 1].any()
    assert answers.released[fewest == 5].mean() > 0.9
    with pytest.raises(InputError, match="are counts already"):
        ask(
            random_subsets(queries.ids, 3, np.random.default_rng(0)),
            target(TwoSubsets(Gaussian(1.0))),
        )


@pytest.mark.parametrize(
    "build",
    [
        lambda: SimulatedDiffix(0.0),
        lambda: Gaussian(-1.0),
        lambda: Laplace(float("nan")),
        lambda: Uniform(0),
        lambda: RoundedToBase(1),
    ],
)
def test_settings_that_make_no_sense_are_refused(build):
    with pytest.raises(InputError, match=r"must lie above 0|needs one from"):
        build()


def test_a_total_adds_up_a_column_and_strangers_add_nothing():
    people = generated_bank(1)
    ids = np.concatenate([people.ids[:5], [people.ids.max() + 7]])
    queries = random_subsets(ids, 30, np.random.default_rng(0))
    answers = ask(queries, Simulated(people, Number("amount"), Gaussian(1e-6), 0))
    numbers = np.concatenate([people.columns["amount"][:5], [0]])
    assert answers.values == pytest.approx(queries.matrix.astype(float) @ numbers, abs=1e-4)
    with pytest.raises(InputError, match="status holds text, like"):
        ask(queries, Simulated(people, Number("status"), Gaussian(1.0), 0))


def test_every_value_of_a_category_is_counted_with_noise_of_its_own():
    people = generated_bank(1)
    secret = people.named("status")
    queries = random_subsets(people.ids, 40, np.random.default_rng(0))
    transcript = ask(queries, Simulated(people, secret, Gaussian(2.0), 5), secret)
    residual = {
        name: part.values - queries.dot((people.columns["status"] == name).astype(float))
        for name, part in transcript.by_value().items()
    }
    assert list(residual) == ["A", "B", "C", "D"]
    for one, other in (("A", "B"), ("A", "C"), ("C", "D")):
        assert abs(np.corrcoef(residual[one], residual[other])[0, 1]) < 0.6
    bit = ask(queries, Simulated(people, secret.conditions[0], Gaussian(2.0), 5))
    assert np.array_equal(bit.values, transcript.by_value()["A"].values)


@pytest.mark.parametrize(
    "ids", [["x", "y", "z"], [2**70, 2**71, 2**72], [("a", 1), ("a", 2), ("b", 1)]]
)
def test_people_of_any_ids_are_found_by_them(ids):
    people = People(id_array(ids), {"s": np.array([1, 0, 1])})
    some = random_subsets(id_array([*ids[1:], ids[0]]), 30, np.random.default_rng(0))
    counted = ask(some, Simulated(people, Bit("s = 1"), RoundedToBase(2))).values
    exact = some.dot(np.array([0.0, 1.0, 1.0]))
    assert np.array_equal(counted, 2 * np.floor(exact / 2 + 0.5))
