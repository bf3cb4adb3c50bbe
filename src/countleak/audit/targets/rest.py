"""The vendor's REST interface as a target: a query is handed in, its answer fetched by its id."""

import re
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.http import Busy, HttpError, HttpSession, Lost, Overdue
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.pool import Connection, Rows, ask_all
from countleak.audit.targets.postgres import is_loopback
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import KEPT, InputError, NoCount, Refused, TargetError, Transient
from countleak.foreign import clean, first_line, without

# How long a fetch asks the server to wait for the answer; one that does not know the wish is
# asked again, ever less often.
WAIT_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0
# No other id can be put into a path and stay where it is put.
QUERY_ID = re.compile("[A-Za-z0-9_][A-Za-z0-9_.~-]{0,199}")
UNREADABLE = "the address cannot be read; write http://host:port"


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
        if not url.isprintable() or " " in url:
            raise InputError(UNREADABLE)
        # A password with a special character moves what follows it to another part.
        if "@" in url or "?" in url or "#" in url:
            raise InputError("an http address holds no secrets; a token comes from a file")
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            known = False
        if not known or not parts.hostname:
            raise InputError(UNREADABLE)
        if token and not (token.isascii() and token.isprintable()):
            raise InputError("the token holds characters that HTTP cannot carry; check the file")
        self.is_local = is_loopback(parts.hostname)
        if token and parts.scheme == "http" and not self.is_local:
            raise InputError("http would show the token to everyone on the way; use https")
        self.questions, self.limits = questions, limits or RequestLimits()
        self.data_source = data_source
        self._url, self._parts, self._token = url.rstrip("/"), parts, token

    def __str__(self) -> str:
        return f"{self._url}, data source {clean(self.data_source)}"

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        return ask_all(self.connect, self.questions.asked(queries, positions), self.limits)

    def connect(self) -> Connection[str]:
        """A connection of its own, for the thread that calls this."""
        session = HttpSession(self._parts, {"auth-token": self._token} if self._token else {})
        try:
            session.open(monotonic() + self.limits.connect_seconds)
        except Overdue:
            raise Transient(
                f"{self}: no connection within {self.limits.connect_seconds:g} seconds",
                "check the address and that the server runs",
            ) from None
        except HttpError as error:
            raise self.fault(error) from None
        return _Connection(session, self)

    def fault(self, error: HttpError) -> TargetError:
        """What an error of the connection means to whoever asks."""
        if isinstance(error, Overdue):
            return self.limits.overdue()
        what = f"{self}: {self.words(str(error))}"
        advice = f"check that the server runs; {KEPT}"
        if isinstance(error, Busy):
            wait = error.retry_after
            asks = "" if wait is None else f", and it asks to wait {wait:.0f} seconds"
            return Transient(f"{what}{asks}", advice, wait)
        return (
            Transient(what, advice) if isinstance(error, Lost) else TargetError(f"{what}; {advice}")
        )

    def words(self, text: str) -> str:
        """What a server said, in one clean line without the token."""
        return first_line(without(text, self._token))

    def read(self, query: dict[str, Any]) -> float | None:
        """The count of a completed query; None where it was suppressed."""
        if query.get("error"):
            raise Refused(self.words(str(query["error"])))
        try:
            (row,) = query["rows"]
            (value,) = row["row"]
            released = row.get("released")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise NoCount("the answer is no single value; check that it counts") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NoCount(f"the answer {self.words(repr(value)[:100])} is no count; check it")
        if released is False or value == self.questions.system.suppressed_as:
            return None
        try:
            return float(value)
        except OverflowError:
            raise NoCount("the answer has hundreds of digits; check that it counts") from None

    def read_rows(self, query: dict[str, Any]) -> Rows:
        """The rows of a completed query about a table; those that were not released left out."""
        if query.get("error"):
            raise Refused(self.words(str(query["error"])))
        try:
            return [list(row["row"]) for row in query["rows"] if row.get("released") is not False]
        except (AttributeError, KeyError, TypeError):
            raise NoCount("the answer is no table; check that it counts") from None


class _Connection:
    """One connection, kept open."""

    def __init__(self, session: HttpSession, target: RestTarget):
        self._session = session
        self._target = target

    def ask(self, statement: str) -> float | None:
        return self._target.read(self._completed(statement))

    def rows(self, statement: str) -> Rows:
        return self._target.read_rows(self._completed(statement))

    def _completed(self, statement: str) -> dict[str, Any]:
        """The query, once it is answered or refused."""
        end, pause = monotonic() + self._target.limits.seconds, FIRST_PAUSE
        query = {"statement": statement, "data_source_name": self._target.data_source}
        # A server that answers at once saves a request; one that does not know the word ignores it.
        posted = self._call("POST", f"/api/queries?wait={WAIT_SECONDS}", end, {"query": query})
        answered = posted.get("query")
        if isinstance(answered, dict) and answered.get("completed"):
            return answered
        query_id = posted.get("query_id")
        if not isinstance(query_id, str) or not QUERY_ID.fullmatch(query_id):
            raise TargetError(
                f"{self._target}: the query was not accepted with an id of letters and digits; "
                "check the address"
            )
        while True:
            path = f"/api/queries/{query_id}?wait={WAIT_SECONDS}"
            status = self._call("GET", path, end).get("query")
            if not isinstance(status, dict):
                raise TargetError(f"{self._target}: no query in the answer; check the address")
            if status.get("completed"):
                return status
            if monotonic() + pause > end:
                raise self._target.limits.overdue()
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        self._session.close()

    def _call(self, method: str, path: str, end: float, body: Any = None) -> dict[str, Any]:
        try:
            status, content = self._session.request(method, path, end, body)
        except HttpError as error:
            raise self._target.fault(error) from None
        if status == 401:
            raise TargetError(
                f"{self._target}: the token is missing or unknown to the server; give the right one"
            )
        if not 200 <= status < 300 or not isinstance(content, dict):
            words = content.get("detail") if isinstance(content, dict) else None
            said = f" ({self._target.words(words)})" if isinstance(words, str) else ""
            raise TargetError(f"{self._target}: status {status}{said}; check the address")
        return content
