"""Engines that search for solutions of (W), or find that there are none.

Found solutions are checked by whoever asks; that there is none rests on the engine's word.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from math import inf
from pathlib import Path
from time import time
from typing import Any, Protocol

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from countleak.attack.solvers.clock import Clock
from countleak.attack.solvers.highs import build_model
from countleak.attack.solvers.intervals import Box, CountIntervals
from countleak.errors import InputError

_WORKER = Path(__file__).with_name("cpsat_worker.py")
# Seconds that the worker is given beyond its own time limit before it is ended.
_GRACE = 2.0


class Outcome(Enum):
    """How a search ended."""

    FOUND = "found"
    NONE = "none"
    UNDECIDED = "undecided"


@dataclass(frozen=True, eq=False)
class Found:
    """``x`` (n,) with FOUND only; ``trouble`` says why UNDECIDED, where it was not the time."""

    outcome: Outcome
    x: NDArray[np.int8] | None = None
    trouble: str | None = None


class Search(Protocol):
    """One system of intervals, searched again and again."""

    def find(
        self, box: Box, x: NDArray[np.int8] | None, differ: NDArray[np.bool_], seconds: float
    ) -> Found:
        """A solution within ``box``; given ``x`` (n,), one that changes a bit in ``differ``."""
        ...


class Engine(Protocol):
    """A way to search."""

    @property
    def name(self) -> str:
        """What the record calls it."""
        ...

    @property
    def patience(self) -> float:
        """After how many seconds without success a search is ended; with 0 there is none."""
        ...

    @property
    def otherwise(self) -> "Engine | None":
        """What searches instead where this one does not work on this machine."""
        ...

    def open(
        self,
        intervals: CountIntervals,
        hint: NDArray[np.int8] | None,
        seed: int,
        clock: Clock,
    ) -> AbstractContextManager[Search]:
        """Search (W); ``hint`` (n,) are bits that may be about right."""
        ...


def best_engine(patience: float = inf) -> Engine:
    """CP-SAT where OR-tools is installed and works, else HiGHS; its name says which, and why."""
    if find_spec("ortools") is not None:
        return CpSat(patience=patience, otherwise=HighsMip(patience=patience))
    return HighsMip("HiGHS MIP (CP-SAT needs the extra `exact`)", patience)


@dataclass(frozen=True)
class CpSat:
    """Clause learning over a linear relaxation (OR-tools), in a process with ``workers`` threads.

    With one worker a search is the same every time, unless the time limit ends it.
    """

    workers: int = 1
    patience: float = inf
    otherwise: Engine | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"{self.workers} workers; there must be at least 1")

    @property
    def name(self) -> str:
        """CP-SAT."""
        return "CP-SAT"

    @contextmanager
    def open(
        self,
        intervals: CountIntervals,
        hint: NDArray[np.int8] | None,
        seed: int,
        clock: Clock,
    ) -> Iterator[Search]:
        """Start the worker and send it the system."""
        system = {
            "rows": [
                [np.flatnonzero(row == sign).tolist() for sign in (1, -1)] for row in intervals.A
            ],
            "low": intervals.low.tolist(),
            "high": intervals.high.tolist(),
            "workers": self.workers,
            "seed": seed,
            "hint": None if hint is None else hint.tolist(),
        }
        worker = subprocess.Popen(
            # -P: the folder of the worker holds modules whose names others may use, too.
            [sys.executable, "-P", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        try:
            yield _CpSatSearch(worker, system, clock)
        finally:
            worker.kill()
            worker.communicate()


class _CpSatSearch:
    def __init__(
        self, worker: "subprocess.Popen[str]", system: dict[str, Any], clock: Clock
    ) -> None:
        self._worker, self._clock = worker, clock
        self._unsent: Sequence[dict[str, Any]] = [system]

    def find(
        self, box: Box, x: NDArray[np.int8] | None, differ: NDArray[np.bool_], seconds: float
    ) -> Found:
        """One request and its answer."""
        columns = np.flatnonzero(differ)
        pairs = None if x is None else [[int(j), int(x[j])] for j in columns]
        # By the clock on the wall: the worker takes a second or two to load OR-tools.
        request = {
            "until": time() + seconds,
            "lower": box.lower.tolist(),
            "upper": box.upper.tolist(),
            "differ": pairs,
        }
        lines = [json.dumps(part) + "\n" for part in (*self._unsent, request)]
        self._unsent = ()
        try:
            reply = self._clock.during(lambda: self._exchange(lines), seconds + _GRACE)
        except TimeoutError:
            self._worker.kill()
            return Found(Outcome.UNDECIDED)
        if reply is None:
            return Found(Outcome.UNDECIDED, trouble=self._complaint())
        bits = np.array(reply["x"], np.int8) if "x" in reply else None
        return Found(Outcome(reply["outcome"]), bits, reply.get("trouble"))

    def _exchange(self, lines: Sequence[str]) -> dict[str, Any] | None:
        """The worker's answer; None when it has ended."""
        assert self._worker.stdin is not None and self._worker.stdout is not None
        try:
            self._worker.stdin.writelines(lines)
            self._worker.stdin.flush()
        except BrokenPipeError:
            return None
        line = self._worker.stdout.readline()
        reply: dict[str, Any] | None = json.loads(line) if line else None
        return reply

    def _complaint(self) -> str:
        assert self._worker.stderr is not None
        last = self._worker.stderr.read().strip().splitlines()[-1:]
        return f"CP-SAT stopped: {last[0] if last else 'no reason given'}"


@dataclass(frozen=True)
class HighsMip:
    """Branch and cut (HiGHS), which reasons in floating point with a tolerance of 1e-6."""

    name: str = "HiGHS MIP"
    patience: float = inf
    otherwise: Engine | None = None

    @contextmanager
    def open(
        self,
        intervals: CountIntervals,
        hint: NDArray[np.int8] | None,
        seed: int,
        clock: Clock,
    ) -> Iterator[Search]:
        """Nothing to start."""
        yield _HighsSearch(intervals, hint, seed, clock)


@dataclass(frozen=True, eq=False)
class _HighsSearch:
    intervals: CountIntervals
    hint: NDArray[np.int8] | None
    seed: int
    clock: Clock

    def find(
        self, box: Box, x: NDArray[np.int8] | None, differ: NDArray[np.bool_], seconds: float
    ) -> Found:
        """One integer program with nothing to minimise."""
        A, low, high = self.intervals.A, self.intervals.low, self.intervals.high
        if x is not None:
            ones = int((x == 1)[differ].sum())
            A = np.vstack([A, np.where(differ, 1 - 2 * x, 0).astype(np.int8)])
            low, high = np.append(low, 1 - ones), np.append(high, self.intervals.people)
        model = build_model(
            csc_array(A),
            cost=np.zeros(A.shape[1]),
            columns=(box.lower.astype(np.float64), box.upper.astype(np.float64)),
            rows=(low.astype(np.float64), high.astype(np.float64)),
            options={"threads": 1, "time_limit": max(0.01, seconds), "random_seed": self.seed},
            whole=A.shape[1],
        )
        if self.hint is not None and x is None:
            model.setSolution(_point(self.hint))
        self.clock.during(model.run)
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Found(Outcome.NONE)
        if status == highspy.HighsModelStatus.kOptimal:
            bits = np.rint(np.array(model.getSolution().col_value)).astype(np.int8)
            return Found(Outcome.FOUND, bits)
        out_of_time = status == highspy.HighsModelStatus.kTimeLimit
        trouble = None if out_of_time else f"HiGHS stopped: {model.modelStatusToString(status)}"
        return Found(Outcome.UNDECIDED, trouble=trouble)


def _point(x: NDArray[np.int8]) -> Any:
    point = highspy.HighsSolution()
    point.col_value = x.astype(np.float64).tolist()
    return point
