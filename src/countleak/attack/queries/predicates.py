"""Parts of SQL predicates that families share; sqlglot quotes names and escapes text."""

from collections.abc import Sequence

from sqlglot import exp

from countleak.attack.queries.ids import Id


def column(name: str) -> exp.Expr:
    """A column, quoted."""
    return exp.column(name, quoted=True)


def is_among(key: tuple[str, ...], ids: Sequence[Id]) -> exp.Expr:
    """Holds for the people with these ids; for nobody where there are none."""
    left = column(key[0]) if len(key) == 1 else exp.Tuple(expressions=[column(k) for k in key])
    if not ids:
        # IN () is no SQL; no id differs from itself.
        return exp.NEQ(this=column(key[0]), expression=column(key[0]))
    return exp.In(this=left, expressions=[_literal(person) for person in ids])


def is_between(name: str, low: int, high: int) -> exp.Expr:
    """Holds for the people whose ids lie in [low, high]."""
    return exp.Between(this=column(name), low=exp.convert(low), high=exp.convert(high))


def _literal(person: Id) -> exp.Expr:
    if isinstance(person, tuple):
        return exp.Tuple(expressions=[exp.convert(part) for part in person])
    return exp.convert(person)
