"""The whole attack, in the order it happens."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder, Guess
from countleak.attack.decoders.automatic import Automatic
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.design import Goal, Information, believe, choose
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers, Journal
from countleak.audit.targets import Target
from countleak.errors import InputError

# No noise is smaller than that of rounding to whole people.
LEAST_SIGMA = 0.3


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Everything an attack saw and concluded, one field a stage."""

    queries: Queries
    answers: Answers
    guess: Guess


def reconstruct(
    queries: Queries, target: Target, *, decoder: Decoder | None = None
) -> Reconstruction:
    """Ask, decode. The truth stays with whoever calls ``score`` on the guess."""
    answers = ask(queries, target)
    guess = (decoder or Rounding()).decode(queries, answers)
    return Reconstruction(queries, answers, guess)


def ask(queries: Queries, target: Target) -> Answers:
    """The target's answers to every query."""
    return Answers.join(target.answer(queries, np.arange(len(queries))))


def ask_into(
    path: Path,
    queries: Queries,
    target: Target,
    system: str,
    progress: Callable[[int], None] = lambda k: None,
    *,
    limit: int | None = None,
    authorised_by: str | None = None,
) -> Answers:
    """The same, journalled at ``path`` as answers come in; goes on where a journal stopped.

    ``system`` describes the target and stands in the journal, which is not continued with any
    other. ``progress`` hears how many answers each batch brought, those of the journal first. With
    a ``limit`` at most so many queries are asked, and some may stay open.
    """
    with closing(Journal(path, queries, system, authorised_by)) as journal:
        still_open = journal.open_queries()
        progress(len(queries) - still_open.size)
        still_open = still_open[:limit]
        for batch in target.answer(queries, still_open) if still_open.size else ():
            journal.append(batch)
            progress(len(batch))
        return journal.answers(partial=limit is not None)


@dataclass(frozen=True)
class Adaptive:
    """How to ask a pool of queries bit by bit: a ``first`` batch at random, then chosen ones.

    Asking stops as soon as the confidence (see ``confidence``) is ``until``, or after ``most``
    queries. Without a ``goal`` every batch is drawn at random. ``seed`` is that of the draws.
    """

    until: float = 0.99
    first: int = 100
    batch: int = 50
    most: int | None = None
    goal: Goal | None = field(default_factory=Information)
    decoder: Decoder = field(default_factory=Automatic)
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.5 < self.until <= 1:
            raise InputError(f"until is {self.until:g}; choose a confidence above 0.5, at most 1")
        for name, value in (("first", self.first), ("batch", self.batch), ("most", self.most)):
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; ask at least one query")


@dataclass(frozen=True, eq=False)
class Step:
    """What was concluded after some answers, and how sure it is."""

    answers: Answers
    guess: Guess
    confidence: float
    reached: bool


def audit_adaptively(
    pool: Queries,
    target: Target,
    how: Adaptive | None = None,
    journal: Journal | None = None,
    progress: Callable[[int], None] = lambda asked: None,
) -> Iterator[Step]:
    """Ask, decode, choose what to ask next, and so on; a step after every batch.

    The last step has ``reached`` the wanted confidence or had nothing more to ask. A ``journal``
    of the pool keeps the answers; those it holds already are not asked again. ``progress`` hears
    how many queries are answered.
    """
    how = how or Adaptive()
    answers = Answers.join([])
    if journal is not None:
        answers = journal.answers(partial=True)
    most = min(len(pool), how.most or len(pool))
    order = np.random.default_rng([how.seed, 11]).permutation(len(pool))
    progress(len(answers))
    wanted = order[: min(how.first, most)]
    # A journal that holds more has been past the first batch.
    batch = wanted[~np.isin(wanted, answers.query)] if len(answers) < wanted.size else wanted[:0]
    while True:
        for part in target.answer(pool, batch) if batch.size else iter(()):
            if journal is not None:
                journal.append(part)
            answers = Answers.join([answers, part])
            progress(len(answers))
        step = _conclude(pool, answers, how)
        yield step
        if step.reached or len(answers) >= most:
            return
        candidates = order[~np.isin(order, answers.query)]
        size = min(how.batch, most - len(answers))
        batch = candidates[:size]
        if how.goal is not None:
            asked = pool.matrix[answers.query]
            belief = believe(asked, chances(step.guess), _noise(asked, answers, step.guess))
            batch = choose(pool, candidates, belief, size, how.goal)


def confidence(guess: Guess) -> float:
    """The share of right values to expect of a guess about everyone, by its probabilities."""
    p = chances(guess)
    return float(np.maximum(p, 1 - p).mean())


def chances(guess: Guess) -> NDArray[np.float64]:
    """The probability (n,) of a one; without any from the decoder, 1/2 for all but the proven."""
    if guess.probability is not None:
        return guess.probability
    forced = np.zeros(guess.ids.size, np.bool_) if guess.forced is None else guess.forced
    return np.where(forced, guess.values, 0.5)


def _conclude(pool: Queries, answers: Answers, how: Adaptive) -> Step:
    asked = np.sort(answers.query)
    guess = how.decoder.decode(pool.take(asked), answers.to_some(asked))
    sure = confidence(guess)
    return Step(answers, guess, sure, sure >= how.until)


def _noise(asked: NDArray[np.int8], answers: Answers, guess: Guess) -> float:
    """The SD of the answers around the counts that the guess implies."""
    residual = (answers.values - asked @ guess.values)[answers.released]
    return max(float(residual.std()), LEAST_SIGMA) if residual.size else LEAST_SIGMA
