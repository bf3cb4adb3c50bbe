"""Addresses of PostgreSQL servers, as libpq reads them, of which no password is ever shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from countleak.errors import InputError
from countleak.foreign import clean, first_line, without

SCHEMES = ("postgresql://", "postgres://")
UNREADABLE = (
    "the address cannot be read; write postgresql://user@host:port/database, with any special "
    "character of a password as %XX"
)


@dataclass(frozen=True)
class PostgresAddress:
    """An address: its ``text`` holds what libpq needs, ``info`` is how libpq reads it.

    As text it is shown without its password. One that may be meant otherwise than libpq would read
    it is rejected: with an unescaped @ or / in a password, a part of that password would be shown
    as a host or a database.
    """

    text: str = field(repr=False)
    info: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, text: str) -> Self:
        """The address in a text; needs psycopg. What is wrong is told without quoting any of it."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        if not text.isprintable() or (text.startswith(SCHEMES) and not is_plain(text)):
            raise InputError(UNREADABLE)
        try:
            given = conninfo_to_dict(text)
        except (psycopg.Error, UnicodeError):
            # libpq's own words could quote the password.
            raise InputError(UNREADABLE) from None
        defaults = {
            option.keyword.decode(): option.val.decode()
            for option in psycopg.pq.Conninfo.get_defaults()
            if option.val is not None
        }
        info = {
            name: str(value) for name, value in {**defaults, **given}.items() if value is not None
        }
        ports = [port for port in info.get("port", "").split(",") if port]
        if not all(port.isdecimal() and 0 < int(port) < 65536 for port in ports):
            raise InputError(UNREADABLE)
        return cls(text, info)

    def __str__(self) -> str:
        info = self.info
        host = info.get("host") or info.get("hostaddr") or "a local socket"
        port = f":{info['port']}" if info.get("port") and info.get("host") else ""
        user = f"{info['user']}@" if info.get("user") else ""
        name = info.get("dbname") or info.get("user") or ""
        return clean(f"postgresql://{user}{host}{port}/{name}")

    def words(self, text: str, password: str | None = None) -> str:
        """What a server or libpq said, in one clean line without the password.

        ``password`` is the one that was used, where it did not come from the address.
        """
        secrets = (password, self.info.get("password"), self.info.get("sslpassword"))
        return first_line(without(text, *secrets))


def is_plain(text: str) -> bool:
    """Whether nothing in an address can be part of a password that was not escaped."""
    credentials, at, _ = text.partition("://")[2].rpartition("@")
    return " " not in text and not (at and re.search("[/?#@]", credentials))
