"""Whether decoders are honest on systems nobody tuned them for: the battery, run.

Every world of every system is decoded by the paper's program (``lp``), least squares (``ls``), the
posterior under fresh Gaussian noise (``bayes``) and by what an auditor gets who names no decoder
(``auto``), told the system's rules where the system says so. ``verdicts`` judges what came out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.honesty.battery import system_named
from benchmarks.honesty.system import System
from benchmarks.worlds import World
from countleak.attack.decoders import Decoder
from countleak.attack.decoders.auto import decoder_for
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.guess import Basis, Guess
from countleak.attack.secrets import Bit, Category
from countleak.attack.transcript import Transcript
from countleak.errors import CountleakError, InputError
from countleak.progress import Progress, silent

AUTO = "auto"
DECODERS = ("lp", "ls", "bayes", AUTO)


@dataclass(frozen=True, eq=False)
class Attempt:
    """One decoder on one world: who (n,) was guessed right, how surely, and who was proven.

    ``confidence`` (n,) is missing where the decoder gives no probabilities; ``expected`` is the
    share of right values that it expects; ``reason`` is why its model does
    not fit, or else why it made its choice.
    """

    right: NDArray[np.bool_]
    proven: NDArray[np.bool_]
    confidence: NDArray[np.float64] | None
    expected: float | None
    reason: str
    seconds: float

    @property
    def accuracy(self) -> float:
        """The share of everyone that was guessed right."""
        return float(self.right.mean())

    @property
    def withdrawn(self) -> bool:
        """Whether it stands by its guess without saying how sure it is."""
        return self.confidence is None and not self.proven.all()

    def claimed_at(self, level: float) -> NDArray[np.bool_]:
        """Who (n,) was guessed with at least that probability, or proven."""
        sure = self.proven if self.confidence is None else self.confidence >= level
        return np.asarray(sure | self.proven)


@dataclass(frozen=True, eq=False)
class Trial:
    """A world of a system: what each decoder made of it, or why it had no result.

    ``baseline`` is the share of the commonest value.
    """

    system: str
    number: int
    baseline: float
    attempts: dict[str, Attempt]
    without_result: dict[str, str]


@dataclass(frozen=True)
class ProgramPerValue:
    """The paper's program for every value of a category: the value with the largest x."""

    def decode(self, transcript: Transcript) -> Guess:
        """Solve one program per value that was asked about."""
        n, names = transcript.ids.size, transcript.names
        x = np.array(
            [
                np.zeros(n) if part is None else _solution(part)
                for part in transcript.by_value().values()
            ]
        )
        values = np.array(names)[x.argmax(axis=0)]
        return Guess(transcript.ids, values, np.ones(n, np.bool_), Basis(decoder="lp"), names=names)


def _solution(part: Transcript) -> NDArray[np.float64]:
    """The program's x (n,), unrounded; a value whose answers were all suppressed gets nobody."""
    if not part.released.any():
        return np.zeros(part.ids.size)
    solution = Rounding().decode(part).basis.solution
    assert solution is not None and solution.x is not None
    return solution.x


def measure_honesty(
    systems: Sequence[System], trials: int, jobs: int = 2, progress: Progress = silent
) -> Iterator[list[Trial]]:
    """The trials of each system in turn, ``trials`` worlds each."""
    if trials < 2:
        raise InputError(f"{trials} worlds per system have no interval; run at least 2")
    tasks = [(system.name, number) for system in systems for number in range(trials)]
    progress(0, len(tasks))
    run = Parallel(n_jobs=jobs, return_as="generator")
    done = _counted(run(delayed(try_world)(*task) for task in tasks), len(tasks), progress)
    for _, each in groupby(done, key=lambda trial: trial.system):
        yield list(each)


def _counted(results: Iterator[Trial], total: int, progress: Progress) -> Iterator[Trial]:
    for done, trial in enumerate(results, 1):
        progress(done, total)
        yield trial


def try_world(name: str, number: int) -> Trial:
    """World ``number`` of the system with this name, decoded by every decoder that applies.

    A refusal of countleak's own is no result; any other error is a fault, and is raised with the
    world that shows it.
    """
    system = system_named(name)
    at = f"system {name}, world {number}"
    attempts: dict[str, Attempt] = {}
    without_result: dict[str, str] = {}
    try:
        world = system.world(number)
        with threadpool_limits(1):
            for word, decoder in _decoders(system, world.transcript).items():
                at = f"system {name}, world {number}, decoder {word}"
                try:
                    attempts[word] = _attempt(decoder, world, word == AUTO)
                except CountleakError as error:
                    without_result[word] = str(error)
    except Exception as error:
        raise RuntimeError(f"{at}: {type(error).__name__}: {error}") from error
    shares = np.unique(world.secret, return_counts=True)[1] / world.secret.size
    return Trial(name, number, float(shares.max()), attempts, without_result)


def _decoders(system: System, transcript: Transcript) -> dict[str, Decoder]:
    names = transcript.names
    secret = Category("value", names) if names else Bit("value = 1")
    auto = decoder_for(secret, rules=system.rules)
    if names:
        return {"lp": ProgramPerValue(), AUTO: auto}
    return {"lp": Rounding(), "ls": LeastSquares(), "bayes": Bayes(), AUTO: auto}


def _attempt(decoder: Decoder, world: World, is_auto: bool) -> Attempt:
    transcript = world.transcript
    if not is_auto and not transcript.released.all():
        # The others know nothing of suppression; the paper's code reads such a count as 0.
        transcript = transcript.suppressed_as(0.0)
    begin = perf_counter()
    guess = decoder.decode(transcript)
    seconds = perf_counter() - begin
    return Attempt(
        _is_right(guess, world.secret),
        guess.proven,
        guess.confidence,
        guess.expected_right,
        guess.basis.misfit or guess.basis.picked_because,
        seconds,
    )


def _is_right(guess: Guess, secret: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(guess.claimed & (guess.values == secret))
