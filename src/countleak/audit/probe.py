"""What a system is like, found out by asking: what it accepts, how noisy it is, whom it hides.

Nothing secret is asked. Whoever knows the ids, and some columns, knows how many people a question
is about; what a system answers beside that is its noise. Counts of the secret may have more of it,
where every condition adds noise of its own.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.groupings import RANGES, Grouping
from countleak.attack.queries.subsets import Subsets
from countleak.attack.queries.tables import (
    MERGED,
    TABLE,
    Statement,
    Table,
    merged_in,
    table_queries,
    tables_of,
)
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.families import (
    EVERY_GROUPING,
    MOST_WAYS,
    Known,
    families_for,
    family_queries,
    statements,
)
from countleak.audit.findings import AS_ZERO, SAME, Findings, Tried
from countleak.audit.people import People
from countleak.audit.targets import Target
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, TargetError, Transient
from countleak.progress import Progress, silent

# Questions of a family that show its noise, and sets of which it is seen who is hidden.
ASKED, TABLES, SIZES = 8, 3, 12
AGAIN = 3
# Of cells of about so many people some are shown and some are not.
SMALL_CELL = 6.0
# What was merged is off by no more than so many times the noise of a cell.
FITS = 5.0
NOBODY = "it shows no groups of"
# So many are counted by chance in groups that nobody is in.
FEW = 0.05
# Of sets that are hidden by their size half or more are not seen, and seldom a larger one.
HALF, SELDOM = 0.5, 0.25


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
        if family == "tables" and not asking.questions.whole_tables and asking.values:
            # Cell by cell they cost more than any other family, and tell less.
            continue
        tried.append(asking.tables() if family == "tables" else asking.family(family))
        progress(len(tried), len(families) + 1)
    if tried[0].refused is not None and len({each.refused for each in tried}) == 1:
        # Whatever it is, it is not the question.
        raise TargetError(tried[0].refused)
    hidden, hidden_as = asking.hidden({each.family for each in tried if each.refused is None})
    progress(len(families) + 1, len(families) + 1)
    values = np.concatenate([np.zeros(0), *asking.values])
    whole = bool((np.abs(values - np.rint(values)) < SAME).all())
    base = reduce(gcd, np.rint(values).astype(np.int64).tolist(), 0) if whole else 0
    return Findings(
        tuple(tried), asking.asked, base if base > 1 else None, not whole, hidden, hidden_as
    )


@dataclass(frozen=True)
class _Listening(SqlQuestions):
    """Questions that note each ``NULL`` which comes back, and each group that nobody is in."""

    nulls: list[None] = field(default_factory=list)
    strangers: list[float] = field(default_factory=list)

    def counted(self, table: Statement, rows: Iterable[Sequence[Any]]) -> Answers:
        told = list(rows)
        for *shown, value in told:
            merged = all(each in MERGED for each in shown)
            if len(shown) == len(table.groupings) and not merged and table.at(shown) is None:
                self.strangers.append(self.count_of(value) or 0.0)
        return super().counted(table, told)

    @property
    def count_of_nothing(self) -> None:
        self.nulls.append(None)


class _Asking:
    """The questions of a probe about some people, counted, and all that was answered."""

    def __init__(self, target: Target, people: People, known: Known, rng: np.random.Generator):
        questions = getattr(target, "questions", None)
        if not isinstance(questions, SqlQuestions):
            raise InputError("only a system that takes SQL can be probed; name a family instead")
        # Nobody's secret is asked about; zeros are to be seen as they are, and rows that lack too.
        as_is = replace(questions.system, suppressed_as=None, hides=True)
        known_of = {each.name: getattr(questions, each.name) for each in fields(questions)}
        self.questions = _Listening(**{**known_of, "secret": None, "system": as_is})
        asked: Any = copy.copy(target)
        asked.questions = self.questions
        self._target: Target = asked
        self._people, self._known, self._rng = people, known, rng
        self.asked = 0
        self.values: list[NDArray[np.float64]] = []
        # What was asked by tables, and came back.
        self.cells: list[Transcript] = []

    def answers(self, queries: Queries) -> Answers:
        """The answers to all questions."""
        self.asked += statements(queries, by_table=self.questions.whole_tables)
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
            if isinstance(error, Transient) and not self.values:
                # It is not there at all.
                raise
            return Tried(name, statement, refused=str(error))

    def tables(self) -> Tried:
        """The functions that a system groups by, and the noise of cells as an audit asks them."""
        columns, groupings = self._known.of(self._people), self._known.groupings(self._people)
        coarsest: dict[str, dict[str, Grouping]] = {}
        refused: list[Tried] = []
        for function in dict.fromkeys(grouping.function for grouping in groupings):
            own = [grouping for grouping in groupings if grouping.function == function]
            # The coarsest of them has the fullest cells.
            own.sort(key=lambda way: len(set(way.labels(columns[way.column]))), reverse=True)
            queries = self._cells((own[-1],))
            if (reason := self._refusal(queries)) is None:
                coarsest[function] = {way.column: way for way in own}
            else:
                refused.append(Tried("tables", self._of_table(queries), refused=reason))
        if not coarsest:
            # Of what is answered, that it shows nobody tells more than that others are not.
            return next((each for each in refused if NOBODY in str(each.refused)), refused[0])
        by_column = {name: way for ways in coarsest.values() for name, way in ways.items()}
        ways = self._ways([*by_column.values()])
        of_any_width = self._of_any_width(coarsest)
        known = replace(
            self._known, functions=tuple(coarsest), ways=ways, of_any_width=of_any_width
        )
        every = family_queries("tables", self._people, None, self._rng, known)
        some = self._some(every)
        tried = Tried(
            "tables",
            self._of_table(some),
            functions=known.functions,
            ways=ways,
            of_any_width=of_any_width,
            too_few=len(every) < len(self._people),
        )
        try:
            judged = self._judged(tried, some)
            self._small_cells(known)
        except TargetError as error:
            return replace(tried, refused=str(error))
        return replace(judged, merges=self._merges(judged.noise or 0.0))

    def _of_any_width(self, coarsest: Mapping[str, Mapping[str, Grouping]]) -> tuple[str, ...]:
        """The functions whose ranges need not be 1, 2 or 5 times a power of ten wide."""
        found = []
        for function, by_column in coarsest.items():
            grouping = next(iter(by_column.values()))
            if function in RANGES and function != "round" and isinstance(grouping.size, int):
                odd = replace(grouping, size=grouping.size + grouping.size // 3 + 1)
                if self._refusal(self._cells((odd,))) is None:
                    found.append(function)
        return tuple(found)

    def _cells(self, table: Table) -> Queries:
        """The cells of a table, and what is merged of it where that can be asked for."""
        columns = self._known.of(self._people)
        merged = self.questions.whole_tables
        return table_queries(self._people.ids, columns, [table], merged=merged)

    def _refusal(self, queries: Queries) -> str | None:
        """Why a table is not answered, or not as it is understood here."""
        self.questions.strangers.clear()
        try:
            answers = self.answers(queries)
        except TargetError as error:
            return str(error)
        if sum(self.questions.strangers) > FEW * len(self._people):
            return "it shows groups that nobody is in, so it groups otherwise"
        seen = Transcript.of(queries, answers)
        self.cells.append(seen)
        cells = ~merged_in(seen.queries) & seen.released & (seen.values != 0)
        people = int(seen.queries.matrix[cells].sum(dtype=np.int64))
        if people >= len(self._people) / 2:
            return None
        return f"{NOBODY} {len(self._people) - people} of {len(self._people)} people"

    def _ways(self, groupings: Sequence[Grouping]) -> int:
        """Of how many columns at once tables are answered."""
        most = min(MOST_WAYS, len(groupings))
        for ways in range(2, most + 1):
            if self._refusal(self._cells(tuple(groupings[:ways]))) is not None:
                return ways - 1
        return most

    def _some(self, every: Queries) -> Queries:
        """Some tables of all, or some of their cells where each is a question."""
        if self.questions.whole_tables:
            numbers = self._rng.integers(0, statements(every), TABLES)
            return every.take(np.flatnonzero(np.isin(every.parameters[TABLE], numbers)))
        return every.take(np.sort(self._rng.permutation(len(every))[:ASKED]))

    def _small_cells(self, known: Known) -> None:
        """Ask for a table of which some cells are so small that they may be hidden."""
        columns = known.of(self._people)
        every = tables_of(columns, known.groupings(self._people), 200, self._rng, ways=known.ways)
        pools = (self._cells(table) for table in every)
        queries = min(pools, key=lambda q: abs(len(self._people) / len(q) - SMALL_CELL))
        if not self.questions.whole_tables:
            queries = self._some(queries)
        self.cells.append(Transcript.of(queries, self.answers(queries)))

    def _merges(self, noise: float) -> bool:
        """Whether a row more counts those whose own cells were hidden."""
        off = [seen.residuals(np.ones(len(self._people))) for seen in self.cells]
        merged = [merged_in(seen.queries)[seen.released] for seen in self.cells]
        beside = np.concatenate(off)[np.concatenate(merged)]
        return bool(beside.size) and float(np.abs(beside).max()) <= FITS * noise + SAME

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

    def hidden(self, answered: Set[str]) -> tuple[int | None, str | None]:
        """The largest set of people that is hidden, as all smaller ones are, and how that shows."""
        if "subsets" in answered:
            sizes = np.repeat(np.arange(1, SIZES + 1), 2)
            order = np.array([self._rng.permutation(len(self._people)) for _ in sizes])
            matrix = (order < sizes[:, None]).astype(np.int8)
            queries = Queries(self._people.ids, matrix, Subsets())
            try:
                seen = [Transcript.of(queries, self.answers(queries))]
            except TargetError as error:
                # Lists so short are refused, which tells nothing of others.
                return None, str(error)
        elif "tables" in answered:
            seen = self.cells
        else:
            return None, None
        counts = np.concatenate([each.queries.dot(np.ones(len(self._people))) for each in seen])
        values = np.concatenate([each.values for each in seen])
        missing = np.isnan(values)
        unseen = missing | (values == 0)
        hidden = _largest_hidden(counts, unseen)
        if hidden is None:
            return None, None
        below = unseen & (counts <= hidden)
        if not missing[below].all():
            how = AS_ZERO
        elif self.questions.nulls:
            how = "answered NULL"
        else:
            how = "not answered" if "subsets" in answered else "left out of tables"
        return hidden, how


def _largest_hidden(counts: NDArray[np.float64], unseen: NDArray[np.bool_]) -> int | None:
    """The largest size of a set that is unseen, half or more, as all smaller ones are."""
    hidden = 0
    for size in np.unique(counts[counts > 0]).tolist():
        if unseen[counts == size].mean() < HALF:
            break
        hidden = int(size)
    # Where many large ones are 0 as well, it is the noise.
    large = unseen[counts > hidden]
    return hidden if hidden >= 2 and large.size and large.mean() < SELDOM else None
