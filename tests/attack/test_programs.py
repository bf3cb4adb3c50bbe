from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.programs import (
    Bracket,
    CappedDmt,
    DiNi,
    Dmt,
    FeasiblePoint,
    Infeasible,
    Objective,
    Problem,
    Solution,
    Status,
    certify,
)
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.solvers.highs import Highs
from countleak.attack.transcript import Answers, Transcript
from countleak.errors import InputError, ShapeError, SolverError


def instance(seed, m=30, n=8, sigma=2.0):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (m, n)).astype(np.int8)
    return A, A @ rng.integers(0, 2, n) + np.round(rng.normal(0, sigma, m))


@given(seed=st.integers(0, 10**6), bound=st.sampled_from([inf, 8.0]), stretch=st.floats(0, 3))
@settings(max_examples=60, deadline=None)
def test_any_x_and_any_y_bracket_the_optimum(seed, bound, stretch):
    A, b = instance(seed)
    problem = Problem(A, b, bound=bound)
    best = Highs().solve(problem)
    if best.status is not Status.OPTIMAL:
        return
    optimum = np.abs(problem.residual(best.x)).sum()
    rng = np.random.default_rng(seed)
    loose = Solution(best.x, stretch * rng.uniform(-1, 1, 30), Status.OPTIMAL, 0, 0.0, "nobody")
    assert certify(problem, loose).lower <= optimum + 1e-9
    if bound == inf:
        loose = Solution(rng.uniform(-1, 2, 8), best.y, Status.OPTIMAL, 0, 0.0, "nobody")
        assert certify(problem, loose).upper >= optimum - 1e-9


def exactly(values):
    return [Fraction(float(v)) for v in values]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("bound", [inf, 4.0])
def test_certificates_hold_in_exact_rational_arithmetic(seed, bound):
    A, b = instance(seed)
    problem = Problem(A, b, bound=bound)
    solution = Highs().solve(problem)
    certificate = certify(problem, solution)
    y, rows = exactly(solution.y), A.tolist()
    columns = list(zip(*rows, strict=True))
    products = [sum(a * v for a, v in zip(column, y, strict=True)) for column in columns]
    gain = sum(v * Fraction(c) for v, c in zip(y, b, strict=True)) - sum(
        max(Fraction(0), p) for p in products
    )
    if isinstance(certificate, Infeasible):
        assert gain - Fraction(bound) * sum(abs(v) for v in y) >= Fraction(certificate.margin) > 0
        return
    if bound == inf:
        assert all(abs(v) <= 1 for v in y)
    else:
        gain -= Fraction(bound) * sum(max(Fraction(0), abs(v) - 1) for v in y)
    x = [min(max(v, Fraction(0)), Fraction(1)) for v in exactly(solution.x)]
    residuals = [
        Fraction(c) - sum(a * v for a, v in zip(row, x, strict=True))
        for row, c in zip(rows, b, strict=True)
    ]
    upper = sum(map(abs, residuals))
    assert gain <= upper
    assert upper - gain <= Fraction(1e-9) * max(1, upper)
    assert abs(float(gain) - certificate.lower) <= 1e-9
    assert abs(float(upper) - certificate.upper) <= 1e-9


def test_a_false_claim_does_not_pass():
    A, b = instance(0)
    easy = Problem(A, b, Objective.NONE, bound=100.0)
    with pytest.raises(SolverError, match="does not hold"):
        certify(easy, Solution(None, np.ones(30), Status.INFEASIBLE, 0, 0.0, "nobody"))
    with pytest.raises(SolverError, match="gives no proof"):
        certify(easy, Solution(None, None, Status.INFEASIBLE, 0, 0.0, "nobody"))
    tight = Problem(A, b, Objective.NONE, bound=0.1)
    with pytest.raises(SolverError, match="exceeds its bound"):
        certify(tight, Solution(np.full(8, 0.5), None, Status.FEASIBLE, 0, 0.0, "nobody"))
    with pytest.raises(SolverError, match="no feasible point"):
        certify(tight, Solution(None, None, Status.TIME_LIMIT, 0, 0.0, "nobody"))
    wrong = certify(
        Problem(A, b), Solution(np.zeros(8), np.zeros(30), Status.OPTIMAL, 0, 0.0, "nobody")
    )
    assert wrong.gap == pytest.approx(1.0)


def test_the_kinds_of_certificates():
    A, b = instance(0)
    assert certify(Problem(A, b), Highs().solve(Problem(A, b))).gap < 1e-9
    for bound, kind in ((100.0, FeasiblePoint), (0.1, Infeasible)):
        problem = Problem(A, b, Objective.NONE, bound)
        assert isinstance(certify(problem, Highs().solve(problem)), kind)
    open_ = certify(Problem(A, b), Solution(None, None, Status.TIME_LIMIT, 0, 0.0, "nobody"))
    assert open_ == Bracket(0.0, inf)


def test_programs_build_rows_from_released_answers_only():
    queries = random_subsets(np.arange(6), 4, np.random.default_rng(0))
    released = np.array([True, True, True, False])
    answers = Answers.to_all(np.array([3.0, 0.0, -1.0, 2.0]), released)
    transcript = Transcript.of(queries, answers)
    assert np.array_equal(Dmt().problem(transcript).A, queries.matrix[:3])
    assert CappedDmt(20.0).problem(transcript).b.tolist() == [3.0]
    kept = CappedDmt(20.0, drop_nonpositive=False).problem(transcript)
    assert (kept.b.size, kept.bound) == (3, 20.0)
    dini = DiNi(2.5, 4.0).problem(transcript)
    assert (dini.bound, dini.objective) == (10.0, Objective.NONE)
    with pytest.raises(InputError, match="nothing to solve; suppressed answers can be read as 0"):
        Dmt().problem(Transcript.of(queries, Answers.to_all(np.zeros(4), np.zeros(4, bool))))
    with pytest.raises(ShapeError, match="an answer to query 4"):
        Transcript.of(queries, Answers.to_all(np.zeros(5)))


def test_bad_problems_are_refused():
    A, b = instance(0)
    with pytest.raises(ShapeError, match="30 queries but 29 answers"):
        Problem(A, b[1:])
    with pytest.raises(InputError, match="there must be some of both"):
        Problem(A[:0], b[:0])
    with pytest.raises(InputError, match="not a finite number"):
        Problem(A, np.full(30, np.nan))
    with pytest.raises(InputError, match="cannot be negative"):
        Problem(A, b, bound=-1.0)
    with pytest.raises(InputError, match="B is -1"):
        DiNi(-1.0, 4.0)
    with pytest.raises(InputError, match="sigma is 0"):
        DiNi(1.0, 0.0)


@pytest.mark.parametrize("objective", list(Objective))
def test_what_is_no_number_is_never_certified(objective):
    A, b = instance(0)
    problem = Problem(A, b, objective, 9.0)
    nonsense = Solution(np.full(8, np.nan), np.zeros(30), Status.OPTIMAL, 0, 0.0, "nobody")
    with pytest.raises(SolverError, match="entries that are not finite"):
        certify(problem, nonsense)


def test_an_open_bracket_has_an_infinite_gap():
    assert Bracket(1.0, inf).gap == inf


def test_feasibility_needs_a_finite_bound():
    A, b = instance(0)
    with pytest.raises(InputError, match="give a finite one"):
        Problem(A, b, Objective.NONE)
