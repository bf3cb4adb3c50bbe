"""Who may ask: users with a SCRAM verifier and hashed tokens; nothing here can be read back."""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from scramp import ScramException, ScramMechanism

from countleak.errors import InputError

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
ITERATIONS = 4096
# As PostgreSQL's own.
SALT_SIZE = 16


@dataclass(frozen=True)
class Verifier:
    """What tells that a client knows a password, without being it."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int = ITERATIONS

    @classmethod
    def of_password(cls, password: str, salt: bytes | None = None) -> "Verifier":
        """The verifier of a password, with that salt, or else one of its own."""
        chosen = secrets.token_bytes(SALT_SIZE) if salt is None else salt
        try:
            salt, stored, server, count = ScramMechanism(PLAIN).make_auth_info(
                password, iteration_count=ITERATIONS, salt=chosen
            )
        except ScramException:
            raise InputError("a password has characters that SCRAM does not allow") from None
        return cls(salt, stored, server, count)

    @classmethod
    def parse(cls, text: str) -> "Verifier":
        """The verifier that PostgreSQL's catalog writes ``SCRAM-SHA-256$4096:salt$key:key``."""
        match = re.fullmatch(r"SCRAM-SHA-256\$(\d{4,8}):([^$:]+)\$([^$:]+):([^$:]+)", text.strip())
        try:
            if match is None:
                raise ValueError
            salt, stored, server = (base64.b64decode(p, validate=True) for p in match.groups()[1:])
            if len(stored) != 32 or len(server) != 32 or int(match[1]) < ITERATIONS:
                raise ValueError
        except (ValueError, binascii.Error):
            raise InputError(
                "a verifier is written SCRAM-SHA-256$4096:salt$key:key, as PostgreSQL stores it"
            ) from None
        return cls(salt, stored, server, int(match[1]))

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode()
            for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def scram_salt(secret: bytes, name: str, size: int = SALT_SIZE) -> bytes:
    """The salt of that name, the same whenever it is asked for; ``size`` is at most 32 bytes."""
    return _derived(secret, "salt", name)[:size]


def _derived(secret: bytes, part: str, name: str) -> bytes:
    return hmac.digest(secret, f"{part}:{name}".encode(), "sha256")


@dataclass(frozen=True)
class User:
    """A user: how it proves itself, and which databases it may ask (none named: all).

    A trusted user needs no proof; it is let in from this machine only.
    """

    name: str
    verifier: Verifier | None = None
    tokens: tuple[bytes, ...] = field(default=(), repr=False)
    databases: frozenset[str] = frozenset()
    trusted: bool = False

    def may_ask(self, database: str) -> bool:
        """Whether it may ask that database."""
        return not self.databases or database in self.databases


def hash_token(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True)
class Users:
    """All users of a server, by name."""

    by_name: dict[str, User]
    # What those who do not exist are challenged with is made from this.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def are_all_trusted(self) -> bool:
        """Whether nobody has anything to prove."""
        return all(user.trusted for user in self.by_name.values())

    def challenged(self, name: str) -> Verifier:
        """What whoever says to be ``name`` is challenged with: its verifier, or one nobody fits.

        That is the same whenever the name is tried, and its salt and iterations are such as some
        user's who exists, so that they tell nothing.
        """
        user = self.by_name.get(name)
        if user is not None and user.verifier is not None:
            return user.verifier
        kinds = sorted(
            (len(known.verifier.salt), known.verifier.iterations)
            for known in self.by_name.values()
            if known.verifier is not None
        ) or [(SALT_SIZE, ITERATIONS)]
        chosen = int.from_bytes(_derived(self.secret, "kind", name)) % len(kinds)
        size, iterations = kinds[chosen]
        salt = scram_salt(self.secret, name, size)
        stored, server = (_derived(self.secret, part, name) for part in ("stored", "server"))
        return Verifier(salt, stored, server, iterations)

    def of_token(self, token: str | None) -> User | None:
        """The user of a token; the trusted one where none is sent."""
        if token is None:
            return next((user for user in self.by_name.values() if user.trusted), None)
        hashed, owner = hash_token(token), None
        for user in self.by_name.values():
            for known in user.tokens:
                # All are compared, each in constant time.
                if hmac.compare_digest(known, hashed):
                    owner = user
        return owner


class Exchange:
    """One SCRAM exchange: two messages of the client's, each answered or refused."""

    def __init__(self, known: Verifier, mechanism: str, certificate: str | None):
        """Challenge with a verifier; ``certificate`` (PEM) is that of the TLS layer."""
        info = (known.salt, known.stored_key, known.server_key, known.iterations)
        binding = ("tls-server-end-point", certificate) if certificate is not None else None
        self._server: Any = ScramMechanism(mechanism).make_server(lambda _: info, binding)

    def first(self, message: bytes) -> bytes:
        """The challenge to a client's first message; ``ScramException`` where it is malformed."""
        text = _ascii(message)
        header, bare = _parted(text)
        # PostgreSQL's clients leave the name empty, for the start-up message gave it; scramp wants
        # one. It signs what the client sent.
        self._server.set_client_first(f"{header}n=user,{bare.partition(',')[2]}")
        self._server.client_first_bare = bare
        return str(self._server.get_server_first()).encode()

    def final(self, message: bytes) -> bytes:
        """The server's proof; ``ScramException`` where the client's is wrong."""
        self._server.set_client_final(_ascii(message))
        return str(self._server.get_server_final()).encode()


def _ascii(message: bytes) -> str:
    try:
        return message.decode("ascii")
    except UnicodeDecodeError:
        raise ScramException("a message that is not ASCII") from None


def _parted(text: str) -> tuple[str, str]:
    """The header of a first message, with its commas, and the rest, which begins with a name."""
    parts = text.split(",", 2)
    if len(parts) != 3 or not parts[2].startswith("n="):
        raise ScramException("a malformed first message")
    return f"{parts[0]},{parts[1]},", parts[2]
