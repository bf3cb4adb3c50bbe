"""`releases.toml`: which tables were published, and by what rules; and what tables tell of that."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from pathlib import Path
from typing import Any

from countleak.attack.noise import Range, Shape
from countleak.attack.rules import Rules
from countleak.audit.releases.findings import EXACT
from countleak.audit.releases.model import Stated, Trees
from countleak.audit.releases.reading import Release, read_release
from countleak.errors import InputError
from countleak.files import Name, read_text

# Fewer numbers may all be multiples of something by chance.
ENOUGH = 10
ROUNDINGS = ("nearest", "random", "controlled")
KEYS = ("file", "name", "count", "exact", "rounded_to", "rounding", "suppressed", "noise_within")


@dataclass(frozen=True)
class Described:
    """All that is to be audited together: the tables, and the code lists of their dimensions."""

    tables: tuple[Stated, ...]
    trees: Trees


def read_releases(paths: Sequence[Name]) -> Described:
    """The tables in some files, or those that one `releases.toml` describes."""
    described = [path for path in paths if Path(path).suffix.lower() == ".toml"]
    if not described:
        releases = [read_release(path) for path in paths]
        return Described(tuple(map(as_read, _with_names(releases))), {})
    if len(paths) > 1:
        raise InputError(f"{described[0]}: name this file alone; it says which tables there are")
    return _read_description(described[0])


def as_read(release: Release) -> Stated:
    """A table by the rules that its numbers look like, which are then inferred."""
    shown = [number.value for number in release.numbers if number.value]
    base = reduce(gcd, shown, 0)
    if len(shown) >= ENOUGH and base > 2:
        # Which way counts were rounded does not show; by chance they can go furthest.
        rounded = f"its counts are rounded to multiples of {base}, up or down by chance"
        rules = Rules(Shape.EXACT, base=base, random_rounding=True)
        return Stated(release, rules, (rounded,))
    return Stated(release, Rules(Shape.EXACT), (EXACT,))


def proposed(described: Described, paths: Sequence[Name]) -> str:
    """A `releases.toml` that says what was read off the tables, to be corrected."""
    parts = ["# What was read off the tables; correct it, and name this file in their place."]
    for stated, path in zip(described.tables, paths, strict=True):
        release, rules = stated.release, stated.rules
        lines = ["[[table]]", f"file = {quoted(str(path))}", f"name = {quoted(release.name)}"]
        lines.append(f"count = {quoted(release.count)}")
        lines.append(f"# dimensions: {', '.join(release.dimensions)}")
        if rules.base is None:
            lines.append("exact = true")
        else:
            lines += [f"rounded_to = {rules.base}", 'rounding = "random"  # or "nearest"']
        hidden = sum(number.value is None for number in release.numbers)
        if hidden:
            shown = [number.value for number in release.numbers if number.value]
            least = f"; the least shown above 0 is {min(shown)}" if shown else ""
            lines.append(f"# {hidden} numbers are not shown{least}: which counts are hidden?")
            lines.append('# suppressed = "1..4"')
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _with_names(releases: Sequence[Release]) -> Sequence[Release]:
    names = [release.name for release in releases]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two tables are called {name!r}; rename a file, or name them in TOML")
    return releases


def _read_description(path: Name) -> Described:
    try:
        record = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML ({error}); fix the line") from None
    unknown = sorted(set(record) - {"table", "hierarchy"})
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; write [[table]] and [[hierarchy.X]]")
    tables = record.get("table")
    if not isinstance(tables, list) or not tables:
        raise InputError(f"{path}: it describes no table; write a [[table]] with its file")
    stated = tuple(_table(path, each) for each in tables)
    _with_names([each.release for each in stated])
    return Described(stated, _trees(path, record.get("hierarchy", {})))


def _table(path: Name, record: Any) -> Stated:
    if not isinstance(record, dict) or not isinstance(record.get("file"), str):
        raise InputError(f'{path}: a [[table]] needs its file, like file = "ages.csv"')
    unknown = sorted(set(record) - set(KEYS))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; a table has {', '.join(KEYS)}")
    file = Path(path).parent / record["file"]
    release = read_release(file, record.get("count"), record.get("name"))
    said = [key for key in KEYS[3:] if key in record]
    if not said:
        return as_read(release)
    return Stated(release, _rules(path, record))


def _rules(path: Name, record: Mapping[str, Any]) -> Rules:
    base, kind = record.get("rounded_to"), record.get("rounding", "nearest")
    if kind not in ROUNDINGS:
        raise InputError(f"{path}: rounding is {kind!r}; write one of {', '.join(ROUNDINGS)}")
    if base is not None and (not isinstance(base, int) or isinstance(base, bool) or base < 2):
        raise InputError(f"{path}: rounded_to is {base!r}; write a whole number from 2")
    within = record.get("noise_within")
    if within is not None and not (isinstance(within, int | float) and within > 0):
        raise InputError(f"{path}: noise_within is {within!r}; write a number above 0")
    return Rules(
        Shape.EXACT if within is None else Shape.UNIFORM,
        bound=within,
        base=base,
        random_rounding=base is not None and kind != "nearest",
        suppressed=_range(path, record.get("suppressed")),
    )


def _range(path: Name, text: Any) -> Range | None:
    if text is None:
        return None
    low, dots, high = str(text).partition("..")
    if not dots or not low.strip().isdecimal() or not high.strip().isdecimal():
        raise InputError(f'{path}: suppressed is {text!r}; write the counts like "1..4"')
    return Range(int(low), int(high))


def _trees(path: Name, record: Any) -> dict[str, tuple[Mapping[str, tuple[str, ...]], ...]]:
    """The code lists by dimension: one table, or several in an array, each label with its parts."""
    if not isinstance(record, dict):
        raise InputError(f"{path}: hierarchy is no table; write [hierarchy.region]")
    found: dict[str, tuple[Mapping[str, tuple[str, ...]], ...]] = {}
    for name, trees in record.items():
        several = trees if isinstance(trees, list) else [trees]
        read: list[Mapping[str, tuple[str, ...]]] = []
        for tree in several:
            lists = isinstance(tree, dict) and all(isinstance(v, list) for v in tree.values())
            if not lists:
                raise InputError(
                    f"{path}: the hierarchy of {name!r} cannot be read; write lists like "
                    'North = ["Leeds", "York"]'
                )
            read.append({label: tuple(map(str, parts)) for label, parts in tree.items()})
        found[name] = tuple(read)
    return found


def quoted(text: str) -> str:
    """A text as TOML and JSON write it."""
    return json.dumps(text, ensure_ascii=False)
