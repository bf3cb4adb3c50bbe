"""The REST interface: a query is handed in, and its answer fetched by its id."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, HTTPException, Path, Query
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from countleak.diffix.engine import Answer
from countleak.diffix.server.databases import Served
from countleak.diffix.server.limits import Limits
from countleak.diffix.server.statements import Question, read
from countleak.diffix.server.users import User, Users
from countleak.errors import Refused, TargetError

log = logging.getLogger(__name__)
TEXT_PATTERN = r"^[^\x00]*$"


class Asked(BaseModel):
    """A statement, and the database it is about."""

    statement: Annotated[str, Field(min_length=1, pattern=TEXT_PATTERN)]
    data_source_name: Annotated[str, Field(max_length=63, pattern=TEXT_PATTERN)]


class Submission(BaseModel):
    """What is handed in."""

    query: Asked


class Accepted(BaseModel):
    """The id to ask for the answer by."""

    success: bool = True
    query_id: str


class AnswerRow(BaseModel):
    """A row, and whether it was released; one that was not holds 0, or nothing."""

    row: list[Any]
    released: bool


class Outcome(BaseModel):
    """How a query stands, and what it answered."""

    id: str
    statement: str
    data_source_name: str
    state: Literal["running", "completed", "error", "cancelled"]
    completed: bool
    columns: list[str] = []
    rows: list[AnswerRow] = []
    error: str | None = None
    notices: list[str] = []


class Found(BaseModel):
    """A query, as the vendor wrapped it."""

    query: Outcome


class Source(BaseModel):
    """A database, and its tables with their columns."""

    name: str
    tables: dict[str, dict[str, str]]


class Sources(BaseModel):
    """The databases that can be asked."""

    data_sources: list[Source]


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str


@dataclass
class Kept:
    """A query that was handed in, while it runs and for a while after."""

    user: str
    outcome: Outcome
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)


def make_app(databases: Mapping[str, Served], users: Users, limits: Limits) -> FastAPI:
    """The REST interface over those databases, for those users."""
    app = FastAPI(
        title="countleak",
        version=version("countleak"),
        description="Diffix, rebuilt: counts with noise. Hand a query in, fetch its answer by id.",
    )
    kept: OrderedDict[str, Kept] = OrderedDict()

    def authenticated(
        auth_token: Annotated[str | None, Header(description="The user's token.")] = None,
    ) -> User:
        user = users.of_token(auth_token)
        if user is None:
            raise HTTPException(401, "Send the header auth-token with a token that is known.")
        return user

    Authenticated = Annotated[User, Depends(authenticated)]
    QueryId = Annotated[str, Path(max_length=64, description="As the hand-in answered it.")]

    def find(user: User, query_id: str) -> Kept:
        found = kept.get(query_id)
        if found is None or found.user != user.name:
            raise HTTPException(404, "There is no such query; the oldest ones are forgotten.")
        return found

    async def work(served: Served, user: User, outcome: Outcome) -> None:
        def ask() -> Answer:
            statement = read(outcome.statement, served.engines)
            if not isinstance(statement, Question):
                raise Refused("Only SELECT statements over one table are answered.")
            return served.ask(statement.engine, user.name, outcome.statement)

        try:
            answer = await served.run(ask)
        except TargetError as error:
            outcome.state, outcome.error = "error", str(error)
        except asyncio.CancelledError:
            outcome.state, outcome.error = "cancelled", "The query was cancelled."
        else:
            outcome.state = "completed"
            outcome.columns = list(answer.columns)
            outcome.rows = [
                AnswerRow(row=[_plain(value) for value in row.values], released=row.released)
                for row in answer.rows
            ]
            outcome.notices = list(answer.notices)
        outcome.completed = True

    @app.get("/", include_in_schema=False)
    async def front() -> RedirectResponse:
        """Lead a browser to the page that describes the interface."""
        return RedirectResponse("/docs")

    @app.get("/api/health", tags=["server"])
    async def health() -> dict[str, str]:
        """Say that the server answers."""
        return {"status": "ok", "version": version("countleak")}

    @app.get("/api/data_sources", tags=["queries"], responses={401: {"model": Problem}})
    async def data_sources(user: Authenticated) -> Sources:
        """The databases this user may ask, and their tables."""
        return Sources(
            data_sources=[
                Source(
                    name=served.name,
                    tables={
                        engine.database.table.name: {
                            column: str(kind)
                            for column, kind in engine.database.table.columns.items()
                        }
                        for engine in served.engines.values()
                    },
                )
                for served in databases.values()
                if user.may_ask(served.name)
            ]
        )

    @app.post(
        "/api/queries",
        tags=["queries"],
        responses={
            400: {"model": Problem},
            401: {"model": Problem},
            404: {"model": Problem},
            413: {"model": Problem},
            415: {"model": Problem},
            429: {"model": Problem},
        },
    )
    async def submit(submission: Submission, user: Authenticated) -> Accepted:
        """Hand a query in."""
        asked = submission.query
        served = databases.get(asked.data_source_name)
        if served is None or not user.may_ask(asked.data_source_name):
            raise HTTPException(404, "There is no data source of that name.")
        if len(asked.statement) > limits.query_length:
            raise HTTPException(
                413, f"The query is too long; at most {limits.query_length} characters are read."
            )
        while len(kept) >= limits.queries_kept:
            oldest = next((key for key, held in kept.items() if held.outcome.completed), None)
            if oldest is None:
                raise HTTPException(429, "Too many queries are running; ask again later.")
            del kept[oldest]
        outcome = Outcome(
            id=secrets.token_hex(16),
            statement=asked.statement,
            data_source_name=asked.data_source_name,
            state="running",
            completed=False,
        )
        kept[outcome.id] = held = Kept(user.name, outcome)
        held.task = asyncio.create_task(work(served, user, outcome))
        return Accepted(query_id=outcome.id)

    @app.get(
        "/api/queries/{query_id}",
        tags=["queries"],
        responses={401: {"model": Problem}, 404: {"model": Problem}},
    )
    async def fetch(
        query_id: QueryId,
        user: Authenticated,
        wait: Annotated[
            float, Query(ge=0, le=30, description="Seconds to wait for the answer.")
        ] = 0.0,
    ) -> Found:
        """How a query stands, and its answer once there is one."""
        held = find(user, query_id)
        if wait and held.task is not None:
            await asyncio.wait([held.task], timeout=wait)
        return Found(query=held.outcome)

    @app.post(
        "/api/queries/{query_id}/cancel",
        tags=["queries"],
        responses={
            401: {"model": Problem},
            404: {"model": Problem},
            415: {"model": Problem},
        },
    )
    async def cancel(query_id: QueryId, user: Authenticated) -> Found:
        """Give a query up."""
        held = find(user, query_id)
        if held.task is not None and not held.task.done():
            held.task.cancel()
            await asyncio.wait([held.task])
        return Found(query=held.outcome)

    return app


def _plain(value: Any) -> Any:
    """A value as JSON has it; whatever is no number or text is written as text."""
    return value if isinstance(value, int | float | str | bool | None) else str(value)
