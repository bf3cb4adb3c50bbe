"""The whole audit, in the order it happens: ask, decode, score.

Most of countleak is imported inside the functions: the package binds ``audit`` when it is imported,
and importing it should cost no more than that.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countleak.errors import InputError, Refused
from countleak.files import require_writable
from countleak.progress import Progress, silent

if TYPE_CHECKING:
    from countleak.attack.decoders import Decoder
    from countleak.attack.design import Goal
    from countleak.attack.guess import Guess
    from countleak.attack.queries import Queries
    from countleak.attack.rules import Rules
    from countleak.attack.secrets import Secret
    from countleak.attack.transcript import Journal, Transcript
    from countleak.audit.people import People
    from countleak.audit.result import AuditResult, Step
    from countleak.audit.targets import Target
    from countleak.audit.targets.simulated import Mechanism

# No noise is smaller than that of rounding to whole people.
ROUNDING_SD = 0.3


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an attack saw and what it concluded."""

    transcript: "Transcript"
    guess: "Guess"


@dataclass(frozen=True)
class Keeping:
    """Where an audit keeps its files, and what they say of it: who answered, and who allowed it."""

    folder: Path
    system: str
    authorised_by: str | None = None


@dataclass(frozen=True)
class Asking:
    """How a pool of queries is asked: all at once, unless chosen batch by batch.

    At most ``most`` questions are asked. With ``until`` asking stops as soon as that share of the
    guesses is expected to be right, looked at after a ``first`` batch and after every further
    ``batch``, which is chosen by ``goal``, or drawn at random without one. ``seed`` is that of the
    draws.
    """

    most: int | None = None
    until: float | None = None
    first: int = 100
    batch: int = 50
    goal: "Goal | None" = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.until is not None and not 0.5 < self.until <= 1:
            raise InputError(f"until is {self.until:g}; choose a confidence above 0.5, at most 1")
        for name, value in (("first", self.first), ("batch", self.batch), ("most", self.most)):
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; ask at least one query")

    def order(self, count: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """The order (count,) in which questions are asked, as long as none is chosen."""
        return np.random.default_rng([self.seed, 11]).permutation(count)

    def check(self, secret: "Secret") -> None:
        """Raise if a secret of this kind cannot be asked about like that."""
        from countleak.attack.secrets import Bit, Number

        if self.goal is not None and not isinstance(secret, Bit):
            raise InputError("questions are chosen by a goal for bits only; draw them at random")
        if self.until is not None and isinstance(secret, Number):
            raise InputError("numbers have no probability to stop at; ask all questions at once")


def audit(
    people: Any,
    *,
    secret: "str | Secret",
    target: "Target | Mechanism",
    id: str | tuple[str, ...] | None = None,
    queries: "Queries | int | None" = None,
    asking: Asking | None = None,
    keeping: Keeping | None = None,
    rules: "Rules | None" = None,
    decoder: "Decoder | None" = None,
    truth: "People | None" = None,
    progress: Progress = silent,
    outlook: Callable[[float], None] | None = None,
) -> "AuditResult":
    """Ask a target about people, decode its answers, and compare with the truth where it is known.

    ``people`` is a People, or a pandas or polars frame whose column ``id`` tells people apart. A
    ``target`` that is a mechanism, such as ``Gaussian(4.0)``, is simulated over them. ``queries``
    are the questions, or how many; ``progress`` hears how many of how many are answered. ``rules``
    are what is stated of the system: only from those is anything proven. The ``decoder`` is the
    secret's own unless given. The ``truth`` is read for scoring only: these people, unless given.
    ``outlook`` hears while a bit is asked about which share of the guesses should be right so far.
    """
    from countleak.attack.decoders.auto import decoder_for
    from countleak.attack.queries.ids import id_list
    from countleak.audit.people import People, people_of
    from countleak.audit.result import AuditResult
    from countleak.audit.scores import score
    from countleak.audit.targets import Target
    from countleak.audit.targets.simulated import Simulated

    if not isinstance(people, People):
        if id is None:
            raise InputError("name the column that tells people apart, like id='client_id'")
        people = people_of(people, id)
    known = people if truth is None else truth.among(people.ids)
    named = known.named(secret)
    held = known.truth(named) if known.knows(named) else None
    if not isinstance(target, Target) and not hasattr(target, "release"):
        raise InputError(
            f"a target answers queries, or is a mechanism such as Gaussian(4.0); {target!r} is "
            "neither"
        )
    if decoder is not None and rules is not None:
        raise InputError("give rules, or a decoder that knows them, not both")
    decoder = decoder or decoder_for(named, 0 if asking is None else asking.seed, rules)
    system = target if isinstance(target, Target) else Simulated(people, named, target)
    _check_counted(system, named)
    asking = asking or Asking()
    asking.check(named)
    if queries is None or isinstance(queries, int):
        queries = default_queries(people, queries, asking.seed)
    if id_list(queries.ids) != id_list(people.ids):
        raise InputError("these are queries about other people; ask about the ids of these")
    journal = None if keeping is None else journal_of(keeping, queries, named)
    with nullcontext() if journal is None else journal.writing():
        steps = tuple(
            ask_in_steps(queries, system, named, asking, journal, progress, decoder, outlook)
        )
    guess = steps[-1].guess
    if keeping is not None:
        from countleak.attack.guess_file import write_guess

        write_guess(keeping.folder / "guess.jsonl", guess, named)
    found = None if held is None else score(guess, held)
    return AuditResult(people, named, steps, found, held, system, decoder)


def _check_counted(target: "Target", secret: "Secret") -> None:
    """Raise where a target says that it counts something else: its answers would show nothing."""
    questions = getattr(target, "questions", target)
    if hasattr(questions, "secret") and questions.secret != secret:
        raise InputError(
            f"the target counts {questions.secret or 'people whatever their secret'}, not "
            f"{secret}; audit what it counts"
        )


def default_queries(people: "People", count: int | None = None, seed: int = 0) -> "Queries":
    """``count`` digit queries where the ids allow them, else random subsets; 3500 or 1000."""
    from countleak.attack.queries.digits import digit_queries, fits_digits
    from countleak.attack.queries.subsets import random_subsets

    rng = np.random.default_rng([seed, 1])
    if fits_digits(people.ids):
        pool = digit_queries(people.ids)
        if count is None or count == len(pool):
            return pool
        if count < len(pool):
            return pool.take(np.sort(rng.choice(len(pool), size=count, replace=False)))
    return random_subsets(people.ids, 1000 if count is None else count, rng)


def reconstruct(
    queries: "Queries",
    target: "Target",
    *,
    secret: "str | Secret | None" = None,
    decoder: "Decoder | None" = None,
) -> Reconstruction:
    """Ask everything, decode. The truth stays with whoever calls ``score`` on the guess."""
    from countleak.attack.decoders.auto import AutoDecoder, decoder_for
    from countleak.attack.secrets import parse_secret

    secret = parse_secret(secret) if isinstance(secret, str) else secret
    transcript = ask(queries, target, secret)
    chosen = decoder or (AutoDecoder() if secret is None else decoder_for(secret))
    return Reconstruction(transcript, chosen.decode(transcript))


def ask(queries: "Queries", target: "Target", secret: "Secret | None" = None) -> "Transcript":
    """The target's answers to every query; of a ``secret`` of several values, about each."""
    from countleak.attack.transcript import Answers, Transcript

    count = 1 if secret is None else len(secret.conditions)
    answers = Answers.join(target.answer(queries, np.arange(count * len(queries))))
    return Transcript.of(queries, answers, () if secret is None else secret.names)


def ask_into(
    journal: "Journal",
    target: "Target",
    progress: Progress = silent,
    limit: int | None = None,
) -> "Transcript":
    """The same, kept in a journal as answers come in; resumes where the journal stopped.

    ``progress`` hears how many of how many are answered. With a ``limit`` at most so many are
    asked, and some may stay open.
    """
    with journal.writing():
        remaining, done = journal.open_questions(), len(journal.answers)
        total = remaining.size + done
        progress(done, total)
        remaining = remaining[:limit]
        for batch in target.answer(journal.queries, remaining) if remaining.size else ():
            journal.append(batch)
            done += len(batch)
            progress(done, total)
    return journal.transcript()


def ask_in_steps(
    pool: "Queries",
    target: "Target",
    secret: "Secret",
    asking: Asking | None = None,
    journal: "Journal | None" = None,
    progress: Progress = silent,
    decoder: "Decoder | None" = None,
    outlook: Callable[[float], None] | None = None,
) -> "Iterator[Step]":
    """Ask, decode, choose what to ask next, and so on; a step after every batch.

    The last step has ``reached`` the wanted confidence, had nothing more to ask, or ``refused``
    says why a system that had answered some would answer no more, as one does whose budget is
    spent. A ``journal`` of the pool keeps the answers; those it holds already are not asked again.
    The ``decoder`` is the secret's own unless given. Of a bit, ``outlook`` hears while questions
    are asked which share of the guesses should be right so far.
    """
    from countleak.attack.decoders.auto import decoder_for
    from countleak.attack.secrets import Bit
    from countleak.attack.transcript import Answers, Transcript
    from countleak.audit.outlook import Outlook
    from countleak.audit.result import Step

    asking = asking or Asking()
    asking.check(secret)
    decoder = decoder or decoder_for(secret, asking.seed)
    answers = Answers.join([]) if journal is None else journal.answers
    count = len(pool) * len(secret.conditions)
    most = min(count, asking.most or count)
    order = asking.order(count)
    progress(len(answers), most)
    look = Outlook(pool, outlook) if outlook is not None and isinstance(secret, Bit) else None
    wanted = order[: most if asking.until is None else min(asking.first, most)]
    # A journal that holds more has been past the first batch.
    batch = wanted[~np.isin(wanted, answers.query)] if len(answers) < wanted.size else wanted[:0]
    while True:
        parts, done, refused = [answers], len(answers), None
        try:
            for part in target.answer(pool, batch) if batch.size else ():
                if journal is not None:
                    journal.append(part)
                parts.append(part)
                done += len(part)
                progress(done, most)
                if look is not None:
                    look(parts)
        except Refused as error:
            if not done:
                raise
            refused = str(error)
        answers = Answers.join(parts)
        transcript = Transcript.of(pool, answers, secret.names)
        guess = decoder.decode(transcript)
        reached = asking.until is not None and (guess.expected_right or 0.0) >= asking.until
        yield Step(transcript, guess, reached, refused)
        if reached or refused or len(answers) >= most:
            return
        candidates = order[~np.isin(order, answers.query)][: None if asking.goal else asking.batch]
        size = min(asking.batch, most - len(answers))
        batch = _chosen(pool, candidates, size, transcript, guess, asking.goal)


def _chosen(
    pool: "Queries",
    candidates: "np.ndarray[Any, np.dtype[np.int64]]",
    size: int,
    transcript: "Transcript",
    guess: "Guess",
    goal: "Goal | None",
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The next batch: the best by the goal, or the next at random."""
    from countleak.attack.design import believe, choose

    if goal is None:
        return candidates[:size]
    even = np.where(guess.forced, guess.values, 0.5)
    probability = even if guess.probability is None else guess.probability
    residual = transcript.residuals(guess.values.astype(np.float64))
    sigma = max(float(residual.std()), ROUNDING_SD) if residual.size else ROUNDING_SD
    belief = believe(transcript.queries.matrix, probability, sigma)
    return choose(pool, candidates, belief, size, goal)


def journal_of(keeping: Keeping, queries: "Queries", secret: "Secret") -> "Journal":
    """The journal of an audit, and its queries beside it; another audit's raises first."""
    from countleak.attack.queries.files import write_queries
    from countleak.attack.transcript import Journal

    answers = keeping.folder / "answers.jsonl"
    plan = keeping.folder / "queries.jsonl"
    require_writable(plan, "queries")
    return Journal(
        answers,
        queries,
        secret,
        keeping.system,
        keeping.authorised_by,
        # Not before the first answer: an audit that got none leaves no files behind.
        at_start=lambda: write_queries(plan, queries),
    )
