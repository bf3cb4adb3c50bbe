"""A million unknown counts at once: how long it takes, and what settles them."""

import resource
import sys
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.bounds import MEANS, Contradiction, ends_of
from countleak.attack.ledger.propagation import components, propagate
from countleak.lab.bench.tables.areas import areas
from countleak.progress import Progress, silent

# Getrusage counts in kilobytes, but on macOS in bytes.
UNIT = 1 if sys.platform == "darwin" else 1024
PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


@dataclass(frozen=True)
class Scale:
    """How the ``cells`` that propagation left open were settled, and at what cost.

    ``groups`` are all of the finest groups, ``settled_at_once`` of which propagation leaves one
    count. The others hang together in ``pieces`` of ``smallest`` to ``largest``. ``means`` says how
    many of them each means settled: where propagation did, counts that fit were seen at both of its
    bounds. ``wrong`` intervals do not hold the true count, and ``open`` ones may be wider than need
    be: none may. Memory is that of the main process and of the largest of the others.
    """

    groups: int
    numbers: int
    hidden: int
    settled_at_once: int
    cells: int
    pieces: int
    smallest: int
    largest: int
    means: dict[str, int]
    pinned: int
    open: int
    wrong: int
    jobs: int
    generating_seconds: float
    seconds: float
    cpu_seconds: float
    megabytes: float
    megabytes_per_process: float


def measure_scale(
    cells: int = 1_000_000, jobs: int = 2, seed: int = 0, progress: Progress = silent
) -> Scale:
    """Areas' tables of which propagation leaves at least so many cells open, all bounded."""
    # Processes start while this one is small: at first each counts as large as what started it.
    Parallel(n_jobs=jobs)(delayed(abs)(job) for job in range(jobs))
    begin = perf_counter()
    made = areas(np.random.default_rng(seed), cells)
    generated = perf_counter()
    groups = csr_array(eye_array(made.truth.size))
    spent = _processor()
    ends = ends_of(made.ledger, groups, time_limit=np.inf, jobs=jobs, progress=progress)
    seconds = perf_counter() - generated
    if jobs > 1:
        # What a process used is told when it ends.
        get_reusable_executor().shutdown(wait=True)
    spent = _processor() - spent
    memory = [resource.getrusage(who).ru_maxrss * UNIT / 1e6 for who in PROCESSES]
    sizes = _pieces(made.ledger)
    settled = made.truth.size - int(sizes.sum())
    means = np.bincount(ends.means, minlength=len(MEANS))
    means[0] -= settled
    wrong = (ends.low > made.truth) | (made.truth > ends.high)
    return Scale(
        groups=made.truth.size,
        numbers=made.ledger.A.shape[0],
        hidden=made.hidden,
        settled_at_once=settled,
        cells=int(sizes.sum()),
        pieces=sizes.size,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        means=dict(zip(MEANS, means.tolist(), strict=True)),
        pinned=int((ends.low == ends.high).sum()) - settled,
        open=int((~ends.exact).sum()),
        wrong=int(wrong.sum()),
        jobs=jobs,
        generating_seconds=generated - begin,
        seconds=seconds,
        cpu_seconds=spent,
        megabytes=memory[0],
        megabytes_per_process=memory[1],
    )


def _pieces(ledger: Ledger) -> NDArray[np.int64]:
    """How many cells hang together in each piece that single numbers leave."""
    limits = propagate(ledger, Limits.none(ledger.cells))
    if limits is None:
        raise Contradiction
    return np.array([cells.size for _, cells in components(ledger, limits)])


def _processor() -> float:
    """Seconds of all processes that ended, and of this one."""
    used = [resource.getrusage(who) for who in PROCESSES]
    return sum(each.ru_utime + each.ru_stime for each in used)
