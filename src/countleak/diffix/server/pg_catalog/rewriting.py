"""A look-up into the catalog, held against a list and written anew for its database."""

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from countleak.diffix.server.errors import UNKNOWN_NAME, Failure
from countleak.diffix.server.pg_catalog.definitions import FUNCTIONS, SYSTEM_TABLES, names
from countleak.errors import Refused

OURS = frozenset(signature.partition("(")[0] for signature in FUNCTIONS)
# The rest of PostgreSQL's own functions tell of what there is none of here: they are NULL.
NOTHING = ("pg_", "has_", "obj_", "col_", "shobj_", "inet_", "txid_", "json")
# Functions that a look-up may call and that mean the same here as in PostgreSQL.
ALLOWED = names(
    "abs and any_value array array_agg array_length array_position array_to_string array_upper "
    "array_lower avg bool_and bool_or btrim cardinality case cast ceil char_length coalesce concat "
    "concat_ws count exists extract floor generate_series generate_subscripts greatest "
    "group_concat if initcap least left length logical_and logical_or lower ltrim max md5 min mod "
    "nullif octet_length or position regexp_like regexp_matches regexp_replace right round "
    "row_number rtrim sign split_part starts_with str_position string_agg strpos substr substring "
    "sum trim try_cast unnest upper exploding_generate_series explode"
)


# Names that PostgreSQL reads as functions though no parentheses follow.
BARE = ("current_user", "session_user", "user", "current_catalog", "current_role")


Step = Callable[[Any], Any]


def write_lookup(tree: exp.Expr, constants: dict[str, str]) -> str:
    """A look-up as SQL for the catalog; ``constants`` are the values of functions by name."""
    labelled = _labelled(tree.copy())
    rewritten = _rewritten(labelled, _unqualified, _plain, lambda n: _constant(n, constants))
    _check(rewritten)
    return rewritten.sql(dialect="duckdb")


def _rewritten(tree: exp.Expr, *steps: Step) -> exp.Expr:
    """A copy of the tree with every step applied to every node, children first."""
    copied = tree.copy()
    for step in steps:
        for node in reversed(list(copied.walk())):
            new = step(node)
            if new is not node:
                if node is copied:
                    copied = new
                else:
                    node.replace(new)
    return copied


def _unqualified(node: Any) -> Any:
    """Functions and tables without ``pg_catalog.`` before them."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return node.expression
    if isinstance(node, exp.Column) and node.args.get("db"):
        node.set("db", None)
        node.set("catalog", None)
    if isinstance(node, exp.Table):
        if isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            if node.db.lower() == "information_schema":
                name = f"information_schema_{name}"
            node.set("this", exp.to_identifier(name, quoted=True))
        node.set("db", None)
        node.set("catalog", None)
    return node


_REG = ("regclass", "regtype", "regnamespace", "regrole")


def _plain(node: Any) -> Any:
    """PostgreSQL's own casts, operators and collations in words that the catalog knows."""
    if isinstance(node, exp.Collate):
        return node.this
    if isinstance(node, exp.Operator):
        return _operation(node)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Literal) and node.is_string and re.fullmatch(r"\{[\w,]*\}", node.name):
        return exp.Literal.string(f"[{node.name[1:-1]}]")
    return node


def _operation(node: exp.Operator) -> exp.Expr:
    name = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    matches = exp.Anonymous(this="regexp_matches", expressions=[left, right])
    known: dict[str, Callable[[], exp.Expr]] = {
        "~": lambda: matches,
        "!~": lambda: exp.Not(this=matches),
        "=": lambda: exp.EQ(this=left, expression=right),
        "<>": lambda: exp.NEQ(this=left, expression=right),
        "~~": lambda: exp.Like(this=left, expression=right),
        "||": lambda: exp.DPipe(this=left, expression=right),
    }
    if name not in known:
        raise Failure(UNKNOWN_NAME, f"The catalog does not know the operator {name[:10]}.")
    return known[name]()


def _cast(node: exp.Cast) -> exp.Expr:
    """A cast to a type of PostgreSQL's own as what stands for it: numbers, texts, or look-ups."""
    name = node.to.sql(dialect="postgres").lower().replace("pg_catalog.", "").strip('"')
    if name in _REG:
        made = "oid" if isinstance(node.this, exp.Literal | exp.Null) else "name"
        return exp.Anonymous(this=f"{name}_{made}", expressions=[node.this])
    if name in ("oid", "xid", "regproc", "regoper"):
        return exp.cast(node.this, "bigint")
    if name in ("name", "char", "text", "information_schema.sql_identifier"):
        return exp.cast(node.this, "text")
    if name.endswith("[]"):
        return exp.cast(node.this, "text[]")
    return node


def _constant(node: Any, constants: dict[str, str]) -> Any:
    """The value of a function that depends on who asks where."""
    if isinstance(node, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if name.startswith(NOTHING) and name not in OURS:
            return exp.null()
        if name in constants:
            return exp.Literal.string(constants[name])
    elif isinstance(node, exp.Column) and not node.table and node.name.lower() in BARE:
        return exp.Literal.string(constants[node.name.lower()])
    return node


def _labelled(tree: exp.Expr) -> exp.Expr:
    """The tree with a name for everything selected, as PostgreSQL would name it."""
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if isinstance(select, exp.Select):
        for node in select.expressions:
            if not isinstance(node, exp.Alias | exp.Star) and not node.is_star:
                node.replace(exp.alias_(node.copy(), _label(node), quoted=True))
    return tree


def _label(node: exp.Expr) -> str:
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return _label(node.expression)
        case exp.CurrentVersion():
            return "version"
        case exp.Cast():
            inner = _label(node.this)
            return inner if inner != "?column?" else node.to.sql(dialect="postgres").lower()
        case exp.Anonymous():
            return str(node.name).lower()
        case exp.Func() if not isinstance(node, exp.Binary):
            return node.sql_name().lower()
    return "?column?"


def _check(tree: exp.Expr) -> None:
    """Refuse tables and functions that are not of the catalog."""
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        name = table.name.lower()
        if name not in SYSTEM_TABLES and not _is_of_with(table):
            raise Failure("42P01", f'relation "{name[:63]}" does not exist')
    for call in tree.find_all(exp.Func):
        name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
        if name not in OURS | ALLOWED:
            raise Failure("42883", f"function {name[:63]} does not exist")
    if any(clause.args.get("recursive") for clause in tree.find_all(exp.With)):
        # It could go on until there is no memory left.
        raise Refused("WITH RECURSIVE is not answered.")
    forbidden = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.ReadCSV, exp.ReadParquet)
    if any(isinstance(node, forbidden) for node in tree.walk()):
        raise Refused("The catalog can be looked at, and nothing else.")


def _is_of_with(table: exp.Table) -> bool:
    """Whether a WITH names the table where it stands; elsewhere the name means a table of DuckDB's.

    A query sees what its own WITH names, and each of these only those that stand before it.
    """
    name, node = table.name.lower(), table.parent
    below: exp.Expr = table
    while node is not None:
        named: list[exp.CTE] = []
        if isinstance(node, exp.With):
            named = node.expressions[: node.expressions.index(below)]
        elif not isinstance(below, exp.With):
            with_ = node.args.get("with_")
            named = with_.expressions if isinstance(with_, exp.With) else []
        if any(cte.alias.lower() == name for cte in named):
            return True
        below, node = node, node.parent
    return False
