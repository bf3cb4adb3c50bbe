import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from countleak.attack.solvers import search
from countleak.attack.solvers.clock import Clock
from countleak.attack.solvers.integer import WholeStatus, solve_whole
from countleak.attack.solvers.intervals import Box, CountIntervals
from countleak.attack.solvers.relaxation import bounds
from countleak.attack.solvers.search import CpSat, Found, HighsMip, Outcome, best_engine
from countleak.errors import InputError, ShapeError
from countleak.progress import silent
from tests.attack.solvers.test_intervals import every_solution, small_intervals


def system(n, m, seed, noise=0):
    """Random subsets of people, counts within ± noise of the truth, and the truth."""
    rng = np.random.default_rng([n, m, seed])
    A, x = rng.integers(0, 2, (m, n)).astype(np.int8), rng.integers(0, 2, n).astype(np.int8)
    answers = A.astype(np.int64) @ x + rng.integers(-noise, noise + 1, m)
    return CountIntervals.around(A, answers, noise), x


def agrees(solution, intervals):
    """Whether a finished solution says what trying all 2^n bits says."""
    everything = every_solution(intervals)
    if not len(everything):
        nothing = not solution.proven.any() and not solution.undecided.any()
        return solution.status is WholeStatus.INFEASIBLE and solution.x is None and nothing
    return (
        solution.status is WholeStatus.SOLVED
        and not solution.undecided.any()
        and intervals.holds(solution.x)
        and (solution.proven == (everything == solution.x).all(axis=0)).all()
        and solution.unique == (len(everything) == 1)
    )


@settings(max_examples=150, deadline=None)
@given(small_intervals(10))
def test_bits_and_proofs_are_those_of_brute_force(intervals):
    assert agrees(solve_whole(intervals, engine=HighsMip()), intervals)


@pytest.mark.parametrize("engine", [CpSat(), HighsMip()], ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    ("n", "m", "noise"),
    [(16, 5, 0), (15, 8, 1), pytest.param(16, 12, 2, marks=pytest.mark.slow)],
)
def test_every_engine_agrees_with_brute_force_beyond_what_propagation_does(engine, n, m, noise):
    for seed in range(2):
        intervals, _ = system(n, m, seed, noise)
        assert agrees(solve_whole(intervals, engine=engine), intervals)


def test_engines_agree_where_some_are_proven_and_others_are_not():
    intervals, x = system(24, 9, 0)
    one, other = (solve_whole(intervals, engine=engine) for engine in (CpSat(), HighsMip()))
    assert 0 < one.proven.sum() < 24
    assert (one.proven == other.proven).all()
    assert (one.x[one.proven] == x[one.proven]).all()
    assert not one.checked
    assert one.engines[-1] == "CP-SAT"
    assert one.solutions > 1


@pytest.mark.parametrize(("n", "m", "noise"), [(60, 30, 0), (200, 110, 0), (100, 250, 1)])
def test_what_the_answers_determine_is_found_and_proven(n, m, noise):
    intervals, x = system(n, m, 1, noise)
    solution = solve_whole(intervals)
    assert solution.unique
    assert (solution.x == x).all()


def test_one_linear_program_proves_everyone_and_its_proof_is_checked():
    intervals, x = system(100, 250, 2, noise=1)
    solution = solve_whole(intervals, witnesses=x[None, :])
    assert solution.unique
    assert solution.checked
    assert solution.engines == ("propagation", "linear programs")


@settings(max_examples=100, deadline=None)
@given(small_intervals())
def test_bounds_hold_for_every_solution_whatever_y(intervals):
    rng = np.random.default_rng(intervals.A.size)
    box = Box.whole(intervals.people)
    for scale in (0.3, 1e9, 1e300):
        y = scale * rng.normal(size=intervals.low.size)
        cost = rng.integers(-1, 2, intervals.people)
        limit = bounds(intervals, box, cost, y)
        for x in every_solution(intervals):
            assert limit.least <= int(cost @ x) * limit.unit
            # With bit i held at its value in x, the bound still lies below x's cost.
            assert (limit.flipped(1 - x) <= int(cost @ x) * limit.unit).all()


def test_witnesses_spare_proofs_and_wrong_ones_are_ignored():
    intervals, _ = system(16, 4, 3)
    everything = every_solution(intervals)
    assert len(everything) > 10
    plain = solve_whole(intervals, engine=HighsMip())
    given_all = solve_whole(intervals, witnesses=everything, engine=HighsMip())
    assert (given_all.proven == plain.proven).all()
    assert given_all.solutions == len(everything)
    wrong = solve_whole(intervals, witnesses=1 - everything[:2], engine=HighsMip())
    assert (wrong.proven == plain.proven).all()


def test_two_people_in_the_same_queries_are_told_apart_by_nobody():
    A = np.array([[1, 1, 0, 1], [0, 0, 1, 1]], np.int8)
    solution = solve_whole(CountIntervals.around(A, [2, 2]))
    assert solution.proven.tolist() == [False, False, True, True]
    assert not solution.unique


def test_time_out_claims_nothing_that_was_not_shown():
    intervals, _ = system(120, 40, 0)
    solution = solve_whole(intervals, time_limit=0.2, engine=HighsMip())
    assert solution.status is WholeStatus.TIME_OUT
    assert solution.x is None
    assert solution.undecided.all()
    assert not solution.proven.any()
    assert "larger `time_limit`" in solution.status.value


def test_what_propagation_proves_stays_proven_where_no_bits_were_found():
    hard, _ = system(120, 40, 0)
    A = np.zeros((41, 122), np.int8)
    A[:40, :120], A[40, 120:] = hard.A, 1
    intervals = CountIntervals.around(A, np.append(hard.low, 2))
    solution = solve_whole(intervals, time_limit=0.2, engine=HighsMip())
    assert solution.x is None
    assert np.flatnonzero(solution.proven).tolist() == [120, 121]
    assert solution.box.lower[solution.proven].tolist() == [1, 1]


def test_no_solution_of_the_relaxation_is_proven_without_a_search():
    A = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]], np.int8)
    solution = solve_whole(CountIntervals.around(A, [1, 1, 1, 2]))
    assert solution.status is WholeStatus.INFEASIBLE
    assert solution.checked


def test_no_whole_solution_where_the_relaxation_has_one():
    A = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.int8)
    for engine in (CpSat(), HighsMip()):
        solution = solve_whole(CountIntervals.around(A, [1, 1, 1]), engine=engine)
        assert solution.status is WholeStatus.INFEASIBLE
        assert not solution.checked


@pytest.mark.parametrize("engine", [CpSat(), HighsMip()], ids=lambda engine: engine.name)
def test_queries_about_nobody_and_signs_of_both_kinds(engine):
    rng = np.random.default_rng(5)
    A = rng.integers(-1, 2, (7, 15)).astype(np.int8)
    A[2] = 0
    x = rng.integers(0, 2, 15).astype(np.int8)
    intervals = CountIntervals.around(A, A.astype(np.int64) @ x, 0)
    solution = solve_whole(intervals, engine=engine)
    assert agrees(solution, intervals)
    assert solution.engines[-1] == engine.name


class Liar:
    """An engine that returns bits that solve nothing."""

    name = "liar"
    patience = 60.0
    otherwise = None

    def open(self, intervals, hint, seed, clock):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        pass

    def find(self, box, x, differ, seconds):
        return Found(Outcome.FOUND, np.zeros(differ.size, np.int8))


def test_bits_of_an_engine_are_checked():
    intervals, _ = system(24, 9, 0)
    solution = solve_whole(intervals, engine=Liar())
    assert solution.status is WholeStatus.TIME_OUT
    assert "do not fit" in solution.trouble


def test_a_worker_that_stops_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "worker.py"
    broken.write_text("raise SystemExit('no licence')")
    monkeypatch.setattr(search, "_WORKER", broken)
    solution = solve_whole(system(24, 9, 0)[0], engine=CpSat())
    assert solution.x is None
    assert solution.trouble == "CP-SAT stopped: no licence"


def test_where_or_tools_does_not_load_highs_searches_and_the_record_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "worker.py"
    broken.write_text("raise ImportError('libortools.so: wrong architecture')")
    monkeypatch.setattr(search, "_WORKER", broken)
    intervals, _ = system(24, 9, 0)
    solution = solve_whole(intervals)
    assert solution.engines[-2:] == ("CP-SAT", "HiGHS MIP")
    assert solution.trouble == "CP-SAT stopped: ImportError: libortools.so: wrong architecture"
    assert (solution.proven == solve_whole(intervals, engine=HighsMip()).proven).all()


def test_the_worker_ends_with_whoever_started_it():
    # The input of a process that is killed is closed: as here, in the middle of a long search.
    intervals, _ = system(120, 40, 0)
    rows = [[np.flatnonzero(row).tolist(), []] for row in intervals.A]
    parts = [
        {"rows": rows, "low": intervals.low.tolist(), "high": intervals.high.tolist(),
         "workers": 1, "seed": 0, "hint": None},
        {"until": 4e9, "lower": [0] * 120, "upper": [1] * 120, "differ": None},
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-P", str(search._WORKER)],
        input="".join(json.dumps(part) + "\n" for part in parts),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == ""


def test_a_search_without_success_ends_and_says_so():
    intervals, x = system(100, 300, 0, noise=6)
    solution = solve_whole(intervals, witnesses=x[None, :], engine=HighsMip(patience=0.2))
    assert solution.undecided.any()
    assert solution.trouble == "HiGHS MIP got no further in 0.2 s"
    without = solve_whole(intervals, witnesses=x[None, :], engine=HighsMip(patience=0.0))
    assert without.engines == ("propagation", "linear programs")


def test_what_was_found_before_is_not_looked_for_again():
    intervals, _ = system(24, 9, 0)
    before = solve_whole(intervals, engine=HighsMip(patience=0.0))
    after = solve_whole(intervals, before=before, engine=HighsMip())
    assert (after.proven == solve_whole(intervals, engine=HighsMip()).proven).all()
    assert (after.proven >= before.proven).all()
    assert all(intervals.holds(bits) for bits in after.seen)


def test_without_the_extra_the_record_names_the_engine_instead(monkeypatch):
    monkeypatch.setattr(search, "find_spec", lambda name: None)
    assert best_engine().name == "HiGHS MIP (CP-SAT needs the extra `exact`)"
    solution = solve_whole(system(24, 9, 0)[0])
    assert "needs the extra `exact`" in solution.engine
    assert not solution.undecided.any()


def test_ortools_is_never_loaded_beside_highspy():
    code = (
        "import sys, numpy as np\n"
        "from countleak.attack.solvers.integer import *\n"
        "A = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.int8)\n"
        "solve_whole(CountIntervals.around(A, [1, 1, 1]))\n"
        "print('highspy' in sys.modules, any(name.startswith('ortools') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_solution():
    intervals, _ = system(24, 9, 0)
    one, other = (solve_whole(intervals, seed=3) for _ in range(2))
    assert (one.x == other.x).all()
    assert one.solutions == other.solutions


def test_progress_counts_seconds_up_to_the_limit():
    reports = []
    intervals, _ = system(24, 9, 0)
    solve_whole(intervals, time_limit=20, progress=lambda *pair: reports.append(pair))
    assert reports[0] == (0, 20)
    assert reports[-1] == (20, 20)
    assert reports == sorted(reports)


def test_bad_input():
    intervals, _ = system(10, 5, 0)
    with pytest.raises(InputError, match="above 0"):
        solve_whole(intervals, time_limit=0.0)
    with pytest.raises(ShapeError, match="witnesses"):
        solve_whole(intervals, witnesses=np.zeros((2, 9), np.int8))
    with pytest.raises(InputError, match="at least 1"):
        CpSat(workers=0)


def test_a_clock_gives_up_on_work_that_takes_too_long():
    from threading import Event

    stop = Event()
    with pytest.raises(TimeoutError):
        Clock(1.0, silent).during(stop.wait, 0.1)
    stop.set()
