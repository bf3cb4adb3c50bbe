"""What a sequence of logged counts gives away, query by query: a leak meter for a database.

Each logged count is computed on the owner's own table. Counts that differ by a person or two, in
any way that sums and differences of them can, are found, with the query that completed it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from countleak.audit.query_log.account import (
    Account,
    Accountant,
    Alarm,
    Sequence_,
)
from countleak.audit.query_log.counts import Asked, Reader, Reading
from countleak.audit.query_log.logic import Logic
from countleak.audit.query_log.members import Members, members_of
from countleak.audit.query_log.reading import Logged, read_log
from countleak.audit.query_log.table import Source
from countleak.errors import InputError, NoResult
from countleak.files import Name
from countleak.foreign import clean
from countleak.progress import Progress, silent

SMALL = 2
SHOWN = 20
# So many statements of a reason are named.
NAMED = 5


@dataclass(frozen=True, eq=False)
class LogAudit:
    """What a log of counts gives away.

    ``unread`` are the statements about the table, or perhaps about it, of which something is not in
    the account, by the reason; ``others`` those about other tables or about none, by what they
    name. ``counted`` statements are in the account.
    """

    statements: int
    counted: int
    rows: int
    table: str
    small: int
    accounts: tuple[Account, ...]
    unread: Mapping[str, Sequence[Logged]]
    others: Mapping[str, int]

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms of all accounts, in the order of the log."""
        every = (alarm for account in self.accounts for alarm in account.alarms)
        return tuple(sorted(every, key=lambda alarm: alarm.by.number))

    @property
    def found(self) -> int:
        """The alarms, those without a printed proof included."""
        return sum(len(account.alarms) + account.unproven for account in self.accounts)

    @property
    def not_read(self) -> int:
        """How many statements the account is without, wholly or in part."""
        return len({query.number for some in self.unread.values() for query in some})

    def unread_in_words(self) -> str:
        """How many statements the account is without."""
        return f"{self.not_read:,} of {self.statements:,} statements"

    def __str__(self) -> str:
        few = f"1 to {self.small} people" if self.small > 1 else "one person"
        lines = [
            f"{self.statements:,} statements, of which {self.counted:,} count rows of "
            f"{clean(self.table)} ({self.rows:,} rows).",
        ]
        lines += [self._account_in_words(account) for account in self.accounts]
        alarms = self.alarms
        proven = sum(alarm.is_proven for alarm in alarms)
        lines.append(
            f"Alarms: {self.found:,}, of groups of {few}; {proven:,} rest on the answers alone."
        )
        for alarm in alarms[:SHOWN]:
            user = f", {clean(alarm.user)}" if alarm.user else ""
            when = f", {clean(alarm.by.time)}" if alarm.by.time else ""
            secret = "; told apart by the secret" if alarm.names_secret else ""
            lines.append(
                f"  query {alarm.by.number} (line {alarm.by.line}{when}{user}): "
                f"{clean(alarm.equation)}{secret}"
            )
            if not alarm.is_proven:
                lines.append(f"    {clean(alarm.rests_on)}")
        if len(alarms) > SHOWN:
            lines.append(f"  ... and {len(alarms) - SHOWN:,} more")
        unproven = sum(account.unproven for account in self.accounts)
        if unproven:
            lines.append(f"{unproven:,} of them follow from more counts than are printed.")
        if not all(account.complete for account in self.accounts):
            lines.append("Pairs of groups: there are too many; not all were looked at.")
        return "\n".join([*lines, *self._reasons()])

    def _account_in_words(self, account: Account) -> str:
        whose = "" if account.user is None else f"{clean(account.user) or 'no user'}: "
        return (
            f"{whose}{account.conditions:,} counts of different people, {account.rank:,} of them "
            f"independent, pin {account.pinned:,} people."
        )

    def _reasons(self) -> list[str]:
        lines = []
        if self.unread:
            lines.append(f"Not in the account: {self.unread_in_words()}, so it is no all-clear.")
        for reason, queries in sorted(self.unread.items(), key=lambda item: -len(item[1])):
            some = ", ".join(str(query.line) for query in queries[:NAMED])
            more = ", ..." if len(queries) > NAMED else ""
            lines.append(f"  {len(queries):,}: {clean(reason)} (line {some}{more})")
        if self.others:
            named = sorted(self.others.items(), key=lambda item: -item[1])[:NAMED]
            what = ", ".join(f"{clean(name)} {count:,}" for name, count in named)
            lines.append(f"About other tables, or none: {sum(self.others.values()):,} ({what}).")
        return lines

    def record(self) -> dict[str, Any]:
        """The audit as plain fields."""
        return {
            "statements": self.statements,
            "counted": self.counted,
            "rows": self.rows,
            "table": self.table,
            "small": self.small,
            "alarms": [alarm.record() for alarm in self.alarms],
            "unproven": sum(account.unproven for account in self.accounts),
            "complete": all(account.complete for account in self.accounts),
            "accounts": [
                {
                    "user": account.user,
                    "conditions": account.conditions,
                    "rank": account.rank,
                    "pinned": account.pinned,
                    "curve": [list(point) for point in account.curve],
                }
                for account in self.accounts
            ],
            "not_read": self.not_read,
            "unread": {
                reason: [query.line for query in queries] for reason, queries in self.unread.items()
            },
            "others": dict(self.others),
        }


@dataclass(frozen=True)
class Options:
    """How a log is read: what is a small group, whose accounts are kept, and the SQL's dialect.

    ``secret`` is a column; alarms say whether a condition of theirs names it.
    """

    small: int = SMALL
    per_user: bool = False
    secret: str | None = None
    dialect: str | None = None
    authorised_by: str | None = None

    def __post_init__(self) -> None:
        if self.small < 1:
            raise InputError(f"small is {self.small}; a group has at least one person")
        if self.dialect is not None:
            from sqlglot.dialects import Dialect

            if self.dialect not in Dialect.classes:
                known = ", ".join(sorted(name for name in Dialect.classes if name))
                raise InputError(f"there is no dialect {self.dialect!r}; choose {known}")


def audit_log(
    log: Name,
    database: str,
    table: str | None = None,
    *,
    options: Options | None = None,
    progress: Progress = silent,
) -> LogAudit:
    """What the counts in a log pin, computed on the table as it is now.

    ``database`` is a DuckDB, CSV or Parquet file, or the URL of one that SQLAlchemy knows.
    """
    options = options or Options()
    logged = read_log(log)
    source = Source(str(database), table, options.authorised_by)
    if options.secret is not None and options.secret.lower() not in source.columns:
        raise InputError(
            f"{source.table} has no column {options.secret!r}; the columns are "
            f"{', '.join(source.columns.values())}"
        )
    reader = Reader(source.parts, source.columns, options.dialect or source.dialect)
    entries = _Entries(logged)
    asked = entries.read(reader)
    columns = sorted({column for each in asked for column in each.columns})
    held = source.load(columns)
    members = members_of(held, list(asked), progress)
    sequence = entries.sequence(members, asked)
    if not sequence:
        raise NoResult(entries.nothing(source.table))
    named = (options.secret or "").lower()
    secret = frozenset(
        condition
        for each, at in asked.items()
        if named in {column.lower() for column in each.columns}
        for condition in members.of[at]
        if not isinstance(condition, str)
    )
    accountant = Accountant(members, Logic(held), options.small, secret)
    by_user = _by_user(sequence, options.per_user)
    accounts = tuple(accountant.account(counts, user) for user, counts in by_user.items())
    return LogAudit(
        len(logged),
        len({query.number for query, _ in sequence}),
        held.rows,
        source.table,
        options.small,
        accounts,
        entries.unread,
        entries.others,
    )


def _by_user(sequence: Sequence_, per_user: bool) -> dict[str | None, list[tuple[Logged, int]]]:
    by_user: dict[str | None, list[tuple[Logged, int]]] = defaultdict(list)
    for query, condition in sequence:
        by_user[query.user if per_user else None].append((query, condition))
    return by_user


@dataclass
class _Entries:
    """The statements of a log on their way into the account, and what is left of them."""

    logged: Sequence[Logged]
    unread: dict[str, list[Logged]] = field(default_factory=lambda: defaultdict(list))
    others: Counter[str] = field(default_factory=Counter)
    _read: list[tuple[Logged, Reading]] = field(default_factory=list)

    def read(self, reader: Reader) -> dict[Asked, int]:
        """Read every statement, each text once: the counts asked for, numbered."""
        asked: dict[Asked, int] = {}
        known: dict[tuple[str, tuple[str | None, ...]], Reading] = {}
        for query in self.logged:
            text = query.text, query.parameters
            if text not in known:
                known[text] = reader.read(*text)
            reading = known[text]
            if not reading.about:
                self.others[", ".join(reading.tables) or "no table"] += 1
                continue
            if reading.unread is not None:
                self.unread[reading.unread].append(query)
            if reading.asked:
                self._read.append((query, reading))
            for each in reading.asked:
                asked.setdefault(each, len(asked))
        return asked

    def sequence(self, members: Members, asked: Mapping[Asked, int]) -> list[tuple[Logged, int]]:
        """Each count in the order of the log, by its condition."""
        found: list[tuple[Logged, int]] = []
        for query, reading in self._read:
            conditions: list[int] = []
            for each in reading.asked:
                some = members.of[asked[each]]
                if isinstance(some, str):
                    self.unread[some].append(query)
                else:
                    conditions += some
            if query.answer is not None and len(conditions) == 1 and not reading.asked[0].by:
                count = int(members.counts[conditions[0]])
                if (fault := _fault(query.answer, count)) is not None:
                    self.unread[fault].append(query)
                    continue
            found += [(query, condition) for condition in conditions]
        return found

    def nothing(self, table: str) -> str:
        """Why no statement is in the account."""
        reasons = [f"{len(some):,}: {reason}" for reason, some in self.unread.items()]
        reasons += [f"{count:,}: about {name}" for name, count in self.others.items()]
        shown = "; ".join(map(clean, reasons[:NAMED]))
        return f"none of {len(self.logged):,} statements counts rows of {clean(table)} ({shown})"


def _fault(answer: str, count: int) -> str | None:
    """Why a logged answer is none that the account can use; None where it is the count."""
    try:
        number = float(answer.replace(",", ""))
    except ValueError:
        return "its answer was no number, so suppressed or an error"
    return None if number == count else "its answer is not the count of today: noise, or new data"
