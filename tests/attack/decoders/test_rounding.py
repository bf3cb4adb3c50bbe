import numpy as np
import pytest

from countleak import (
    Answers,
    CappedDmt,
    Condition,
    DiNi,
    Dmt,
    FeasiblePoint,
    Gaussian,
    Infeasible,
    Rounding,
    Simulated,
    Solution,
    SolverError,
    Status,
    ask,
    generated_census,
    random_subsets,
)

PEOPLE = generated_census(20, seed=1)
QUERIES = random_subsets(PEOPLE.ids, 300, np.random.default_rng(0))
SECRET = PEOPLE.secret(Condition.parse("sex = 1"))
ANSWERS = ask(QUERIES, Simulated(PEOPLE, Condition.parse("sex = 1"), Gaussian(1.0), 0))


@pytest.mark.parametrize("program", [Dmt(), CappedDmt(5.0), Dmt(integer=True)])
def test_every_program_recovers_the_secret_from_many_answers(program):
    guess = Rounding(program).decode(QUERIES, ANSWERS)
    assert guess.claimed.all()
    assert np.array_equal(guess.values, SECRET)
    assert np.array_equal(guess.ids, PEOPLE.ids)
    assert (guess.margin >= 0).all()
    assert (guess.margin <= 1).all()


def test_dini_claims_everyone_at_a_feasible_point():
    guess = Rounding(DiNi(4.0, 1.0)).decode(QUERIES, ANSWERS)
    assert guess.claimed.all()
    assert isinstance(guess.certificate, FeasiblePoint)


def test_an_infeasible_program_claims_nobody_and_proves_it():
    guess = Rounding(DiNi(0.5, 1.0)).decode(QUERIES, ANSWERS)
    assert not guess.claimed.any()
    assert isinstance(guess.certificate, Infeasible)
    assert guess.certificate.margin > 0


def test_margins_say_how_far_from_undecided():
    answers = Answers.to_all(np.array([0.75]))
    queries = random_subsets(np.array([5]), 1, np.random.default_rng(1))
    queries = type(queries)(queries.ids, np.ones((1, 1), np.int8), "one")
    guess = Rounding().decode(queries, answers)
    assert guess.values.tolist() == [1]
    assert guess.margin.tolist() == [0.5]


class Sloppy:
    """A solver that stops early and says it is done."""

    def solve(self, problem):
        m, n = problem.A.shape
        return Solution(np.full(n, 0.5), np.zeros(m), Status.OPTIMAL, 0, 0.0, "nobody")


def test_a_wide_gap_is_an_error_whatever_the_solver_says():
    with pytest.raises(SolverError, match=r"nobody left a gap of 1\.0e\+00"):
        Rounding(solver=Sloppy()).decode(QUERIES, ANSWERS)


class OutOfTime:
    """A solver whose search ended before it had found anything."""

    def solve(self, problem):
        return Solution(None, None, Status.TIME_LIMIT, 0, 0.0, "nobody")


@pytest.mark.parametrize("program", [Dmt(integer=True), DiNi(4.0, 1.0, integer=True)])
def test_nothing_found_in_time_claims_nobody(program):
    guess = Rounding(program, OutOfTime()).decode(QUERIES, ANSWERS)
    assert not guess.claimed.any()
    assert guess.certificate is None
