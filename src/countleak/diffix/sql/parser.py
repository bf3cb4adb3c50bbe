"""Text to a ``Statement``: one SELECT over declared tables or subqueries of them, or a refusal.

Only what is listed here gets through: every node of the parsed tree must be of a known class with
nothing set that is not read. The statement is then written anew by ``render``, so whatever this
file does not understand cannot reach the database.

Questions of one shape, which differ in their constants only, are parsed once; an attack asks
thousands of them. What is cached is the parsed tree and nothing that was concluded from it: every
question's constants are put into the tree, and the tree is read and checked anew.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import SqlglotError

from countleak.diffix.sql.conditions import read_conditions
from countleak.diffix.sql.expressions import Reader, only
from countleak.diffix.sql.functions import text_read
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.selection import FINISHING, read_selection
from countleak.diffix.sql.sources import read_source
from countleak.diffix.sql.statement import Among, Like, Statement, expressions_of
from countleak.errors import Refused

UNREADABLE = "The query cannot be read; write one SELECT statement."
SHAPES_CACHED = 200
# A longer text is mostly a list of constants, and hardly has the shape of another.
LONGEST_SHAPE = 2000

# Plain constants that touch no letter, point or quote, so that no E'\n', 1e5, .5 or 'it''s' is one.
_CONSTANT = re.compile(
    r"(?<![\w.'])(?:[0-9]++(?:\.[0-9]++)?|'[^'\\\0-\x1f]*+')(?![\w.'])", re.ASCII
)
# All that may stand around them: names, quoted or not, and signs, but no comments or anything
# unusual.
_NAME = r'[A-Z_][A-Z_0-9]*+|"[A-Z_][A-Z_0-9]*+"'
_PLAIN = re.compile(
    r"[ \t\n]*+SELECT\b"
    rf"(?:{_CONSTANT.pattern}|{_NAME}|[ \t\n(),.;*+=<>]|-(?!-)|/(?!\*))*+",
    re.ASCII | re.IGNORECASE,
)

# What a cached tree is made of; nothing of it does more than compute. The parser looks into the
# constants of other parts (INTERVAL '1 day').
PARTS = (
    *(exp.Select, exp.From, exp.Table, exp.Where, exp.Group, exp.Alias, exp.Column, exp.Identifier),
    *(exp.Count, exp.Sum, exp.Avg, exp.Distinct, exp.Star, exp.Literal, exp.Neg, exp.Paren),
    *(exp.And, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Not),
    *(exp.Or, exp.Like, exp.ILike, exp.Is, exp.Null, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Pow),
    *(exp.Sqrt, exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Length, exp.Lower),
    *(exp.Upper, exp.Left, exp.Right, exp.Substring, exp.Trim, exp.Subquery, exp.TableAlias),
    exp.Join,
)

_POSTGRES = Dialect.get_or_raise("postgres")


@dataclass(frozen=True)
class Shape:
    """A parsed tree and its constants, in the order of the text; one question at a time."""

    tree: exp.Select
    slots: Sequence[exp.Literal]
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def filled(self, constants: Sequence[str]) -> Iterator[exp.Select]:
        """The tree with these constants."""
        with self.lock:
            for slot, constant in zip(self.slots, constants, strict=True):
                slot.args["this"] = constant.strip("'")
            yield self.tree


@dataclass(frozen=True)
class Source:
    """One statement of a ``whole`` text: either its tokens, or a cached shape and its constants."""

    text: str
    whole: str
    tokens: Sequence[Token] = ()
    shape: Shape | None = None
    constants: Sequence[str] = ()

    @contextmanager
    def tree(self) -> Iterator[exp.Expr]:
        """The parsed tree; it may be shared, so copy what outlives the block and change nothing."""
        if self.shape is None:
            yield _parsed(self)
        else:
            with self.shape.filled(self.constants) as tree:
                yield tree

    @property
    def words(self) -> tuple[str, ...]:
        """The words it consists of; none where its shape is cached."""
        return tuple(token.text for token in self.tokens)


def split(text: str) -> list[Source]:
    """The statements of a text, which semicolons separate."""
    lifted = lift(text)
    shape = None if lifted is None else _shape(lifted[0])
    if lifted is not None and shape is not None:
        return [Source(text, text, shape=shape, constants=lifted[1])]
    return _statements(text)


def parse(text: str, reader: Reader) -> Statement:
    """The statement that ``text`` asks of the reader's table."""
    LIMITS.check("characters", text)
    sources = split(text)
    if len(sources) != 1:
        raise Refused(f"There are {len(sources)} statements; write one SELECT statement.")
    with sources[0].tree() as tree:
        return read_statement(tree, reader)


def read_statement(tree: exp.Expr, reader: Reader, *, where: bool = True) -> Statement:
    """The statement of a parsed tree; without ``where`` its conditions are left out unread."""
    if type(tree) is not exp.Select:
        raise Refused("Only SELECT statements over one table are answered.")
    only(tree, "expressions", "from_", "joins", "where", "group", *FINISHING)
    reader, nodes = read_source(tree, reader)
    conditions = read_conditions(nodes, reader.table.users) if where else ()
    statement = replace(read_selection(tree, reader), conditions=conditions)
    if statement.groups:
        lists = [c.constants for c in conditions if isinstance(c, Among)]
        LIMITS.check("grouped_elements", sum(map(len, lists)))
    _check_texts(statement)
    return statement


def _check_texts(statement: Statement) -> None:
    """Refuse so much work on one row's texts that time would tell that the row matches."""
    compared = [e for condition in statement.conditions for e in expressions_of(condition)]
    patterns = sum(isinstance(condition, Like) for condition in statement.conditions)
    read = sum(map(text_read, [*compared, *statement.groups]))
    LIMITS.check("text_read", read + LIMITS.text * patterns)


def lift(text: str) -> tuple[str, list[str]] | None:
    """The text with its constants numbered, and the constants; None where they are not plain."""
    if len(text) > LONGEST_SHAPE or not _PLAIN.fullmatch(text):
        return None
    constants: list[str] = []

    def number(constant: re.Match[str]) -> str:
        constants.append(constant[0])
        place = len(constants)
        return f"'constant {place}'" if constant[0][0] == "'" else f"{1_000_000 + place}"

    return _CONSTANT.sub(number, text), constants


@lru_cache(maxsize=SHAPES_CACHED)
def _shape(numbered: str) -> Shape | None:
    """The shape of a text with numbered constants; None where the tree has not each once."""
    try:
        (statement,) = _statements(numbered)
        tree = _parsed(statement)
    except (Refused, ValueError):
        return None
    if type(tree) is not exp.Select or any(type(node) not in PARTS for node in tree.walk()):
        return None
    literals = list(tree.find_all(exp.Literal))
    slots = {f"'{node.name}'" if node.is_string else node.name: node for node in literals}
    constants = _CONSTANT.findall(numbered)
    if len(literals) != len(constants) or set(slots) != set(constants):
        return None
    return Shape(tree, [slots[constant] for constant in constants])


def _statements(text: str) -> list[Source]:
    """The statements of a text by their tokens; those without any are left out."""
    try:
        tokens = _POSTGRES.tokenize(text)
    except SqlglotError:
        raise Refused(UNREADABLE) from None
    LIMITS.check("tokens", tokens)
    tokens = _with_commas(tokens)
    ends = [at for at, t in enumerate(tokens) if t.token_type is TokenType.SEMICOLON]
    statements, first, start = [], 0, 0
    for end in (*ends, len(tokens)):
        stop = tokens[end].start if end < len(tokens) else len(text)
        if tokens[first:end]:
            statements.append(Source(text[start:stop].strip(), text, tokens[first:end]))
        first, start = end + 1, stop + 1
    return statements


def _with_commas(tokens: list[Token]) -> list[Token]:
    """The tokens with a comma for the BY of ``bucket(column BY width)``, which no other SQL has."""
    inside, changed = 0, list(tokens)
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            starts = at > 0 and tokens[at - 1].text.lower() == "bucket"
            inside += 1 if inside or starts else 0
        elif token.token_type is TokenType.R_PAREN:
            inside = max(inside - 1, 0)
        elif inside == 1 and token.token_type is TokenType.VAR and token.text.upper() == "BY":
            changed[at] = Token(TokenType.COMMA, ",", token.line, token.col, token.start, token.end)
    return changed


def _parsed(source: Source) -> exp.Expr:
    """The tree of a statement."""
    try:
        trees = _POSTGRES.parser().parse(list(source.tokens), source.whole)
    except (
        SqlglotError,
        RecursionError,
        ValueError,
        AttributeError,
        TypeError,
        KeyError,
        IndexError,
    ):
        # sqlglot's parser meets malformed input with more than its own errors.
        raise Refused(UNREADABLE) from None
    if len(trees) != 1 or trees[0] is None:
        raise Refused(UNREADABLE)
    return trees[0]
