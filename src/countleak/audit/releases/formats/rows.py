"""What every format is read as: a header, and a row of texts per cell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from countleak.errors import InputError
from countleak.files import Name

MOST_NUMBERS = 2_000_000
# What stands in the place of a count that is not shown.
_SYMBOLS = ("", "*", "**", "..", "...", "....", ":", "-", ".", "[c]", "[x]", "c", "x", "s", "z")
_WORDS = ("n/a", "na", "nan", "null", "none", "suppressed", "redacted", "confidential")
MARKERS = frozenset((*_SYMBOLS, *_WORDS))
_COUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.0+)?")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")

Tree = Mapping[str, tuple[str, ...]]


class Why(Enum):
    """Why a count is not shown, or that the number is no count of these people at all."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    UNKNOWN = "unknown"
    ABSENT = "absent"


@dataclass(frozen=True)
class Rows:
    """The ``names`` of columns and the ``rows`` below, each with its number in the file.

    ``count`` is the column of counts where the format says so, and then any other text in it marks
    a count that is not shown; ``why`` says what some marks mean. ``trees`` are code lists that the
    file has, by dimension. ``unit`` is what its rows are called.
    """

    names: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]
    count: int | None = None
    why: Mapping[str, Why] = field(default_factory=dict)
    trees: Mapping[str, Tree] = field(default_factory=dict)
    unit: str = "line"


def number_of(text: str, noisy: bool) -> float | None:
    """The number that a text is, whole and 0 or more unless ``noisy``; None where it is none."""
    if _COUNT.fullmatch(text):
        return int(float(text.replace(",", "")))
    if noisy and _NUMBER.fullmatch(text):
        value = float(text)
        return int(value) if value.is_integer() else value
    return None


def is_shown(text: str) -> bool:
    """Whether a text is a count."""
    return number_of(text, noisy=False) is not None


def text_of(value: object) -> str:
    """A value as it stands in a text file."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def require_few(path: Name, count: float) -> None:
    """Raise where a table has more numbers than can be reckoned with."""
    if count > MOST_NUMBERS:
        raise InputError(
            f"{path}: more than {MOST_NUMBERS:,} numbers; split the table or leave dimensions out"
        )
