"""The secret that noise is seeded with, and the file that keeps it."""

import hashlib
import os
import secrets
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Self

from countleak.diffix.sql.statement import Column, Kind, Table, Value
from countleak.errors import InputError

SHORTEST = 8
MASK = 2**64 - 1
# The questions of an attack share most of their constants.
HASHES_CACHED = 1000


@dataclass(frozen=True)
class Salt:
    """A secret of at least 8 bytes; it is never shown."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < SHORTEST:
            raise InputError(
                f"a salt of {len(self.secret)} bytes can be guessed; give at least {SHORTEST}"
            )

    @classmethod
    def random(cls) -> Self:
        """A salt nobody knows."""
        return cls(secrets.token_bytes(32))

    @cache  # noqa: B019  (a salt lives as long as the process)
    def key(self, *role: str) -> str:
        """The hexadecimal key that elements of a role are hashed with."""
        return hashlib.sha256(b"\0".join([self.secret, *(r.encode() for r in role)])).hexdigest()

    @lru_cache(maxsize=HASHES_CACHED)  # noqa: B019
    def element(self, role: str, *parts: str) -> int:
        """64 bits for an element of a layer, apart from the same parts in another role."""
        return first_64_bits(self.key(role) + "\0".join(parts))

    @property
    def fingerprint(self) -> str:
        """Eight characters that tell salts apart and give nothing of them away."""
        return self.key("fingerprint")[:8]

    def value_key(self, table: Table, column: Column, role: str) -> str:
        """The key for the values of a column: what the database hashes them with."""
        own = table.origin(column.name)
        return self.key(role, *(table.people or own if role == "user" else own))

    @lru_cache(maxsize=HASHES_CACHED)  # noqa: B019
    def value(self, table: Table, column: Column, value: Value | float) -> int:
        """What the database makes of a value of the column."""
        return first_64_bits(self.value_key(table, column, "value") + canonical(column.kind, value))


def first_64_bits(text: str) -> int:
    """The first 64 bits of the text's sha256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def canonical(kind: Kind, value: Value | float) -> str:
    """The one spelling of a value of that kind; ``database`` spells it alike in SQL."""
    if isinstance(value, str):
        return value
    if kind is Kind.WHOLE and value == int(value):
        return str(int(value))
    return f"{int.from_bytes(struct.pack('>d', float(value) + 0.0), 'big'):064b}"


def salt_file(path: Path) -> Salt:
    """The salt kept at ``path``; where there is none a random one, readable by its owner only."""
    return keep_salt(path, read_salt(path))


def read_salt(path: Path) -> Salt:
    """The salt kept at ``path``; where there is none a random one, for ``keep_salt`` to keep."""
    if not path.exists():
        return Salt(secrets.token_hex(32).encode())
    if not path.is_file():
        raise InputError(f"{path}: not a file; name the file of a salt, or a new one")
    return Salt(read_private(path, "salt").strip())


def keep_salt(path: Path, salt: Salt) -> Salt:
    """Write a new salt for its owner only; the salt kept there, another process's if it won."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Where another process was faster, its salt counts.
        with suppress(FileExistsError):
            _write_salt(path, salt)
    return Salt(read_private(path, "salt").strip())


def _write_salt(path: Path, salt: Salt) -> None:
    """Write a salt to a new file; no part of one is left behind."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(salt.secret + b"\n")
    except BaseException:
        path.unlink()
        raise


def read_private(path: Path, what: str) -> bytes:
    """The content of a file that holds a secret; others must not be allowed to read it."""
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(f"{path}: others may read this {what}; run: chmod 600 {path}")
    return path.read_bytes()
