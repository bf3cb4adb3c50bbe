"""What a statement is: a question to Diffix, a look at the catalogue, or a word to the session."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from countleak.diffix.engine import Engine
from countleak.diffix.sql.parse import UNREADABLE, statement_trees
from countleak.errors import Refused

# The words a statement to the session begins with; `session` answers them.
CONTROL = frozenset(
    [
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SET",
        "RESET",
        "SHOW",
        "DISCARD",
        "DEALLOCATE",
        "CLOSE",
        "LISTEN",
        "UNLISTEN",
    ]
)


@dataclass(frozen=True)
class Control:
    """A word to the session, split into words: in lower case, and as they were written."""

    words: tuple[str, ...]
    written: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question about a table, for its engine."""

    tree: exp.Expression
    engine: Engine
    text: str


@dataclass(frozen=True)
class Lookup:
    """A look at the catalogue, or an expression over no table."""

    tree: exp.Expression


Kind = Control | Question | Lookup


def split(text: str) -> list[str]:
    """The statements of a text, which semicolons part."""
    pieces, start = [], 0
    for token in _tokens(text):
        if token.token_type.name == "SEMICOLON":
            pieces.append(text[start : token.start])
            start = token.end + 1
    return [piece.strip() for piece in (*pieces, text[start:]) if _tokens(piece)]


def read(text: str, engines: dict[str, Engine]) -> Kind:
    """What kind of statement the text is; ``engines`` answer questions about their tables."""
    words = tuple(token.text for token in _tokens(text))
    if words and words[0].upper() in CONTROL:
        return Control(tuple(word.lower() for word in words), words)
    tree = _tree(text)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if t.db or t.name.lower() not in ctes]
    for table in tables:
        if not table.db and table.name.lower() in engines:
            return Question(tree, engines[table.name.lower()], text)
        if table.db.lower() == "public" and table.name.lower() in engines:
            # The schema that the catalogue says the tables lie in.
            table.set("db", None)
            engine = engines[table.name.lower()]
            return Question(tree, engine, tree.sql(dialect="postgres"))
    if all(_in_catalogue(table) for table in tables) and isinstance(tree, exp.Query):
        return Lookup(tree)
    return Question(tree, next(iter(engines.values())), text)


def _in_catalogue(table: exp.Table) -> bool:
    schema = table.db.lower()
    if schema:
        return schema in ("pg_catalog", "information_schema")
    return table.name.lower().startswith("pg_") or not isinstance(table.this, exp.Identifier)


def _tokens(text: str) -> list[Any]:
    try:
        return sqlglot.tokenize(text, read="postgres")
    except SqlglotError:
        raise Refused(UNREADABLE) from None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    trees = statement_trees(text)
    return trees[0] if trees is not None and len(trees) == 1 else None


def _tree(text: str) -> exp.Expression:
    tree = _parsed(text)
    if tree is None:
        raise Refused(UNREADABLE)
    copied: exp.Expression = tree.copy()
    return copied
