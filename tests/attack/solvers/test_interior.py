import numpy as np
import pytest
from scipy.optimize import linprog

from benchmarks.solvers import instance
from countleak.attack.programs import (
    Bracket,
    CappedDmt,
    Dmt,
    FeasiblePoint,
    Infeasible,
    Objective,
    Point,
    Problem,
    Status,
    certify,
)
from countleak.attack.solvers import interior
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.errors import InputError
from tests.attack.solvers.cases import random_case


@pytest.mark.parametrize("block", range(10))
def test_500_random_programs_agree_with_highs(block):
    for seed in range(50 * block, 50 * block + 50):
        problem = random_case(seed)
        solution = InteriorPoint().solve(problem)
        assert solution.status is Status.OPTIMAL, seed
        ours = certify(problem, solution)
        theirs = certify(problem, Highs().solve(problem))
        assert ours.gap <= 1e-9, seed
        # HiGHS solves (D), so its objective is the lower bound; its x is the less exact of the two.
        assert abs(ours.upper - theirs.lower) <= 1e-8 * max(1.0, theirs.lower), seed


def with_bound(seed, objective):
    """A random program with a bound from far too tight to slack, and what HiGHS says of it."""
    free = random_case(seed)
    rng = np.random.default_rng([seed, 78])
    largest = np.abs(free.residual(Highs().solve(free).x)).max()
    bound = max(largest, 0.5) * rng.choice([0.3, 0.7, 0.9, 0.99, 1.5])
    problem = Problem(free.A, free.b, objective, bound)
    return problem, certify(problem, Highs().solve(problem))


@pytest.mark.parametrize("block", range(4))
def test_bounded_programs_agree_with_highs_or_are_proven_infeasible(block):
    for seed in range(25 * block, 25 * block + 25):
        problem, theirs = with_bound(seed, Objective.L1)
        ours = certify(problem, InteriorPoint().solve(problem))
        assert type(ours) is type(theirs), seed
        if isinstance(theirs, Bracket):
            assert ours.gap <= 1e-9, seed
            assert ours.violation <= 1e-7
            assert abs(ours.upper - theirs.lower) <= 1e-8 * max(1.0, theirs.lower), seed


@pytest.mark.parametrize("block", range(4))
def test_feasibility_agrees_with_highs_and_the_point_is_the_centre(block):
    for seed in range(25 * block, 25 * block + 25):
        problem, theirs = with_bound(seed, Objective.NONE)
        solution = InteriorPoint().solve(problem)
        ours = certify(problem, solution)
        assert type(ours) is type(theirs), seed
        if isinstance(theirs, Infeasible):
            assert ours.margin > 0
            continue
        assert solution.point is Point.CENTRE
        x, r, beta = solution.x, problem.residual(solution.x), problem.bound
        slacks = np.concatenate([x, 1 - x, beta - r, beta + r])
        assert slacks.min() > 0
        gradient = problem.A.T @ (1 / (beta - r) - 1 / (beta + r)) + 1 / x - 1 / (1 - x)
        scale = np.abs(problem.A).T @ (1 / (beta - r) + 1 / (beta + r)) + 1 / x + 1 / (1 - x)
        assert np.abs(gradient / scale).max() < 1e-6, seed


@pytest.mark.parametrize(("n", "m"), [(50, 500), (100, 2550), (142, 3500), (60, 40)])
def test_digit_queries_are_solved_too(n, m):
    for seed in range(3):
        problem = instance("digits", n, m, (seed,))
        assert certify(problem, InteriorPoint().solve(problem)).gap <= 1e-9


def test_larger_programs():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (2500, 450), dtype=np.int8)
    problem = Problem(A, A @ rng.integers(0, 2, 450) + np.round(rng.normal(0, 4, 2500)))
    assert certify(problem, InteriorPoint().solve(problem)).gap <= 1e-9


def test_a_batch_is_the_same_as_one_by_one():
    rng = np.random.default_rng(1)
    A = rng.integers(0, 2, (600, 60), dtype=np.int8)
    other = rng.integers(0, 2, (300, 20), dtype=np.int8)
    problems = [
        Problem(Q, Q @ rng.integers(0, 2, Q.shape[1]) + np.round(rng.normal(0, 4, len(Q))))
        for Q in (A, other, A, A, other)
    ]
    solver = InteriorPoint(threads=2)
    for problem, together in zip(problems, solver.solve_all(problems), strict=True):
        apart = solver.solve(problem)
        assert np.array_equal(together.x, apart.x)
        assert np.array_equal(together.y, apart.y)


def test_running_out_of_iterations_is_said():
    problem = random_case(3)
    assert InteriorPoint(max_iterations=1).solve(problem).status is Status.ITERATION_LIMIT


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("factor", [1 - 1e-3, 1 - 1e-6, 1 - 1e-9, 1.0, 1 + 1e-9])
def test_at_the_limit_of_feasibility_it_ends_and_is_honest(factor, objective):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.integers(0, 2, (100, 10)).astype(np.int8)
        b = A @ rng.integers(0, 2, 10) + np.round(rng.normal(0, 4, 100))
        problem = Problem(A, b, objective, factor * chebyshev(A, b))
        solution = InteriorPoint().solve(problem)
        if solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE):
            certify(problem, solution)
        else:
            assert solution.status in (Status.TROUBLE, Status.ITERATION_LIMIT)
        if factor < 1 - 1e-4:
            assert solution.status is Status.INFEASIBLE


def chebyshev(A, b):
    """The smallest bound that has a solution, by scipy."""
    m, n = A.shape
    edge = np.ones((m, 1))
    return linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.block([[A, -edge], [-A, -edge]]),
        b_ub=np.concatenate([b, -b]),
        bounds=[(0, 1)] * n + [(0, None)],
    ).fun


@pytest.mark.parametrize("settings", [{"tolerance": 0.0}, {"threads": 0}, {"max_iterations": 0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(InputError, match="must be above 0"):
        InteriorPoint(**settings)


def test_read_only_and_strided_arrays_are_left_alone():
    rng = np.random.default_rng(2)
    A = np.asfortranarray(rng.integers(0, 2, (200, 30), dtype=np.int8))[::2]
    b = (A @ rng.integers(0, 2, 30) + np.round(rng.normal(0, 4, 100))).astype(np.float64)
    A.flags.writeable = b.flags.writeable = False
    problem = Problem(A, b)
    assert certify(problem, InteriorPoint().solve(problem)).gap <= 1e-9


def test_integer_programs_are_refused():
    with pytest.raises(ValueError, match="whole numbers"):
        InteriorPoint().solve(Problem(np.eye(3), np.ones(3), integer=True))


def test_table_1_has_the_objectives_of_highs_and_the_same_bits(recorded):
    for found in recorded.values():
        transcript = found.log.transcript(found.people.ids)
        for program in (Dmt(), CappedDmt(20.0)):
            problem = program.problem(transcript)
            ours, theirs = InteriorPoint().solve(problem), Highs().solve(problem)
            a, b = certify(problem, ours), certify(problem, theirs)
            assert abs(a.upper - b.upper) <= 1e-8 * b.upper
            sure = (np.abs(ours.x - 0.5) > 1e-6) & (np.abs(theirs.x - 0.5) > 1e-6)
            assert np.array_equal(ours.x[sure] >= 0.5, theirs.x[sure] >= 0.5)


def test_feasible_points_certify():
    problem = Problem(np.ones((1, 2)), np.array([1.0]), Objective.NONE, 0.5)
    solution = InteriorPoint().solve(problem)
    assert isinstance(certify(problem, solution), FeasiblePoint)
    assert np.allclose(solution.x, 0.5)


def test_the_wait_for_the_compiler_is_logged(monkeypatch, caplog):
    monkeypatch.setattr(interior, "_loaded", set())
    caplog.set_level("INFO", logger=interior.__name__)
    monkeypatch.setattr(interior, "is_compiled", lambda objective: True)
    interior.warm_up(Objective.L1)
    assert not caplog.messages
    interior._loaded.clear()
    monkeypatch.setattr(interior, "is_compiled", lambda objective: False)
    interior.warm_up(Objective.L1)
    assert caplog.messages == ["compiling the solver, once on this machine: about half a minute"]
