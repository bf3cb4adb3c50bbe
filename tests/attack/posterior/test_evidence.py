import numpy as np
import pytest

from countleak.attack.noise import Noise, Threshold, Values, log_released
from countleak.attack.posterior.evidence import gather
from countleak.attack.queries import Queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.errors import InputError, ShapeError


@pytest.mark.parametrize("family", [random_subsets, random_signs])
@pytest.mark.parametrize("whole", [True, False])
def test_the_table_gives_the_likelihood_of_the_answers(family, whole):
    rng = np.random.default_rng(1)
    queries = family(np.arange(12), 40, rng)
    x = rng.integers(0, 2, 12)
    told = queries.dot(x.astype(float)) + rng.normal(0, 2, 40)
    told = np.rint(told) if whole else told
    evidence = gather(Transcript.of(queries, Answers.to_all(told)), Noise(2.0))
    values = Values(np.array([2.0]), 0.0, 0.0)
    found = evidence.table(values).ravel()[evidence.cells(x)]
    direct = log_released(told - queries.dot(x.astype(float)), values, Noise(2.0), whole)[0]
    # Answers that are not whole are read to a sixteenth of a person.
    assert found == pytest.approx(direct, abs=1e-9 if whole else 0.1)
    assert found.sum() == pytest.approx(direct.sum(), abs=1e-6 if whole else 1.0)


def test_an_answer_far_off_is_as_good_as_one_a_little_less_far():
    queries = Queries(np.arange(2), np.ones((8, 2), np.int8), Subsets())
    values = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 1.0, 1e9, -1e9])
    evidence = gather(Transcript.of(queries, Answers.to_all(values)), Noise(2.0, wrong=0.1))
    assert np.abs(evidence.said).max() < 100
    assert np.isfinite(evidence.table(Values(np.array([2.0]), 0.0, 0.1))).all()


def test_bad_evidence_is_refused():
    queries = random_subsets(np.arange(4), 3, np.random.default_rng(0))
    hidden = Transcript.of(queries, Answers.to_all(np.zeros(3), np.zeros(3, np.bool_)))
    shown = Transcript.of(queries, Answers.to_all(np.zeros(3)))
    with pytest.raises(InputError, match="give a threshold"):
        gather(hidden, Noise())
    assert gather(hidden, Noise(threshold=Threshold())).said.size == 3
    with pytest.raises(ShapeError, match="2 groups for 3 queries"):
        gather(shown, Noise(groups=np.array([0, 1])))
    weights = Queries(np.arange(2), np.array([[2, 1]], np.int8), Subsets())
    with pytest.raises(InputError, match="weights -1, 0 and 1"):
        gather(Transcript.of(weights, Answers.to_all(np.ones(1))), Noise())


@pytest.mark.parametrize("floor", [None, 1.0])
def test_answers_about_each_value_have_their_own_offset_and_the_noise_of_their_group(floor):
    rng = np.random.default_rng(4)
    queries, names = random_subsets(np.arange(10), 30, rng), ("a", "b", "c")
    value = rng.integers(0, 3, 10)
    bits = (value == np.arange(3)[:, None]).astype(np.int64)
    counts = np.concatenate([queries.dot(one.astype(float)) for one in bits])
    told = np.maximum(np.rint(counts + rng.normal(0, 2, 90)), -np.inf if floor is None else floor)
    released = rng.random(90) < 0.8
    # The second value shares the noise of the first.
    groups = np.repeat([0, 0, 1], 30)
    noise = Noise((2.0, 5.0), groups=groups, floor=floor, threshold=Threshold())
    transcript = Transcript.of(queries, Answers.to_all(told, released), names)
    evidence = gather(transcript, noise)
    values = Values(np.array([2.0, 5.0]), np.array([0.5, -1.0, 3.0]), 0.0)
    found = evidence.table(values).ravel()[evidence.cells(bits.ravel())].sum()
    direct = 0.0
    for v in range(3):
        about = transcript.about == v
        # Each value by itself, its group being the only one.
        alone = Values(values.sigma[[max(v - 1, 0)]], values.offsets[[v]], 0.0)
        part = gather(
            Transcript.of(queries, Answers.to_all(told[about], released[about])),
            Noise((alone.sigma[0],), floor=floor, threshold=Threshold()),
        )
        direct += part.table(alone).ravel()[part.cells(bits[v])].sum()
    assert (evidence.parts, evidence.group_of.tolist()) == (3, [0, 0, 1])
    assert found == pytest.approx(direct)
