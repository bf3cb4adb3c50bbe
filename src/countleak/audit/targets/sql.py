"""A query as the SQL that is sent, built from its parameters for every system that takes SQL."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import are_integers
from countleak.attack.queries.tables import Statement, statements_of
from countleak.attack.secrets import Number, Secret
from countleak.attack.transcript import Answers
from countleak.audit.targets.pool import Question
from countleak.diffix.sql.statement import snap
from countleak.errors import InputError
from countleak.foreign import clean

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class System:
    """What a system makes of SQL: whether it snaps ranges, and as what it answers what it hides.

    Where ranges are snapped they also end before their upper bound.
    """

    name: str
    snaps: bool
    suppressed_as: float | None

    @property
    def hides(self) -> bool:
        """Whether low counts are not answered."""
        return self.suppressed_as is not None


# A count that Diffix releases is at least 2, so 0 says that it was suppressed.
DIFFIX = System("diffix", snaps=True, suppressed_as=0.0)
# A database counts: 0 is nobody, and BETWEEN holds both its bounds.
PLAIN = System("plain", snaps=False, suppressed_as=None)
SYSTEMS = {system.name: system for system in (DIFFIX, PLAIN)}


@dataclass(frozen=True)
class SqlQuestions:
    """Questions about a table's people in SQL: counts of a secret, or sums of a number.

    ``key`` are the id columns. People are counted within the range of ids that are asked about;
    where a system snaps ranges, others in the snapped range are counted too, so attack them all.
    """

    table: str
    key: tuple[str, ...]
    secret: Secret | None = None
    system: System = DIFFIX
    dialect: str = "postgres"

    def __post_init__(self) -> None:
        if not self.table or not self.key or not all(self.key):
            raise InputError("a table or an id column has no name; give it one")

    @property
    def about(self) -> str:
        """What is asked, in words."""
        what = "people" if self.secret is None else str(self.secret)
        return f"{what} of {self.table} by {', '.join(self.key)}"

    def asked(self, queries: Queries, positions: NDArray[np.int64]) -> list[Question]:
        """The questions at some positions."""
        names = () if self.secret is None else self.secret.names
        questions = []
        for position in positions.tolist():
            value, row = divmod(position, len(queries))
            about = f" about {clean(names[value])}" if names else ""
            text = self.statement(queries, position)
            questions.append(Question(position, f"query {row}{about}", text))
        return questions

    def by_tables(
        self, queries: Queries, positions: NDArray[np.int64]
    ) -> Iterator[tuple[Statement, str]]:
        """The tables that cells at some positions belong to, each with its SQL.

        No range of ids is asked about: a table is of everyone.
        """
        from sqlglot import exp

        for table in statements_of(queries, positions):
            grouped = [grouping.expression() for grouping in table.groupings]
            select = exp.select(*grouped, self._aggregate.copy()).from_(self._table.copy())
            if (condition := self._condition(int(table.positions[0]) // len(queries))) is not None:
                select = select.where(condition)
            numbers = [exp.convert(place) for place in range(1, len(grouped) + 1)]
            yield table, select.group_by(*numbers).sql(dialect=self.dialect, identify=True)

    def counted(self, table: Statement, rows: Iterable[Sequence[Any]]) -> Answers:
        """The cells of a table as its rows tell them, a count behind its groups in each.

        A cell without a row is empty, or suppressed where the system hides low counts. Rows of no
        cell, such as those that suppressed ones were merged into, are left out.
        """
        missing = np.nan if self.system.hides else 0.0
        values = dict.fromkeys(table.positions.tolist(), missing)
        for *shown, count in rows:
            position = table.at(shown)
            if position is not None and count is not None:
                values[position] = float(count)
        counts = np.array(list(values.values()))
        return Answers(np.array(list(values)), counts, ~np.isnan(counts))

    def _condition(self, value: int) -> "exp.Expr | None":
        if self.secret is None or (condition := self.secret.conditions[value]) is None:
            return None
        return condition.expression()

    def statement(self, queries: Queries, position: int) -> str:
        """The SQL of the question at a position."""
        from sqlglot import exp

        value, row = divmod(position, len(queries))
        conditions = [queries.predicate(row, self.key)]
        if (condition := self._condition(value)) is not None:
            conditions.append(condition)
        if not queries.family.explicit and len(self.key) == 1 and are_integers(queries.ids):
            conditions.append(self._range(queries))
        select = exp.select(self._aggregate.copy()).from_(self._table.copy()).where(*conditions)
        return select.sql(dialect=self.dialect, identify=True)

    @cached_property
    def _table(self) -> "exp.Expr":
        from sqlglot import exp, parse_one
        from sqlglot.errors import SqlglotError

        try:
            table = parse_one(self.table, into=exp.Table, dialect=self.dialect)
        except SqlglotError:
            table = None
        # A dot parts schema and table; whatever else is more than names is one name.
        if table is None or not all(
            isinstance(part, exp.Identifier) for part in table.args.values() if part
        ):
            return exp.Table(this=exp.to_identifier(self.table, quoted=True))
        return table

    @cached_property
    def _aggregate(self) -> "exp.Expr":
        from sqlglot import exp

        if isinstance(self.secret, Number):
            return exp.Sum(this=exp.column(self.secret.column, quoted=True))
        columns = [exp.column(name, quoted=True) for name in self.key]
        counted = columns[0] if len(columns) == 1 else exp.Tuple(expressions=columns)
        return exp.Count(this=exp.Distinct(expressions=[counted]))

    def _range(self, queries: Queries) -> "exp.Expr":
        from countleak.attack.queries.predicates import is_between

        low, high = int(queries.ids.min()), int(queries.ids.max())
        if self.system.snaps:
            snapped = snap(Fraction(low), Fraction(high + 1))
            low, high = int(snapped[0]), int(snapped[1])
        return is_between(self.key[0], low, high)
