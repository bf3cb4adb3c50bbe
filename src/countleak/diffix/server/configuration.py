"""What is served to whom: from a TOML file, or the demo's generated bank."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt, keep_salt, read_private, read_salt
from countleak.diffix.server.background import DATABASE, TABLE, USER
from countleak.diffix.server.loading import Columns, File, Remote
from countleak.diffix.server.options import Limits, Listening
from countleak.diffix.server.server import Server
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import User, Users, Verifier, hash_token, scram_salt
from countleak.diffix.server.worker import Load
from countleak.errors import InputError
from countleak.files import read_text

RELEASE = "18.1"
EXAMPLE = "see docs/server.md for an example"


def demo(
    columns: Mapping[str, NDArray[Any]], user: str, listening: Listening, salt_path: Path
) -> Server:
    """A server of these columns for one user, who is trusted; the noise is that of 18.1."""
    salt, limits = read_salt(salt_path), Limits()
    users = Users({USER: User(USER, trusted=True)})
    load = Columns(dict(columns), TABLE, user, RELEASE, salt)
    served = [Served(DATABASE, load, limits, users.by_name)]
    return Server(served, users, listening, limits, partial(keep_salt, salt_path, salt))


def from_file(path: Path, changed: Mapping[str, Any]) -> Server:
    """The server that a TOML file describes; ``changed`` are fields of its listeners.

    Its salt is made where there is none, and kept once the server listens.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML ({error}); {EXAMPLE}") from None
    reader = _Reader(path)
    try:
        return reader.server(content, changed)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


class _Reader:
    """Reads the parts of a file; paths in it count from its folder."""

    def __init__(self, path: Path):
        self._path, self._folder = path, path.parent

    def server(self, content: dict[str, Any], changed: Mapping[str, Any]) -> Server:
        limits = Limits(**self._known(Limits, content.pop("limits", {}), "limits"))
        given = self._known(Listening, content.pop("listen", {}), "listen")
        for name in ("certificate", "key"):
            if name in given:
                given[name] = self._folder / str(given[name])
        listening = Listening(**{**given, **changed})
        release = release_of(str(content.pop("release", RELEASE))).name
        salt_path = self._folder / str(content.pop("salt_file", "salt"))
        salt = read_salt(salt_path)
        described = self._tables(content, "users")
        secret = salt.key("users").encode()
        users = Users(
            {name: self._user(name, entry, secret) for name, entry in described.items()}, secret
        )
        served = []
        for name, entry in self._tables(content, "databases").items():
            load = self._database(name, entry, release, salt, limits)
            served.append(Served(name, load, limits, users.by_name, str(self._path)))
        if content:
            raise InputError(f"unknown key {next(iter(content))!r}; {EXAMPLE}")
        if not served:
            raise InputError(f"declares no database; {EXAMPLE}")
        if not users.by_name:
            raise InputError(f"declares no user; {EXAMPLE}")
        for user in users.by_name.values():
            for name in user.databases - {one.name for one in served}:
                raise InputError(f"user {user.name}: there is no database {name!r}")
        keep = partial(keep_salt, salt_path, salt)
        return Server(served, users, listening, limits, keep)

    def _tables(self, content: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
        tables = content.pop(name, {})
        if not isinstance(tables, dict) or not all(isinstance(v, dict) for v in tables.values()):
            raise InputError(f"[{name}.NAME] must be a table; {EXAMPLE}")
        return tables

    def _known(self, kind: type, given: Any, where: str) -> dict[str, Any]:
        """The fields of ``kind`` that a table of the file gives, of their types."""
        if not isinstance(given, dict):
            raise InputError(f"[{where}] must be a table; {EXAMPLE}")
        known = {field.name: field.default for field in fields(kind)}
        for name, value in given.items():
            if name not in known:
                raise InputError(f"{where}: unknown key {name!r}; choose {', '.join(known)}")
            wanted = str if name in ("host", "certificate", "key") else (int, float)
            if isinstance(known[name], bool) != isinstance(value, bool):
                raise InputError(f"{where}: {name} is {value!r}, expected another type")
            if not isinstance(value, wanted):
                raise InputError(f"{where}: {name} is {value!r}, expected another type")
            if isinstance(known[name], int) and not isinstance(value, int):
                raise InputError(f"{where}: {name} is {value!r}, expected a whole number")
        return dict(given)

    def _user(self, name: str, entry: dict[str, Any], secret: bytes) -> User:
        where = f"user {name}"
        trusted = entry.pop("trust", False)
        databases = entry.pop("databases", [])
        if not isinstance(databases, list) or not isinstance(trusted, bool):
            raise InputError(f"{where}: databases is a list of names, and trust true or false")
        verifier = None
        if "verifier" in entry:
            verifier = Verifier.parse(str(entry.pop("verifier")))
        elif password := self._secret(entry, "password", where):
            verifier = Verifier.of_password(password, scram_salt(secret, name))
        tokens = []
        if "token_sha256" in entry:
            hashed = str(entry.pop("token_sha256"))
            if not re.fullmatch("[0-9a-f]{64}", hashed):
                raise InputError(f"{where}: token_sha256 is 64 hexadecimal digits, in lower case")
            tokens.append(bytes.fromhex(hashed))
        if token := self._secret(entry, "token", where):
            tokens.append(hash_token(token))
        if entry:
            raise InputError(f"{where}: unknown key {next(iter(entry))!r}; {EXAMPLE}")
        if trusted and (verifier is not None or tokens):
            raise InputError(f"{where}: is trusted and has a password or a token; choose one")
        if not trusted and verifier is None and not tokens:
            raise InputError(
                f"{where}: has neither verifier, password_env, password_file, token_sha256, "
                "token_env nor token_file, and could never connect"
            )
        return User(name, verifier, tuple(tokens), frozenset(map(str, databases)), trusted)

    def _secret(self, entry: dict[str, Any], name: str, where: str) -> str | None:
        """A password or token from the environment or a file, never from the file of settings."""
        if name in entry:
            raise InputError(
                f"{where}: a {name} is not written in this file; use {name}_env or {name}_file"
            )
        if f"{name}_env" in entry:
            variable = str(entry.pop(f"{name}_env"))
            if not os.environ.get(variable):
                raise InputError(f"{where}: the environment has no {variable}")
            return os.environ[variable]
        if f"{name}_file" in entry:
            path = self._folder / str(entry.pop(f"{name}_file"))
            if not path.is_file():
                raise InputError(f"{path}: no such file; it should hold the {name} of {where}")
            return read_private(path, name).decode().strip() or None
        return None

    def _database(
        self, name: str, entry: dict[str, Any], release: str, salt: Salt, limits: Limits
    ) -> Load:
        """How to load a database: each of its tables is declared with its user column."""
        where = f"database {name}"
        tables = entry.pop("tables", None)
        if not isinstance(tables, dict) or not tables:
            raise InputError(f'{where}: declare tables = {{ loans = "client_id" }}: name, user id')
        declared = {str(table): str(user) for table, user in tables.items()}
        file, url = entry.pop("file", None), self._url(entry, where)
        if entry:
            raise InputError(f"{where}: unknown key {next(iter(entry))!r}; {EXAMPLE}")
        if (file is None) == (url is None):
            raise InputError(f"{where}: name a file, or a url or url_env")
        if url is not None:
            # A little longer than the server waits: it stops what takes longer, in clearer words.
            return Remote(url, declared, release, salt, ceil(limits.seconds) + 1)
        if "://" in str(file):
            raise InputError(f"{where}: file is an address; write it as url, or in url_env")
        path = self._folder / str(file)
        if path.suffix in (".csv", ".parquet") and len(tables) > 1:
            raise InputError(f"{where}: {file} is one table; declare one")
        return File(path.absolute(), declared, release, salt)

    def _url(self, entry: dict[str, Any], where: str) -> str | None:
        if "url_env" in entry:
            variable = str(entry.pop("url_env"))
            if not os.environ.get(variable):
                raise InputError(f"{where}: the environment has no {variable}")
            return os.environ[variable]
        return str(entry.pop("url")) if "url" in entry else None
