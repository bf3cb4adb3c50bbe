"""The REST interface: a query is submitted; its answer comes at once or is fetched by its id."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, ValidationError

from countleak.diffix.server.errors import SHUTTING_DOWN, Failure
from countleak.diffix.server.jobs import Job, Jobs
from countleak.diffix.server.options import Limits
from countleak.diffix.server.rest_page import page
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import User, Users

TEXT_PATTERN = r"^[^\x00]*$"
LONGEST_WAIT = 30
# A body that is longer has few parts: objects of many take long to make, and others wait meanwhile.
SHORT_BODY, MOST_PARTS = 10_000, 200
_FEW_PARTS = re.compile(
    rb'(?:[^"\[{,]*+(?:"(?:[^"\\]++|\\.)*+"|[\[{,])){0,%d}+[^"\[{,]*+' % MOST_PARTS, re.DOTALL
)


class SubmittedQuery(BaseModel):
    """A statement, and the database it is about."""

    statement: Annotated[str, Field(min_length=1, pattern=TEXT_PATTERN)]
    data_source_name: Annotated[str, Field(max_length=63, pattern=TEXT_PATTERN)]


class Submission(BaseModel):
    """What is submitted."""

    query: SubmittedQuery


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


class Accepted(BaseModel):
    """The id to ask for the answer by; and the query as it stands, if one waits for it."""

    success: bool = True
    query_id: str
    query: Outcome | None = None


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


@dataclass
class _Shared:
    """What the routes share: the databases, the users, and their queries and requests."""

    databases: Mapping[str, Served]
    users: Users
    limits: Limits
    jobs: Jobs
    requests: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def request_of(self, user: User) -> Iterator[None]:
        """A request of that user's, while it is answered: one user's never take all places."""
        most = self.limits.user_connections
        if self.requests[user.name] >= most:
            raise HTTPException(429, f"At most {most} requests of a user are answered at a time.")
        self.requests[user.name] += 1
        try:
            yield
        finally:
            self.requests[user.name] -= 1

    def submit(self, user: User, query: SubmittedQuery) -> Job:
        """Start a query."""
        served = self.databases.get(query.data_source_name)
        if served is None or not user.may_ask(query.data_source_name):
            raise HTTPException(404, "There is no data source of that name.")
        if len(query.statement) > self.limits.query_length:
            longest = self.limits.query_length
            raise HTTPException(
                413, f"The query is too long; at most {longest} characters are read."
            )
        try:
            return self.jobs.submit(user.name, served, query.statement)
        except Failure as failure:
            if failure.state == SHUTTING_DOWN:
                raise HTTPException(503, "The server is stopping.") from None
            raise HTTPException(429, str(failure)) from None

    def find(self, user: User, query_id: str) -> Job:
        """A query of that user's."""
        job = self.jobs.find(user.name, query_id)
        if job is None:
            raise HTTPException(404, "There is no such query; the oldest ones are forgotten.")
        return job


# Asynchronous though nothing in them waits: FastAPI would run them in other threads.
async def _shared(request: Request) -> _Shared:
    shared: _Shared = request.app.state.shared
    return shared


async def _authenticated(
    shared: Annotated[_Shared, Depends(_shared)],
    auth_token: Annotated[str | None, Header(description="The user's token.")] = None,
) -> User:
    user = shared.users.of_token(auth_token)
    if user is None:
        raise HTTPException(401, "Send the header auth-token with a token that is known.")
    return user


def _submission(body: bytes) -> SubmittedQuery:
    """What a body submits; refused where it is not JSON, or not what is described."""
    if len(body) > SHORT_BODY and not _FEW_PARTS.fullmatch(body):
        raise HTTPException(400, f"Invalid JSON, or of more than {MOST_PARTS} parts.")
    try:
        return Submission.model_validate_json(body).query
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        # Half of a surrogate pair is no character, and so no JSON text.
        code = 400 if first["type"] == "json_invalid" else 422
        raise HTTPException(code, _explained(first["loc"], first["msg"])) from None


def _explained(where: Sequence[object], text: str) -> str:
    """What is wrong with a value, and which it is, but never the value."""
    return f"{'.'.join(map(str, where))}: {text}" if where else text


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return JSONResponse({"detail": _explained(first["loc"], first["msg"])}, 422)


Sharing = Annotated[_Shared, Depends(_shared)]
Authenticated = Annotated[User, Depends(_authenticated)]
QueryId = Annotated[str, Path(max_length=64, description="As it was answered when submitted.")]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the answer.")]
router = APIRouter(prefix="/api")
_BODY = {
    **Submission.model_json_schema(),
    "properties": {"query": SubmittedQuery.model_json_schema()},
}
_BODY.pop("$defs")


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in codes}


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


@router.get("/health", tags=["server"])
async def health() -> dict[str, str]:
    """Say that the server answers."""
    return {"status": "ok", "version": version("countleak")}


@router.get("/data_sources", tags=["queries"], responses=_problems(401))
async def data_sources(user: Authenticated, shared: Sharing) -> Sources:
    """The databases this user may ask, and their tables."""
    return Sources(
        data_sources=[
            Source(
                name=served.name,
                tables={
                    table.name: {column: str(kind) for column, kind in table.columns.items()}
                    for table in served.tables
                },
            )
            for served in shared.databases.values()
            if user.may_ask(served.name)
        ]
    )


@router.post(
    "/queries",
    tags=["queries"],
    response_model=Accepted,
    responses=_problems(400, 401, 404, 413, 415, 429, 503),
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}
    },
)
async def submit(
    request: Request, user: Authenticated, shared: Sharing, wait: Wait = 0.0
) -> Response:
    """Submit a query; with ``wait``, its answer comes with the reply if it is there in time."""
    job = shared.submit(user, _submission(await request.body()))
    head = b'{"success": true, "query_id": "%s"' % job.id.encode()
    if not wait:
        return _json(head + b"}")
    with shared.request_of(user):
        await job.wait(wait)
    return _json(head + b', "query": ' + job.written() + b"}")


@router.get(
    "/queries/{query_id}",
    tags=["queries"],
    response_model=OutcomeReply,
    responses=_problems(401, 404, 429),
)
async def fetch(
    query_id: QueryId, user: Authenticated, shared: Sharing, wait: Wait = 0.0
) -> Response:
    """How a query stands, and its answer once there is one."""
    job = shared.find(user, query_id)
    with shared.request_of(user):
        await job.wait(wait)
    return _json(b'{"query": ' + job.written() + b"}")


@router.post(
    "/queries/{query_id}/cancel",
    tags=["queries"],
    response_model=OutcomeReply,
    responses=_problems(401, 404, 415),
)
async def cancel(query_id: QueryId, user: Authenticated, shared: Sharing) -> Response:
    """Give a query up."""
    job = shared.find(user, query_id)
    job.answer.cancel()
    return _json(b'{"query": ' + job.written() + b"}")


def make_app(databases: Mapping[str, Served], users: Users, limits: Limits) -> FastAPI:
    """The REST interface over those databases, for those users."""
    app = FastAPI(
        title="countleak",
        version=version("countleak"),
        description="Diffix, rebuilt: counts with noise. Submit a query, fetch its answer by id.",
        # FastAPI's own pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        exception_handlers={RequestValidationError: _invalid},
        responses=_problems(422),
    )
    app.state.shared = _Shared(databases, users, limits, Jobs(limits))
    app.include_router(router)
    described = page(app.openapi())
    # A browser is led to the page that describes the interface.
    app.add_route("/", lambda request: RedirectResponse("/docs"), include_in_schema=False)
    # A browser asks for an icon by itself, and complains where there is no answer.
    app.add_route(
        "/favicon.ico", lambda request: Response(status_code=204), include_in_schema=False
    )
    app.add_route("/docs", lambda request: HTMLResponse(described), include_in_schema=False)
    return app
