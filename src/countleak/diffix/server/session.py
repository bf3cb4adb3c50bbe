"""A database that is served, and the sessions of its clients, whatever protocol carries them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from countleak.diffix.server.control import FAILED, Control, State
from countleak.diffix.server.errors import CANCELLED, Failure
from countleak.diffix.server.options import Limits
from countleak.diffix.server.parameters import Parameter
from countleak.diffix.server.requests import Describe, Description, Ran, Request, Run
from countleak.diffix.server.results import Result
from countleak.diffix.server.worker import Load, Orders
from countleak.diffix.server.workers import Workers
from countleak.diffix.sql.statement import Table
from countleak.errors import InputError


class Served:
    """A database by its name, whose statements run in workers."""

    def __init__(
        self, name: str, load: Load, limits: Limits, users: Iterable[str] = (), origin: str = ""
    ):
        """Serve what ``load`` loads; ``users`` are named in the catalog.

        ``origin`` is where it was declared; an error says so.
        """
        self.name = name
        self._origin = origin
        self._workers = Workers(Orders(name, load, limits, tuple(users)), limits)

    @property
    def tables(self) -> Sequence[Table]:
        """The tables, once they are loaded."""
        return self._workers.tables

    async def start(self) -> None:
        """Load the tables."""
        try:
            await self._workers.start()
        except InputError as error:
            raise InputError(f"{self._origin}: {error}" if self._origin else str(error)) from None

    def submit(self, user: str, request: Request) -> "asyncio.Future[Any]":
        """The answer to a user's request; cancel it to give it up."""
        return self._workers.submit(user, request)

    async def drain(self, seconds: float) -> None:
        """Take no more requests, and give those that are here ``seconds``."""
        await self._workers.drain(seconds)

    def close(self) -> None:
        """End what still runs."""
        self._workers.close()


class Session:
    """A user's statements to a database, one after the other."""

    def __init__(self, served: Served, user: str, given: dict[str, str]):
        """Begin a session of a user on a database; ``given`` are settings to begin with."""
        self.served = served
        self.user = user
        self.state = State(user, given)
        self._running: asyncio.Future[Any] | None = None
        self._is_cancelled = False

    async def describe(self, text: str, types: Sequence[int] = ()) -> Description | None:
        """What a statement takes and returns; None where the text is empty."""
        description: Description | None = await self._ask(Describe(self.user, text, tuple(types)))
        if description is not None and description.control is not None:
            return replace(description, fields=self.state.fields(description.control))
        return description

    async def run(
        self,
        text: str,
        types: Sequence[int] = (),
        values: Sequence[Parameter] = (),
        formats: Sequence[int] = (),
    ) -> tuple[Result | None, tuple[str, ...]]:
        """What the first statement of a text returns (None if it is empty), and the others."""
        failed = self.state.status == FAILED
        request = Run(self.user, text, tuple(types), tuple(values), tuple(formats), failed)
        ran: Ran = await self._ask(request)
        if isinstance(ran.result, Control):
            return self.state.run(ran.result), ran.others
        return ran.result, ran.others

    def cancel(self) -> None:
        """Give up what is running, if anything is."""
        if self._running is not None:
            self._is_cancelled = True
            self._running.cancel()

    async def _ask(self, request: Request) -> Any:
        self._running = self.served.submit(self.user, request)
        try:
            return await self._running
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            raise Failure(CANCELLED, "canceling statement due to user request") from None
        finally:
            self._running, self._is_cancelled = None, False
