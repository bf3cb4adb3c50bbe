"""A session: what a connected client's statements do, whatever protocol carries them.

All of it is synchronous; a connection runs it in the thread of its database.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp

from countleak.diffix.engine import Engine
from countleak.diffix.layers import STAR
from countleak.diffix.server import settings
from countleak.diffix.server.databases import Served
from countleak.diffix.server.failures import IN_FAILED_TRANSACTION, TOO_MUCH, Failure
from countleak.diffix.server.parameters import OF_KIND, put_in, types_of
from countleak.diffix.server.statements import Control, Lookup, Question, read, split
from countleak.diffix.server.statements import Kind as StatementKind
from countleak.diffix.server.values import FLOAT8, INT8, TEXT, Field, Parameter, Type
from countleak.diffix.sql.parse import parse
from countleak.diffix.sql.shapes import KEPT, lift
from countleak.diffix.sql.statement import Aggregate, Column, Expression, Kind
from countleak.errors import Refused, TargetError

EVERY = "*"
IDLE, IN_TRANSACTION, FAILED = "I", "T", "E"


@dataclass(frozen=True)
class Prepared:
    """A statement that was understood: the types of its parameters, and what comes back."""

    statement: StatementKind
    types: tuple[int, ...]
    fields: tuple[Field, ...] | None


@dataclass(frozen=True)
class Result:
    """Rows under their fields (or none), what was done, and what else the client is told."""

    tag: str
    fields: tuple[Field, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[str, ...] = ()
    # Settings whose new values a client wants to hear of.
    changed: dict[str, str] = field(default_factory=dict)
    # The prepared statement that is to be forgotten, or every one.
    forgotten: str | None = None


class Session:
    """What a client has set, and whether it is in a transaction."""

    def __init__(self, served: Served, user: str, given: dict[str, str]):
        """Begin a session of a user on a database; ``given`` are settings to begin with."""
        self.served = served
        self.user = user
        self.settings = settings.Settings(user, given)
        self.status = IDLE
        self._of_shape = lru_cache(maxsize=KEPT)(self._plain_question)

    def is_one(self, text: str) -> bool:
        """Whether a text is plainly one statement, and needs no splitting."""
        return ";" not in text and not text.isspace() and bool(text) and lift(text) is not None

    def split(self, text: str) -> list[str]:
        """The statements of a text."""
        if len(text) > self.served.limits.query_length:
            raise Failure(
                TOO_MUCH,
                f"The query has {len(text)} characters; at most {self.served.limits.query_length} "
                "are read.",
            )
        return split(text)

    def prepare(self, text: str, types: Sequence[int] = ()) -> Prepared | None:
        """A statement understood, but not run; None where the text is empty."""
        lifted = None if types else lift(text)
        plain = self._of_shape(lifted[0]) if lifted else None
        if plain is not None and isinstance(plain.statement, Question):
            return replace(plain, statement=replace(plain.statement, text=text))
        return self._understand(text, types)

    def _plain_question(self, text: str) -> Prepared | None:
        """What all questions of a shape have in common; None where constants show in more."""
        try:
            prepared = self._understand(text)
        except TargetError:
            # Whatever is wrong is told of the question itself, not of its shape.
            return None
        if prepared is None or not isinstance(prepared.statement, Question) or prepared.types:
            return None
        tree = prepared.statement.tree
        as_written = prepared.statement.text == text
        return prepared if as_written and not tree.args.get("group") else None

    def _understand(self, text: str, types: Sequence[int] = ()) -> Prepared | None:
        pieces = self.split(text)
        if not pieces:
            return None
        if len(pieces) > 1:
            raise Refused(f"There are {len(pieces)} statements; write one.")
        statement = read(pieces[0], self.served.engines)
        match statement:
            case Control():
                return Prepared(statement, (), self.settings.fields(statement.words))
            case Question(tree, engine):
                found = types_of(tree, types, engine.database.table)
                return Prepared(statement, found, _fields(tree, engine))
            case Lookup(tree):
                found = types_of(tree, types, None)
                nothing = put_in(tree, [None] * len(found), casts=True)
                return Prepared(statement, found, self.served.catalogue.fields(nothing, self.user))

    def run(self, prepared: Prepared, values: Sequence[Parameter] = ()) -> Result:
        """What a statement returns."""
        if self.status == FAILED and not _ends_transaction(prepared.statement):
            raise Failure(
                IN_FAILED_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )
        match prepared.statement:
            case Control() as statement:
                return self._control(statement, prepared.fields)
            case Question(tree, engine, text):
                sql = put_in(tree, values).sql(dialect="postgres") if prepared.types else text
                answer = self.served.ask(engine, self.user, sql)
                fields = prepared.fields or ()
                rows = [_without_stars(row.values, fields) for row in answer.rows]
                return Result(f"SELECT {len(rows)}", fields, rows, answer.notices)
            case Lookup(tree):
                fields, rows = self.served.catalogue.rows(
                    put_in(tree, values, casts=True), self.user
                )
                return Result(f"SELECT {len(rows)}", fields, rows)

    def fail(self) -> None:
        """A statement failed: a transaction that is open waits for its end."""
        if self.status == IN_TRANSACTION:
            self.status = FAILED

    def _control(self, statement: Control, fields: tuple[Field, ...] | None) -> Result:
        words = statement.words
        match words:
            case ("begin", *_) | ("start", *_):
                self.status = IN_TRANSACTION
                return Result("BEGIN")
            case ("rollback", "to", *_):
                self.status = IN_TRANSACTION
                return Result("ROLLBACK")
            case ("commit" | "end", *_) | ("rollback" | "abort", *_):
                undone = self.status == FAILED or words[0] in ("rollback", "abort")
                self.status = IDLE
                return Result("ROLLBACK" if undone else "COMMIT")
            case ("show", *name):
                rows = self.settings.show(name)
                return Result("SHOW", fields, rows)
            case ("set", *_):
                return Result("SET", changed=self.settings.set(statement.written[1:]))
            case ("reset", *rest):
                return Result("RESET", changed=self.settings.reset(rest))
            case ("discard", "all", *_):
                changed = self.settings.reset(["all"])
                return Result("DISCARD ALL", changed=changed, forgotten=EVERY)
            case ("deallocate", "all") | ("deallocate", "prepare", "all"):
                return Result("DEALLOCATE ALL", forgotten=EVERY)
            case ("deallocate", *_):
                return Result("DEALLOCATE", forgotten=statement.written[-1])
            case _:
                return Result(words[0].upper())


def _ends_transaction(statement: StatementKind) -> bool:
    ends = ("commit", "end", "rollback", "abort")
    return isinstance(statement, Control) and statement.words[0] in ends


def _fields(tree: exp.Expression, engine: Engine) -> tuple[Field, ...]:
    """The columns of the answer to a question, whatever its conditions say."""
    bare = tree.copy()
    bare.set("where", None)
    statement = parse(bare.sql(dialect="postgres"), engine.database.table)
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
