import numpy as np
import pytest

from countleak.attack.noise import UNKNOWN, Noise, Range, Shape, Threshold
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.rules import Rules, count_intervals, in_words, inferred_in_words
from countleak.attack.transcript import Answers, Transcript
from countleak.errors import InputError

MATRIX = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], np.int8)


def transcript(values, released=(True, True, True)):
    queries = Queries(np.arange(3), MATRIX, Subsets())
    return Transcript.of(queries, Answers.to_all(np.array(values), np.array(released)))


def test_what_is_stated_becomes_the_noise_and_the_rest_stays_open():
    assert Rules().noise().sigma is UNKNOWN
    assert Rules(sigma=2.0).shape is Shape.GAUSSIAN
    assert Rules(Shape.UNIFORM, bound=2).noise().reach == 2
    assert Rules(Shape.EXACT, base=5, random_rounding=True).noise().reach == 4
    assert Rules(shape=Shape.EXACT, base=5).noise().reach == 2
    assert Rules(suppressed=Range(1, 2)).noise().threshold == Range(1, 2)


def test_a_bound_or_a_rounding_alone_leaves_the_law_open():
    """A rule that says less than a whole law proves no more than it says."""
    for rules in (Rules(bound=2), Rules(base=3, random_rounding=True), Rules(base=3)):
        assert rules.shape is None
        assert rules.noise().reach is None
    assert Rules(base=3, random_rounding=True).limits() is None
    assert Rules(bound=2).limits().reach == 2
    # Noise that is not whole, then rounded: 2.7 and half of 5, or 0.5 and all but all of 3.
    assert Rules(bound=2.7, base=5).limits().reach == 5
    assert Rules(bound=0.5, base=3, random_rounding=True).limits().reach == 3


@pytest.mark.parametrize(
    ("rules", "noise", "stated"),
    [
        (Rules(Shape.UNIFORM, bound=2), Noise(shape=Shape.UNIFORM, bound=2), True),
        (Rules(Shape.UNIFORM, bound=2), Noise(shape=Shape.UNIFORM, bound=3), False),
        (Rules(bound=2), Noise(shape=Shape.UNIFORM, bound=2), True),
        (Rules(), Noise(shape=Shape.EXACT), False),
        (Rules(shape=Shape.EXACT), Noise(shape=Shape.EXACT), True),
        (Rules(shape=Shape.EXACT), Noise(shape=Shape.EXACT, threshold=Range(1, 2)), False),
        (Rules(suppressed=Range(1, 2)), Noise(shape=Shape.EXACT, threshold=Range(1, 2)), False),
        # A threshold that is drawn bounds nothing, so nothing rests on it.
        (Rules(shape=Shape.EXACT), Noise(shape=Shape.EXACT, threshold=Threshold()), True),
    ],
)
def test_only_what_is_stated_in_full_proves(rules, noise, stated):
    assert rules.state(noise) is stated


def test_answers_and_suppression_become_intervals_of_counts():
    intervals = count_intervals(transcript([1.0, 2.0, 3.0]), Noise(shape=Shape.UNIFORM, bound=1))
    assert intervals.low.tolist() == [0, 1, 2] and intervals.high.tolist() == [2, 3, 4]
    hidden = transcript([np.nan, 0.0, 3.0], [False, True, True])
    exact = count_intervals(hidden, Noise(shape=Shape.EXACT, threshold=Range(1, 2)))
    assert exact.low.tolist() == [1, 0, 3] and exact.high.tolist() == [2, 0, 3]
    # A threshold that is drawn bounds nothing, and neither does a rule that is not known.
    for threshold in (None, Threshold()):
        left = count_intervals(hidden, Noise(shape=Shape.EXACT, threshold=threshold))
        assert left.low.tolist() == [0, 3]
    clamped = count_intervals(transcript([0.0, 2.0, 3.0]), Noise(shape=Shape.EXACT, floor=0.0))
    assert not clamped.holds(np.array([0, 0, 0])) and clamped.low[0] < 0
    assert count_intervals(hidden, Noise()) is None


def test_bounds_in_words():
    assert in_words(Noise(shape=Shape.EXACT)) == "every answer is the exact count"
    noise = Noise(shape=Shape.EXACT, base=5, threshold=Range(1, 2))
    assert in_words(noise) == (
        "no answer is further than 2 from its count and counts from 1 to 2 are suppressed"
    )


def test_what_is_stated_and_what_is_inferred_in_words():
    rules = Rules(Shape.EXACT, base=5, suppressed=Range(1, 2), floor=0.0, sticky=True)
    assert rules.words == (
        "no noise is added",
        "answers are rounded to multiples of 5",
        "counts from 1 to 2 are suppressed",
        "no answer is below 0",
        "a question asked again gets the same answer",
    )
    assert inferred_in_words(rules.noise(), rules) == ()
    assert inferred_in_words(rules.noise(), Rules(floor=0.0)) == rules.words[:3]
    assert Rules().words == ()
    assert Rules(sigma=2.0).words == ("noise is normal of SD 2",)
    assert Rules(bound=2, sticky=False).words == (
        "noise lies within ± 2",
        "a question asked again gets fresh noise",
    )
    laplace = Rules(Shape.LAPLACE, suppressed=Threshold(4.0))
    assert laplace.words == ("noise is Laplace", "counts below about 4 are suppressed")
    assert inferred_in_words(laplace.noise(), laplace, 2.5) == ("the noise has SD 2.5",)
    assert inferred_in_words(Noise(), Rules(), 2.5) == ("noise is normal of SD 2.5",)
    # A bound says nothing of the law within it.
    within = Noise(shape=Shape.UNIFORM, bound=2)
    assert inferred_in_words(within, Rules(bound=2)) == ("within its bound the noise is uniform",)
    assert inferred_in_words(within, Rules(Shape.UNIFORM, bound=2)) == ()


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (Rules(base=5), "multiples of 5, as stated, but one is 7; check that, or state less"),
        (Rules(floor=0.0), "no answer is below 0, as stated, but one is -3"),
    ],
)
def test_answers_that_contradict_a_rule_at_sight_are_refused(rules, complaint):
    rules.check(transcript([np.nan, 5.0, 10.0], [False, True, True]))
    with pytest.raises(InputError, match=complaint):
        rules.check(transcript([-3.0, 7.0, -3.0] if rules.floor == 0 else [5.0, 7.0, 10.0]))


def test_what_a_decoder_cannot_use_is_refused():
    Rules(sigma=2.0, floor=0.0).require_only("a category", ("sigma", "floor"))
    with pytest.raises(InputError, match="no noise is added: a number can be decoded with sigma"):
        Rules(Shape.EXACT).require_only("a number", ("sigma",))


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (lambda: Rules(Shape.EXACT, sigma=1.0), "exact noise has no SD to state"),
        (lambda: Rules(random_rounding=True), "needs the base"),
        (lambda: Rules(Shape.GAUSSIAN, bound=2), "no other noise has one"),
        (lambda: Rules(Shape.UNIFORM), "needs a bound"),
        (lambda: Rules(base=0), "answers are multiples of 0; write a number from 1"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(bad, complaint):
    with pytest.raises(InputError, match=complaint):
        bad()
