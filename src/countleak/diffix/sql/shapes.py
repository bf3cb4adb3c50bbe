"""Questions of one shape, which differ in their constants only, are parsed once.

An attack asks thousands of them. What is kept is the parsed tree and nothing that was concluded
from it: every question's constants are put into the tree, and the tree is read and checked anew.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from sqlglot import exp

from countleak.errors import Refused

KEPT = 200
# A longer text is mostly a list of constants, and hardly has the shape of another.
LONGEST = 2000

# Plain constants that touch no letter, point or quote, so that no E'\n', 1e5, .5 or 'it''s' is one.
_CONSTANT = re.compile(
    r"(?<![\w.'])(?:[0-9]++(?:\.[0-9]++)?|'[^'\\\0-\x1f]*+')(?![\w.'])", re.ASCII
)
# All that may stand around them: names and signs, but no quotes, comments or anything unusual.
_PLAIN = re.compile(
    rf"(?:{_CONSTANT.pattern}|[A-Za-z_][A-Za-z_0-9]*+|[ \t\n(),.;*+=<>]|-(?!-)|/(?!\*))*+", re.ASCII
)

# What a kept tree is made of; nothing of it does more than compute. The parser looks into the
# constants of other parts (INTERVAL '1 day').
PARTS = (
    *(exp.Select, exp.From, exp.Table, exp.Where, exp.Group, exp.Alias, exp.Column, exp.Identifier),
    *(exp.Count, exp.Sum, exp.Avg, exp.Distinct, exp.Star, exp.Literal, exp.Neg, exp.Paren),
    *(exp.And, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Not),
    *(exp.Like, exp.ILike, exp.Is, exp.Null, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Pow, exp.Sqrt),
    *(exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Length, exp.Lower, exp.Upper),
    *(exp.Left, exp.Right, exp.Substring, exp.Trim),
)

Tree = exp.Select


@dataclass(frozen=True)
class Shape:
    """A parsed tree and its constants, in the order of the text; one question at a time."""

    tree: Tree
    slots: Sequence[exp.Literal]
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def filled(self, constants: Sequence[str]) -> Iterator[Tree]:
        """The tree with these constants."""
        with self.lock:
            for slot, constant in zip(self.slots, constants, strict=True):
                slot.args["this"] = constant.strip("'")
            yield self.tree


@contextmanager
def parsed(text: str, parse: Callable[[str], Tree]) -> Iterator[Tree]:
    """The tree that ``parse`` makes of a text, or would make."""
    lifted = lift(text)
    shape = None if lifted is None else _shape(lifted[0], parse)
    if shape is None or lifted is None:
        yield parse(text)
    else:
        with shape.filled(lifted[1]) as tree:
            yield tree


def lift(text: str) -> tuple[str, list[str]] | None:
    """The text with its constants numbered, and the constants; None where they are not plain."""
    if len(text) > LONGEST or not _PLAIN.fullmatch(text):
        return None
    constants: list[str] = []

    def number(found: re.Match[str]) -> str:
        constants.append(found[0])
        return _numbered(len(constants), found[0][0] == "'")

    return _CONSTANT.sub(number, text), constants


def _numbered(place: int, is_text: bool) -> str:
    return f"'constant {place}'" if is_text else f"{1_000_000 + place}"


@lru_cache(maxsize=KEPT)
def _shape(numbered: str, parse: Callable[[str], Tree]) -> Shape | None:
    """The shape of a text with numbered constants; None where the tree has not each once."""
    try:
        tree = parse(numbered)
    except Refused:
        return None
    if any(type(node) not in PARTS for node in tree.walk()):
        return None
    literals = list(tree.find_all(exp.Literal))
    slots = {f"'{node.name}'" if node.is_string else node.name: node for node in literals}
    found = _CONSTANT.findall(numbered)
    if len(literals) != len(found) or set(slots) != set(found):
        return None
    return Shape(tree, [slots[constant] for constant in found])
