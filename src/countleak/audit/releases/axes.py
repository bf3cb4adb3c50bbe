"""The labels of published tables, and the finest groups that they tell apart.

A label of a dimension stands for one or several of its groups: a band of ages for several years, a
region for its districts, "Total" for all. Tables with other bands of the same ages are told apart
by the common refinement of all bands.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from countleak.errors import InputError

TOTAL = re.compile(
    r"(_t|\*|(sub|grand )?total|tot|overall|both( sexes)?|everyone|(all|total)\b.*)", re.IGNORECASE
)
_BETWEEN = re.compile(r"(\d{1,9})\s*(?:-|–|—|\.\.|to|T)\s*(\d{1,9})")  # noqa: RUF001
_FROM = re.compile(r"(\d{1,9})\s*(?:\+|(?:and|or) (?:over|older|above|more))")
_FROM_TOO = re.compile(r"(?:>=|≥|GE)\s*(\d{1,9})")
_ABOVE = re.compile(r"(?:>|GT)\s*(\d{1,9})")
_BELOW = re.compile(r"(?:<|LT|under|below)\s*(\d{1,9})", re.IGNORECASE)
_UP_TO = re.compile(r"(?:<=|≤|LE)\s*(\d{1,9})")
# Words around ages, and the letter of ages in code lists like Y30T34 and Y_GE65.
_YEARS = re.compile(r"\b(?:aged?|from|years?(?: old)?)\b", re.IGNORECASE)
_CODE = re.compile(r"Y_?((?:GE|GT|LE|LT)?\d.*)")
MOST_LEVELS = 100


@dataclass(frozen=True)
class Band:
    """Whole numbers from ``low`` to ``high``; no ``high`` where there is no end."""

    low: int
    high: int | None

    def __contains__(self, other: "Band") -> bool:
        inside = self.high is None or (other.high is not None and other.high <= self.high)
        return self.low <= other.low and inside


def band_of(label: str) -> Band | None:
    """The whole numbers that a label names; None where it names none."""
    text = " ".join(_YEARS.sub(" ", label).split())
    if match := _CODE.fullmatch(text):
        text = match[1]
    if match := _BETWEEN.fullmatch(text):
        low, high = int(match[1]), int(match[2])
        return Band(low, high) if low <= high else None
    if match := _FROM.fullmatch(text) or _FROM_TOO.fullmatch(text):
        return Band(int(match[1]), None)
    if match := _ABOVE.fullmatch(text):
        return Band(int(match[1]) + 1, None)
    if match := _BELOW.fullmatch(text):
        return Band(0, int(match[1]) - 1) if int(match[1]) else None
    if match := _UP_TO.fullmatch(text):
        return Band(0, int(match[1]))
    return Band(int(text), int(text)) if re.fullmatch(r"\d{1,9}", text) else None


@dataclass(frozen=True)
class Axis:
    """A dimension: its finest ``groups``, and which of them (by position) each label stands for."""

    name: str
    groups: tuple[str, ...]
    members: Mapping[str, tuple[int, ...]]

    @property
    def everything(self) -> tuple[int, ...]:
        """All groups."""
        return tuple(range(len(self.groups)))


def axis_of(
    name: str, labels: Iterable[str], trees: Sequence[Mapping[str, Sequence[str]]] = ()
) -> Axis:
    """The axis of a dimension from all labels that any table has for it.

    ``trees`` are code lists: each says of labels which others they are made of. Without them
    labels are bands of numbers if all are, and else groups that have nobody in common.
    """
    seen = list(dict.fromkeys(labels))
    _check_known(name, seen, trees)
    known: dict[str, tuple[str, ...]] = {}
    leaves = {label: leaves_of(label, trees, known=known) for label in seen}
    # What a code list says to be everyone needs no guess by its name.
    totals = [label for label in seen if leaves[label] == (label,) and TOTAL.fullmatch(label)]
    parts = list(dict.fromkeys(leaf for label in seen for leaf in leaves[label]))
    finest = [part for part in parts if part not in totals]
    bands = {part: band_of(part) for part in finest}
    if finest and all(bands.values()):
        groups, of_part = _refined({part: band for part, band in bands.items() if band})
    else:
        groups = tuple(finest)
        of_part = {part: (at,) for at, part in enumerate(finest)}
    if not groups:
        raise InputError(f"the dimension {name!r} has no label but {', '.join(map(repr, totals))}")
    members = {
        label: tuple(range(len(groups)))
        if label in totals
        else tuple(sorted({at for leaf in leaves[label] for at in of_part[leaf]}))
        for label in seen
    }
    return Axis(name, groups, members)


def _check_known(
    name: str, labels: Iterable[str], trees: Sequence[Mapping[str, Sequence[str]]]
) -> None:
    """Raise where code lists are given and a label is in none of them."""
    listed = {label for tree in trees for each in tree.items() for label in (each[0], *each[1])}
    for label in labels if listed else ():
        if label not in listed and not TOTAL.fullmatch(label) and band_of(label) is None:
            raise InputError(
                f"the code lists of {name!r} do not have {label!r}; add it to a list of parts"
            )


def leaves_of(
    label: str,
    trees: Sequence[Mapping[str, Sequence[str]]],
    above: tuple[str, ...] = (),
    known: dict[str, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """What a label is made of in the end, by all trees together; itself if none has it.

    ``above`` are the labels that it is a part of, ``known`` what was found before.
    """
    known = {} if known is None else known
    if label in known:
        return known[label]
    if label in above:
        raise InputError(f"the code list says that {label!r} is a part of itself; fix it")
    if len(above) > MOST_LEVELS:
        raise InputError(f"the code list has more than {MOST_LEVELS} levels at {label!r}; fix it")
    found: tuple[str, ...] | None = None
    for tree in trees:
        if label in tree:
            parts = (leaves_of(part, trees, (*above, label), known) for part in tree[label])
            leaves = tuple(dict.fromkeys(leaf for part in parts for leaf in part))
            if found is not None and set(found) != set(leaves):
                raise InputError(
                    f"{label!r} is made of {_few(found)} by one code list and of {_few(leaves)} by "
                    "another; say what both are made of, down to the same labels"
                )
            found = found or leaves
    known[label] = (label,) if found is None else found
    return known[label]


def _few(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return ", ".join(map(repr, labels[:3])) + more


def _refined(bands: Mapping[str, Band]) -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """The common refinement of bands, as labels, and the parts of it that each band holds."""
    starts = {band.low for band in bands.values()}
    starts |= {band.high + 1 for band in bands.values() if band.high is not None}
    ordered = sorted(starts)
    pieces = [Band(a, b - 1) for a, b in pairwise(ordered)]
    pieces.append(Band(ordered[-1], None))
    covered = [piece for piece in pieces if any(piece in band for band in bands.values())]
    # "<5" is written as it was published, unless somebody published a band from 0.
    from_zero = any(label.strip().startswith("0") for label in bands)
    named = tuple(_written(piece, from_zero) for piece in covered)
    return named, {
        label: tuple(at for at, piece in enumerate(covered) if piece in band)
        for label, band in bands.items()
    }


def _written(band: Band, from_zero: bool) -> str:
    if band.high is None:
        return f"{band.low}+"
    if band.low == band.high:
        return str(band.low)
    if band.low == 0 and not from_zero:
        return f"<{band.high + 1}"
    return f"{band.low}-{band.high}"
