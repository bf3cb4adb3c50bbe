"""What was asked and what came back.

Targets answer in batches of ``Answers``, each with the positions it answers. A ``Transcript`` puts
them beside the queries, row by row, and is all that a decoder sees. The ``Journal`` is its file.

Where the secret is one of several values, every query is asked about each named value in turn:
position ``v * m + i`` is query i of m, asked about value v.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.tables import resolved
from countleak.attack.secrets import Secret
from countleak.errors import InputError, ShapeError
from countleak.files import Name, Record, Records, read_records
from countleak.journals import JournalFile

# No count of people is larger; one such answer would drown every other in a sum of residuals.
LARGEST = 1e10
# What a journal must have in common with whoever resumes it, and how its answers relate to it.
SAME = {"secret": "are about", "system": "came from", "authorised_by": "were authorised by"}


@dataclass(frozen=True, eq=False)
class Answers:
    """k answers: ``query`` (k,) positions among the questions, ``values`` (k,) in people.

    ``released`` (k,) is False where the count was suppressed; its value is then NaN, so that
    whoever forgets to check notices.
    """

    query: NDArray[np.int64]
    values: NDArray[np.float64]
    released: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.query.min(initial=0) < 0:
            raise InputError(f"an answer to query {self.query.min()}; positions start at 0")
        if not self.query.shape == self.values.shape == self.released.shape:
            raise ShapeError(
                f"{self.query.size} positions, {self.values.size} values and "
                f"{self.released.size} marks of release; an answer has one of each"
            )
        _check_values(self.query, self.values, self.released)

    def __len__(self) -> int:
        return self.query.size

    @classmethod
    def to_all(cls, values: NDArray[np.float64], released: NDArray[np.bool_] | None = None) -> Self:
        """Answers to queries 0, 1, ..., m - 1, all released unless stated."""
        released = np.ones(values.shape, dtype=np.bool_) if released is None else released
        return cls(np.arange(values.size), np.where(released, values, np.nan), released)

    @classmethod
    def join(cls, batches: Iterable["Answers"]) -> Self:
        """All batches as one, in the order of the queries."""
        parts = list(batches)
        query = np.concatenate([part.query for part in parts] or [np.empty(0, np.int64)])
        values = np.concatenate([part.values for part in parts] or [np.empty(0)])
        released = np.concatenate([part.released for part in parts] or [np.empty(0, np.bool_)])
        order = np.argsort(query, kind="stable")
        repeated = query[order][1:][np.diff(query[order]) == 0]
        if repeated.size:
            raise InputError(f"query {repeated[0]} is answered twice; keep one answer per query")
        return cls(query[order], values[order], released[order])

    def only(self, positions: NDArray[np.int64]) -> "Answers":
        """The answers to the queries at ``positions``."""
        kept = np.isin(self.query, positions)
        return Answers(self.query[kept], self.values[kept], self.released[kept])


@dataclass(frozen=True, eq=False)
class Transcript:
    """m questions and what came back: row i of ``queries`` was answered ``values[i]``, in people.

    ``released`` (m,) is False where the answer was suppressed; its value is then NaN. ``names`` are
    the values of a secret that is one of several, and ``about`` (m,) says which of them a row
    asked about; a bit and a number have no names. ``share`` (m,) is how much of each count belongs
    to people known beforehand, who are not among the queries' people any more.
    """

    queries: Queries
    values: NDArray[np.float64]
    released: NDArray[np.bool_]
    names: tuple[str, ...] = ()
    about: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    share: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        m = len(self.queries)
        for name in ("about", "share"):
            if not getattr(self, name).size:
                object.__setattr__(self, name, np.zeros(m, getattr(self, name).dtype))
        for values in (self.values, self.released, self.about, self.share):
            if values.shape != (m,):
                raise ShapeError(f"{m} queries but {values.size} answers")
        _check_values(np.arange(m), self.values, self.released)

    @classmethod
    def of(cls, queries: Queries, answers: Answers, names: tuple[str, ...] = ()) -> "Transcript":
        """The answers beside their queries; ``names`` where they are about several values."""
        if not len(answers):
            raise InputError("there are no answers; ask at least one query")
        about, row = np.divmod(answers.query, len(queries))
        if about.max() > 0 and about.max() >= len(names):
            raise ShapeError(
                f"an answer to query {answers.query.max()}, but {len(queries)} queries"
            )
        everything = row.size == len(queries) and bool((np.diff(row) == 1).all())
        taken = queries if everything else queries.take(row)
        as_answered, kept = resolved(taken, about, answers.released)
        return cls(as_answered, answers.values, answers.released, names, about).where(kept)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        suppressed = int((~self.released).sum())
        people = self.ids.size
        return f"<{len(self)} answers about {people} people, {suppressed} suppressed>"

    @property
    def ids(self) -> NDArray[Any]:
        """The people asked about (n,)."""
        return self.queries.ids

    @cached_property
    def A(self) -> NDArray[np.int8]:
        """Whom the released answers weigh, one row per released answer."""
        matrix = self.queries.matrix
        return matrix if self.released.all() else matrix[self.released]

    @cached_property
    def b(self) -> NDArray[np.float64]:
        """The released answers, less the share of people known beforehand."""
        return (self.values - self.share)[self.released]

    @property
    def blocks(self) -> int:
        """How many bits a person has: one for each value, where there are several."""
        return max(len(self.names), 1)

    def counts(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The exact answers (m,) for bits x: bit ``v * n + j`` says that person j has value v."""
        of_value = x.reshape(self.blocks, -1)
        if self.blocks == 1:
            return self.queries.dot(x)
        return np.asarray((self.queries.matrix @ of_value.T)[np.arange(len(self)), self.about])

    def residuals(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The released answers less those for bits x."""
        return self.b - self.counts(x)[self.released]

    @property
    def over_bits(self) -> NDArray[np.int8]:
        """Whom each query weighs, (m, kn), among the bits of all values."""
        m, n = self.queries.matrix.shape
        weights = np.zeros((m, self.blocks, n), np.int8)
        weights[np.arange(m), self.about] = self.queries.matrix
        return weights.reshape(m, -1)

    def take(self, rows: NDArray[np.int64]) -> "Transcript":
        """Some rows, in that order."""
        return Transcript(
            self.queries.take(rows),
            self.values[rows],
            self.released[rows],
            self.names,
            self.about[rows],
            self.share[rows],
        )

    def where(self, kept: NDArray[np.bool_]) -> "Transcript":
        """The rows marked in ``kept`` (m,)."""
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def by_value(self) -> dict[str, "Transcript | None"]:
        """The rows about each value, by name; None where nothing was asked about it."""
        parts: dict[str, Transcript | None] = {}
        for v, name in enumerate(self.names):
            rows, parts[name] = np.flatnonzero(self.about == v), None
            if rows.size:
                about = np.zeros(rows.size, np.int64)
                parts[name] = replace(self.take(rows), names=(), about=about)
        return parts

    def suppressing(self, hidden: NDArray[np.bool_]) -> "Transcript":
        """The same without the answers marked in ``hidden`` (m,)."""
        released = self.released & ~hidden
        return replace(self, values=np.where(released, self.values, np.nan), released=released)

    def suppressed_as(self, value: float) -> "Transcript":
        """Every suppressed count read as ``value``; the paper's code reads 0."""
        if not abs(value) < LARGEST:
            raise InputError(f"suppressed counts read as {value:g}; give a count")
        values = np.where(self.released, self.values, value)
        return replace(self, values=values, released=np.ones_like(self.released))


class Journal:
    """A file of answers that grows as they come in and knows which questions are still open.

    ``secret`` is what is asked about, ``system`` describes who answers, in words; a journal is
    resumed with both or not at all. ``authorised_by`` is who allowed the questions, where someone
    had to. The file is not there before the first answer; ``at_start`` is called just before.
    """

    def __init__(
        self,
        path: Name,
        queries: Queries,
        secret: Secret,
        system: str,
        authorised_by: str | None = None,
        at_start: Callable[[], None] = lambda: None,
    ):
        """Open the journal at ``path``, or prepare to start it; nothing is written yet."""
        self.path, self.queries, self.secret = Path(path), queries, secret
        self._header: Record = {
            "plan": queries.digest,
            "queries": len(queries),
            "secret": str(secret),
            "system": system,
            **({} if authorised_by is None else {"authorised_by": authorised_by}),
        }
        self._file = JournalFile(path, "answers", self._header)
        self._at_start = at_start
        self._take_in()

    def _take_in(self) -> None:
        """Note what stands in the file."""
        self._open = np.ones(len(self.queries) * len(self.secret.conditions), dtype=np.bool_)
        self._batches: list[Answers] = []
        if (records := self._file.earlier) is None:
            return
        _check_plan(records, self.queries)
        for name, words in SAME.items():
            was, now = records.header.get(name), self._header.get(name)
            if was != now:
                raise records.fault(
                    1, f"these answers {words} {was!r}, not {now!r}; name a new file or folder"
                )
        self._batches.append(_parse_answers(records, len(self.queries), self.secret))
        self._open[self._batches[0].query] = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block in which nobody else writes; what others have added before is noted first."""
        with self._file.held() as changed:
            if changed:
                self._take_in()
            yield

    def open_questions(self) -> NDArray[np.int64]:
        """Positions of the questions that have no answer yet."""
        return np.flatnonzero(self._open)

    @property
    def answers(self) -> Answers:
        """All answers so far."""
        return Answers.join(self._batches)

    def append(self, batch: Answers) -> None:
        """Add a batch; it outlives this process when this returns."""
        if not self._open[batch.query].all():
            raise InputError(f"{self.path}: a query was answered twice; keep one answer per query")
        if not self._batches:
            self._at_start()
        self._file.append(self._records(batch))
        self._open[batch.query] = False
        self._batches.append(batch)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def transcript(self) -> Transcript:
        """The answers so far beside their queries."""
        return Transcript.of(self.queries, self.answers, self.secret.names)

    def _records(self, batch: Answers) -> Iterator[Record]:
        rows = zip(
            batch.query.tolist(), batch.values.tolist(), batch.released.tolist(), strict=True
        )
        for position, value, released in rows:
            about, query = divmod(position, len(self.queries))
            yield {
                "query": query,
                **({"value": self.secret.names[about]} if self.secret.names else {}),
                **({"answer": _short(value)} if released else {"suppressed": True}),
            }


def read_transcript(path: Name, queries: Queries, *, partial: bool = False) -> Transcript:
    """The answers of a journal to ``queries``: to all of them, unless ``partial`` ones will do."""
    return read_answers(path, queries, partial=partial)[0]


def read_answers(
    path: Name, queries: Queries, *, partial: bool = False
) -> tuple[Transcript, Secret]:
    """The same, and the secret that the answers are about."""
    from countleak.attack.secrets import parse_secret

    records = read_records(path, "answers")
    _check_plan(records, queries)
    described = records.header.get("secret")
    if not isinstance(described, str):
        raise records.fault(1, "the header names no secret; run `countleak ask` again")
    try:
        secret = parse_secret(described)
        expected = len(queries) * len(secret.conditions)
    except InputError as error:
        raise records.fault(1, str(error)) from None
    answers = _parse_answers(records, len(queries), secret)
    if len(answers) != expected and not partial:
        raise InputError(
            f"{path}: {len(answers)} answers to {expected} questions; run `countleak ask` again "
            "to finish, or accept partial answers"
        )
    return Transcript.of(queries, answers, secret.names), secret


def _check_values(
    query: NDArray[np.int64], values: NDArray[np.float64], released: NDArray[np.bool_]
) -> None:
    # NaN compares false, so it is among the wrong ones.
    wrong = released & ~(np.abs(values) < LARGEST)
    if wrong.any():
        at = np.flatnonzero(wrong)[0]
        raise InputError(
            f"the answer to query {query[at]} is {values[at]}, expected a count; mark it "
            "suppressed or leave it out"
        )


def _check_plan(records: Records, queries: Queries) -> None:
    if records.header.get("plan") != queries.digest:
        raise records.fault(
            1, "these are answers to other queries; check which file goes where, or name a new one"
        )


def _parse_answers(records: Records, m: int, secret: Secret) -> Answers:
    # What is not named is nothing to ask about.
    names = secret.names[: len(secret.conditions)]
    seen: dict[int, int] = {}
    values = []
    for line, record in records.lines:
        position = _position(records, line, record, m, names)
        if position in seen:
            raise records.fault(
                line,
                f"query {position % m} was answered on line {seen[position]}; remove one of them",
            )
        seen[position] = line
        value: Any = record.get("answer")
        if record.get("suppressed") is True:
            values.append(np.nan)
        elif type(value) in (int, float) and abs(value) < LARGEST:
            values.append(float(value))
        else:
            raise records.fault(
                line,
                f"answer is {repr(value)[:30]}, expected a number; remove the line or mark it "
                '"suppressed": true',
            )
    answered = np.array(values, dtype=np.float64)
    return Answers.join(
        [Answers(np.array(list(seen), dtype=np.int64), answered, ~np.isnan(answered))]
    )


def _position(records: Records, line: int, record: Record, m: int, names: tuple[str, ...]) -> int:
    query, about = record.get("query"), record.get("value")
    if type(query) is not int or not 0 <= query < m:
        raise records.fault(line, f"query is {query!r}, expected a position from 0 to {m - 1}")
    if not names:
        return query
    if about not in names:
        raise records.fault(line, f"value is {about!r}, expected one of {', '.join(names)}")
    return names.index(about) * m + query


def _short(value: float) -> int | float:
    return int(value) if value.is_integer() else value
