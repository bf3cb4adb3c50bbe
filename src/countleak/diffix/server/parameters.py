"""Parameters of a statement: which type each has, and their values put in as literals.

Values enter as nodes of the parsed tree, and the tree is then written out as SQL: a value cannot
become anything but a value.
"""

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from countleak.diffix.server.failures import BAD_VALUE, Failure
from countleak.diffix.server.values import FLOAT8, INT8, TEXT, Parameter, Type
from countleak.diffix.sql.statement import Kind, Table

MOST = 10_000
OF_KIND = {Kind.WHOLE: INT8, Kind.NUMBER: FLOAT8, Kind.TEXT: TEXT}
_COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


def numbers_of(tree: exp.Expression) -> list[tuple[exp.Parameter, int]]:
    """The parameters of a tree, each with its number, which counts from 1."""
    found = []
    for node in tree.find_all(exp.Parameter):
        name = node.this.name if isinstance(node.this, exp.Expression) else ""
        if not name.isdigit() or not 1 <= int(name) <= MOST:
            raise Failure(BAD_VALUE, "A parameter is written $1, $2, ...")
        found.append((node, int(name)))
    return found


def types_of(tree: exp.Expression, given: Sequence[int], table: Table | None) -> tuple[int, ...]:
    """The type of each parameter: as given, or as what it is compared with."""
    inferred: dict[int, Type] = {}
    for node, number in numbers_of(tree):
        found = _inferred(node, table)
        if number not in inferred or inferred[number] is FLOAT8:
            inferred[number] = found
    count = max([len(given), *inferred])
    oids = [*given, *[0] * (count - len(given))]
    return tuple(
        # 705 is "unknown": a text whose type the server should tell.
        oid if oid not in (0, 705) else inferred.get(at, TEXT).oid
        for at, oid in enumerate(oids, 1)
    )


def _inferred(node: exp.Expression, table: Table | None) -> Type:
    """The type of what a parameter is compared with."""
    above = node.parent
    if isinstance(above, exp.Cast):
        return _of_cast(above)
    while isinstance(above, exp.Paren | exp.Neg | exp.Tuple):
        above = above.parent
    if isinstance(above, exp.Like | exp.ILike):
        return TEXT
    if isinstance(above, _COMPARING):
        columns = {} if table is None else {n.lower(): k for n, k in table.columns.items()}
        sides = [above.this, above.args.get("expression")]
        for side in sides:
            if isinstance(side, exp.Column) and side.name.lower() in columns:
                return OF_KIND[columns[side.name.lower()]]
            if isinstance(side, exp.Lower | exp.Upper | exp.Substring | exp.Trim | exp.Left):
                return TEXT
        return TEXT if table is None else FLOAT8
    return FLOAT8 if isinstance(above, exp.Binary) and table is not None else TEXT


def _of_cast(cast: exp.Cast) -> Type:
    if cast.is_type(*exp.DataType.INTEGER_TYPES):
        return INT8
    return FLOAT8 if cast.is_type(*exp.DataType.NUMERIC_TYPES) else TEXT


def put_in(
    tree: exp.Expression, values: Sequence[Parameter], *, casts: bool = False
) -> exp.Expression:
    """The tree with every parameter replaced by its value, and so a cast of one unless ``casts``.

    Diffix knows no casts; drivers write them around parameters to tell their types.
    """
    copied = tree.copy()
    for node, number in numbers_of(copied):
        if number > len(values):
            raise Failure(BAD_VALUE, f"There is no value for parameter ${number}.")
        place = node.parent if isinstance(node.parent, exp.Cast) and not casts else node
        place.replace(_literal(values[number - 1]))
    return copied


def _literal(value: Parameter) -> exp.Expression:
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case int() | Decimal():
            literal = exp.Literal.number(format(Decimal(value).copy_abs(), "f"))
            return exp.Neg(this=literal) if value < 0 else literal
