"""How much a server gives to its clients; each limit refuses with one line."""

from dataclasses import dataclass, fields

from countleak.errors import InputError


@dataclass(frozen=True)
class Limits:
    """At most this many connections, characters a query, seconds an answer, and rows of it.

    ``login_seconds`` is the time to start up and authenticate; ``stall_seconds`` to finish a
    message that was begun, or to take an answer; ``queries_kept`` REST queries can still be asked
    for.
    """

    connections: int = 200
    query_length: int = 100_000
    seconds: float = 30.0
    rows: int = 10_000
    login_seconds: float = 10.0
    stall_seconds: float = 30.0
    queries_kept: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise InputError(f"limits: {field.name} must be above 0")

    @property
    def message_size(self) -> int:
        """The longest message in bytes: a query of the longest kind, with parameters."""
        return 8 * self.query_length + 1_000_000
