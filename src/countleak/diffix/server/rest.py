"""The REST interface: a query is submitted, and its answer fetched by its id."""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from countleak.diffix.engine import Answer
from countleak.diffix.server.options import Limits
from countleak.diffix.server.session import Question, Served, Session
from countleak.diffix.server.users import User, Users
from countleak.errors import Refused, TargetError

TEXT_PATTERN = r"^[^\x00]*$"
LONGEST_WAIT = 30


class SubmittedQuery(BaseModel):
    """A statement, and the database it is about."""

    statement: Annotated[str, Field(min_length=1, pattern=TEXT_PATTERN)]
    data_source_name: Annotated[str, Field(max_length=63, pattern=TEXT_PATTERN)]


class Submission(BaseModel):
    """What is submitted."""

    query: SubmittedQuery


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


class OutcomeReply(BaseModel):
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


class _Kept:
    """A query that was submitted, while it runs and for a while after."""

    def __init__(self, user: str, outcome: Outcome):
        self.user = user
        self.outcome = outcome
        self.task: asyncio.Task[None] | None = None

    async def run(self, served: Served) -> None:
        """Fill in the outcome."""
        outcome = self.outcome
        try:
            answer = await served.run(_ask, served, self.user, outcome.statement)
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


def _ask(served: Served, user: str, text: str) -> Answer:
    prepared = Session(served, user, {}).prepare(text)
    if prepared is None or not isinstance(prepared.statement, Question) or prepared.types:
        raise Refused("Only SELECT statements over one table are answered.")
    return served.ask(user, prepared.statement)


def _plain(value: Any) -> Any:
    """A value as JSON has it; whatever is not a number or a text is written as text."""
    return value if isinstance(value, int | float | str | bool | None) else str(value)


@dataclass
class _Queries:
    """What the routes share: the databases, the users, and the latest queries by id."""

    databases: Mapping[str, Served]
    users: Users
    limits: Limits
    kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)

    def find(self, user: User, query_id: str) -> _Kept:
        """A query of that user's."""
        kept = self.kept.get(query_id)
        if kept is None or kept.user != user.name:
            raise HTTPException(404, "There is no such query; the oldest ones are forgotten.")
        return kept

    def submit(self, user: User, query: SubmittedQuery) -> str:
        """Start a query; its id."""
        served = self.databases.get(query.data_source_name)
        if served is None or not user.may_ask(query.data_source_name):
            raise HTTPException(404, "There is no data source of that name.")
        if len(query.statement) > self.limits.query_length:
            longest = self.limits.query_length
            raise HTTPException(
                413, f"The query is too long; at most {longest} characters are read."
            )
        self._make_room()
        outcome = Outcome(
            id=secrets.token_hex(16),
            statement=query.statement,
            data_source_name=query.data_source_name,
            state="running",
            completed=False,
        )
        self.kept[outcome.id] = kept = _Kept(user.name, outcome)
        kept.task = asyncio.create_task(kept.run(served))
        return outcome.id

    def _make_room(self) -> None:
        while len(self.kept) >= self.limits.queries_kept:
            oldest = next((key for key, kept in self.kept.items() if kept.outcome.completed), None)
            if oldest is None:
                raise HTTPException(429, "Too many queries are running; ask again later.")
            del self.kept[oldest]


def _shared(request: Request) -> _Queries:
    shared: _Queries = request.app.state.queries
    return shared


def _authenticated(
    shared: Annotated[_Queries, Depends(_shared)],
    auth_token: Annotated[str | None, Header(description="The user's token.")] = None,
) -> User:
    user = shared.users.of_token(auth_token)
    if user is None:
        raise HTTPException(401, "Send the header auth-token with a token that is known.")
    return user


Shared = Annotated[_Queries, Depends(_shared)]
Authenticated = Annotated[User, Depends(_authenticated)]
QueryId = Annotated[str, Path(max_length=64, description="As it was answered when submitted.")]
router = APIRouter(prefix="/api")


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in codes}


@router.get("/health", tags=["server"])
async def health() -> dict[str, str]:
    """Say that the server answers."""
    return {"status": "ok", "version": version("countleak")}


@router.get("/data_sources", tags=["queries"], responses=_problems(401))
async def data_sources(user: Authenticated, shared: Shared) -> Sources:
    """The databases this user may ask, and their tables."""
    return Sources(
        data_sources=[
            Source(
                name=served.name,
                tables={
                    engine.database.table.name: {
                        column: str(kind) for column, kind in engine.database.table.columns.items()
                    }
                    for engine in served.engines.values()
                },
            )
            for served in shared.databases.values()
            if user.may_ask(served.name)
        ]
    )


@router.post("/queries", tags=["queries"], responses=_problems(400, 401, 404, 413, 415, 429))
async def submit(submission: Submission, user: Authenticated, shared: Shared) -> Accepted:
    """Submit a query."""
    return Accepted(query_id=shared.submit(user, submission.query))


@router.get("/queries/{query_id}", tags=["queries"], responses=_problems(401, 404))
async def fetch(
    query_id: QueryId,
    user: Authenticated,
    shared: Shared,
    wait: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the answer.")
    ] = 0.0,
) -> OutcomeReply:
    """How a query stands, and its answer once there is one."""
    kept = shared.find(user, query_id)
    if wait and kept.task is not None:
        await asyncio.wait([kept.task], timeout=wait)
    return OutcomeReply(query=kept.outcome)


@router.post("/queries/{query_id}/cancel", tags=["queries"], responses=_problems(401, 404, 415))
async def cancel(query_id: QueryId, user: Authenticated, shared: Shared) -> OutcomeReply:
    """Give a query up."""
    kept = shared.find(user, query_id)
    if kept.task is not None and not kept.task.done():
        kept.task.cancel()
        await asyncio.wait([kept.task])
    return OutcomeReply(query=kept.outcome)


def make_app(databases: Mapping[str, Served], users: Users, limits: Limits) -> FastAPI:
    """The REST interface over those databases, for those users."""
    app = FastAPI(
        title="countleak",
        version=version("countleak"),
        description="Diffix, rebuilt: counts with noise. Submit a query, fetch its answer by id.",
    )
    app.state.queries = _Queries(databases, users, limits)
    app.include_router(router)
    # A browser is led to the page that describes the interface.
    app.add_route("/", lambda request: RedirectResponse("/docs"), include_in_schema=False)
    return app
