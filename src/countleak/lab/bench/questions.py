"""How many queries are saved by choosing them: chosen and random order, side by side.

Every system, a Diffix 18.1 with a salt of its own over the generated bank, is asked the whole pool
of digit queries once. Both orders are then replayed from those answers, from the same first batch,
with the same decoder and the same rule for stopping; and again from other first batches, whose mean
is one system's saving.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.design import Goal
from countleak.attack.noise import UNKNOWN, Noise
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Journal
from countleak.audit.people import generated_bank
from countleak.audit.run import Asking, ask_in_steps, ask_into
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.recorded import Recorded
from countleak.diffix.salt import Salt
from countleak.errors import InputError
from countleak.progress import Progress, silent

SECRET = Bit("status = 'C'")
RANDOM = "random"
CONFIDENT = (0.9, 0.95, 0.99)
ACCURATE = (0.95, 0.99)
# Both orders are followed at least to here, so that it can be seen whether an accuracy stays.
BEYOND = 0.995
# Diffix adds a constant to all answers of an attack; enough samples for a mean over people.
DECODER = Bayes(Noise(offset=UNKNOWN), effort=Effort(2, 3, 40, 100))


@dataclass(frozen=True, eq=False)
class Curve:
    """One order of asking one system: ``queries``, expected and true share right, by batch."""

    ids: tuple[int, int]
    salt: int
    start: int
    order: str
    queries: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    def needed(self, what: str, level: float) -> int | None:
        """Queries until the expected share right reaches, or the true one stays at, ``level``."""
        if what == "expected":
            enough = self.confidence >= level
            return int(self.queries[enough.argmax()]) if enough.any() else None
        below = np.flatnonzero(self.accuracy < level)
        after = int(below[-1]) + 1 if below.size else 0
        return int(self.queries[after]) if after < self.queries.size else None


@dataclass(frozen=True)
class Saving:
    """Queries needed by ``order`` and at random, over the systems where both got there."""

    ids: tuple[int, int]
    order: str
    until: str
    level: float
    systems: int
    pairs: int
    random: float
    random_error: float
    chosen: float
    chosen_error: float
    fewer: float
    fewer_error: float
    fewer_share: float
    wins: int
    ties: int


def measure_questions(
    folder: Path,
    goals: Mapping[str, Goal],
    ranges: Sequence[tuple[int, int]] = ((2000, 2999),),
    salts: int = 20,
    starts: int = 1,
    batch: int = 50,
    most: int = 1600,
    primes: int = 25,
    jobs: int = 1,
    progress: Progress = silent,
) -> list[Curve]:
    """The curves of every order for every range and salt; answers are kept in ``folder``."""
    if salts < 2:
        raise InputError(f"{salts} salts; an error of the mean needs at least 2")
    tasks = [(ids, salt) for ids in ranges for salt in range(salts)]
    followed: list[Curve] = []
    progress(0, len(tasks))
    run = Parallel(n_jobs=jobs, return_as="generator")
    for done, curves in enumerate(
        run(
            delayed(_follow)(folder, ids, salt, starts, goals, batch, most, primes)
            for ids, salt in tasks
        ),
        1,
    ):
        followed += curves
        progress(done, len(tasks))
    return followed


def _follow(
    folder: Path,
    ids: tuple[int, int],
    salt: int,
    starts: int,
    goals: Mapping[str, Goal],
    batch: int,
    most: int,
    primes: int,
) -> list[Curve]:
    """Ask one system everything once, and replay every order of it from every start."""
    bank = generated_bank(7)
    people = bank.between(*ids)
    pool = digit_queries(people.ids, primes=primes)
    key = Salt(f"questions, salt {salt}".encode())
    journal = Journal(
        folder / f"{ids[0]}-{ids[1]}-{primes}-{salt}.jsonl",
        pool,
        SECRET,
        f"Diffix 18.1, {SECRET} of bank:7, salt {key.fingerprint}",
    )
    ask_into(journal, Diffix(bank, SECRET, "18.1", key))
    answers, truth = Recorded(journal.answers), people.truth(SECRET)
    orders: dict[str, Goal | None] = {RANDOM: None, **goals}
    return [
        Curve(ids, salt, start, name, *_curve(pool, answers, truth, goal, batch, most, seed))
        for start, seed in enumerate(range(salt, salt + 1000 * starts, 1000))
        for name, goal in orders.items()
    ]


def _curve(
    pool: Queries,
    answers: Recorded,
    truth: NDArray[np.int8],
    goal: Goal | None,
    batch: int,
    most: int,
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    asking = Asking(most, BEYOND, 100, batch, goal, seed)
    steps = [
        (len(step.transcript), step.confidence, float((step.guess.values == truth).mean()))
        for step in ask_in_steps(pool, answers, SECRET, asking, decoder=DECODER)
    ]
    queries, confidence, accuracy = (np.array(values) for values in zip(*steps, strict=True))
    return queries, confidence, accuracy


def savings(curves: Sequence[Curve]) -> Iterator[Saving]:
    """What each order saved against random, by range and by when to stop."""
    by = {(c.ids, c.order, c.salt, c.start): c for c in curves}
    starts = sorted({c.start for c in curves})
    stops = [("expected", level) for level in CONFIDENT] + [("true", level) for level in ACCURATE]
    for ids in dict.fromkeys(c.ids for c in curves):
        salts = sorted({c.salt for c in curves if c.ids == ids})
        for order in dict.fromkeys(c.order for c in curves if c.order != RANDOM):
            for what, level in stops:
                needed = [
                    [
                        [by[ids, name, salt, start].needed(what, level) for name in (RANDOM, order)]
                        for start in starts
                    ]
                    for salt in salts
                ]
                reached = [
                    np.array([pair for pair in of_salt if None not in pair], dtype=np.float64)
                    for of_salt in needed
                ]
                pairs = np.array([of_salt.mean(axis=0) for of_salt in reached if of_salt.size])
                if len(pairs) > 1:
                    yield _saving(ids, order, what, level, len(salts), pairs)


def _saving(
    ids: tuple[int, int],
    order: str,
    what: str,
    level: float,
    systems: int,
    pairs: NDArray[np.float64],
) -> Saving:
    fewer = pairs[:, 0] - pairs[:, 1]
    mean, error = pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / sqrt(len(pairs))
    return Saving(
        ids,
        order,
        what,
        level,
        systems,
        len(pairs),
        float(mean[0]),
        float(error[0]),
        float(mean[1]),
        float(error[1]),
        float(fewer.mean()),
        float(fewer.std(ddof=1) / sqrt(len(pairs))),
        float(fewer.mean() / mean[0]),
        int((fewer > 0).sum()),
        int((fewer == 0).sum()),
    )
