"""Statements about the session itself: transactions, and settings by SET, SHOW and RESET."""

from collections.abc import Sequence
from dataclasses import dataclass

from countleak.diffix.server.errors import BAD_VALUE, UNKNOWN_NAME, Failure
from countleak.diffix.server.results import EVERY, TEXT, Field, Result, write_rows

VERSION = "14.0"
# What a client hears at the start of a session, and whenever it changes.
REPORTED = {
    "server_version": VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "is_superuser": "off",
    "session_authorization": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
}
KNOWN = {
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "search_path": "public",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "server_version_num": "140000",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "jit": "off",
    "max_index_keys": "32",
}
FIXED = frozenset(
    ["server_version", "server_encoding", "is_superuser", "integer_datetimes", "server_version_num"]
)
_BY_LOWER = {name.lower(): name for name in (*REPORTED, *KNOWN)}


# The words that a statement about the session begins with.
COMMANDS = frozenset(
    [
        *("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"),
        *("SET", "RESET", "SHOW", "DISCARD", "DEALLOCATE", "CLOSE", "LISTEN", "UNLISTEN"),
    ]
)
MOST_SETTINGS, LONGEST_SETTING = 200, 1000
IDLE, IN_TRANSACTION, FAILED = "I", "T", "E"


@dataclass(frozen=True)
class Control:
    """A statement about the session, in words as they were written."""

    written: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words in lower case."""
        return tuple(word.lower() for word in self.written)

    @property
    def ends_transaction(self) -> bool:
        """Whether a transaction that failed is over after it."""
        return self.words[0] in ("commit", "end", "rollback", "abort")


class State:
    """Whether a session is in a transaction, and its settings.

    Any name can be set, and only the known ones mean something.
    """

    def __init__(self, user: str, given: dict[str, str]):
        """The state of a user's new session; some settings are given by the client."""
        self.status = IDLE
        self._first = {**KNOWN, **REPORTED, "session_authorization": user}
        self._values = dict(self._first)
        for name, value in given.items():
            self._put(name, value)
        self._first = dict(self._values)

    @property
    def reported(self) -> dict[str, str]:
        """What a client is told of without asking."""
        return {name: self._values[name] for name in REPORTED}

    def fail(self) -> None:
        """A statement failed: a transaction that is open waits for its end."""
        if self.status == IN_TRANSACTION:
            self.status = FAILED

    def fields(self, control: Control) -> tuple[Field, ...] | None:
        """The columns that a statement returns: those of SHOW."""
        if control.words[0] != "show":
            return None
        name = self._name(control.words[1:])
        if name == "all":
            return (Field("name", TEXT), Field("setting", TEXT))
        return (Field(name, TEXT),)

    def run(self, control: Control) -> Result:
        """Do what a statement says."""
        words = control.words
        match words:
            case ("begin", *_) | ("start", *_):
                self.status = IN_TRANSACTION
                return Result("BEGIN")
            case ("rollback", "to", *_):
                self.status = IN_TRANSACTION
                return Result("ROLLBACK")
            case ("commit" | "end", *_) | ("rollback" | "abort", *_):
                undone = self.status == FAILED or words[0] in ("rollback", "abort")
                self.status = IDLE
                return Result("ROLLBACK" if undone else "COMMIT")
            case ("show", *name):
                fields = self.fields(control) or ()
                return Result("SHOW", fields, write_rows(self._show(name), fields))
            case ("set", *_):
                return Result("SET", changed=self._set(control.written[1:]))
            case ("reset", *rest):
                return Result("RESET", changed=self._reset(rest))
            case ("discard", "all", *_):
                return Result("DISCARD ALL", changed=self._reset(["all"]), forgotten=EVERY)
            case ("deallocate", "all") | ("deallocate", "prepare", "all"):
                return Result("DEALLOCATE ALL", forgotten=EVERY)
            case ("deallocate", *_):
                return Result("DEALLOCATE", forgotten=control.written[-1])
            case _:
                return Result(words[0].upper())

    def _show(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """The value of a setting, or of all."""
        name = self._name(words)
        if name == "all":
            return sorted(self._values.items())
        if name not in self._values:
            raise Failure(UNKNOWN_NAME, f'unrecognized configuration parameter "{name}"')
        return [(self._values[name],)]

    def _set(self, words: Sequence[str]) -> dict[str, str]:
        """Set ``name = value`` or ``name TO value``; what of it is reported."""
        rest = [word for word in words if word.lower() not in ("session", "local")]
        rest[:2] = [word.lower() for word in rest[:2]]
        while rest[1:2] == ["."] and len(rest) > 2:
            rest[:3] = ["".join(rest[:3])]
            rest[1:2] = [word.lower() for word in rest[1:2]]
        if rest[:2] == ["characteristics", "as"] or rest[:1] == ["transaction"]:
            return {}
        if rest[:2] == ["time", "zone"]:
            rest = ["timezone", "=", *rest[2:]]
        if rest[:1] == ["names"]:
            rest = ["client_encoding", "=", *rest[1:]]
        if len(rest) < 3 or rest[1] not in ("=", "to"):
            raise Failure(BAD_VALUE, "Write SET name = value.")
        return self._put(rest[0], " ".join(rest[2:]))

    def _reset(self, words: Sequence[str]) -> dict[str, str]:
        """Put a setting, or all, back as at the start; what of it is reported."""
        before = self.reported
        name = self._name(words)
        if name == "all":
            self._values = dict(self._first)
        elif name in self._first:
            self._values[name] = self._first[name]
        return {name: value for name, value in self.reported.items() if before[name] != value}

    def _put(self, name: str, value: str) -> dict[str, str]:
        name = _BY_LOWER.get(name.lower(), name.lower())
        if name in FIXED:
            raise Failure("55P02", f'parameter "{name}" cannot be changed')
        if name == "client_encoding":
            if value.lower().strip("'").replace("-", "") not in ("utf8", "unicode"):
                raise Failure(BAD_VALUE, f"client_encoding {value[:20]} is not known; use UTF8.")
            value = "UTF8"
        if name == "standard_conforming_strings" and value.lower() not in ("on", "true", "1"):
            raise Failure(BAD_VALUE, "standard_conforming_strings is always on.")
        if len(self._values) > MOST_SETTINGS or len(name) + len(value) > LONGEST_SETTING:
            raise Failure(BAD_VALUE, "Too many settings, or too long a one.")
        self._values[name] = value
        return {name: value} if name in REPORTED else {}

    def _name(self, words: Sequence[str]) -> str:
        joined = " ".join(words).lower()
        joined = {
            "transaction isolation level": "transaction_isolation",
            "time zone": "TimeZone",
        }.get(joined, joined)
        return _BY_LOWER.get(joined, joined.replace(" . ", "."))
