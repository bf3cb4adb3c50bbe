"""Extended queries: statements that are prepared, bound to values, and read through portals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pygwire import messages

from countleak.diffix.server.control import IDLE
from countleak.diffix.server.errors import NO_PORTAL, NO_STATEMENT, PROTOCOL, TOO_MUCH, Failure
from countleak.diffix.server.parameters import Parameter, read_value
from countleak.diffix.server.requests import Description
from countleak.diffix.server.results import EVERY, TEXT_FORMAT, Result
from countleak.diffix.server.session import Session

if TYPE_CHECKING:
    from countleak.diffix.server.connection import Connection

# Statements that a connection can hold, and portals; and their bytes in all, with those of names,
# and of every value, type and column whatever it is.
MOST_HELD = 1000
MOST_BYTES_HELD = 4_000_000
BYTES_OF_EACH = 16


@dataclass(frozen=True)
class Statement:
    """A statement as it was sent, with types for some parameters; None describes an empty one."""

    text: str
    given: tuple[int, ...]
    description: Description | None

    @property
    def types(self) -> tuple[int, ...]:
        """The types of its parameters."""
        return () if self.description is None else self.description.types

    @cached_property
    def size(self) -> int:
        """About how many bytes it takes."""
        fields = () if self.description is None else self.description.fields or ()
        each = len(self.given) + len(self.types) + len(fields)
        return len(self.text) + sum(len(f.name) for f in fields) + BYTES_OF_EACH * each


@dataclass
class Portal:
    """A statement with its values; once run, its result and how far it was read."""

    statement: Statement
    values: tuple[Parameter, ...]
    formats: Sequence[int]
    size: int
    result: Result | None = None
    position: int = 0


class ExtendedQueries:
    """The prepared statements and portals of a connection."""

    def __init__(self, connection: "Connection", session: Session):
        """Answer what comes over ``connection`` in ``session``."""
        self._connection = connection
        self._session = session
        self._statements: dict[str, Statement] = {}
        self._portals: dict[str, Portal] = {}

    def sync(self) -> None:
        """Portals end with their transaction."""
        if self._session.state.status == IDLE:
            self._portals.clear()

    def forget(self, name: str) -> None:
        """Drop a prepared statement, or every one."""
        if name == EVERY:
            self._statements.clear()
        else:
            self._statements.pop(name, None)

    async def take(self, message: messages.PGMessage) -> None:
        """Answer one message of an extended query."""
        match message:
            case messages.Parse():
                await self._parse(message)
            case messages.Bind():
                self._bind(message)
            case messages.Describe():
                self._describe(message)
            case messages.Execute():
                await self._execute(message)
            case messages.Close():
                held = self._statements if message.kind == "S" else self._portals
                held.pop(message.name, None)
                self._connection.send(messages.CloseComplete())
            case _:
                raise Failure(PROTOCOL, f"did not expect a {type(message).__name__} message")

    async def _parse(self, message: messages.Parse) -> None:
        if message.statement and message.statement in self._statements:
            raise Failure("42P05", f'prepared statement "{message.statement[:63]}" already exists')
        self._check_room(self._statements, len(message.statement) + len(message.query))
        given = tuple(message.param_types)
        description = await self._session.describe(message.query, given)
        self._statements[message.statement] = Statement(message.query, given, description)
        self._connection.send(messages.ParseComplete())

    def _bind(self, message: messages.Bind) -> None:
        statement = self._statement(message.statement)
        given, types = message.param_values, statement.types
        if len(given) != len(types):
            raise Failure(
                "08P02",
                f"bind message supplies {len(given)} parameters, but {len(types)} are needed",
            )
        formats = _formats(message.param_formats, len(given))
        values = [read_value(v, t, f) for v, t, f in zip(given, types, formats, strict=True)]
        description = statement.description
        fields = 0 if description is None or not description.fields else len(description.fields)
        size = sum(len(value or b"") + BYTES_OF_EACH for value in given)
        self._check_room(self._portals, len(message.portal) + size)
        self._portals[message.portal] = Portal(
            statement, tuple(values), _formats(message.result_formats, fields), size
        )
        self._connection.send(messages.BindComplete())

    def _describe(self, message: messages.Describe) -> None:
        formats: Sequence[int] = ()
        if message.kind == "S":
            statement = self._statement(message.name)
            self._connection.send(messages.ParameterDescription(list(statement.types)))
        else:
            portal = self._portal(message.name)
            statement, formats = portal.statement, portal.formats
        if statement.description is None or statement.description.fields is None:
            self._connection.send(messages.NoData())
        else:
            self._connection.send_fields(statement.description.fields, formats)

    async def _execute(self, message: messages.Execute) -> None:
        portal = self._portal(message.portal)
        if portal.result is None:
            statement = portal.statement
            portal.result, _ = await self._session.run(
                statement.text, statement.given, portal.values, portal.formats
            )
        result, start = portal.result, portal.position
        if result is None:
            self._connection.send(messages.EmptyQueryResponse())
            return
        left = len(result.rows) - start
        count = min(left, message.max_rows or left)
        if start == 0 < left - count:
            portal.size += sum(map(len, result.rows))
            self._check_room({}, 0)
        await self._connection.send_rows(result.rows[start : start + count])
        portal.position += count
        if count < left:
            self._connection.send(messages.PortalSuspended())
        else:
            # Nothing is left of it, and so nothing is kept.
            portal.result, portal.position = replace(result, rows=()), 0
            if result.forgotten is not None:
                self.forget(result.forgotten)
            self._connection.send_end(result, count)

    def _statement(self, name: str) -> Statement:
        if name not in self._statements:
            raise Failure(NO_STATEMENT, f'prepared statement "{name[:63]}" does not exist')
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise Failure(NO_PORTAL, f'portal "{name[:63]}" does not exist')
        return self._portals[name]

    def _check_room(self, held: Mapping[str, object], size: int) -> None:
        if len(held) >= MOST_HELD:
            raise Failure(TOO_MUCH, f"A connection holds at most {MOST_HELD} of these; close some.")
        size += sum(len(name) + one.size for name, one in self._statements.items())
        size += sum(len(name) + one.size for name, one in self._portals.items())
        if size > MOST_BYTES_HELD:
            raise Failure(
                TOO_MUCH,
                f"The statements and portals of a connection hold at most {MOST_BYTES_HELD} bytes; "
                "close some.",
            )


def _formats(given: Sequence[int], count: int) -> list[int]:
    """A format for each of ``count`` values: none given means text, and one means all."""
    if any(format not in (0, 1) for format in given):
        raise Failure("22023", "a format is 0 (text) or 1 (binary)")
    if len(given) in (0, 1):
        return [*(given or [TEXT_FORMAT])] * count
    if len(given) != count:
        raise Failure("08P02", f"there are {len(given)} formats for {count} values")
    return list(given)
