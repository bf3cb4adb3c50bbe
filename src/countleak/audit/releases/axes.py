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
_BETWEEN = re.compile(r"(\d{1,9})\s*(?:-|–|—|\.\.|to)\s*(\d{1,9})")  # noqa: RUF001
_FROM = re.compile(r"(\d{1,9})\s*(?:\+|(?:and|or) (?:over|older|above|more))")
_FROM_TOO = re.compile(r"(?:>=|≥)\s*(\d{1,9})")
_ABOVE = re.compile(r">\s*(\d{1,9})")
_BELOW = re.compile(r"(?:<|under|below)\s*(\d{1,9})", re.IGNORECASE)
_UP_TO = re.compile(r"(?:<=|≤)\s*(\d{1,9})")


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
    text = label.strip()
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
    leaves = {label: leaves_of(label, trees) for label in seen}
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


def leaves_of(label: str, trees: Sequence[Mapping[str, Sequence[str]]]) -> tuple[str, ...]:
    """What a label is made of in the end, by the first tree that has it; itself if none does."""
    for tree in trees:
        if label in tree:
            return tuple(dict.fromkeys(_below(label, tree, (label,))))
    return (label,)


def _below(label: str, tree: Mapping[str, Sequence[str]], above: tuple[str, ...]) -> list[str]:
    if label not in tree:
        return [label]
    found: list[str] = []
    for part in tree[label]:
        if part in above:
            raise InputError(f"the code list says that {part!r} is a part of itself; fix it")
        found += _below(part, tree, (*above, part))
    return found


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
