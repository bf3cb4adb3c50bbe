"""What a system is like, found out by asking: what it accepts, how noisy it is, whom it hides.

Nothing secret is asked. Whoever knows the ids, and some columns, knows how many people a question
is about; what a system answers beside that is its noise. Counts of the secret may have more of it,
where every condition adds noise of its own.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.queries.tables import TABLE, table_queries, tables_of
from countleak.attack.transcript import Answers
from countleak.audit.families import (
    EVERY_GROUPING,
    SMALLEST_CELL,
    Known,
    families_for,
    family_queries,
    statements,
)
from countleak.audit.people import People
from countleak.audit.targets import Target
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, NoResult, TargetError
from countleak.progress import Progress, silent

# Questions of a family that show its noise, and sets of which it is seen who is hidden.
ASKED, TABLES, SIZES = 8, 3, 12
# How much less a question tells of one person than a count of them alone. Of a random half, by the
# mean square of its weights. Of a table, as measured: its cells are few, hidden, or nested in those
# of others (500 tables of 827 people, noise of SD 1.4: standard errors of .29, not .06).
OF_A_HALF, OF_A_TABLE = 4.0, 20.0
AGAIN = 3
# Of cells of about so many people some are shown and some are not.
SMALL_CELL = 6.0
# Answers that differ by less are equal, and there is no noise.
SAME = 1e-6
# Noise that is so much smaller cannot be told from chance by a few questions.
CLEARLY = 1.5


@dataclass(frozen=True)
class Tried:
    """A family that was tried: how its first question read, and what came back.

    ``refused`` is why it is not answered. ``noise`` is the SD of the answers around the true
    counts and ``offset`` their mean; ``sticky`` says whether a question asked again got the same
    answer, and is None where there is no noise to tell by. ``functions`` are those that a system
    groups by, and ``too_few`` says that all its tables together do not determine everyone.
    """

    family: str
    statement: str
    refused: str | None = None
    noise: float | None = None
    offset: float | None = None
    sticky: bool | None = None
    functions: tuple[str, ...] = ()
    too_few: bool = False

    @property
    def per_question(self) -> float | None:
        """How uncertain one question leaves one person, as a variance: lower is better."""
        if self.noise is None:
            return None
        return self.noise**2 * (OF_A_TABLE if self.family == "tables" else OF_A_HALF)


@dataclass(frozen=True)
class Findings:
    """All that was found out: ``tried`` families, and what a system does to every count.

    ``hidden`` is the largest set of people whose count was not answered, or answered 0, as
    ``hidden_as`` says; None where even one person is counted, or where it could not be told.
    """

    tried: tuple[Tried, ...]
    asked: int
    base: int | None
    fractions: bool
    hidden: int | None
    hidden_as: str | None

    @property
    def best(self) -> Tried:
        """The family with the least noise for its cost, the cheapest of equals."""
        answered = [each for each in self.tried if each.per_question is not None]
        # Where nothing else is answered, few tables are better than none.
        enough = [each for each in answered if not each.too_few] or answered
        costs = {each.family: each.per_question or 0.0 for each in enough}
        for each in enough:
            if costs[each.family] <= CLEARLY * min(costs.values()) + SAME:
                return each
        reasons = "; ".join(f"{each.family}: {each.refused}" for each in self.tried)
        raise NoResult(f"the system answers no family of questions ({reasons})")

    @property
    def is_noisy(self) -> bool:
        """Whether answers differ from counts."""
        return (self.best.noise or 0.0) > SAME

    def known(self, columns: Sequence[str]) -> Known:
        """What can be asked about those columns, of this system."""
        tables = next((each for each in self.tried if each.family == "tables"), None)
        smallest = 1.0 if self.hidden is None else max(SMALLEST_CELL, (self.hidden + 1) / 2)
        return Known(tuple(columns), () if tables is None else tables.functions, smallest)


def probe(
    target: Target,
    people: People,
    columns: Sequence[str] = (),
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Findings:
    """Ask a system that takes SQL a few dozen questions about ``people`` whose answers are known.

    ``columns`` are known of everyone. A family that is refused is noted; a system that cannot be
    reached raises.
    """
    known = Known(tuple(columns), EVERY_GROUPING)
    families = families_for(people, known)
    asking = _Asking(target, people, known, np.random.default_rng([seed, 21]))
    tried: list[Tried] = []
    for family in families:
        tried.append(asking.tables() if family == "tables" else asking.family(family))
        progress(len(tried), len(families) + 1)
        if len(tried) == 2 and tried[0].refused and tried[0].refused == tried[1].refused:
            # Whatever it is, it is not the question.
            raise TargetError(tried[0].refused)
    hidden, hidden_as = asking.hidden(tried)
    progress(len(families) + 1, len(families) + 1)
    values = np.concatenate([np.zeros(0), *asking.values])
    whole = bool((np.abs(values - np.rint(values)) < SAME).all())
    base = reduce(gcd, np.rint(values).astype(np.int64).tolist(), 0) if whole else 0
    return Findings(
        tuple(tried), asking.asked, base if base > 1 else None, not whole, hidden, hidden_as
    )


class _Asking:
    """The questions of a probe about some people, counted, and all that was answered."""

    def __init__(self, target: Target, people: People, known: Known, rng: np.random.Generator):
        questions = getattr(target, "questions", None)
        if not isinstance(questions, SqlQuestions):
            raise InputError("only a system that takes SQL can be probed; name a family instead")
        # Nobody's secret is asked about, and zeros are to be seen as they are.
        as_is = replace(questions.system, suppressed_as=None)
        self.questions = replace(questions, secret=None, system=as_is)
        asked: Any = copy.copy(target)
        asked.questions = self.questions
        self._target: Target = asked
        self._people, self._known, self._rng = people, known, rng
        self.asked = 0
        self.values: list[NDArray[np.float64]] = []

    def answers(self, queries: Queries) -> Answers:
        """The answers to all questions."""
        self.asked += statements(queries)
        answers = Answers.join(self._target.answer(queries, np.arange(len(queries))))
        self.values.append(answers.values[answers.released])
        return answers

    def family(self, name: str) -> Tried:
        """What comes of a family's questions."""
        queries = family_queries(name, self._people, ASKED, self._rng, self._known)
        statement = self.questions.statement(queries, 0)
        try:
            # One alone, so that a system that refuses them has only this to refuse.
            self.answers(queries.take(np.array([0])))
            return self._judged(Tried(name, statement), queries)
        except TargetError as error:
            return Tried(name, statement, refused=str(error))

    def tables(self) -> Tried:
        """The functions that a system groups by, and the noise of cells as an audit asks them."""
        columns, groupings = self._known.of(self._people), self._known.groupings(self._people)
        accepted: list[str] = []
        refused: list[Tried] = []
        for function in dict.fromkeys(grouping.function for grouping in groupings):
            ways = [grouping for grouping in groupings if grouping.function == function]
            # The coarsest of them has the fullest cells.
            coarse = min(ways, key=lambda way: len(set(way.labels(columns[way.column]))))
            queries = table_queries(self._people.ids, columns, [(coarse,)])
            try:
                self.answers(queries)
                accepted.append(function)
            except TargetError as error:
                refused.append(Tried("tables", self._of_table(queries), refused=str(error)))
        if not accepted:
            return refused[0]
        known = replace(self._known, functions=tuple(accepted))
        every = family_queries("tables", self._people, None, self._rng, known)
        chosen = np.isin(every.parameters[TABLE], self._rng.integers(0, statements(every), TABLES))
        some = every.take(np.flatnonzero(chosen))
        tried = Tried("tables", self._of_table(some))
        few = len(every) < len(self._people)
        try:
            return self._judged(replace(tried, functions=tuple(accepted), too_few=few), some)
        except TargetError as error:
            return replace(tried, refused=str(error))

    def _of_table(self, queries: Queries) -> str:
        """The statement that asks for the first table."""
        return next(self.questions.by_tables(queries, np.arange(len(queries))))[1]

    def _judged(self, tried: Tried, queries: Queries) -> Tried:
        """The same, with what the answers say of its noise; some are asked for twice."""
        answers = self.answers(queries)
        if not answers.released.any():
            return replace(tried, refused="every answer was suppressed")
        few = queries if tried.family == "tables" else queries.take(np.arange(AGAIN))
        again, first = self.answers(few), answers.only(np.arange(len(few)))
        both = again.released & first.released
        same = bool((np.abs(again.values[both] - first.values[both]) < SAME).all())
        counts = queries.dot(np.ones(len(self._people)))[answers.query]
        off = (answers.values - counts)[answers.released]
        noise = float(np.sqrt(np.mean((off - off.mean()) ** 2)))
        noisy = noise > SAME
        return replace(
            tried,
            noise=noise if noisy else 0.0,
            offset=float(off.mean()),
            sticky=same if noisy and both.any() else None,
        )

    def hidden(self, tried: Sequence[Tried]) -> tuple[int | None, str | None]:
        """The largest set of people that is hidden, as all smaller ones are, and how that shows."""
        answered = {each.family for each in tried if each.refused is None}
        if "subsets" in answered:
            sizes = np.repeat(np.arange(1, SIZES + 1), 2)
            order = np.array([self._rng.permutation(len(self._people)) for _ in sizes])
            matrix = (order < sizes[:, None]).astype(np.int8)
            queries = Queries(self._people.ids, matrix, Subsets())
        elif "tables" in answered:
            queries = self._small_cells(next(t for t in tried if t.family == "tables").functions)
        else:
            return None, None
        try:
            answers = self.answers(queries)
        except TargetError as error:
            # Lists so short are refused, which tells nothing of others.
            return None, str(error)
        counts = queries.dot(np.ones(len(self._people)))[answers.query]
        missing = ~answers.released
        unseen = missing | (answers.values == 0)
        shown = counts[~unseen].min(initial=np.inf)
        below = unseen & (counts < shown)
        if not below.any() or counts[below].max() < 2:
            return None, None
        # A table has no row for a cell that is hidden.
        zeros = "subsets" in answered and not missing[below].all()
        how = "answered 0" if zeros else "not answered"
        return int(counts[below].max()), how

    def _small_cells(self, functions: tuple[str, ...]) -> Queries:
        """The cells of a table of which some are so small that they may be hidden."""
        known = replace(self._known, functions=functions)
        columns = known.of(self._people)
        every = tables_of(columns, known.groupings(self._people), 10_000, self._rng)
        pools = (table_queries(self._people.ids, columns, [table]) for table in every[:200])
        return min(pools, key=lambda q: abs(len(self._people) / len(q) - SMALL_CELL))
