"""What a target answered, query by query, and the journal that keeps it as it comes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError, ShapeError
from countleak.files import JournalFile, Name, Record, Records, read_records

# No count of people is larger; one such answer would drown every other in a sum of residuals.
LARGEST = 1e10


@dataclass(frozen=True, eq=False)
class Answers:
    """k answers: ``query`` (k,) positions among the queries, ``values`` (k,) in people.

    ``released`` (k,) is False where the count was suppressed; its value is then NaN, so that
    whoever forgets to ask notices.
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
        # NaN compares false, so it is among the wrong ones.
        wrong = np.flatnonzero(self.released & ~(np.abs(self.values) < LARGEST))
        if wrong.size:
            raise InputError(
                f"the answer to query {self.query[wrong[0]]} is {self.values[wrong[0]]}, "
                "expected a count; mark it suppressed or leave it out"
            )

    def __len__(self) -> int:
        return self.query.size

    @classmethod
    def to_all(cls, values: NDArray[np.float64], released: NDArray[np.bool_] | None = None) -> Self:
        """Answers to queries 0, 1, ..., m - 1, all released unless said."""
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
            raise InputError(f"query {repeated[0]} is answered twice; keep one answer a query")
        return cls(query[order], values[order], released[order])

    def suppressed_as(self, value: float) -> "Answers":
        """Every suppressed count read as ``value``; the paper's code reads 0."""
        values = np.where(self.released, self.values, value)
        return Answers(self.query, values, np.ones_like(self.released))

    def to_some(self, positions: NDArray[np.int64]) -> "Answers":
        """The answers to the queries at ``positions``, renumbered to match ``queries.take``."""
        new = np.full(int(max(self.query.max(initial=-1), positions.max(initial=-1))) + 1, -1)
        new[positions] = np.arange(positions.size)
        kept = new[self.query] >= 0
        return Answers(new[self.query][kept], self.values[kept], self.released[kept])


class Journal:
    """A file of answers that grows as they come in and knows which queries are still open.

    ``system`` describes who answers, in words; a journal goes on with that system or not at all.
    ``authorised_by`` is who allowed the questions, where someone had to.
    """

    def __init__(self, path: Name, queries: Queries, system: str, authorised_by: str | None = None):
        """Open the journal of ``queries`` to ``system`` at ``path``; a new one starts empty."""
        header = {"plan": queries.digest, "queries": len(queries), "system": system}
        header |= {} if authorised_by is None else {"authorised_by": authorised_by}
        self._file = JournalFile(path, "answers", header)
        self._batches: list[Answers] = []
        self._open = np.ones(len(queries), dtype=np.bool_)
        if (records := self._file.earlier) is not None:
            _check_plan(records, queries)
            if records.header.get("system") != system:
                raise records.fault(
                    1,
                    f"these answers came from {records.header.get('system')!r}, not from "
                    f"{system!r}; name a new file",
                )
            if records.header.get("authorised_by") != authorised_by:
                raise records.fault(
                    1,
                    f"these answers were authorised by {records.header.get('authorised_by')!r}, "
                    f"not by {authorised_by!r}; name a new file",
                )
            self._batches.append(_parse_answers(records, len(queries)))
            self._open[self._batches[0].query] = False

    def answers(self, *, partial: bool = False) -> Answers:
        """The answers so far, earlier runs' included: to all queries, unless ``partial``."""
        answers = Answers.join(self._batches)
        if not partial:
            _check_complete(self._file.path, answers, self._open.size)
        return answers

    def open_queries(self) -> NDArray[np.int64]:
        """Positions of the queries that have no answer yet."""
        return np.flatnonzero(self._open)

    def append(self, batch: Answers) -> None:
        """Add a batch; it is on disk when this returns."""
        if not self._open[batch.query].all():
            raise InputError(
                f"{self._file.path}: a query was answered twice; keep one answer per query"
            )
        self._file.append(_record(*answer) for answer in _rows(batch))
        self._batches.append(batch)
        self._open[batch.query] = False

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_answers(path: Name, queries: Queries, *, partial: bool = False) -> Answers:
    """The answers of a journal to ``queries``: to all of them, unless ``partial`` ones will do."""
    records = read_records(path, "answers")
    _check_plan(records, queries)
    answers = _parse_answers(records, len(queries))
    if not partial:
        _check_complete(path, answers, len(queries))
    return answers


def _check_complete(path: Name, answers: Answers, queries: int) -> None:
    if len(answers) != queries:
        raise InputError(
            f"{path}: {len(answers)} answers to {queries} queries; run `countleak ask` again "
            "to finish, or pass --partial"
        )


def _check_plan(records: Records, queries: Queries) -> None:
    if records.header.get("plan") != queries.digest:
        raise records.fault(
            1, "these are answers to other queries; check which file goes where, or name a new one"
        )


def _parse_answers(records: Records, total: int) -> Answers:
    seen: dict[int, int] = {}
    values = []
    for line, record in records.lines:
        position, value = record.get("query"), record.get("answer")
        if not isinstance(position, int) or not 0 <= position < total:
            raise records.fault(
                line, f"query is {position!r}, expected a position from 0 to {total - 1}"
            )
        if position in seen:
            raise records.fault(
                line, f"query {position} was answered on line {seen[position]}; remove one of them"
            )
        seen[position] = line
        if record.get("suppressed") is True:
            values.append(np.nan)
        elif isinstance(value, int | float) and value is not True and abs(value) < LARGEST:
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


def _rows(batch: Answers) -> Iterable[tuple[int, float, bool]]:
    return zip(batch.query.tolist(), batch.values.tolist(), batch.released.tolist(), strict=True)


def _record(query: int, value: float, released: bool) -> Record:
    answer: dict[str, Any] = {"answer": _short(value)} if released else {"suppressed": True}
    return {"query": query, **answer}


def _short(value: float) -> int | float:
    return int(value) if value.is_integer() else value
