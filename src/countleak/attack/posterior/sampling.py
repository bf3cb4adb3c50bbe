"""Samples from the posterior of all secrets and of what is open about the noise.

Independent ladders start at different kinds of places: at what quick decoders find, and at random
bits. They run until they agree, or until the work that they may do is done: one chain is never
trusted alone, and none is left out of the disagreement that is reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Values, mean_values
from countleak.attack.posterior.consensus import SETTLED, Consensus, agree, leading, overstated
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.gram import Gram, GramReplica
from countleak.attack.posterior.ladders import Ladder, Sample
from countleak.attack.posterior.messages import Messages
from countleak.attack.posterior.replicas import Replica, TableReplica
from countleak.attack.posterior.secret_draws import Bits, Kind
from countleak.attack.solvers.machine import one_thread
from countleak.errors import InputError
from countleak.progress import Progress, silent

MANY = 400
# Noise with a larger SD, rounded to whole people, is Gaussian for all purposes.
WIDE = 1.0
# Seconds that a round of one replica takes on an ordinary core: at least, for each pair of people
# through sums of squares, and for each person in a query through the table.
ROUND, PER_PAIR, PER_ENTRY = 1e-4, 2.5e-9, 9e-9
# Ladders come to agree where twice as many rounds leave less than this of their disagreement.
FALLING = 0.75


@dataclass(frozen=True)
class Effort:
    """How long to sample: independent ``ladders`` of ``replicas``, and rounds of each kind.

    Where the ladders do not agree they run for longer, for up to as many ``seconds`` in all as an
    ordinary core would take. They are counted as work, not measured, so that runs replay.
    """

    ladders: int = 2
    replicas: int = 6
    settle: int = 120
    keep: int = 160
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if min(self.ladders, self.replicas, self.settle, self.keep) < 1:
            raise InputError(f"{self}: every part of the effort must be at least 1")
        if not self.seconds >= 0:
            raise InputError(f"{self}: the seconds must not be negative")


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the samples say: ``probability`` (n,) of a one, and the mean ``values`` of the noise.

    ``disagreement`` is the mean distance between the probabilities of all ladders, and of message
    passing where there is any, and their average; ``doubt`` says in words how the ladders disagreed
    and is empty where they did not. ``residuals`` (lines, width) tell how often each cell of the
    table was met, averaged over samples; ``rates`` the mean share of ones, or of each value;
    ``offset_sd`` (p,) the offsets' deviations; ``evidence`` the mean log-likelihood plus the
    entropy of the bits; ``per_person_chance`` that of there being an error per person; ``samples``
    are a few of those that the rest sums up.
    """

    probability: NDArray[np.float64]
    values: Values
    rates: NDArray[np.float64]
    disagreement: float
    residuals: NDArray[np.float64]
    offset_sd: NDArray[np.float64]
    evidence: float
    per_person_chance: float = 0.0
    doubt: str = ""
    samples: tuple[Sample, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the ladders agree."""
        return not self.doubt


@dataclass(frozen=True, eq=False)
class Start:
    """Where ladders start: bits (n,), and values of what is open."""

    x: NDArray[np.int64]
    values: Values


@dataclass(frozen=True, eq=False)
class Places:
    """Where ladders start besides the likeliest place, and what message passing found."""

    others: Sequence[Start] = ()
    messages: Messages | None = None


def sample(
    evidence: Evidence,
    start: Start,
    rng: np.random.Generator,
    *,
    kind: Kind | None = None,
    known: NDArray[np.bool_] | None = None,
    effort: Effort | None = None,
    histogram: bool = False,
    places: Places | None = None,
    progress: Progress = silent,
) -> Posterior:
    """Probabilities of all bits; those ``known`` (n,) stay as they are in ``start``.

    ``kind`` says how the bits hang together: not at all, unless given. With ``histogram`` the
    residuals met are counted. The first ladder starts at ``start``, further ones at the other
    ``places``, and the last at random bits. Rounds of all ladders are reported to ``progress``.
    """
    effort, kind, places = effort or Effort(), kind or Bits(), places or Places()
    held = np.zeros(evidence.n, np.bool_) if known is None else known
    # Where all that speaks is Gaussian and the noise wide, answers need not be looked at again.
    # Noise in common is modelled nowhere else.
    common = bool(evidence.correlations) or evidence.noise.per_person != 0.0
    plain = evidence.is_gaussian and (common or float(start.values.sigma.min()) > WIDE)
    gram = Gram.of(evidence, kind.blocks) if plain and not histogram else None
    starts = [start, *places.others][: max(effort.ladders - 1, 1)]
    # The matrices are small: threads would wait for each other more than they would work.
    with one_thread():
        ladders = [
            _ladder(evidence, gram, starts, k, kind, held, effort.replicas, own)
            for k, own in enumerate(rng.spawn(effort.ladders))
        ]
        most = most_rounds(evidence, kind, effort, gram is not None)
        return _run(ladders, kind, effort, most, places.messages, held, progress)


def most_rounds(evidence: Evidence, kind: Kind, effort: Effort, through_squares: bool) -> int:
    """How many rounds each ladder may run in all."""
    pairs = evidence.n**2 / kind.blocks
    each = PER_PAIR * pairs if through_squares else PER_ENTRY * evidence.rows.size
    seconds = (ROUND + each) * effort.ladders * effort.replicas
    return max(effort.settle + effort.keep, int(effort.seconds / seconds))


def _run(
    ladders: list[Ladder],
    kind: Kind,
    effort: Effort,
    most: int,
    messages: Messages | None,
    known: NDArray[np.bool_],
    progress: Progress,
) -> Posterior:
    """Rounds in blocks, each as long as all before it, of which the last alone is kept."""
    unused, all_rounds = np.zeros(known.size), most * len(ladders)
    for k, ladder in enumerate(ladders):
        ladder.settle(effort.settle, unused)
        progress((k + 1) * effort.settle, all_rounds)
    done, block, excess = effort.settle, effort.keep, [np.inf]
    while True:
        runs = []
        for k, ladder in enumerate(ladders):
            runs.append(ladder.keep(block, unused))
            progress(done * len(ladders) + (k + 1) * block, all_rounds)
        done += block
        excess.append(overstated(leading(runs, kind, messages), kind, known))
        block = min(done, most - done)
        # A block much shorter than the last would say less than is known.
        if excess[-1] <= SETTLED or _is_stuck(excess) or block < done / 2:
            break
    progress(all_rounds, all_rounds)
    return _posterior(agree(runs, kind, messages, known))


def _is_stuck(excess: list[float]) -> bool:
    """Whether twice as many rounds did not help, twice in a row."""
    return len(excess) > 3 and all(
        after > FALLING * before for before, after in pairwise(excess[-3:])
    )


def _posterior(consensus: Consensus) -> Posterior:
    """The consensus, with what its leaders say of the noise on average."""
    leaders = consensus.leaders
    return Posterior(
        consensus.probability,
        mean_values([run.values for run in leaders]),
        np.mean([run.rates for run in leaders], axis=0),
        consensus.disagreement,
        np.mean([run.residuals for run in leaders], axis=0),
        np.mean([run.offset_sd for run in leaders], axis=0),
        max(run.likelihood + run.entropy for run in leaders),
        float(np.mean([run.per_person_chance for run in leaders])),
        consensus.doubt,
        tuple(sample for run in leaders for sample in run.samples),
    )


def _ladder(
    evidence: Evidence,
    gram: Gram | None,
    starts: Sequence[Start],
    number: int,
    kind: Kind,
    known: NDArray[np.bool_],
    replicas: int,
    rng: np.random.Generator,
) -> Ladder:
    """Ladder ``number`` of all: from its start, or from random bits where there is none.

    Hot replicas start at random bits, unless people are so many that these find nothing in time.
    """
    informed = number < len(starts)
    start = starts[number] if informed else starts[0]
    many = kind.people(evidence.n) > MANY
    states: list[Replica] = []
    for k in range(replicas):
        x = start.x.copy()
        if not informed or (k and not many):
            x = kind.scatter(x, known, rng)
        if gram is None:
            states.append(TableReplica(evidence, x, start.values, kind, known))
        else:
            states.append(GramReplica(gram, x, start.values, kind, known))
    table = (evidence.lines, evidence.width)
    return Ladder(states, kind, rng, table, cooled=many and not informed)
