"""The vendor's REST interface as a target: a query is handed in, its answer fetched by its id."""

from collections.abc import Iterator
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.postgres import is_loopback
from countleak.audit.targets.several import Line, Manners, ask_over
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
        counts: Counts,
        token: str | None = None,
        manners: Manners | None = None,
    ):
        """Ask ``counts`` of ``data_source`` at ``url``; nothing is sent before ``answer``."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address cannot be read; write http://host:port")
        if parts.username or parts.password or parts.query:
            raise InputError("an http address holds no secrets; a token comes from a file")
        self.is_local = is_loopback(parts.hostname)
        if token and parts.scheme == "http" and not self.is_local:
            raise InputError("http would show the token to everyone on the way; use https")
        self.counts, self.manners = counts, manners or Manners()
        self.data_source = data_source
        self._url, self._token = url.rstrip("/"), token

    def __str__(self) -> str:
        return f"{self._url}, data source {self.data_source}"

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        statements = [(at, self.counts.harmless(queries, at)) for at in positions.tolist()]
        return ask_over(self.line, statements, self.manners)

    def line(self) -> Line:
        """A connection of its own."""
        try:
            import httpx
        except ImportError:
            raise MissingExtra("a REST target", "live") from None
        client = httpx.Client(
            base_url=self._url,
            headers={"auth-token": self._token} if self._token else {},
            timeout=self.manners.seconds,
            # The address that was authorised, and no proxy in its place.
            trust_env=False,
        )
        return _Line(client, self)

    def read(self, found: dict[str, Any]) -> float | None:
        """The count of a completed query; None where it was held back."""
        if found.get("error"):
            raise Refused(str(found["error"]).splitlines()[0])
        try:
            (row,) = found["rows"]
            (value,) = row["row"]
            count = float(value)
        except (KeyError, TypeError, ValueError):
            raise TargetError(f"{self}: the answer is no count; check that it counts") from None
        held_back = row.get("released") is False or count == self.counts.system.held_back
        return None if held_back else count


class _Line:
    """One connection, kept open."""

    def __init__(self, client: "httpx.Client", target: RestTarget):
        self._client = client
        self._target = target

    def ask(self, statement: str) -> float | None:
        asked = {"statement": statement, "data_source_name": self._target.data_source}
        accepted = self._call("POST", "/api/queries", json={"query": asked})
        query_id = accepted.get("query_id")
        if not isinstance(query_id, str):
            raise TargetError(f"{self._target}: the query was not accepted; check the address")
        end, pause = monotonic() + self._target.manners.seconds, FIRST_PAUSE
        while True:
            wait = {"wait": WAIT_SECONDS}
            found = self._call("GET", f"/api/queries/{query_id}", params=wait).get("query")
            if not isinstance(found, dict):
                raise TargetError(f"{self._target}: no query in the answer; check the address")
            if found.get("completed"):
                return self._target.read(found)
            if monotonic() > end:
                raise TargetError(
                    f"{self._target}: no answer within {self._target.manners.seconds:g} seconds; "
                    "what came is kept, run the same command again to go on"
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
                f"{self._target}: {str(error) or type(error).__name__}; what came is kept, check "
                "that the server runs and run the same command again"
            ) from None
        try:
            found = response.json()
        except ValueError:
            found = None
        if response.status_code == 401:
            raise TargetError(
                f"{self._target}: the token is missing or not known; put it in the environment "
                "variable COUNTLEAK_TOKEN, or in a file and pass --token-file"
            )
        if not response.is_success or not isinstance(found, dict):
            words = found.get("detail") if isinstance(found, dict) else None
            raise TargetError(
                f"{self._target}: status {response.status_code}"
                f"{f' ({words})' if isinstance(words, str) else ''}; check the address"
            )
        return found
