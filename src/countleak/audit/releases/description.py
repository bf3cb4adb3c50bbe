"""`releases.toml`: which tables were published, by what rules, and what labels are made of."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from countleak.audit.releases.axes import axis_of
from countleak.audit.releases.formats.rows import Tree
from countleak.audit.releases.guessing import Guess, guess_of
from countleak.audit.releases.mechanisms import KEYS as MECHANISMS
from countleak.audit.releases.mechanisms import marks_of, reach_by_chance, rules_of
from countleak.audit.releases.model import Stated, Trees
from countleak.audit.releases.reading import Reading, Release, marks_in, read_release
from countleak.errors import InputError
from countleak.files import Name, read_text

KEYS = ("file", "name", "count", "marks", *MECHANISMS)


@dataclass(frozen=True)
class Described:
    """All that is to be audited together: the tables, and the code lists of their dimensions."""

    tables: tuple[Stated, ...]
    trees: Trees


def read_releases(paths: Sequence[Name]) -> Described:
    """The tables in some files, or those that one `releases.toml` describes."""
    described = [path for path in paths if Path(path).suffix.lower() == ".toml"]
    if not described:
        guesses = [guess_of(read_release(path)) for path in paths]
        _check_names([guess.stated.release for guess in guesses])
        return _together([guess.stated for guess in guesses], guesses, {})
    if len(paths) > 1:
        raise InputError(f"{described[0]}: name this file alone; it says which tables there are")
    return _read_description(described[0])


def strangers(described: Described) -> list[str]:
    """Which tables have a dimension in common and nobody in it, in words."""
    lines = []
    releases = [each.release for each in described.tables]
    for name in dict.fromkeys(name for each in releases for name in each.dimensions):
        labels = {
            each.name: {number.labels[each.dimensions.index(name)] for number in each.numbers}
            for each in releases
            if name in each.dimensions
        }
        every = dict.fromkeys(label for some in labels.values() for label in some)
        members = axis_of(name, every, described.trees.get(name, ())).members
        groups = {
            table: {group for label in some for group in members[label]}
            for table, some in labels.items()
        }
        lines += [
            f"{first} and {second} have no {name} in common: they are read as being about different"
            " people. If they are not, say which labels are the same in a releases.toml."
            for (first, some), (second, others) in combinations(groups.items(), 2)
            if not some & others
        ]
    return lines


def _together(stated: Sequence[Stated], guesses: Sequence[Guess], said: Trees) -> Described:
    """The tables with all code lists: those said, those in their files, and those guessed."""
    trees = {name: list(lists) for name, lists in said.items()}
    for each in stated:
        for name, tree in each.release.trees.items():
            trees.setdefault(name, []).append(tree)
    for guess in guesses:
        for name, tree in guess.totals.items():
            lists = trees.setdefault(name, [])
            # What is said, or was guessed before, is not guessed again.
            new = {
                label: parts for label, parts in tree.items() if not any(label in x for x in lists)
            }
            lists.append(new)
    return Described(tuple(stated), {name: tuple(lists) for name, lists in trees.items()})


def _check_names(releases: Sequence[Release]) -> None:
    names = [release.name for release in releases]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two tables are called {name!r}; rename a file, or name them in TOML")


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
    read = [_table(path, each) for each in tables]
    stated = [each.stated if isinstance(each, Guess) else each for each in read]
    _check_names([each.release for each in stated])
    trees = _trees(path, record.get("hierarchy", {}))
    known = {name for each in stated for name in each.release.dimensions}
    if unknown := sorted(set(trees) - known):
        raise InputError(
            f"{path}: no table has the dimension {unknown[0]!r} of a hierarchy; there are "
            f"{', '.join(sorted(known))}"
        )
    return _together(stated, [each for each in read if isinstance(each, Guess)], trees)


def _table(path: Name, record: Any) -> Stated | Guess:
    """A table by what is said of it; by what it looks like where nothing is."""
    if not isinstance(record, dict) or not isinstance(record.get("file"), str):
        raise InputError(f'{path}: a [[table]] needs its file, like file = "ages.csv"')
    unknown = sorted(set(record) - set(KEYS))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; a table has {', '.join(KEYS)}")
    for key in ("name", "count"):
        if not isinstance(record.get(key, ""), str):
            raise InputError(f"{path}: {key} is {record[key]!r}; write a text in quotes")
    marks = marks_of(path, record.get("marks", {}))
    noisy = "noise_sd" in record or "noise_within" in record
    how = Reading(record.get("count"), record.get("name"), marks, noisy)
    if not any(key in record for key in MECHANISMS):
        return guess_of(read_release(Path(path).parent / record["file"], how))
    rules = rules_of(path, record)
    release = read_release(Path(path).parent / record["file"], how)
    _check_marks(path, release, record)
    whole = all(n.value is None or n.value == int(n.value) for n in release.numbers)
    likely = reach_by_chance(rules, len(release.numbers), whole)
    if likely is None:
        return Stated(release, rules)
    within, words = likely
    return Stated(release, rules, (words,), within)


def _check_marks(path: Name, release: Release, record: Mapping[str, Any]) -> None:
    """Raise where several marks are left to stand for one rule."""
    if "suppressed" not in record and "not_shown_below" not in record:
        return
    unsaid = [n for n in release.numbers if n.among is None and n.why is None]
    marks, graded = marks_in(unsaid), any(n.among is not None for n in release.numbers)
    if len(marks) + graded > 1 and marks:
        each = ", ".join(f"{mark!r} ({count})" for mark, count in marks.items())
        raise InputError(
            f"{path}: {release.name} has several marks, {each}; say which counts are below the "
            f'threshold, like marks = {{ "{next(iter(marks))}" = "primary", ... = "secondary" }}'
        )


def _trees(path: Name, record: Any) -> dict[str, tuple[Tree, ...]]:
    """The code lists by dimension: one table, or several in an array, each label with its parts."""
    if not isinstance(record, dict):
        raise InputError(f"{path}: hierarchy is no table; write [hierarchy.region]")
    found: dict[str, tuple[Tree, ...]] = {}
    for name, trees in record.items():
        several = trees if isinstance(trees, list) else [trees]
        read: list[Tree] = []
        for tree in several:
            lists = isinstance(tree, dict) and all(
                isinstance(parts, list) and parts for parts in tree.values()
            )
            if not lists:
                raise InputError(
                    f"{path}: the hierarchy of {name!r} cannot be read; write lists like "
                    'North = ["Leeds", "York"]'
                )
            read.append({label: tuple(map(str, parts)) for label, parts in tree.items()})
        found[name] = tuple(read)
    return found
