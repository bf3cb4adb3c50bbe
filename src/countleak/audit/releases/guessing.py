"""What tables tell of how they were made: rounding, totals and marks; and as a `releases.toml`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, log2

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Shape
from countleak.attack.rules import Rules
from countleak.audit.releases.axes import TOTAL, band_of
from countleak.audit.releases.findings import EXACT
from countleak.audit.releases.formats.rows import Tree
from countleak.audit.releases.model import Stated, Trees
from countleak.audit.releases.reading import Published, Release, marks_in
from countleak.files import Name

# Fewer numbers may all be multiples of something by chance.
ENOUGH = 10
# Sums of which any agree by chance once in 2 to this many dimensions are taken for totals.
BITS = 7
# Of more labels, sums are not looked for.
MOST_LABELS, MOST_PARTS = 500, 100


@dataclass(frozen=True)
class Guess:
    """A table by the rules that its numbers look like, and labels that are totals of others."""

    stated: Stated
    totals: Mapping[str, Tree]


def guess_of(release: Release) -> Guess:
    """What a table looks like; its rules are then inferred."""
    base = _base(release)
    if base > 2:
        # Which way counts were rounded does not show; by chance they can go furthest.
        rounded = f"its counts are rounded to multiples of {base}, up or down by chance"
        rules = Rules(Shape.EXACT, base=base, random_rounding=True)
        return Guess(Stated(release, rules, (rounded,)), {})
    totals = totals_of(release)
    words = tuple(
        f"its {name} {label!r} is {_listed(parts)} together, as its numbers are"
        for name, tree in totals.items()
        for label, parts in tree.items()
    )
    return Guess(Stated(release, Rules(Shape.EXACT), (EXACT, *words)), totals)


def _base(release: Release) -> int:
    """What all numbers are multiples of; 1 where there are too few to tell."""
    shown = [int(number.value) for number in release.numbers if number.value]
    return reduce(gcd, shown, 0) if len(shown) >= ENOUGH else 1


def totals_of(release: Release) -> dict[str, Tree]:
    """The labels whose numbers are the sums of others' wherever all of them are shown."""
    found: dict[str, Tree] = {}
    for at, name in enumerate(release.dimensions):
        labels = [
            label
            for label in dict.fromkeys(number.labels[at] for number in release.numbers)
            if not TOTAL.fullmatch(label)
        ]
        if 2 < len(labels) <= MOST_LABELS and not all(map(band_of, labels)):
            tree = _sums_among(labels, _values(release, at, labels))
            if tree:
                found[name] = tree
    return found


def _values(release: Release, at: int, labels: Sequence[str]) -> NDArray[np.float64]:
    """The numbers by what else they are about (rows) and by label; NaN where none is shown."""
    columns = {label: column for column, label in enumerate(labels)}
    rows: dict[tuple[str, ...], int] = {}
    cells = []
    for number in release.numbers:
        if number.value is not None and (column := columns.get(number.labels[at])) is not None:
            other = number.labels[:at] + number.labels[at + 1 :]
            cells.append((rows.setdefault(other, len(rows)), column, number.value))
    values = np.full((len(rows), len(labels)), np.nan)
    for row, column, value in cells:
        values[row, column] = value
    return values


def _sums_among(labels: Sequence[str], values: NDArray[np.float64]) -> dict[str, tuple[str, ...]]:
    """Totals of labels that begin like them, that stand next to them, and of all others."""
    found: dict[str, tuple[str, ...]] = {}
    for i, label in enumerate(labels):
        parts = _first_sum(values, i, [_longer(labels, i), *_runs(values, i)])
        if parts:
            found[label] = tuple(labels[part] for part in parts)
    below = {part for parts in found.values() for part in parts}
    tops = [i for i, label in enumerate(labels) if label not in below]
    for i in tops:
        if labels[i] not in found:
            parts = _first_sum(values, i, [[j for j in tops if j != i]])
            if parts:
                found[labels[i]] = tuple(labels[part] for part in parts)
                break
    return found


def _longer(labels: Sequence[str], i: int) -> list[int]:
    """The labels that begin with label i and are the least longer, as codes of parts are."""
    longer = [j for j, other in enumerate(labels) if j != i and other.startswith(labels[i])]
    least = min((len(labels[j]) for j in longer), default=0)
    return [j for j in longer if len(labels[j]) == least]


def _runs(values: NDArray[np.float64], i: int) -> list[list[int]]:
    """The labels right after label i, or right before it, whose first numbers add up to its."""
    runs = []
    for others in (range(i + 1, values.shape[1]), range(i - 1, -1, -1)):
        others = others[:MOST_PARTS]
        sums = np.cumsum(values[:, list(others)], axis=1)
        known = ~np.isnan(sums) & ~np.isnan(values[:, [i]])
        fits = ((sums == values[:, [i]]) | ~known).all(axis=0) & known.any(axis=0)
        runs += [list(others)[: end + 1] for end in np.flatnonzero(fits[1:]) + 1]
    return runs


def _first_sum(
    values: NDArray[np.float64], i: int, candidates: Sequence[list[int]]
) -> list[int] | None:
    """The first candidates whose numbers add up to those of label i, often enough to be meant."""
    labels = values.shape[1]
    needed = BITS + log2(labels * (2 * min(labels, MOST_PARTS) + 2))
    for parts in candidates:
        if len(parts) < 2:
            continue
        both = np.column_stack([values[:, parts].sum(axis=1), values[:, i]])
        both = both[~np.isnan(both).any(axis=1)]
        agrees = np.equal(both[:, 0], both[:, 1]).all()
        if agrees and sum(log2(total + 1) for total in both[:, 1].tolist()) >= needed:
            return sorted(parts)
    return None


def proposed(tables: Sequence[Stated], trees: Trees, paths: Sequence[Name]) -> str:
    """A `releases.toml` that says what was read off the tables, to be corrected."""
    parts = ["# What was read off the tables; correct it, and name this file in their place."]
    parts += [_proposed_table(each, path) for each, path in zip(tables, paths, strict=True)]
    parts += hierarchies(trees)
    return "\n\n".join(parts) + "\n"


def beginning(release: Release, path: Name) -> list[str]:
    """How a `releases.toml` begins a table, by the file that it is in."""
    names = {"file": str(path), "name": release.name, "count": release.count}
    return ["[[table]]", *(f"{key} = {quoted(text)}" for key, text in names.items())]


def hierarchies(trees: Trees) -> list[str]:
    """Code lists as a `releases.toml` has them."""
    found = []
    for name, lists in trees.items():
        for tree in lists:
            of = (
                f"{quoted(label)} = [{', '.join(map(quoted, parts))}]"
                for label, parts in tree.items()
            )
            found.append("\n".join([f"[[hierarchy.{quoted(name)}]]", *of]))
    return found


def _proposed_table(stated: Stated, path: Name) -> str:
    release, rules = stated.release, stated.rules
    lines = beginning(release, path)
    lines.append(f"# dimensions: {', '.join(release.dimensions)}")
    if rules.base is None:
        lines.append("exact = true")
    else:
        lines += [f"rounded_to = {rules.base}", 'rounding = "random"  # or "nearest"']
    return "\n".join([*lines, *_proposed_suppression(release.numbers)])


def _proposed_suppression(numbers: Sequence[Published]) -> list[str]:
    """Which counts seem to be hidden: those below a mark like <5, or below the least shown."""
    marks = marks_in(numbers)
    if not marks:
        return []
    shown = [int(number.value) for number in numbers if number.value]
    first = 1 if any(number.value == 0 for number in numbers) else 0
    hidden = [number.among.high for number in numbers if number.among is not None]
    each = ", ".join(f"{mark!r} {count}" for mark, count in marks.items())
    least = f"; the least shown above 0 is {min(shown)}" if shown else ""
    lines = [f"# {sum(marks.values())} numbers are not shown{least}: which counts are hidden?"]
    if hidden and (not shown or min(shown) > max(hidden)) and max(hidden) >= first:
        lines.append(f'suppressed = "{first}..{max(hidden)}"')
    else:
        most = min(shown) - 1 if shown and min(shown) > 1 else 4
        lines.append(f'# suppressed = "1..{most}"')
    meanings = (
        f'{quoted(number)} = "{"primary" if number in _fewer(numbers) else "unknown"}"'
        for number in marks
    )
    said = ", ".join(meanings)
    lines.append(f"{'' if len(marks) > 1 else '# '}marks = {{ {said} }}  # {each}; or secondary")
    return lines


def _fewer(numbers: Sequence[Published]) -> set[str]:
    """The marks that say what the count is below."""
    return {number.mark for number in numbers if number.among is not None}


def _listed(labels: Sequence[str]) -> str:
    shown = [repr(label) for label in labels[:3]]
    rest = len(labels) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def quoted(text: str) -> str:
    """A text as TOML and JSON write it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
