"""A query as the SQL that is sent, built from its parameters for every system that takes SQL."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.hashed import TABLE
from countleak.attack.queries.ids import Id, are_integers, id_list
from countleak.attack.queries.tables import Statement, Tables, statements_of
from countleak.attack.secrets import Number, Secret
from countleak.attack.transcript import LARGEST, Answers
from countleak.audit.targets.pool import Question
from countleak.diffix.sql.statement import snap
from countleak.errors import InputError, NoCount
from countleak.foreign import clean, first_line

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class System:
    """What a system makes of SQL: whether it snaps ranges, and whether it ``hides`` low counts.

    Where ranges are snapped they also end before their upper bound. What is hidden may be answered
    as a count, ``suppressed_as``; it has no row in a table.
    """

    name: str
    snaps: bool
    suppressed_as: float | None
    hides: bool


# A count that Diffix releases is at least 2, so 0 says that it was suppressed.
DIFFIX = System("diffix", snaps=True, suppressed_as=0.0, hides=True)
# A database counts: 0 is nobody, and BETWEEN holds both its bounds.
PLAIN = System("plain", snaps=False, suppressed_as=None, hides=False)
SYSTEMS = {system.name: system for system in (DIFFIX, PLAIN)}


@dataclass(frozen=True)
class CountSql:
    """A statement of one's own that counts, like ``SELECT noisy_count('{table}', '{condition}')``.

    ``{condition}`` stands for the condition in SQL, ``{table}`` for the table's name. Within a text
    in quotes both are escaped as such a text needs it, and the table's name stands unquoted.
    """

    text: str

    def __post_init__(self) -> None:
        if "{condition}" not in self.text:
            raise InputError(
                "the statement has no place for the condition; write {condition} there, like "
                "SELECT noisy_count('{table}', '{condition}')"
            )

    def filled(self, table: "exp.Expr", condition: str, dialect: str) -> str:
        """The statement about a table and a condition."""
        from sqlglot import exp

        texts = {
            "table": (table.sql(dialect=dialect, identify=True), table.sql(dialect=dialect)),
            "condition": (condition, condition),
        }
        parts, within = [], False
        for part in re.split(r"('|\{table\}|\{condition\})", self.text):
            within ^= part == "'"
            if part[1:-1] not in texts or not part.startswith("{"):
                parts.append(part)
                continue
            plain, quoted = texts[part[1:-1]]
            escaped = exp.Literal.string(quoted).sql(dialect=dialect)[1:-1]
            parts.append(escaped if within else plain)
        return "".join(parts)


@dataclass(frozen=True)
class Parts:
    """A question for whoever reads no SQL: the whole of it, and what it is made of.

    ``where`` is its condition in SQL, ``members`` are the ids that it is about, among those asked
    about, and ``held`` is what must hold of a member to be counted, also in SQL; None: all count.
    """

    sql: str
    where: str
    members: list[Id]
    held: str | None


@dataclass(frozen=True)
class SqlQuestions:
    """Questions about a table's people in SQL: counts of a secret, or sums of a number.

    ``key`` are the id columns, ``dialect`` is what sqlglot calls the system's SQL; a ``template``
    asks a function or view of the system's own instead of counting rows. Where a system
    ``takes_tables``, all cells of one are asked for at once. People are counted within
    the range of ids that are asked about; where a system snaps ranges, others in the snapped range
    are counted too, so attack them all.
    """

    table: str
    key: tuple[str, ...]
    secret: Secret | None = None
    system: System = DIFFIX
    dialect: str = "postgres"
    template: CountSql | None = None
    takes_tables: bool = True

    def __post_init__(self) -> None:
        if not self.table or not self.key or not all(self.key):
            raise InputError("a table or an id column has no name; give it one")

    @property
    def about(self) -> str:
        """What is asked, in words."""
        what = "people" if self.secret is None else str(self.secret)
        return f"{what} of {self.table} by {', '.join(self.key)}"

    def asked(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Question[str]]:
        """The questions at some positions, each made when it is wanted; a table is one."""
        if self.whole_tables and isinstance(queries.family, Tables):
            for table, text in self.by_tables(queries, positions):
                about = " by ".join(["table", *map(str, table.groupings)])
                read = partial(self.counted, table)
                yield Question(int(table.positions[0]), about, text, read)
            return
        from countleak.audit.targets.rendering import Statements

        statements = Statements(self, queries)
        for position in positions.tolist():
            yield Question(position, self.name(queries, position), statements.at(position))

    def asked_in_parts(
        self, queries: Queries, positions: NDArray[np.int64]
    ) -> Iterator[Question[Parts]]:
        """The same for whoever reads no SQL."""
        for position in positions.tolist():
            yield Question(position, self.name(queries, position), self.parts_of(queries, position))

    def name(self, queries: Queries, position: int) -> str:
        """What to call the question at a position."""
        value, row = divmod(position, len(queries))
        names = () if self.secret is None else self.secret.names
        return f"query {row}" + (f" about {clean(names[value])}" if names else "")

    @property
    def whole_tables(self) -> bool:
        """Whether all cells of a table are asked for at once."""
        return self.takes_tables and self.template is None

    def by_tables(
        self, queries: Queries, positions: NDArray[np.int64]
    ) -> Iterator[tuple[Statement, str]]:
        """The tables that cells at some positions belong to, each with its SQL.

        No range of ids is asked about: a table is of everyone.
        """
        from sqlglot import exp

        from countleak.audit.targets.dialects import grouped_by

        for table in statements_of(queries, positions):
            grouped = [grouping.expression() for grouping in table.groupings]
            condition = self._condition(int(table.positions[0]) // len(queries))
            where = exp.true() if condition is None else condition
            select = grouped_by(grouped, self._aggregate, self.parsed_table, where, self.dialect)
            yield table, self._in_sql(select)

    def counted(self, table: Statement, rows: Iterable[Sequence[Any]]) -> Answers:
        """The cells of a table as its rows tell them, a count behind its groups in each.

        A cell without a row is empty, or suppressed where the system hides low counts.
        """

        def told() -> Iterator[tuple[Sequence[Any], float]]:
            for row in rows:
                if len(row) != len(table.groupings) + 1:
                    raise NoCount(f"a row of {len(row)} values; check that it counts")
                count = self.count_of(row[-1])
                if count is not None and not abs(count) < LARGEST:
                    raise NoCount(f"the answer is {count:g}, no count of people")
                yield row[:-1], np.nan if count is None else count

        values = dict.fromkeys(table.positions.tolist(), np.nan if self.system.hides else 0.0)
        counts = np.array(list((values | table.read(told())).values()))
        return Answers(np.array(list(values)), counts, ~np.isnan(counts))

    def _condition(self, value: int) -> "exp.Expr | None":
        if self.secret is None or (condition := self.secret.conditions[value]) is None:
            return None
        return condition.expression()

    def statement(self, queries: Queries, position: int) -> str:
        """The SQL of the question at a position."""
        from countleak.audit.targets.dialects import select

        where = self._where(queries, position)
        if self.template is not None:
            return self.template.filled(self.parsed_table, self._in_sql(where), self.dialect)
        return self._in_sql(select(self._aggregate, self.parsed_table, where, self.dialect))

    def parts_of(self, queries: Queries, position: int) -> Parts:
        """The question at a position in parts."""
        value, row = divmod(position, len(queries))
        held = None if self.secret is None else self.secret.conditions[value]
        return Parts(
            self.statement(queries, position),
            self._in_sql(self._where(queries, position)),
            id_list(queries.ids[queries.members(row)]),
            None if held is None else self._in_sql(held.expression()),
        )

    def count_of(self, value: object) -> float | None:
        """The count that a driver returns as a Python value; None where it says: suppressed."""
        if value is None:
            return self.count_of_nothing
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            shown = first_line(repr(value)[:100])
            raise NoCount(f"the answer {shown} is no count; check that it counts")
        try:
            count = float(value)
        except OverflowError:
            raise NoCount("the answer has hundreds of digits; check that it counts") from None
        return None if count == self.system.suppressed_as else count

    @property
    def count_of_nothing(self) -> float | None:
        """What NULL means: no database counts so, but sums nobody's numbers; else it is hidden."""
        return 0.0 if isinstance(self.secret, Number) and not self.system.hides else None

    def _where(self, queries: Queries, position: int) -> "exp.Expr":
        from sqlglot import exp

        from countleak.audit.targets.dialects import spelled

        value, row = divmod(position, len(queries))
        predicate = spelled(queries.predicate(row, self.key), self.dialect)
        conditions = [
            predicate.transform(self._with_table) if predicate.find(exp.Table) else predicate
        ]
        if (condition := self._condition(value)) is not None:
            conditions.append(condition)
        if not queries.family.explicit and len(self.key) == 1 and are_integers(queries.ids):
            conditions.append(self._range(queries))
        return exp.and_(*conditions, copy=False)

    def _with_table(self, node: "exp.Expr") -> "exp.Expr":
        """The table's own name where a condition speaks of the table itself."""
        from sqlglot import exp

        itself = isinstance(node, exp.Table) and node.name == TABLE
        return self.parsed_table.copy() if itself else node

    def _in_sql(self, expression: "exp.Expr") -> str:
        return expression.sql(dialect=self.dialect, identify=True)

    @cached_property
    def parsed_table(self) -> "exp.Expr":
        """The table as SQL names it."""
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
