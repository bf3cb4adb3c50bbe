"""Statements without the ids that they name."""

from collections.abc import Sequence

HIDDEN = "(hidden: it may name people)"


def without_ids(sql: str, key: Sequence[str]) -> str:
    """The statement with ``…`` for whatever the ``key`` columns are compared with.

    What cannot be read as SQL is hidden as a whole.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(sql, dialect="postgres")
    except SqlglotError:
        return HIDDEN
    if tree.find(exp.Anonymous):
        # A function of the system's own may hold a condition as text.
        return HIDDEN
    for node in list(tree.find_all(exp.Predicate)):
        if not _is_key(node.this, key):
            continue
        for name, value in list(node.args.items()):
            if name == "this" or value is None or isinstance(value, bool):
                continue
            one = exp.Var(this="…")
            node.set(name, [one] if isinstance(value, list) else one)
    return tree.sql(dialect="postgres")


def _is_key(node: object, key: Sequence[str]) -> bool:
    """Whether it is an id column, or several in brackets."""
    from sqlglot import exp

    if isinstance(node, exp.Tuple | exp.Paren):
        parts = node.expressions or [node.this]
        return all(_is_key(part, key) for part in parts)
    return isinstance(node, exp.Column) and node.name in key
