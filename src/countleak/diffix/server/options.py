"""What a server's operator chooses: where it listens, and how much it gives to its clients."""

import ipaddress
import ssl
from dataclasses import dataclass, fields
from pathlib import Path

from countleak.diffix.salt import read_private
from countleak.diffix.server.users import Users
from countleak.errors import InputError


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, loaded, and the certificate's text, which SCRAM binds to."""

    context: ssl.SSLContext
    certificate: str


@dataclass(frozen=True)
class Listening:
    """Where a server listens; a port of 0 is any free one, and None is no listener."""

    host: str = "127.0.0.1"
    postgres_port: int | None = 5433
    rest_port: int | None = 8033
    certificate: Path | None = None
    key: Path | None = None
    # Whether PostgreSQL's clients must come over TLS; with a certificate, those of REST always do.
    require_tls: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def check(self, users: Users) -> None:
        """Refuse to be reached from other machines without proof of who asks."""
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS takes a certificate and its key; name both or none")
        if self.require_tls and self.certificate is None:
            raise InputError(
                "require_tls is set, and there is no certificate; name one, and its key"
            )
        if self.is_loopback:
            return
        for user in users.by_name.values():
            if user.trusted or (user.verifier is None and not user.tokens):
                raise InputError(
                    f"user {user.name} has no password; on an address other machines reach, every "
                    "user needs a password or a token"
                )

    def tls(self) -> Tls | None:
        """The certificate and its key, loaded."""
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            read_private(self.key, "key")
            context.load_cert_chain(self.certificate, self.key)
            return Tls(context, self.certificate.read_text())
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"{self.certificate}, {self.key}: not a certificate and its key ({error})"
            ) from None


@dataclass(frozen=True)
class Limits:
    """How much a server gives to its clients, and how much of it to one user."""

    # Connections over the PostgreSQL protocol, and as many over REST.
    connections: int = 200
    user_connections: int = 100
    # Queries of a user that run or wait.
    user_queries: int = 100
    query_length: int = 100_000
    # For an answer, from when it is begun; and to wait before that.
    seconds: float = 30.0
    queue_seconds: float = 120.0
    rows: int = 10_000
    # To start up and prove who one is; for REST, to send the head of a request.
    login_seconds: float = 10.0
    # To finish a message that was begun, or to take an answer.
    stall_seconds: float = 30.0
    # For running queries to end when the server stops.
    drain_seconds: float = 5.0
    # REST queries of a user that can still be fetched, and the bytes of their answers.
    queries_kept: int = 1000
    bytes_kept: int = 50_000_000
    # Processes per database, and the memory in MiB that each may take beyond its tables.
    workers: int = 2
    memory: int = 2000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise InputError(f"limits: {field.name} must be above 0")

    @property
    def message_size(self) -> int:
        """The longest message in bytes: a query of the longest kind, with parameters."""
        return 8 * self.query_length + 1_000_000
