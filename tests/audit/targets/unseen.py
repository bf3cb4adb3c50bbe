"""A front over PostgreSQL whose rules the audit is never told: it groups, adds noise and hides.

It speaks PostgreSQL's protocol and runs each statement on a real server. To every cell it adds two
sticky layers of noise, one seeded by the users in the cell, one by its labels; cells of few users
it leaves out, answers as NULL, or merges into one row.
"""

import random
from dataclasses import dataclass

import psycopg
import sqlglot
from sqlglot import exp

from tests.audit.targets.hostile import FLOAT8, INT8, TEXT, error, hostile, message, postgres
from tests.audit.targets.hostile import READY as IS_READY

USER = "client_id"
USERS = f'array_agg(DISTINCT "{USER}" ORDER BY "{USER}")'
# The statements that a session begins with, and what asks for the columns of a table.
OIDS = {20: INT8, 23: INT8, 701: FLOAT8, 1700: FLOAT8}


@dataclass(frozen=True)
class Front:
    """The rules: accepted ``functions``, columns that may be crossed, and how a cell is hidden."""

    functions: frozenset[type[exp.Expr]] = frozenset({exp.Floor, exp.Substring})
    ways: int = 2
    sd: float = 1.0
    hides_about: float = 5.0
    hidden: str = "missing"
    salt: str = "a salt"

    def refusal(self, tree: exp.Expr) -> str | None:
        """Why a statement is not answered."""
        if not isinstance(tree, exp.Select) or tree.args.get("group") is None:
            return "only SELECT ... GROUP BY is allowed"
        *groups, counted = tree.expressions
        if counted.sql("postgres") != f'COUNT(DISTINCT "{USER}")':
            return "only COUNT(DISTINCT client_id) is allowed"
        if len(groups) > self.ways:
            return f"at most {self.ways} groups are allowed"
        where = tree.args.get("where")
        if where is not None and any(c.name == USER for c in where.find_all(exp.Column)):
            return "conditions about ids are not allowed"
        for group in groups:
            if isinstance(group, exp.Column):
                if group.name == USER:
                    return "ids may not be grouped as they are"
            elif type(group) not in self.functions:
                return f"{group.sql('postgres')} is not allowed"
        return None

    def cells(self, rows, labels: str):
        """The rows as they are told: labels and a noisy count."""
        told, merged = [], set()
        for *groups, users in rows:
            key = (self.salt, tuple(users))
            limit = max(2.0, random.Random(repr(("limit", *key))).gauss(self.hides_about, 0.6))
            if len(users) < limit:
                merged |= set(users)
                if self.hidden == "null":
                    told.append((*groups, None))
                continue
            told.append((*groups, self._noisy(len(users), key, (labels, groups))))
        if self.hidden == "merged" and len(merged) >= self.hides_about:
            users = tuple(sorted(merged))
            noisy = self._noisy(len(users), (self.salt, users), (labels, "*"))
            told.append((*(None for _ in groups), noisy))
        return told

    def _noisy(self, count: int, *keys: object) -> int:
        layers = [random.Random(repr((self.salt, key))).gauss(0.0, self.sd) for key in keys]
        return max(0, round(count + sum(layers)))


def unseen(front: Front, conninfo: str, log=None):
    """The front on a port of its own, over the tables of a server; it logs what it is asked."""

    def reply(text: str) -> object:
        if log is not None:
            log.append(text)
        try:
            tree = sqlglot.parse_one(text, dialect="postgres")
        except sqlglot.ParseError:
            return error(b"syntax error", b"42601") + IS_READY
        if (reason := front.refusal(tree)) is not None:
            return error(reason.encode(), b"0A000") + IS_READY
        tree.expressions[-1].replace(exp.column("users"))
        asked = tree.sql("postgres").replace("users", USERS, 1)
        try:
            with psycopg.connect(conninfo, autocommit=True) as connection:
                cursor = connection.execute(asked.encode())
                kinds = [OIDS.get(each.type_code, TEXT) for each in cursor.description]
                rows = cursor.fetchall()
        except psycopg.Error as fault:
            return error(str(fault).encode(), (fault.sqlstate or "XX000").encode()) + IS_READY
        labels = ", ".join(each.sql() for each in tree.expressions[:-1])
        return table([*kinds[:-1], INT8], front.cells(rows, labels))

    return hostile(postgres(reply))


def table(kinds: list[int], rows: list[tuple[object, ...]]) -> bytes:
    """Rows as PostgreSQL's protocol has them."""
    columns = b"".join(
        b"c\0" + (0).to_bytes(4, "big") + bytes(2) + kind.to_bytes(4, "big")
        + (8).to_bytes(2, "big") + b"\xff\xff\xff\xff" + bytes(2)
        for kind in kinds
    )  # fmt: skip
    said = [message(b"T", len(kinds).to_bytes(2, "big") + columns)]
    for row in rows:
        values = [None if value is None else str(value).encode() for value in row]
        cells = b"".join(
            b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
            for value in values
        )
        said.append(message(b"D", len(values).to_bytes(2, "big") + cells))
    return b"".join([*said, message(b"C", f"SELECT {len(rows)}\0".encode()), IS_READY])
