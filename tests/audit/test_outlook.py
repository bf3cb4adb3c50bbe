"""What a watcher hears of an attack while questions are asked."""

from importlib import import_module

import numpy as np

from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers
from countleak.audit.outlook import Outlook
from countleak.audit.people import generated_bank
from countleak.audit.run import ask_in_steps
from countleak.audit.targets.simulated import Gaussian, Simulated

# The package binds `audit` to a function, so its modules are not found by their names.
outlook = import_module("countleak.audit.outlook")


class InParts:
    """A target's answers, a few at a time."""

    def __init__(self, target):
        self.target = target

    def answer(self, queries, positions):
        for some in np.array_split(positions, 5):
            yield from self.target.answer(queries, some)


def test_the_outlook_is_what_least_squares_expects_and_rises(monkeypatch):
    people, secret = generated_bank(7).between(2000, 2999), Bit("status = 'C'")
    pool = random_subsets(people.ids, 2000, np.random.default_rng(1))
    heard = []
    monkeypatch.setattr(outlook, "PATIENCE", 0.0)
    monkeypatch.setattr(Outlook.__init__, "__defaults__", (0.0,))
    target = InParts(Simulated(people, secret, Gaussian(4.0)))
    (step,) = ask_in_steps(pool, target, secret, decoder=LeastSquares(), outlook=heard.append)
    assert len(heard) == 5
    assert heard[-1] == step.guess.expected_right
    assert heard[0] < heard[-1]


def test_nothing_is_said_where_nothing_was_answered_or_it_is_not_time():
    queries = random_subsets(np.arange(10), 20, np.random.default_rng(1))
    heard = []
    suppressed = Answers(np.arange(20), np.zeros(20), np.zeros(20, np.bool_))
    Outlook(queries, heard.append, 0.0)([suppressed])
    Outlook(queries, heard.append)([Answers(np.arange(20), np.ones(20), np.ones(20, np.bool_))])
    assert heard == []
