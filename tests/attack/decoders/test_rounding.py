from functools import partial

import numpy as np
import pytest

from countleak.attack.decoders.rounding import Rounding
from countleak.attack.programs import (
    CappedDmt,
    DiNi,
    Dmt,
    FeasiblePoint,
    Infeasible,
    Solution,
    Status,
)
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.solvers.pdhg import FirstOrder
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import generated_census
from countleak.audit.run import ask
from countleak.audit.targets.simulated import Gaussian, Simulated
from countleak.errors import SolverError

PEOPLE = generated_census(20, seed=1)
QUERIES = random_subsets(PEOPLE.ids, 300, np.random.default_rng(0))
SECRET = PEOPLE.truth(Bit("sex = 1"))
TRANSCRIPT = ask(QUERIES, Simulated(PEOPLE, Bit("sex = 1"), Gaussian(1.0), 0))


@pytest.mark.parametrize("program", [Dmt(), CappedDmt(5.0), Dmt(integer=True)])
def test_every_program_recovers_the_secret_from_many_answers(program):
    guess = Rounding(program).decode(TRANSCRIPT)
    assert guess.claimed.all()
    assert np.array_equal(guess.values, SECRET)
    assert np.array_equal(guess.ids, PEOPLE.ids)
    assert (guess.margin >= 0).all()
    assert (guess.margin <= 1).all()


def test_dini_claims_everyone_at_a_feasible_point():
    guess = Rounding(DiNi(4.0, 1.0)).decode(TRANSCRIPT)
    assert guess.claimed.all()
    assert isinstance(guess.basis.certificate, FeasiblePoint)


def test_an_infeasible_program_claims_nobody_and_proves_it():
    guess = Rounding(DiNi(0.5, 1.0)).decode(TRANSCRIPT)
    assert not guess.claimed.any()
    assert isinstance(guess.basis.certificate, Infeasible)
    assert guess.basis.certificate.margin > 0


def test_margins_say_how_far_from_undecided():
    queries = Queries(np.array([5]), np.ones((1, 1), np.int8), Subsets())
    answers = Answers.to_all(np.array([0.75]))
    guess = Rounding().decode(Transcript.of(queries, answers))
    assert guess.values.tolist() == [1]
    assert guess.margin.tolist() == [0.5]


class Sloppy:
    """A solver that stops early and says it is done."""

    def solve(self, problem):
        m, n = problem.A.shape
        return Solution(np.full(n, 0.5), np.zeros(m), Status.OPTIMAL, 0, 0.0, "nobody")


def test_a_wide_gap_is_an_error_whatever_the_solver_says():
    with pytest.raises(SolverError, match=r"nobody left a gap of 1\.0e\+00"):
        Rounding(solver=Sloppy()).decode(TRANSCRIPT)


class OutOfTime:
    """A solver whose search ended before it had found anything."""

    def solve(self, problem):
        return Solution(None, None, Status.TIME_LIMIT, 0, 0.0, "nobody")


@pytest.mark.parametrize("program", [Dmt(integer=True), DiNi(4.0, 1.0, integer=True)])
def test_nothing_found_in_time_claims_nobody(program):
    guess = Rounding(program, OutOfTime()).decode(TRANSCRIPT)
    assert not guess.claimed.any()
    assert guess.basis.certificate is None


def test_many_people_are_solved_for_by_products_alone(monkeypatch):
    monkeypatch.setattr("countleak.attack.decoders.rounding.MOST_PEOPLE", 10)
    guess = Rounding().decode(TRANSCRIPT)
    assert np.array_equal(guess.values, SECRET)
    assert guess.basis.solution.solver == "first-order"
    assert guess.basis.certificate.gap <= 1.1e-4
    few_steps = partial(FirstOrder, steps=20)
    monkeypatch.setattr("countleak.attack.decoders.rounding.FirstOrder", few_steps)
    with pytest.raises(SolverError, match="first-order left a gap of"):
        Rounding().decode(TRANSCRIPT)
