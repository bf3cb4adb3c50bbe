"""What statements do to a database: understood, described, run, and a line about each question.

This is the work of a worker. It holds nothing of a client's: any worker can run any statement.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

from sqlglot import exp

from countleak.diffix.engine import Answer, Engine
from countleak.diffix.server.control import COMMANDS, Control
from countleak.diffix.server.errors import IN_FAILED_TRANSACTION, TOO_MUCH, Failure, one_line
from countleak.diffix.server.options import Limits
from countleak.diffix.server.parameters import OF_KIND, Parameter, put_in, types_of
from countleak.diffix.server.pg_catalog.catalog import PgCatalog, is_of_catalog
from countleak.diffix.server.requests import Ask, Describe, Description, Ran, Request, Run
from countleak.diffix.server.results import FLOAT8, INT8, TEXT, Field, Result, Type, write_rows
from countleak.diffix.sql.parser import Source, read_statement, split
from countleak.diffix.sql.sources import SCHEMA
from countleak.diffix.sql.statement import Aggregate, Column, Expression, Kind, Statement
from countleak.errors import Refused, TargetError

# Words of a statement about the session; drivers' own have about ten.
MOST_WORDS = 300
# Characters of described statements, and their parameters, that are kept understood; a tree is some
# 50 times as large.
KEPT_CHARACTERS = 500_000
# Bytes of an answer.
MOST_BYTES = 16_000_000


@dataclass(frozen=True)
class Question:
    """A question for an engine: read, or refused, or a tree whose parameters have no values yet."""

    engine: Engine
    text: str
    statement: Statement | Refused | exp.Expr

    def filled(self, values: Sequence[Parameter]) -> "Question":
        """The question with the values of its parameters."""
        if not isinstance(self.statement, exp.Expr):
            return self
        tree = put_in(self.statement, values)
        return Question.of_tree(self.engine, tree.sql(dialect="postgres"), tree)

    @classmethod
    def of_tree(cls, engine: Engine, text: str, tree: exp.Expr) -> "Question":
        """The question of a parsed tree without parameters."""
        try:
            return cls(engine, text, engine.read(tree))
        except Refused as refusal:
            # Its columns are known all the same; clients hear of this when it is run.
            return cls(engine, text, refusal)


@dataclass(frozen=True)
class Lookup:
    """A look-up in the catalog, or an expression over no table."""

    tree: exp.Expr


@dataclass(frozen=True)
class Prepared:
    """A statement that was understood: the types of its parameters, and what comes back."""

    statement: Control | Question | Lookup
    types: tuple[int, ...] = ()
    fields: tuple[Field, ...] | None = None


class Statements:
    """The statements of all clients to a database by its name."""

    def __init__(self, name: str, engine: Engine, limits: Limits, users: Iterable[str] = ()):
        """Ask the ``engine``; ``users`` are named in the catalog."""
        self.engine = engine
        self.catalog = PgCatalog(name, engine.database.tables, users)
        # What the log should hold about the latest request, if it asked a question.
        self.line: str | None = None
        self._name, self._limits = name, limits
        self._kept: OrderedDict[tuple[str, tuple[int, ...]], Prepared] = OrderedDict()
        self._kept_characters = 0

    @property
    def usable(self) -> bool:
        """Whether the database can be asked again."""
        return self.engine.database.usable

    def answer(self, request: Request) -> object:
        """What a request is answered by; see there."""
        self.line = None
        match request:
            case Describe():
                return self.describe(request)
            case Run():
                return self.run(request)
            case Ask():
                return self.ask(request)

    def describe(self, request: Describe) -> Description | None:
        """What a statement takes and returns; None where the text is empty."""
        prepared = self._one(request.user, request.text, request.types)
        if prepared is None:
            return None
        if isinstance(prepared.statement, Control):
            return Description(control=prepared.statement)
        return Description(prepared.types, prepared.fields)

    def run(self, request: Run) -> Ran:
        """What the first statement of a text returns, and the texts of the others."""
        kept = self._kept.get((request.text, request.types))
        if kept is not None:
            return Ran(self._run(kept, request))
        sources = self._split(request.text)
        if not sources:
            return Ran(None)
        prepared = self._understood(sources[0], request.types, request.user)
        if prepared.types and not request.values:
            raise Failure("42P02", "there is no parameter $1")
        return Ran(self._run(prepared, request), tuple(source.text for source in sources[1:]))

    def ask(self, request: Ask) -> bytes:
        """The answer to a question in JSON."""
        sources = self._split(request.text)
        if len(sources) > 1:
            raise Refused(f"There are {len(sources)} statements; write one.")
        prepared = self._understood(sources[0], (), request.user) if sources else None
        if prepared is None or not isinstance(prepared.statement, Question) or prepared.types:
            raise Refused("Only SELECT statements over one table are answered.")
        answer = self._answer(request.user, prepared.statement)
        rows = [{"row": list(map(_plain, r.values)), "released": r.released} for r in answer.rows]
        content = {"columns": answer.columns, "rows": rows, "error": None}
        written = json.dumps({**content, "notices": answer.notices}, ensure_ascii=False).encode()
        _check_size(len(written))
        return written

    def _one(self, user: str, text: str, types: tuple[int, ...]) -> Prepared | None:
        """The one statement of a text, understood, and kept to be run."""
        if kept := self._kept.get((text, types)):
            self._kept.move_to_end((text, types))
            return kept
        sources = self._split(text)
        if not sources:
            return None
        if len(sources) > 1:
            raise Refused(f"There are {len(sources)} statements; write one.")
        prepared = self._understood(sources[0], types, user)
        self._kept[text, types] = prepared
        self._kept_characters += len(text) + len(prepared.types)
        while self._kept_characters > KEPT_CHARACTERS:
            (oldest, _), forgotten = self._kept.popitem(last=False)
            self._kept_characters -= len(oldest) + len(forgotten.types)
        return prepared

    def _run(self, prepared: Prepared, request: Run) -> Result | Control:
        statement, fields = prepared.statement, prepared.fields or ()
        ends = isinstance(statement, Control) and statement.ends_transaction
        if request.failed and not ends:
            raise Failure(
                IN_FAILED_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )
        match statement:
            case Control():
                return statement
            case Question():
                answer = self._answer(request.user, statement.filled(request.values))
                values: Sequence[Sequence[Any]] = [row.values for row in answer.rows]
                notices = answer.notices
            case Lookup(tree):
                filled = put_in(tree, request.values, casts=True)
                fields, values = self.catalog.rows(filled, request.user)
                notices = ()
        rows = write_rows(values, fields, request.formats)
        _check_size(sum(map(len, rows)))
        return Result(f"SELECT {len(rows)}", fields, rows, notices)

    def _answer(self, user: str, question: Question) -> Answer:
        """The answer to a question, and a line for the log."""
        start, outcome = perf_counter(), "failed"
        try:
            self._check_length(question.text)
            if not isinstance(question.statement, Statement):
                raise Refused(str(question.statement))
            answer = question.engine.ask(question.statement)
            if len(answer.rows) > self._limits.rows:
                raise Failure(
                    TOO_MUCH,
                    f"The answer has more than {self._limits.rows} rows; group more coarsely.",
                )
            outcome = _outcome(answer)
            return answer
        except TargetError as error:
            outcome = f"refused: {error}"
            raise
        finally:
            spent, text = 1000 * (perf_counter() - start), one_line(question.text)
            self.line = f"{user}@{self._name}: {one_line(outcome)}: {text}, {spent:.1f} ms"

    def _check_length(self, text: str) -> None:
        longest = self._limits.query_length
        if len(text) > longest:
            raise Failure(
                TOO_MUCH, f"The query has {len(text)} characters; at most {longest} are read."
            )

    def _split(self, text: str) -> list[Source]:
        self._check_length(text)
        return split(text)

    def _understood(self, source: Source, types: Sequence[int], user: str) -> Prepared:
        if source.words and source.words[0].upper() in COMMANDS:
            if len(source.words) > MOST_WORDS:
                raise Refused(f"{source.words[0].upper()}: at most {MOST_WORDS} words are read.")
            return Prepared(Control(source.words))
        with source.tree() as tree:
            if self._is_lookup(tree):
                return self._lookup(tree.copy(), types, user)
            # A cached shape has no parameters.
            tables = self.engine.database.tables
            inferred = types_of(tree, types, tables) if not source.shape else ()
            if inferred:
                question = Question(self.engine, source.text, tree.copy())
            else:
                question = Question.of_tree(self.engine, source.text, tree)
            return Prepared(question, inferred, _fields(question, tree))

    def _is_lookup(self, tree: exp.Expr) -> bool:
        """Whether a statement is a look-up in the catalog, and asks no table of ours."""
        tables = {table.name.lower() for table in self.engine.database.tables}
        own = {cte.alias.lower() for cte in tree.ctes} if isinstance(tree, exp.Query) else set()
        others = []
        for table in tree.find_all(exp.Table):
            name, schema = table.name.lower(), table.db.lower()
            if not schema and name in own:
                continue
            if name in tables and schema in ("", SCHEMA):
                return False
            others.append(table)
        return isinstance(tree, exp.Query) and all(map(is_of_catalog, others))

    def _lookup(self, tree: exp.Expr, types: Sequence[int], user: str) -> Prepared:
        inferred = types_of(tree, types, ())
        nothing = put_in(tree, [None] * len(inferred), casts=True)
        return Prepared(Lookup(tree), inferred, self.catalog.fields(nothing, user))


def _fields(question: Question, tree: exp.Expr) -> tuple[Field, ...]:
    """The columns of the answer to a question, whatever its conditions say."""
    statement = question.statement
    if not isinstance(statement, Statement):
        statement = read_statement(tree, question.engine.reader, where=False)
    every = [
        Field(n, _of_group(g)) for n, g in zip(statement.labels, statement.groups, strict=True)
    ]
    every += [Field(a.label, _of_aggregate(a)) for a in statement.aggregates]
    return tuple(every[at] for at in statement.shown)


def _of_group(group: Expression) -> Type:
    if isinstance(group, Column):
        return OF_KIND[group.kind]
    return FLOAT8 if group.kind.numeric else TEXT


def _of_aggregate(aggregate: Aggregate) -> Type:
    whole = aggregate.column is not None and aggregate.column.kind is Kind.WHOLE
    if aggregate.function == "count" or (aggregate.function == "sum" and whole):
        return INT8
    return FLOAT8


def _plain(value: Any) -> Any:
    """A value as JSON has it; whatever is not a number or a text is written as text."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return value if isinstance(value, int | str | bool | None) else str(value)


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise Failure(TOO_MUCH, f"The answer has more than {MOST_BYTES} bytes; select less.")


def _outcome(answer: Answer) -> str:
    released = sum(row.released for row in answer.rows)
    if released == len(answer.rows) == 1:
        return "released"
    if not released:
        return "suppressed"
    return f"released {released} of {len(answer.rows)} rows"
