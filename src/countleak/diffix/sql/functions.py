"""The functions of a question: what each takes and gives, how it is written, how large it gets.

They are written so that no row can raise an error: an error would answer a question about that row
without any noise. Numbers are computed in doubles, so that databases agree; ``magnitude`` keeps
them there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from countleak.diffix.sql.dates import (
    FIELDS,
    MOST_DAYS,
    TRUNCATED,
    date_in_sql,
    field_in_sql,
    truncated_in_sql,
)
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.magnitude import (
    OF_DAYS,
    OF_LENGTH,
    OF_NUMBER,
    OF_WHOLE,
    Magnitude,
    added,
    digits,
    divided,
    multiplied,
    of_constant,
    raised,
    rooted,
    rounded,
    rounded_to,
    same,
)
from countleak.diffix.sql.statement import Call, Column, Constant, Expression, Kind, is_width
from countleak.errors import Refused

MOST_EXPONENT = 4
# A number in a text, as both databases match and read it; and the largest whole number in a text.
NUMERAL = "[-+]?[0-9]{{1,15}}([.][0-9]{{1,15}})?"
MOST_WHOLE = 10**15
ZERO, HALF = "CAST(0 AS DOUBLE PRECISION)", "CAST(0.5 AS DOUBLE PRECISION)"


@dataclass(frozen=True)
class Function:
    """A function: ``node`` is sqlglot's class for it, with the names of its arguments.

    It ``takes`` kinds of arguments, of which those in ``fixed`` must be constants, and ``gives``
    a kind; ``sql`` is how we write it. ``size`` is the magnitude of the result, given those of
    the arguments.
    """

    node: type[exp.Expr] | None
    names: tuple[str, ...]
    takes: tuple[Kind, ...]
    gives: Kind
    sql: str
    fixed: tuple[int, ...] = ()
    size: Callable[..., Magnitude] = same

    @property
    def is_simple_text(self) -> bool:
        """Whether it may stand on the left of IN and <>."""
        return self.gives is Kind.TEXT


_ONE, _TWO = ("this",), ("this", "expression")
_N, _T, _D = Kind.NUMBER, Kind.TEXT, Kind.DATE

FUNCTIONS: dict[str, Function] = {
    "+": Function(exp.Add, _TWO, (_N, _N), _N, "({} + {})", size=added),
    "-": Function(exp.Sub, _TWO, (_N, _N), _N, "({} - {})", size=added),
    "*": Function(exp.Mul, _TWO, (_N, _N), _N, "({} * {})", size=multiplied),
    "/": Function(exp.Div, _TWO, (_N, _N), _N, "({} / {})", (1,), divided),
    # A negative base has no power but a whole one, and the exponent need not be whole.
    "pow": Function(
        exp.Pow, _TWO, (_N, _N), _N, f"power(greatest({{}}, {ZERO}), {{}})", (1,), raised
    ),
    "sqrt": Function(exp.Sqrt, _ONE, (_N,), _N, f"sqrt(greatest({{}}, {ZERO}))", size=rooted),
    "abs": Function(exp.Abs, _ONE, (_N,), _N, "abs({})"),
    "floor": Function(exp.Floor, _ONE, (_N,), _N, "floor({})", size=rounded),
    "ceil": Function(exp.Ceil, _ONE, (_N,), _N, "ceil({})", size=rounded),
    # Databases disagree about halves; this rounds them up.
    "round": Function(exp.Round, _ONE, (_N,), _N, f"floor({{}} + {HALF})", size=rounded),
    "trunc": Function(exp.Trunc, _ONE, (_N,), _N, "trunc({})", size=rounded),
    "length": Function(
        exp.Length, _ONE, (_T,), _N, "CAST(length({}) AS DOUBLE PRECISION)", (), lambda _: OF_LENGTH
    ),
    "lower": Function(exp.Lower, _ONE, (_T,), _T, "lower({})"),
    "upper": Function(exp.Upper, _ONE, (_T,), _T, "upper({})"),
    "trim": Function(None, (), (_T,), _T, "trim({})"),
    "ltrim": Function(None, (), (_T,), _T, "ltrim({})"),
    "rtrim": Function(None, (), (_T,), _T, "rtrim({})"),
    "left": Function(exp.Left, _TWO, (_T, _N), _T, "left({}, CAST({} AS INTEGER))", (1,)),
    "right": Function(exp.Right, _TWO, (_T, _N), _T, "right({}, CAST({} AS INTEGER))", (1,)),
    "substring": Function(
        exp.Substring,
        ("this", "start", "length"),
        (_T, _N, _N),
        _T,
        "substring({}, CAST({} AS INTEGER), CAST({} AS INTEGER))",
        (1, 2),
    ),
    "concat": Function(exp.DPipe, _TWO, (_T, _T), _T, "({} || {})"),
    # round(x, n) and trunc(x, n): with 10^n for digits behind the point, 10^-n for those before.
    "round_digits": Function(
        None, (), (_N, _N), _N, f"(floor({{0}} * {{1}} + {HALF}) / {{1}})", (1,), digits
    ),
    "trunc_digits": Function(None, (), (_N, _N), _N, "(trunc({0} * {1}) / {1})", (1,), digits),
    "round_tens": Function(
        None, (), (_N, _N), _N, f"(floor({{0}} / {{1}} + {HALF}) * {{1}})", (1,), rounded_to
    ),
    "trunc_tens": Function(None, (), (_N, _N), _N, "(trunc({0} / {1}) * {1})", (1,), rounded_to),
    "bucket": Function(None, (), (_N, _N), _N, "(floor({0} / {1}) * {1})", (1,), rounded_to),
    # Of dates: a date moved by days, the days between two, parts, and what it is cut down to.
    "shift": Function(None, (), (_D, _N), _D, "({} + {})", (1,), lambda _: OF_DAYS),
    "days": Function(None, (), (_D, _D), _N, "({} - {})", (), lambda _: OF_DAYS),
    **{
        name: Function(None, (), (_D,), _N, field_in_sql(field), (), lambda _: OF_LENGTH)
        for field, name in FIELDS.items()
    },
    **{
        f"trunc_{unit}": Function(
            None, (), (_D,), _D, truncated_in_sql(unit), (), lambda _: OF_DAYS
        )
        for unit in TRUNCATED
    },
    # Casts: a text that writes no number is NULL; whole numbers and dates are kept in bounds.
    "number_of_text": Function(
        None,
        (),
        (_T,),
        _N,
        f"CASE WHEN {{0}} SIMILAR TO '{NUMERAL}' THEN CAST({{0}} AS DOUBLE PRECISION) END",
        (),
        lambda _: OF_NUMBER,
    ),
    "text_of_whole": Function(
        None,
        (),
        (_N,),
        _T,
        f"CAST(CAST(least(greatest({{}}, {-MOST_WHOLE}), {MOST_WHOLE}) AS BIGINT) AS VARCHAR)",
        (),
        lambda _: OF_LENGTH,
    ),
    "text_of_date": Function(None, (), (_D,), _T, date_in_sql(), (), lambda _: OF_LENGTH),
    # The generalisations of the successor, which takes no others.
    "floor_by": Function(None, (), (_N, _N), _N, "(floor({0} / {1}) * {1})", (1,), rounded_to),
    "round_by": Function(
        None, (), (_N, _N), _N, f"(floor({{0}} / {{1}} + {HALF}) * {{1}})", (1,), rounded_to
    ),
}
CASTS = ("number_of_text", "text_of_whole", "text_of_date")
# Functions that give whole numbers.
WHOLE = (
    *("floor", "ceil", "round", "trunc", "length", "days"),
    *FIELDS.values(),
)
GENERALISING = ("floor_by", "round_by")
# Functions that map a range of values to one; floor and ceil were not seen as such.
ROUNDING = (
    *("round", "trunc", "round_digits", "trunc_digits", "round_tens", "trunc_tens", "bucket"),
    *GENERALISING,
    *FIELDS.values(),
    *(f"trunc_{unit}" for unit in TRUNCATED),
)
BY_NODE = {function.node: name for name, function in FUNCTIONS.items() if function.node}
TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def check_arguments(name: str, arguments: tuple[Expression, ...]) -> None:
    """Refuse arguments that a function does not take, or with which a row could raise an error."""
    function = FUNCTIONS[name]
    for place, (argument, kind) in enumerate(zip(arguments, function.takes, strict=True)):
        if not argument.kind.matches(kind):
            raise Refused(f"The function {name} does not take a {argument.kind} there.")
        if place in function.fixed and not isinstance(argument, Constant):
            raise Refused(f"Argument {place + 1} of {name} must be a constant.")
    values = [a.value for a in arguments[1:] if isinstance(a, Constant)]
    numbers = [value for value in values if isinstance(value, Fraction)]
    if name == "/" and 0 in numbers:
        raise Refused("Division by 0.")
    if name == "pow" and not 0 <= numbers[0] <= MOST_EXPONENT:
        raise Refused(f"The exponent of pow must lie between 0 and {MOST_EXPONENT}.")
    if name in ("left", "right", "substring") and not all(
        number.denominator == 1 and 1 <= number <= LIMITS.text for number in numbers
    ):
        raise Refused(f"The positions of {name} are whole numbers from 1 to {LIMITS.text}.")
    if name in GENERALISING and numbers[0] <= 0:
        raise Refused(f"The width of {name} must be above 0.")
    if name == "shift" and abs(numbers[0]) > MOST_DAYS:
        raise Refused(f"A date is moved by at most {MOST_DAYS} days.")
    if name == "bucket" and not is_width(numbers[0]):
        raise Refused("The width of a bucket is 1, 2 or 5 times a power of ten.")


def magnitude(expression: Expression) -> Magnitude:
    """How large and small a number can be; ``Refused`` where doubles might not hold it."""
    match expression:
        case Column(kind=Kind.WHOLE):
            return OF_WHOLE
        case Column(kind=Kind.DATE):
            return OF_DAYS
        case Constant(value=Fraction() as number):
            return of_constant(float(number))
        case Call(function=name):
            sizes = [magnitude(argument) for argument in expression.arguments]
            return FUNCTIONS[name].size(*sizes[: 2 if _is_numeric(name) else 1]).checked
    return OF_NUMBER


def text_read(expression: Expression) -> int:
    """How many characters the functions of an expression read of one row's texts, at most."""
    if not isinstance(expression, Call):
        return 0
    return sum(_longest(argument) + text_read(argument) for argument in expression.arguments)


def _longest(expression: Expression) -> int:
    """How many characters a text can have; 0 for what is none."""
    match expression:
        case Column(kind=Kind.TEXT):
            return LIMITS.text
        case Constant(value=str() as text):
            return len(text)
        case Call(kind=Kind.TEXT, arguments=arguments):
            # The last number of left, right and substring is a length.
            cut = [int(a.value) for a in arguments if isinstance(a, Constant) and a.kind.numeric]
            return min([sum(map(_longest, arguments)), *cut[-1:]])
    return 0


def _is_numeric(name: str) -> bool:
    return FUNCTIONS[name].takes[0].numeric
