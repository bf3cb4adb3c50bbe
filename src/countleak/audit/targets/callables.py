"""A Python function as a target: a condition in, a count out.

    def count(condition: str) -> float | None: ...
    def count(condition: str, members: list) -> float | None: ...
    def count(conditions: list[str]) -> list[float | None]: ...
    def count(conditions: list[str], members: list[list]) -> list[float | None]: ...

``condition`` is the whole condition of a question in SQL (PostgreSQL's, names quoted), such as
``"id" IN (3, 5, 8) AND "status" = 'C'``: who is asked about, and what must hold of them.
``members`` are the ids of those asked about, before that; tuples for composite keys. The function
returns how many people match: a number, or None where the count is suppressed. It raises
``countleak.Refused`` for a question that it does not answer. Where its first parameter is called
``conditions`` it gets up to 100 questions at once and returns as many answers, in their order.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import LARGEST, Answers
from countleak.audit.targets.limits import Pace, RequestLimits
from countleak.audit.targets.pool import Question, ask_all
from countleak.audit.targets.sql import Parts, SqlQuestions
from countleak.errors import KEPT, CountleakError, InputError, NoCount, TargetError
from countleak.foreign import clean, first_line

BATCH = 100
# What the first parameter of a function is called that takes several questions at once.
SEVERAL = "conditions"


class CallableTarget:
    """Counts that a Python function returns, as the module says.

    Several connections call it from as many threads at once. A function that takes several
    questions at once is called from one, and may take as long as it likes.
    """

    is_local = True

    def __init__(
        self,
        function: Callable[..., Any],
        questions: SqlQuestions,
        limits: RequestLimits | None = None,
        name: str | None = None,
    ):
        """Ask ``questions`` of a function, which errors call by ``name``."""
        self.function, self.questions = function, questions
        self.limits = limits or RequestLimits()
        self._name = name or str(getattr(function, "__name__", type(function).__name__))
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        positional = [
            each
            for each in parameters
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        needed = [each for each in positional if each.default is each.empty]
        if not positional or len(needed) > 2:
            raise InputError(
                f"{self}: write it as a function of a condition, or of a condition and the ids "
                "that it is about"
            )
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise InputError(f"{self}: it returns no number; write it without async and yield")
        self._several = positional[0].name == SEVERAL
        self._with_members = len(positional) > 1

    def __str__(self) -> str:
        return clean(self._name)

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Call the function for every question; batches as answers come."""
        questions = self.questions.asked_in_parts(queries, positions)
        if self._several:
            return self._answer_several(questions)
        return ask_all(lambda: _Connection(self), questions, self.limits, watched=True)

    def call(self, *given: Any) -> Any:
        """What the function returns; whatever it raises in one line."""
        try:
            return self.function(*given[: 1 + self._with_members])
        except CountleakError:
            raise
        except (Exception, SystemExit) as error:
            words = first_line(f"{type(error).__name__}: {error}")
            raise TargetError(f"{self} failed with {words}; {KEPT}") from None

    def count_of(self, value: Any) -> float | None:
        """The count that the function returned; None where it says: suppressed."""
        value = value.item() if isinstance(value, np.generic) else value
        return None if value is None else self.questions.count_of(value)

    def _answer_several(self, questions: Iterator[Question[Parts]]) -> Iterator[Answers]:
        pace = Pace(self.limits.rate)
        while batch := list(islice(questions, BATCH)):
            sleep(max([pace.delay(monotonic()) for _ in batch]))
            parts = [question.statement for question in batch]
            said = self.call([part.where for part in parts], [part.members for part in parts])
            values = said.tolist() if isinstance(said, np.ndarray) else said
            if not isinstance(values, Sequence) or len(values) != len(batch):
                raise TargetError(
                    f"{self}: {len(batch)} conditions need a list of as many answers; it returned "
                    f"{first_line(repr(said)[:100])}"
                )
            yield from self._answers(batch, values)

    def _answers(self, batch: list[Question[Parts]], values: Sequence[Any]) -> Iterator[Answers]:
        """The answers that are counts, and then an error about the first that is none."""
        counts: list[tuple[int, float]] = []
        fault: NoCount | None = None
        for question, value in zip(batch, values, strict=True):
            try:
                count = self.count_of(value)
                if count is not None and not abs(count) < LARGEST:
                    raise NoCount(f"the answer is {count:g}, no count of people")
                counts.append((question.position, np.nan if count is None else count))
            except NoCount as error:
                fault = fault or NoCount(f"{question.name}: {error}; the counts are kept")
        if counts:
            found = np.array([count for _, count in counts])
            yield Answers(np.array([at for at, _ in counts]), found, ~np.isnan(found))
        if fault is not None:
            raise fault


class _Connection:
    """The function, called for one question at a time."""

    def __init__(self, target: CallableTarget):
        self._target = target

    def ask(self, statement: Parts) -> float | None:
        return self._target.count_of(self._target.call(statement.where, statement.members))

    def close(self) -> None:
        """Nothing is held."""
