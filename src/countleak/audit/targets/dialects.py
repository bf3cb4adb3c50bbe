"""What is written otherwise in some dialects of SQL, beyond what sqlglot knows."""

from collections.abc import Sequence

from sqlglot import exp

# SQLAlchemy's names of databases, where sqlglot has others.
DIALECTS = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "mssql": "tsql",
    "cockroachdb": "postgres",
    "awsathena": "athena",
}
# Databases that count distinct tuples by COUNT(DISTINCT a, b), or take several columns there.
COUNTS_COLUMNS = ("mysql", "spark", "databricks", "hive")
COUNTS_TUPLES = ("postgres", "duckdb", "clickhouse", "snowflake")
# Those that know no list of tuples: of SQLite's own kind, and none.
LISTS_VALUES, LISTS_NONE = ("sqlite",), ("tsql", "fabric")
# Those that do not group by the place of what is selected.
GROUPS_BY_VALUES = ("tsql", "fabric", "oracle")
# Those known to have an exclusive or of the bits of whole numbers.
HAVE_XOR = ("bigquery", "duckdb", "mysql", "postgres", "snowflake", "tsql")
# Oracle takes no longer list.
LONGEST_LIST = {"oracle": 1000}


def dialect_of(name: str) -> str:
    """What sqlglot calls the SQL of a database that SQLAlchemy knows by a name."""
    from sqlglot.dialects import Dialect

    dialect = DIALECTS.get(name, name)
    # What sqlglot does not know is asked in plain SQL.
    return dialect if dialect in Dialect.classes else ""


def select(aggregate: exp.Expr, table: exp.Expr, where: exp.Expr, dialect: str) -> exp.Select:
    """The statement that counts or sums where a condition holds."""
    counted = aggregate.find(exp.Tuple)
    if counted is None or dialect in COUNTS_TUPLES:
        return exp.select(aggregate.copy()).from_(table.copy()).where(where, copy=False)
    columns = [column.copy() for column in counted.expressions]
    if dialect in COUNTS_COLUMNS:
        count = exp.Count(this=exp.Distinct(expressions=columns))
        return exp.select(count).from_(table.copy()).where(where, copy=False)
    people = exp.select(*columns).distinct().from_(table.copy()).where(where, copy=False)
    return exp.select(exp.Count(this=exp.Star())).from_(people.subquery("people"))


def grouped_by(
    groups: Sequence[exp.Expr], aggregate: exp.Expr, table: exp.Expr, where: exp.Expr, dialect: str
) -> exp.Select:
    """The statement that counts or sums by groups; ``where`` may hold for everybody."""
    counted = aggregate.find(exp.Tuple)
    # Most take the places of what is selected; those that do not, take it once more.
    places = [exp.convert(place) for place in range(1, len(groups) + 1)]
    by = [each.copy() for each in groups] if dialect in GROUPS_BY_VALUES else places
    source = table.copy()
    if counted is None or dialect in COUNTS_TUPLES:
        each = aggregate.copy()
    elif dialect in COUNTS_COLUMNS:
        columns = [column.copy() for column in counted.expressions]
        each = exp.Count(this=exp.Distinct(expressions=columns))
    else:
        # Whoever is in several groups counts in each.
        names = [f"group_{place}" for place in range(1, len(groups) + 1)]
        named = [exp.alias_(each, name) for each, name in zip(groups, names, strict=True)]
        people = exp.select(*named, *(column.copy() for column in counted.expressions))
        source = _where(people.distinct().from_(source), where).subquery("people")
        own = [exp.column(name, quoted=True) for name in names]
        return exp.select(*own, exp.Count(this=exp.Star())).from_(source).group_by(*own)
    return _where(exp.select(*groups, each).from_(source), where).group_by(*by)


def _where(select: exp.Select, where: exp.Expr) -> exp.Select:
    return select if isinstance(where, exp.Boolean) else select.where(where)


def spelled(predicate: exp.Expr, dialect: str) -> exp.Expr:
    """A predicate as a dialect takes its lists of ids, and its arithmetic of bits."""
    if not isinstance(predicate, exp.In) or not predicate.expressions:
        return predicate if dialect in HAVE_XOR else predicate.transform(_without_xor)
    members, left = predicate.expressions, predicate.this
    if isinstance(left, exp.Tuple) and dialect in LISTS_VALUES:
        values = exp.Values(expressions=members)
        return exp.In(this=left, query=exp.Subquery(this=values))
    if isinstance(left, exp.Tuple) and dialect in LISTS_NONE:
        return _any([_equal(left.expressions, member.expressions) for member in members])
    longest = LONGEST_LIST.get(dialect, len(members))
    if len(members) <= longest:
        return predicate
    parts = [members[at : at + longest] for at in range(0, len(members), longest)]
    return _any([exp.In(this=left.copy(), expressions=part) for part in parts])


def _without_xor(node: exp.Expr) -> exp.Expr:
    """a ^ b as (a | b) - (a & b)."""
    if not isinstance(node, exp.BitwiseXor):
        return node
    # What a node was replaced by is not looked into again.
    left, right = (part.transform(_without_xor) for part in (node.this, node.expression))
    either = exp.paren(exp.BitwiseOr(this=left, expression=right), copy=False)
    both = exp.paren(exp.BitwiseAnd(this=left.copy(), expression=right.copy()), copy=False)
    return exp.paren(exp.Sub(this=either, expression=both), copy=False)


def _equal(columns: Sequence[exp.Expr], values: Sequence[exp.Expr]) -> exp.Expr:
    pairs = zip(columns, values, strict=True)
    equal = [exp.EQ(this=column.copy(), expression=value) for column, value in pairs]
    return exp.paren(exp.and_(*equal, copy=False), copy=False)


def _any(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """One of the conditions, halved again and again: servers limit how deep SQL may go."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    either = exp.Or(this=_any(conditions[:middle]), expression=_any(conditions[middle:]))
    return exp.paren(either, copy=False)
