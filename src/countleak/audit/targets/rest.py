"""The vendor's REST interface as a target: a query is handed in, its answer fetched by its id."""

from collections.abc import Iterator
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.pool import Connection, RequestLimits, ask_all
from countleak.audit.targets.postgres import is_loopback
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, MissingExtra, Refused, TargetError

if TYPE_CHECKING:
    import httpx

# How long a fetch asks the server to wait for the answer; one that does not know the wish is
# asked again, ever less often.
WAIT_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0


class RestTarget:
    """Counts asked of the data source at an http(s) address; the token is never shown."""

    def __init__(
        self,
        url: str,
        data_source: str,
        questions: SqlQuestions,
        token: str | None = None,
        limits: RequestLimits | None = None,
    ):
        """Ask ``questions`` of ``data_source`` at ``url``; nothing is sent before ``answer``."""
        try:
            parts = urlsplit(url)
        except ValueError:
            raise InputError("the address cannot be read; write http://host:port") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address cannot be read; write http://host:port")
        if parts.username or parts.password or parts.query:
            raise InputError("an http address holds no secrets; a token comes from a file")
        if token and not (token.isascii() and token.isprintable()):
            raise InputError("the token holds characters that HTTP cannot carry; check the file")
        self.is_local = is_loopback(parts.hostname)
        if token and parts.scheme == "http" and not self.is_local:
            raise InputError("http would show the token to everyone on the way; use https")
        self.questions, self.limits = questions, limits or RequestLimits()
        self.data_source = data_source
        self._url, self._token = url.rstrip("/"), token

    def __str__(self) -> str:
        return f"{self._url}, data source {self.data_source}"

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        statements = [(at, self.questions.statement(queries, at)) for at in positions.tolist()]
        return ask_all(self.connect, statements, self.limits)

    def connect(self) -> Connection:
        """A connection of its own."""
        try:
            import httpx
        except ImportError:
            raise MissingExtra("a REST target", "live") from None
        client = httpx.Client(
            base_url=self._url,
            headers={"auth-token": self._token} if self._token else {},
            timeout=self.limits.seconds,
            # The address that was authorised, and no proxy in its place.
            trust_env=False,
        )
        return _Connection(client, self)

    def read(self, query: dict[str, Any]) -> float | None:
        """The count of a completed query; None where it was suppressed."""
        if query.get("error"):
            raise Refused(str(query["error"]).splitlines()[0])
        try:
            (row,) = query["rows"]
            (value,) = row["row"]
            count = float(value)
        except (KeyError, TypeError, ValueError):
            raise TargetError(f"{self}: the answer is no count; check that it counts") from None
        suppressed = row.get("released") is False or count == self.questions.system.suppressed_as
        return None if suppressed else count


class _Connection:
    """One connection, kept open."""

    def __init__(self, client: "httpx.Client", target: RestTarget):
        self._client = client
        self._target = target

    def ask(self, statement: str) -> float | None:
        query = {"statement": statement, "data_source_name": self._target.data_source}
        accepted = self._call("POST", "/api/queries", json={"query": query})
        query_id = accepted.get("query_id")
        if not isinstance(query_id, str):
            raise TargetError(f"{self._target}: the query was not accepted; check the address")
        end, pause = monotonic() + self._target.limits.seconds, FIRST_PAUSE
        while True:
            wait = {"wait": WAIT_SECONDS}
            status = self._call("GET", f"/api/queries/{query_id}", params=wait).get("query")
            if not isinstance(status, dict):
                raise TargetError(f"{self._target}: no query in the answer; check the address")
            if status.get("completed"):
                return self._target.read(status)
            if monotonic() > end:
                raise TargetError(
                    f"{self._target}: no answer within {self._target.limits.seconds:g} seconds; "
                    "the answers so far are kept, so run it again to resume"
                )
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        self._client.close()

    def _call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        import httpx

        try:
            response = self._client.request(method, path, **given)
        except httpx.HTTPError as error:
            raise TargetError(
                f"{self._target}: {str(error) or type(error).__name__}; the answers so far are "
                "kept, so check that the server runs and run it again"
            ) from None
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.status_code == 401:
            raise TargetError(
                f"{self._target}: the token is missing or unknown to the server; give the right one"
            )
        if not response.is_success or not isinstance(content, dict):
            words = content.get("detail") if isinstance(content, dict) else None
            raise TargetError(
                f"{self._target}: status {response.status_code}"
                f"{f' ({words})' if isinstance(words, str) else ''}; check the address"
            )
        return content
