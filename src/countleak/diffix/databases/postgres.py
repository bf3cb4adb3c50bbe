"""Tables of a PostgreSQL server: read-only transactions, a time limit, and hashes in SQL."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countleak.addresses import PostgresAddress
from countleak.diffix.databases.database import declare, with_statistics
from countleak.diffix.salt import Salt
from countleak.diffix.sql.dates import column_in_sql
from countleak.diffix.sql.joins import join_rows
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.magnitude import LARGEST, SMALLEST
from countleak.diffix.sql.render import Dialect, Hash, Value, Where, quote, write_text
from countleak.diffix.sql.statement import Column, Kind, Table
from countleak.errors import InputError, MissingExtra, TargetError

if TYPE_CHECKING:
    import psycopg

SECONDS = 30
# What a row counts: all bits are set, but of decoys none.
MASK = '"mask of decoys"'
# So few rows or fewer cost the same: as many as a threshold suppresses, and nobody's.
PADDED = 13


@dataclass(frozen=True)
class PostgresDialect:
    """Columns are cleaned, and hashes computed, over the matching rows, as the question comes.

    A hash takes so long that whoever measures time could tell how few rows match; so other rows of
    the table, as decoys with a mask of 0, are hashed and computed with where rows are missing.
    """

    salt: Salt

    apart = f", {MASK}"

    def source(self, table: Table, columns: Sequence[Column]) -> str:
        if table.joined:
            return join_rows(table, columns, self.source, hashed=False)
        selected = [f"{_clean(column)} AS {quote(column.name)}" for column in columns]
        user = _clean(Column(table.user, table.columns[table.user]))
        return (
            f"(SELECT {', '.join(selected)} FROM {quote(table.name)} WHERE {user} IS NOT NULL "
            f"UNION ALL SELECT {', '.join(['NULL'] * len(selected))}) AS t"
        )

    def matching(
        self, table: Table, source: str, hashes: Sequence[Hash], where: Where, decoys: str
    ) -> str:
        hashed = [f"{self.hashed(table, of)} & {MASK} AS {quote(of.name)}" for of in hashes]
        mask = f"CAST(-1 AS bigint) AS {MASK}"
        steps = [f"m AS MATERIALIZED (SELECT *, {mask} FROM {source} WHERE {where.plain})"]
        if where.costly is not None:
            # OFFSET keeps the condition out of the parts: each would prepare it for itself.
            computed = f"SELECT * FROM ({_padded('m', decoys)} OFFSET 0) AS p WHERE {where.costly}"
            steps.append(f"c AS MATERIALIZED ({computed} OR {MASK} = 0)")
        last = "m" if where.costly is None else "c"
        return (
            f"(WITH {', '.join(steps)} "
            f"SELECT {', '.join(['*', *hashed])} FROM ({_padded(last, decoys)}) AS p) AS t"
        )

    def counted(self, expression: str) -> str:
        return f"CASE WHEN {MASK} <> 0 THEN {expression} END"

    def weighed(self, expression: str) -> str:
        return f"({expression}) * -{MASK}"

    def largest(self, expression: str, count: int) -> str:
        return f"(array_agg({expression} ORDER BY {expression} DESC NULLS LAST))[1:{count}]"

    def hashed(self, table: Table, of: Hash) -> str:
        key = write_text(self.salt.value_key(table, of.column, of.role))
        digest = f"encode(sha256(convert_to({key} || {_canonical(of.column)}, 'UTF8')), 'hex')"
        return f"CAST(CAST('x' || substr({digest}, 1, 16) AS bit(64)) AS bigint)"


def _padded(rows: str, decoys: str) -> str:
    """The rows, and decoys for those that are missing."""
    missing = f"greatest({PADDED} - (SELECT count(*) FROM {rows}), 0)"
    return f"SELECT * FROM {rows} UNION ALL (SELECT *, 0 FROM ({decoys} LIMIT {missing}) AS d)"


def _clean(column: Column) -> str:
    """A column with values of which none can raise an error."""
    value = quote(column.name)
    if column.kind is Kind.WHOLE:
        return value
    if column.kind is Kind.TEXT:
        # Not every collation can be compared by patterns; that of the database can.
        return f'left(CAST({value} AS text), {LIMITS.text}) COLLATE "default"'
    if column.kind is Kind.DATE:
        return column_in_sql(value)
    # Constants without a type have the column's, which may hold more than a double.
    bounded = f"least(greatest({value}, '{-LARGEST:g}'), '{LARGEST:g}')"
    return (
        f"CASE WHEN {value} = 'NaN' THEN NULL WHEN abs({value}) < '{SMALLEST:g}' "
        f"THEN CAST(0 AS double precision) WHEN {value} IS NOT NULL "
        f"THEN CAST({bounded} AS double precision) END"
    )


def _canonical(column: Column) -> str:
    """The one spelling of a value that was read, as ``salt.canonical``."""
    name = quote(column.name)
    if column.kind in (Kind.NUMBER, Kind.DATE):
        bits = f"CAST('x' || encode(float8send({name}), 'hex') AS bit(64))"
        return f"CAST({bits} AS text)"
    return f"CAST({name} AS text)"


class Postgres:
    """Tables of a PostgreSQL server; the server computes, and never writes."""

    def __init__(self, connection: "psycopg.Connection[Any]", tables: tuple[Table, ...]):
        """Ask over ``connection``; use ``connect``, which makes it safe first."""
        self.tables = tables
        self._connection = connection

    @property
    def table(self) -> Table:
        """The first table."""
        return self.tables[0]

    def dialect(self, salt: Salt) -> Dialect:
        return PostgresDialect(salt)

    def rows(self, text: str, values: Sequence[Value] = ()) -> Sequence[tuple[Any, ...]]:
        import psycopg

        try:
            # Raw: parameters are $1, $2, ..., and psycopg has a text prepared that comes often.
            return psycopg.RawCursor(self._connection).execute(text.encode(), values).fetchall()
        except psycopg.Error:
            # The server's own words could quote a row.
            raise TargetError("the database could not compute this query") from None

    @property
    def usable(self) -> bool:
        from psycopg.pq import TransactionStatus

        return self._connection.info.transaction_status is TransactionStatus.IDLE


@contextmanager
def connect(
    url: str,
    *,
    table: str,
    user: str,
    others: Mapping[str, str] | None = None,
    seconds: int = SECONDS,
) -> Iterator[Postgres]:
    """The table of that name on the server at ``url``, whose rows name their user in ``user``.

    ``others`` are more tables with their user columns, which can be joined. Give it a role that can
    only read these tables; every transaction is read-only besides, and no statement takes longer
    than ``seconds``.
    """
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("a PostgreSQL database", "postgres") from None
    options = (
        f"-c default_transaction_read_only=on -c statement_timeout={1000 * seconds} "
        "-c extra_float_digits=1 -c standard_conforming_strings=on -c search_path=public "
        "-c client_encoding=UTF8 -c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC"
    )
    address = PostgresAddress.read(url)
    try:
        connection = psycopg.connect(address.text, autocommit=True, options=options)
    except psycopg.Error as error:
        raise InputError(
            f"no PostgreSQL server: {address.words(str(error))}; check its address"
        ) from None
    with connection:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            # Texts of others cannot all be sent, and those that cannot would raise an error.
            raise InputError(f"the database is encoded in {encoding}; use one in UTF8")
        users = {table: user} | dict(others or {})
        tables = [_described(connection, *each, (table, user)) for each in users.items()]
        yield Postgres(connection, tuple(tables))


def _described(
    connection: "psycopg.Connection[Any]", table: str, user: str, people: tuple[str, str]
) -> Table:
    columns = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = %s ORDER BY ordinal_position",
        [table],
    ).fetchall()
    if not columns:
        raise InputError(f"there is no table {table!r} in the schema public of that database")
    types = {str(name): str(type_name) for name, type_name in columns}
    declared = declare(table, user, types, people)
    # Statistics hash nothing, so any salt will do.
    return with_statistics(
        declared,
        PostgresDialect(Salt.random()),
        lambda query: connection.execute(query.encode()).fetchall()[0],
    )
