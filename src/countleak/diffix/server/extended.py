"""Extended queries: statements that are prepared, bound to values, and read through portals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygwire import messages

from countleak.diffix.server.control import IDLE
from countleak.diffix.server.errors import NO_PORTAL, NO_STATEMENT, PROTOCOL, TOO_MUCH, Failure
from countleak.diffix.server.parameters import Parameter, read_value
from countleak.diffix.server.results import EVERY, TEXT_FORMAT, Result
from countleak.diffix.server.session import Prepared, Session

if TYPE_CHECKING:
    from countleak.diffix.server.connection import Connection

# Statements that a connection can hold, and portals.
MOST_HELD = 1000


@dataclass
class Portal:
    """A statement with its values; once run, its result and how far it was read."""

    prepared: Prepared | None
    values: tuple[Parameter, ...]
    formats: Sequence[int]
    result: Result | None = None
    position: int = 0


class ExtendedQueries:
    """The prepared statements and portals of a connection."""

    def __init__(self, connection: "Connection", session: Session):
        """Answer what comes over ``connection`` in ``session``."""
        self._connection = connection
        self._session = session
        self._statements: dict[str, Prepared | None] = {}
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
            raise Failure("42P05", f'prepared statement "{message.statement}" already exists')
        _check_room(self._statements)
        prepared = await self._connection.run(
            self._session, lambda: self._session.prepare(message.query, message.param_types)
        )
        self._statements[message.statement] = prepared
        self._connection.send(messages.ParseComplete())

    def _bind(self, message: messages.Bind) -> None:
        prepared = self._statement(message.statement)
        types = () if prepared is None else prepared.types
        given = message.param_values
        if len(given) != len(types):
            raise Failure(
                "08P02",
                f"bind message supplies {len(given)} parameters, but {len(types)} are needed",
            )
        formats = _formats(message.param_formats, len(given))
        values = [read_value(v, t, f) for v, t, f in zip(given, types, formats, strict=True)]
        fields = 0 if prepared is None or prepared.fields is None else len(prepared.fields)
        _check_room(self._portals)
        self._portals[message.portal] = Portal(
            prepared, tuple(values), _formats(message.result_formats, fields)
        )
        self._connection.send(messages.BindComplete())

    def _describe(self, message: messages.Describe) -> None:
        if message.kind == "S":
            prepared = self._statement(message.name)
            types = () if prepared is None else prepared.types
            self._connection.send(messages.ParameterDescription(list(types)))
            formats: Sequence[int] = ()
        else:
            portal = self._portal(message.name)
            prepared, formats = portal.prepared, portal.formats
        if prepared is None or prepared.fields is None:
            self._connection.send(messages.NoData())
        else:
            self._connection.send_fields(prepared.fields, formats)

    async def _execute(self, message: messages.Execute) -> None:
        portal = self._portal(message.portal)
        prepared = portal.prepared
        if prepared is None:
            self._connection.send(messages.EmptyQueryResponse())
            return
        if portal.result is None:
            portal.result = await self._connection.run(
                self._session, lambda: self._session.run(prepared, portal.values)
            )
        result, start = portal.result, portal.position
        left = len(result.rows) - start
        count = min(left, message.max_rows or left)
        await self._connection.send_rows(result, start, count, portal.formats)
        portal.position += count
        if count < left:
            self._connection.send(messages.PortalSuspended())
        else:
            if result.forgotten is not None:
                self.forget(result.forgotten)
            self._connection.send_end(result, count)

    def _statement(self, name: str) -> Prepared | None:
        if name not in self._statements:
            raise Failure(NO_STATEMENT, f'prepared statement "{name[:63]}" does not exist')
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise Failure(NO_PORTAL, f'portal "{name[:63]}" does not exist')
        return self._portals[name]


def _check_room(held: Mapping[str, object]) -> None:
    if len(held) >= MOST_HELD:
        raise Failure(TOO_MUCH, f"A connection holds at most {MOST_HELD} of these; close some.")


def _formats(given: Sequence[int], count: int) -> list[int]:
    """A format for each of ``count`` values: none given means text, and one means all."""
    if any(format not in (0, 1) for format in given):
        raise Failure("22023", "a format is 0 (text) or 1 (binary)")
    if len(given) in (0, 1):
        return [*(given or [TEXT_FORMAT])] * count
    if len(given) != count:
        raise Failure("08P02", f"there are {len(given)} formats for {count} values")
    return list(given)
