"""Which bits solve (W), and who is proven: no other solution changes their bit.

Four steps, each of which only gets what the ones before it left open: propagation over single rows;
known solutions, and those next to them, which show that bits are free; linear programs, whose
proofs are checked in whole numbers; and a search that goes from solution to solution, each of which
must change a bit that none before it changed, until there is no such solution left. Those bits that
remain are the backbone of (W).
"""

from dataclasses import dataclass
from enum import Enum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.clock import Clock
from countleak.attack.solvers.intervals import Box, CountIntervals, changeable, propagate
from countleak.attack.solvers.relaxation import NoPoint, Relaxation
from countleak.attack.solvers.search import Engine, Outcome, Search, best_engine
from countleak.errors import ShapeError
from countleak.progress import Progress, silent

# The share of the time that linear programs may take.
_RELAXED_SHARE = 0.5
# After so many single bits in a row that linear programs do not prove, the rest is left to search.
_PATIENCE = 16
# Solutions that are kept of all that were seen.
_KEPT = 32


class WholeStatus(Enum):
    """Whether bits were found."""

    SOLVED = "bits were found that fit every interval"
    INFEASIBLE = "no bits fit every interval"
    TIME_OUT = "the time limit was reached before bits were found; try a larger `time_limit`"


@dataclass(frozen=True, eq=False)
class WholeSolution:
    """Bits ``x`` (n,) that solve (W), with SOLVED; who is ``proven`` (n,), and who ``undecided``.

    Of the undecided neither a proof nor a solution that changes their bit was found in time. What
    is left of each bit is in ``box``: the proven are fixed there, even where no x was found.
    ``solutions`` is how many were seen, given ones included, and ``seen`` (k, n) are the first of
    them. ``engines`` names what was used; where ``checked``, every proof was checked in whole
    numbers, else some rest on the last engine's word. ``trouble`` says why an engine stopped early,
    where it was not the time.
    """

    status: WholeStatus
    x: NDArray[np.int8] | None
    proven: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    box: Box
    seen: NDArray[np.int8]
    solutions: int
    seconds: float
    engines: tuple[str, ...]
    checked: bool
    trouble: str | None = None

    @property
    def unique(self) -> bool:
        """Whether there is proven to be no other solution."""
        return self.status is WholeStatus.SOLVED and bool(self.proven.all())

    @property
    def engine(self) -> str:
        """What found and proved it, in order."""
        return ", ".join(self.engines)

    @property
    def told(self) -> str:
        """How the search ended, in words."""
        undecided = int(self.undecided.sum())
        if self.status is WholeStatus.SOLVED and undecided:
            return f"{self.engine}; {undecided} bits were not decided in time"
        if self.status is not WholeStatus.SOLVED:
            return f"{self.engine}; {self.status.value}"
        return self.engine


def solve_whole(
    intervals: CountIntervals,
    *,
    time_limit: float = 60.0,
    witnesses: NDArray[np.int8] | None = None,
    before: WholeSolution | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    seed: int = 0,
) -> WholeSolution:
    """A solution of (W) and who it proves, within about ``time_limit`` seconds.

    ``witnesses`` (k, n) are bits that may solve (W): whoever differs between those that do needs no
    proof, and the search starts near the first. ``before`` is what was found before of the same
    intervals, which is not looked for again.
    """
    clock = Clock(time_limit, progress)
    clock.report()
    ledger = _Ledger(intervals, clock)
    if before is None:
        _propagated(ledger)
    else:
        ledger.recall(before)
    if witnesses is not None:
        _check_witnesses(intervals.people, witnesses)
        if not ledger.impossible:
            ledger.add_all(witnesses)
    if not ledger.finished:
        relaxation = Relaxation(intervals, clock)
        if before is None or before.x is None:
            _relaxed(ledger, relaxation)
        guess = None if witnesses is None or not len(witnesses) else witnesses[0]
        next_engine: Engine | None = best_engine() if engine is None else engine
        while next_engine is not None and not ledger.finished:
            next_engine = _searched(ledger, relaxation, next_engine, guess, seed)
    clock.finish()
    return ledger.solution()


def _check_witnesses(n: int, witnesses: NDArray[np.int8]) -> None:
    if witnesses.ndim != 2 or witnesses.shape[1] != n:
        raise ShapeError(f"witnesses have the shape {witnesses.shape} for {n} people")


class _Ledger:
    """What is known so far of one system."""

    def __init__(self, intervals: CountIntervals, clock: Clock) -> None:
        n = intervals.people
        self.intervals, self.clock, self.box = intervals, clock, Box.whole(n)
        self.x: NDArray[np.int8] | None = None
        self.undecided = np.ones(n, np.bool_)
        self.seen: dict[bytes, None] = {}
        self.engines: list[str] = []
        self.impossible, self.checked = False, True
        self.trouble: str | None = None

    @property
    def finished(self) -> bool:
        return self.impossible or (self.x is not None and not self.undecided.any())

    def recall(self, before: WholeSolution) -> None:
        """Take over what is known from ``before``."""
        self.box, self.x = before.box, before.x
        self.undecided = before.undecided.copy()
        self.seen = {bits.tobytes(): None for bits in before.seen}
        self.engines = list(before.engines)
        self.impossible = before.status is WholeStatus.INFEASIBLE
        self.checked = before.checked

    def add(self, bits: NDArray[np.int8]) -> bool:
        """Whether ``bits`` solve (W); if so, whoever they or their neighbours change is free."""
        if not self.intervals.holds(bits):
            return False
        bits = bits.astype(np.int8)
        self.seen[bits.tobytes()] = None
        if self.x is None:
            self.x = bits
        self.undecided &= (bits == self.x) & ~changeable(self.intervals, bits)
        return True

    def add_all(self, points: NDArray[np.int8]) -> None:
        """Learn from those of the ``points`` (k, n) that solve (W)."""
        points = np.unique(points[self.intervals.holds(points)].astype(np.int8), axis=0)
        for bits in points[:_KEPT]:
            self.add(bits)
        if len(points):
            self.seen.update((bits.tobytes(), None) for bits in points)
            self.undecided &= (points == self.x).all(axis=0)

    def prove(self, bits: NDArray[np.bool_]) -> None:
        """Record that no solution has other values in these ``bits`` (n,) than x."""
        assert self.x is not None
        self.box = self.box.fix(bits, self.x)
        self.undecided &= ~bits

    def solution(self) -> WholeSolution:
        """What is known, as it is handed out."""
        status = WholeStatus.SOLVED
        if self.x is None:
            status = WholeStatus.INFEASIBLE if self.impossible else WholeStatus.TIME_OUT
        return WholeSolution(
            status,
            self.x,
            self.box.fixed & ~np.bool_(self.impossible),
            self.undecided & ~np.bool_(self.impossible),
            self.box,
            np.array(
                [np.frombuffer(bits, np.int8) for bits in islice(self.seen, _KEPT)], np.int8
            ).reshape(-1, self.intervals.people),
            len(self.seen),
            self.clock.spent,
            tuple(self.engines),
            self.checked,
            self.trouble,
        )


def _propagated(ledger: _Ledger) -> None:
    ledger.engines.append("propagation")
    box = propagate(ledger.intervals, ledger.box)
    if box is None:
        ledger.impossible = True
        return
    ledger.box = box
    ledger.undecided &= ~box.fixed
    if box.fixed.all() and not ledger.add(box.lower):
        ledger.impossible = True


def _relaxed(ledger: _Ledger, relaxation: Relaxation) -> None:
    ledger.engines = list(dict.fromkeys([*ledger.engines, "linear programs"]))
    if ledger.x is None:
        point = relaxation.point(ledger.box, _RELAXED_SHARE * ledger.clock.left)
        if isinstance(point, NoPoint):
            ledger.impossible = True
        elif point is not None:
            ledger.add(point.x)
    if ledger.x is not None and not ledger.finished:
        _prove_groups(ledger, ledger.x, relaxation)


def _prove_groups(ledger: _Ledger, x: NDArray[np.int8], relaxation: Relaxation) -> None:
    """Prove what linear programs can, a group of bits at a time, as large as they allow.

    Bits once proven are fixed in the next program, which then proves more and takes less time.
    Those come first that the programs so far were nearest to proving.
    """
    until = (1 - _RELAXED_SHARE) * ledger.clock.left
    size, failures = x.size, 0
    hopeless = np.zeros(x.size, np.bool_)
    missing = np.full(x.size, np.inf)
    while (ledger.undecided & ~hopeless).any() and ledger.clock.left > until:
        group = np.zeros(x.size, np.bool_)
        left = np.flatnonzero(ledger.undecided & ~hopeless)
        group[left[np.argsort(missing[left], kind="stable")][:size]] = True
        proof = relaxation.prove(x, group, ledger.box, ledger.clock.left - until)
        if proof is None:
            return
        ledger.prove(proof.proven)
        ledger.add(proof.x)
        missing = np.minimum(missing, np.where(group, proof.missing, np.inf))
        size = int(group.sum())
        if proof.distance < 1:
            size, failures = 2 * size, 0
            hopeless[:] = False
        elif size > 1:
            # About as many as would get half of the way to a bit that differs.
            size = max(1, min(size // 2, int(size / (2 * proof.distance))))
        else:
            hopeless |= group
            failures += 1
            if failures == _PATIENCE:
                return


def _searched(
    ledger: _Ledger,
    relaxation: Relaxation,
    engine: Engine,
    guess: NDArray[np.int8] | None,
    seed: int,
) -> Engine | None:
    """Search while there is time; the engine to go on with where this one does not work."""
    clock = ledger.clock
    if min(clock.left, engine.patience) <= 0:
        return None
    ledger.engines.append(engine.name)
    hint = guess if ledger.x is None else ledger.x
    with engine.open(ledger.intervals, hint, seed, clock) as search:
        trouble = _go_on(ledger, relaxation, search, engine)
    if trouble is not None:
        ledger.trouble = trouble
        return engine.otherwise
    if not ledger.finished and clock.left > 0:
        ledger.trouble = f"{engine.name} got no further in {engine.patience:g} s"
    return None


def _go_on(ledger: _Ledger, relaxation: Relaxation, search: Search, engine: Engine) -> str | None:
    """Go from solution to solution until the engine's patience ends; its trouble, if any."""
    clock = ledger.clock
    while not ledger.finished and clock.left > 0:
        first = ledger.x is None
        seconds = min(clock.left, engine.patience)
        found = search.find(ledger.box, ledger.x, ledger.undecided, seconds)
        if found.outcome is Outcome.NONE:
            ledger.checked = False
            if first:
                ledger.impossible = True
            else:
                ledger.prove(ledger.undecided)
        elif found.x is None:
            return found.trouble
        elif not _advances(ledger, found.x):
            return f"{engine.name} returned bits that do not fit the intervals"
        elif first and ledger.x is not None:
            _prove_groups(ledger, ledger.x, relaxation)
    return None


def _advances(ledger: _Ledger, bits: NDArray[np.int8]) -> bool:
    """Whether ``bits`` are a solution that settles somebody: else the search would not end."""
    before = int(ledger.undecided.sum())
    first = ledger.x is None
    return ledger.add(bits) and (first or int(ledger.undecided.sum()) < before)
