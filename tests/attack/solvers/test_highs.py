import itertools
from math import inf

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from countleak.attack.programs import (
    Bracket,
    Infeasible,
    Objective,
    Point,
    Problem,
    Status,
    certify,
)
from countleak.attack.solvers.highs import Highs
from countleak.errors import InputError


def instance(seed, m, n, sigma=4.0):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (m, n)).astype(np.int8)
    return Problem(A, A @ rng.integers(0, 2, n) + np.round(rng.normal(0, sigma, m)))


def primal(problem):
    """(P) as scipy users write it:  min 1'(u + v)  s.t.  Ax + u - v = b,  u, v <= beta."""
    m, n = problem.A.shape
    return linprog(
        np.repeat([0.0, 1.0], [n, 2 * m]),
        A_eq=hstack([csr_array(problem.A.astype(float)), eye_array(m), -eye_array(m)]),
        b_eq=problem.b,
        bounds=[(0, 1)] * n + [(0, None if problem.bound == inf else problem.bound)] * (2 * m),
        method="highs-ds",
    )


@pytest.mark.parametrize("seed", range(50))
def test_dmt_equals_an_independent_formulation(seed):
    rng = np.random.default_rng([seed, 1])
    m, n, sigma = int(rng.integers(1, 300)), int(rng.integers(1, 40)), rng.choice([0.5, 4.0, 15.0])
    problem = instance(seed, m, n, sigma)
    certificate = certify(problem, Highs().solve(problem))
    optimum = primal(problem).fun
    assert abs(certificate.upper - optimum) <= 1e-9 * max(1.0, optimum)
    assert certificate.gap <= 1e-9


@pytest.mark.parametrize("seed", range(25))
def test_bounded_dmt_equals_an_independent_formulation_or_is_proven_infeasible(seed):
    free = instance(seed, 120, 15)
    largest = np.abs(free.residual(Highs().solve(free).x)).max()
    problem = Problem(free.A, free.b, bound=largest * np.random.default_rng(seed).uniform(0.6, 1.0))
    solution = Highs().solve(problem)
    certificate, expected = certify(problem, solution), primal(problem)
    if expected.status == 2:
        assert isinstance(certificate, Infeasible)
        assert certificate.margin > 0
    else:
        assert abs(certificate.upper - expected.fun) <= 1e-8 * max(1.0, expected.fun)
        assert certificate.gap <= 1e-9
        assert certificate.violation <= 1e-7


def test_the_bound_is_at_work_in_those_cases():
    kinds = set()
    for seed in range(25):
        free = instance(seed, 120, 15)
        largest = np.abs(free.residual(Highs().solve(free).x)).max()
        share = np.random.default_rng(seed).uniform(0.6, 1.0)
        kinds.add(Highs().solve(Problem(free.A, free.b, bound=largest * share)).status)
    assert kinds == {Status.OPTIMAL, Status.INFEASIBLE}


@pytest.mark.parametrize("seed", range(12))
def test_dini_is_feasible_or_proven_not_to_be(seed):
    problem = instance(seed, 150, 12)
    for bound in (6.0, 9.0, 12.0, 20.0):
        feasibility = Problem(problem.A, problem.b, Objective.NONE, bound)
        solution = Highs().solve(feasibility)
        certify(feasibility, solution)
        expected = primal(Problem(problem.A, problem.b, bound=bound)).status
        assert (solution.status is Status.INFEASIBLE) == (expected == 2)
        assert solution.point is (None if solution.x is None else Point.VERTEX)


@pytest.mark.parametrize("bound", [inf, 6.0])
@pytest.mark.parametrize("seed", range(4))
def test_integer_programs_equal_enumeration(seed, bound):
    relaxed = instance(seed, 40, 8, sigma=2.0)
    problem = Problem(relaxed.A, relaxed.b, bound=bound, integer=True)
    values = []
    for bits in itertools.product((0, 1), repeat=8):
        residual = np.abs(problem.residual(np.array(bits)))
        if residual.max() <= bound:
            values.append(residual.sum())
    solution = Highs().solve(problem)
    certificate = certify(problem, solution)
    if not values:
        assert isinstance(certificate, Infeasible)
        return
    assert isinstance(certificate, Bracket)
    assert certificate.upper == pytest.approx(min(values))
    assert certificate.claimed == pytest.approx(min(values), rel=1e-3)
    assert certificate.lower <= certificate.claimed + 1e-6


def test_an_integer_program_out_of_time_keeps_its_certified_bound():
    relaxed = instance(0, 400, 60)
    problem = Problem(relaxed.A, relaxed.b, integer=True)
    solution = Highs(time_limit=0.05).solve(problem)
    assert solution.status is Status.TIME_LIMIT
    certificate = certify(problem, solution)
    optimum = primal(relaxed).fun
    assert certificate.lower == pytest.approx(optimum, rel=1e-9)
    assert certificate.upper >= optimum


def test_integer_infeasibility_of_the_tree_is_claimed_and_of_the_relaxation_proven():
    A = np.ones((1, 2), dtype=np.int8)
    half = Problem(A, np.array([0.5]), Objective.NONE, 0.1, integer=True)
    assert certify(half, Highs().solve(half)) == Infeasible(0.0, proven=False)
    far = Problem(A, np.array([9.0]), Objective.NONE, 0.1, integer=True)
    assert certify(far, Highs().solve(far)).proven


def test_read_only_arrays_are_left_alone():
    problem = instance(0, 60, 8)
    problem.A.flags.writeable = problem.b.flags.writeable = False
    assert certify(problem, Highs().solve(problem)).gap < 1e-9


@given(
    m=st.integers(1, 5),
    n=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    bound=st.sampled_from([0.0, 0.5, 1.0, 4.0]),
    objective=st.sampled_from(list(Objective)),
)
@example(m=4, n=6, seed=-1, bound=4.0, objective=Objective.L1)
@example(m=1, n=1, seed=-2, bound=0.5, objective=Objective.NONE)
@settings(max_examples=300, deadline=None)
def test_small_bounded_programs_are_solved_or_proven_infeasible(m, n, seed, bound, objective):
    if seed == -1:
        rows = ["0 0 0 1 0 -1", " -1 0 0 1 -1 0", " 1 -1 1 1 1 1", " 1 -1 1 1 0 1"]
        A, b = np.array([row.split() for row in rows], dtype=np.int8), np.array([6.0, -3, 8, 6])
    elif seed == -2:
        A, b = np.zeros((1, 1), dtype=np.int8), np.array([-4.0])
    else:
        rng = np.random.default_rng(seed)
        A, b = rng.integers(-1, 2, (m, n)).astype(np.int8), np.round(rng.normal(0, 5, m))
    problem = Problem(A, b, objective, bound)
    certificate = certify(problem, Highs().solve(problem))
    assert isinstance(certificate, Infeasible) == (primal(problem).status == 2)


def test_a_time_limit_must_be_positive():
    with pytest.raises(InputError, match="must be above 0"):
        Highs(time_limit=-1.0)
