"""A database that is served, and the sessions of its clients, whatever protocol carries them.

Engines are synchronous. Each database has one thread, so that its answers come in order and the
loop that serves connections is never held up; a session's statements run in that thread.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any, ParamSpec, TypeVar

from sqlglot import exp

from countleak.diffix.engine import Answer, Engine
from countleak.diffix.noise import STAR
from countleak.diffix.server.control import COMMANDS, FAILED, Control, State
from countleak.diffix.server.errors import CANCELLED, IN_FAILED_TRANSACTION, TOO_MUCH, Failure
from countleak.diffix.server.options import Limits
from countleak.diffix.server.parameters import OF_KIND, Parameter, put_in, types_of
from countleak.diffix.server.pg_catalog.catalog import PgCatalog, is_of_catalog
from countleak.diffix.server.results import FLOAT8, INT8, TEXT, Field, Result, Type
from countleak.diffix.sql.parser import SCHEMA, Source, read_statement, split
from countleak.diffix.sql.statement import Aggregate, Column, Expression, Kind, Statement
from countleak.errors import Refused, TargetError

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger(__name__)
INTERRUPT_SECONDS = 0.1


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
    types: tuple[int, ...]
    fields: tuple[Field, ...] | None


class Served:
    """A database by its name, with an engine per table."""

    def __init__(
        self, name: str, engines: Sequence[Engine], limits: Limits, users: Iterable[str] = ()
    ):
        """Serve the tables of ``engines``; ``users`` are named in the catalog."""
        self.name = name
        self.engines = {engine.database.table.name.lower(): engine for engine in engines}
        self.catalog = PgCatalog(name, [engine.database.table for engine in engines], users)
        self.limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"database {name}")
        self._lock = threading.Lock()
        self._running: object = None

    def check_length(self, text: str) -> None:
        """Refuse a text that is too long to be read."""
        longest = self.limits.query_length
        if len(text) > longest:
            raise Failure(
                TOO_MUCH, f"The query has {len(text)} characters; at most {longest} are read."
            )

    def ask(self, user: str, question: Question) -> Answer:
        """The answer to a question, and a line in the log; call it in the database's thread."""
        start = perf_counter()
        outcome = "failed"
        try:
            self.check_length(question.text)
            if not isinstance(question.statement, Statement):
                raise Refused(str(question.statement))
            answer = question.engine.ask(question.statement)
            if len(answer.rows) > self.limits.rows:
                raise Failure(
                    TOO_MUCH,
                    f"The answer has more than {self.limits.rows} rows; group more coarsely.",
                )
            outcome = _outcome(answer)
            return answer
        except TargetError as error:
            outcome = f"refused: {error}"
            raise
        finally:
            spent, text = 1000 * (perf_counter() - start), one_line(question.text)
            log.info("%s@%s: %s: %s, %.1f ms", user, self.name, one_line(outcome), text, spent)

    async def run(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """What ``work`` returns, done in the database's thread within the time limit."""
        job = object()
        future = self._thread.submit(self._do, job, lambda: work(*args, **named))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds)
        except RecursionError:
            raise Failure("54001", "The query is nested too deeply.") from None
        except TimeoutError:
            raise Failure(
                CANCELLED, f"There was no answer within {self.limits.seconds:g} seconds."
            ) from None
        finally:
            if not future.done():
                asyncio.get_running_loop().run_in_executor(None, self._interrupt, job)

    def close(self) -> None:
        """Let the thread end when it is done with what it does."""
        self._interrupt(self._running)
        self._thread.shutdown(cancel_futures=True)

    def _do(self, job: object, work: Callable[[], T]) -> T:
        with self._lock:
            self._running = job
        try:
            return work()
        finally:
            with self._lock:
                self._running = None

    def _interrupt(self, job: object) -> None:
        """Stop the database as long as it works on that job: nobody waits for it."""
        while True:
            with self._lock:
                if job is None or self._running is not job:
                    return
                self.catalog.interrupt()
                for engine in self.engines.values():
                    engine.database.interrupt()
            # A job is many statements, and one that has not begun does not hear of it.
            sleep(INTERRUPT_SECONDS)


class Session:
    """A user's statements to a database, one after the other."""

    def __init__(self, served: Served, user: str, given: dict[str, str]):
        """Begin a session of a user on a database; ``given`` are settings to begin with."""
        self.served = served
        self.user = user
        self.state = State(user, given)

    def results(self, text: str) -> Iterator[tuple[Result, bool]]:
        """What each statement of a text returns, run when taken, and whether more follow."""
        sources = self._split(text)
        for number, source in enumerate(sources, 1):
            prepared = self._understood(source, ())
            if prepared.types:
                raise Failure("42P02", "there is no parameter $1")
            yield self.run(prepared), number < len(sources)

    def prepare(self, text: str, types: Sequence[int] = ()) -> Prepared | None:
        """A statement understood, but not run; None where the text is empty."""
        sources = self._split(text)
        if not sources:
            return None
        if len(sources) > 1:
            raise Refused(f"There are {len(sources)} statements; write one.")
        return self._understood(sources[0], types)

    def run(self, prepared: Prepared, values: Sequence[Parameter] = ()) -> Result:
        """What a statement returns."""
        statement, fields = prepared.statement, prepared.fields or ()
        ends = isinstance(statement, Control) and statement.ends_transaction
        if self.state.status == FAILED and not ends:
            raise Failure(
                IN_FAILED_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )
        match statement:
            case Control():
                return self.state.run(statement)
            case Question():
                answer = self.served.ask(self.user, statement.filled(values))
                rows = [_without_stars(row.values, fields) for row in answer.rows]
                return Result(f"SELECT {len(rows)}", fields, rows, answer.notices)
            case Lookup(tree):
                filled = put_in(tree, values, casts=True)
                fields, rows = self.served.catalog.rows(filled, self.user)
                return Result(f"SELECT {len(rows)}", fields, rows)

    def _split(self, text: str) -> list[Source]:
        self.served.check_length(text)
        return split(text)

    def _understood(self, source: Source, types: Sequence[int]) -> Prepared:
        if source.words and source.words[0].upper() in COMMANDS:
            control = Control(source.words)
            return Prepared(control, (), self.state.fields(control))
        with source.tree() as tree:
            engine = self._engine(tree)
            if engine is None:
                return self._lookup(tree.copy(), types)
            # A cached shape has no parameters.
            inferred = types_of(tree, types, engine.database.table) if not source.shape else ()
            if inferred:
                question = Question(engine, source.text, tree.copy())
            else:
                question = Question.of_tree(engine, source.text, tree)
            return Prepared(question, inferred, _fields(question, tree))

    def _engine(self, tree: exp.Expr) -> Engine | None:
        """The engine that is asked; None for a look-up in the catalog."""
        engines = self.served.engines
        own = {cte.alias.lower() for cte in tree.ctes} if isinstance(tree, exp.Query) else set()
        others = []
        for table in tree.find_all(exp.Table):
            name, schema = table.name.lower(), table.db.lower()
            if not schema and name in own:
                continue
            if name in engines and schema in ("", SCHEMA):
                return engines[name]
            others.append(table)
        if isinstance(tree, exp.Query) and all(map(is_of_catalog, others)):
            return None
        return next(iter(engines.values()))

    def _lookup(self, tree: exp.Expr, types: Sequence[int]) -> Prepared:
        inferred = types_of(tree, types, None)
        nothing = put_in(tree, [None] * len(inferred), casts=True)
        return Prepared(Lookup(tree), inferred, self.served.catalog.fields(nothing, self.user))


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


def _without_stars(values: tuple[Any, ...], fields: tuple[Field, ...]) -> tuple[Any, ...]:
    """The values of a row; the star of merged groups is NULL among numbers, which have none."""
    return tuple(
        None if value == STAR and field.type is not TEXT else value
        for value, field in zip(values, fields, strict=True)
    )


def one_line(text: str, longest: int = 500) -> str:
    """What a client wrote as one line of plain characters, cut where it is long."""
    words = " ".join(text[: 2 * longest].split())
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in words)
    return line if len(line) <= longest else f"{line[:longest]}..."


def _outcome(answer: Answer) -> str:
    released = sum(row.released for row in answer.rows)
    if released == len(answer.rows) == 1:
        return "released"
    if not released:
        return "suppressed"
    return f"released {released} of {len(answer.rows)} rows"
