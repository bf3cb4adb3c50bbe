"""The whole attack, in the order it happens."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from countleak.answers import Answers, Journal, read_answers
from countleak.decoders import Decoder, Guess
from countleak.decoders.rounding import Rounding
from countleak.queries import Queries
from countleak.targets import Target


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
    journal = Journal(path, queries, system, authorised_by)
    still_open = journal.open_queries()
    progress(len(queries) - still_open.size)
    still_open = still_open[:limit]
    batches: Iterator[Answers] = target.answer(queries, still_open) if still_open.size else iter(())
    for batch in batches:
        journal.append(batch)
        progress(len(batch))
    return read_answers(path, queries, partial=limit is not None)
