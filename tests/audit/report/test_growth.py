from dataclasses import replace

import numpy as np

import countleak as cl
from countleak.audit.report import growth
from countleak.audit.report.growth import growth_of
from countleak.audit.run import Asking


def test_points_rise_to_the_whole_audit(leaking):
    found = growth_of(leaking.result, seconds=np.inf)
    answers = [point.answers for point in found.points]
    assert answers == sorted(answers)
    assert answers[-1] == len(leaking.result.transcript)
    assert len(answers) > 1
    last = found.points[-1]
    assert last.right == leaking.result.score.accuracy
    assert last.interval == leaking.result.score.interval()
    assert last.expected == leaking.result.confidence
    assert found.points[0].right < last.right
    assert growth_of(leaking.result, seconds=np.inf) == found


def test_without_the_truth_only_what_is_expected_grows(unknown):
    points = growth_of(unknown.result, seconds=np.inf).points
    assert all(point.right is None for point in points)
    assert all(point.expected is not None for point in points)


def test_where_time_is_over_points_are_left_out_and_that_is_said(leaking):
    heard = []
    found = growth_of(leaking.result, seconds=0.0, progress=lambda *step: heard.append(step))
    assert len(found.points) <= 2
    assert "left out" in found.missing
    assert heard[-1][0] == heard[-1][1]


def test_what_is_too_large_is_not_decoded_again(leaking, monkeypatch):
    monkeypatch.setattr(growth, "MOST_CELLS", 10)
    found = growth_of(leaking.result)
    assert len(found.points) == 1
    assert found.missing
    assert "decoder" in growth_of(replace(leaking.result, decoder=None)).missing


def test_the_steps_of_an_adaptive_audit_are_its_points():
    people = cl.generated_census(16, seed=3)
    pool = cl.random_subsets(people.ids, 200, np.random.default_rng(5))
    asking = Asking(until=0.99, first=20, batch=20)
    result = cl.audit(
        people, secret="sex = 1", target=cl.Gaussian(1.0), queries=pool, asking=asking
    )
    points = growth_of(result).points
    assert [point.answers for point in points] == [len(s.transcript) for s in result.steps]
    assert [point.expected for point in points] == [s.confidence for s in result.steps]
