"""How an answer came about: the noise layers behind it, what each drew, and who was suppressed.

It is made of the same layers, seeds and thresholds as the answer itself, and holds true counts: it
is for people who may see those, as where everyone is generated.
"""

from dataclasses import dataclass
from math import sqrt

from countleak.diffix.aggregates import Weighed, counts_users
from countleak.diffix.engine import Answer, Engine
from countleak.diffix.noise import total
from countleak.diffix.sql.statement import (
    Among,
    Call,
    Column,
    Condition,
    Constant,
    Differs,
    Equal,
    Expression,
    Like,
    Null,
    Range,
    Statement,
    show,
)

INFIX = frozenset("+-*/")
GENERIC = "no condition at all"
CELL = "all that is said of the cell"


@dataclass(frozen=True)
class ExplainedLayer:
    """A layer of a bucket: the ``source`` it comes from, and the ``noise`` it adds, in people.

    One of ``users`` depends on who is counted, any other only on what is asked. One that is
    ``repeated`` equals a layer before it and counts no second time.
    """

    source: str
    users: bool
    noise: float
    repeated: bool


@dataclass(frozen=True)
class ExplainedBucket:
    """A row before noise: how many ``users`` it truly has, against a ``threshold`` for release.

    ``noise`` is that of a count of users, of all layers together, and ``sd`` what it varies by.
    """

    key: tuple[object, ...]
    users: int
    threshold: int
    layers: tuple[ExplainedLayer, ...]
    noise: float
    sd: float

    @property
    def released(self) -> bool:
        """Whether there are users enough for the row to be shown."""
        return self.users >= self.threshold


@dataclass(frozen=True)
class Explanation:
    """An ``answer`` and the ``buckets`` behind it.

    ``silent`` are the conditions that add no layer, ``layer_sd`` is what each layer draws by.
    ``counts_users`` says whether the first aggregate is the count of users that noise is in.
    """

    answer: Answer
    buckets: tuple[ExplainedBucket, ...]
    conditions: tuple[str, ...]
    silent: tuple[str, ...]
    layer_sd: float
    least: int
    counts_users: bool


def explain(engine: Engine, question: str) -> Explanation:
    """The answer to a question and how it came about; ``Refused`` where there is none."""
    statement = engine.read(question)
    answer = engine.ask(statement)
    layering = engine.release.layering
    heard = statement.conditions if layering.cells else layering.seen(statement)
    first = statement.aggregates[0] if statement.aggregates else None
    weighed = sorted(engine.weighed(statement), key=lambda each: str(each.bucket.key))
    return Explanation(
        answer,
        tuple(_bucket(engine, statement, each) for each in weighed),
        tuple(map(in_words, statement.conditions)),
        tuple(in_words(c) for c in statement.conditions if c not in heard),
        engine.release.sd,
        engine.release.least,
        first is not None and counts_users(first, statement.table),
    )


def _bucket(engine: Engine, statement: Statement, weighed: Weighed) -> ExplainedBucket:
    sd, seen = engine.release.sd, set[int]()
    layers = []
    for source, layer in engine.layers(statement).sourced(weighed.bucket):
        seed = layer.seed(weighed.bucket)
        where = _source(source, engine)
        layers.append(ExplainedLayer(where, layer.users, total([seed], "count", sd), seed in seen))
        seen.add(seed)
    return ExplainedBucket(
        weighed.bucket.key,
        weighed.bucket.users,
        weighed.threshold,
        tuple(layers),
        total(weighed.seeds, "count", sd),
        sd * sqrt(len(weighed.seeds)),
    )


def _source(source: Condition | Expression | None, engine: Engine) -> str:
    if source is None:
        return CELL if engine.release.layering.cells else GENERIC
    if isinstance(source, Column | Constant | Call):
        return f"GROUP BY {expression_in_words(source)}"
    return in_words(source)


def in_words(condition: Condition) -> str:
    """A condition as SQL writes it; a range as it was snapped."""
    match condition:
        case Equal(left, right):
            return f"{expression_in_words(left)} = {expression_in_words(right)}"
        case Differs(left, constant):
            return f"{expression_in_words(left)} <> {expression_in_words(constant)}"
        case Range(column, low, high):
            return f"{show(low)} <= {column.name} < {show(high)}"
        case Among(left, constants):
            listed = ", ".join(map(expression_in_words, constants))
            return f"{expression_in_words(left)} IN ({listed})"
        case Like(column, pattern, negated, any_case):
            word = f"{'NOT ' if negated else ''}{'ILIKE' if any_case else 'LIKE'}"
            return f"{column.name} {word} '{pattern}'"
        case Null(column, negated):
            return f"{column.name} IS {'NOT ' if negated else ''}NULL"


def expression_in_words(expression: Expression) -> str:
    """An expression as SQL writes it."""
    match expression:
        case Column(name=name):
            return name
        case Constant(value=str() as text):
            return f"'{text}'"
        case Constant(value=number):
            assert not isinstance(number, str)
            return show(number)
        case Call(function=name, arguments=(left, right)) if name in INFIX:
            return f"{_operand(left)} {name} {_operand(right)}"
        case Call(function=name, arguments=arguments):
            return f"{name}({', '.join(map(expression_in_words, arguments))})"


def _operand(expression: Expression) -> str:
    words = expression_in_words(expression)
    is_sum = isinstance(expression, Call) and expression.function in ("+", "-")
    return f"({words})" if is_sum else words
