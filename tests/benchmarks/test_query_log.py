"""Planted trackers single out few people and ask for many."""

import numpy as np

from benchmarks.query_log.population import population
from benchmarks.query_log.trackers import KINDS, LEAST, log_of


def test_trackers_are_of_few_and_ask_for_many():
    people = population(20_000, 1)
    log = log_of(people, 300, 80, 8, 1)
    assert [tracker.kind for tracker in log.trackers] == [*KINDS, *KINDS]
    assert {int(tracker.target.sum()) for tracker in log.trackers} == {1, 2}
    assert min(condition.size for condition in log.asked) >= LEAST
    assert len(log.statements) == 300
    assert log.distinct <= 80
    again = log_of(people, 300, 80, 8, 1)
    assert again.statements == log.statements
    shares = np.unique(people.columns["status"], return_counts=True)[1] / people.size
    assert np.allclose(shares, [0.62, 0.25, 0.1, 0.03], atol=0.02)
