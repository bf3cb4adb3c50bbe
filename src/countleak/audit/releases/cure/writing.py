"""Protected tables as files, with the `releases.toml` that says how they were made."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from countleak.attack.noise import Range
from countleak.attack.rules import Rules
from countleak.audit.releases.cure import as_written
from countleak.audit.releases.description import Described, quoted
from countleak.audit.releases.model import Stated
from countleak.audit.releases.reading import Published, Release
from countleak.errors import InputError
from countleak.files import Name, plain_errors

HIDDEN = "*"
DESCRIPTION = "releases.toml"
_UNFIT = re.compile(r"[^\w .-]+")


def write_tables(described: Described, folder: Name) -> list[Path]:
    """Write every table as CSV, and their description, into a folder that has none of them yet."""
    folder, described = Path(folder), as_written(described)
    names = _file_names([each.release.name for each in described.tables])
    paths = [folder / name for name in (*names, DESCRIPTION)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path}: is there already; name an empty folder to write to")
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for stated, path in zip(described.tables, paths, strict=False):
        _write_table(stated.release, path)
    tables = [_described(each, name) for each, name in zip(described.tables, names, strict=True)]
    with plain_errors(paths[-1]), paths[-1].open("x", encoding="utf-8") as file:
        file.write("\n\n".join([*tables, *_hierarchies(described.trees)]) + "\n")
    return paths


def _file_names(tables: Sequence[str]) -> list[str]:
    names: list[str] = []
    for table in tables:
        plain = _UNFIT.sub("_", table).strip(". ")[:100] or "table"
        name, number = f"{plain}.csv", 2
        while name.lower() in {other.lower() for other in names}:
            name, number = f"{plain}_{number}.csv", number + 1
        names.append(name)
    return names


def _write_table(release: Release, path: Path) -> None:
    # "x": what came to stand there in the meantime is not replaced either.
    with plain_errors(path), path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*release.dimensions, release.count])
        writer.writerows([*number.labels, _shown(number)] for number in release.numbers)


def _shown(number: Published) -> str:
    if number.value is not None:
        return str(number.value)
    if isinstance(number.among, Range) and number.among.low == 0 and number.among.high < 10**9:
        return f"<{number.among.high + 1}"
    return HIDDEN


def _described(stated: Stated, file: str) -> str:
    release = stated.release
    lines = ["[[table]]", f"file = {quoted(file)}", f"name = {quoted(release.name)}"]
    lines.append(f"count = {quoted(release.count)}")
    return "\n".join([*lines, *_rules(stated.rules)])


def _rules(rules: Rules) -> list[str]:
    lines = []
    if rules.bound is not None:
        lines.append(f"noise_within = {rules.bound:g}")
    if rules.base is not None:
        how = "random" if rules.random_rounding else "nearest"
        lines += [f"rounded_to = {rules.base}", f'rounding = "{how}"']
    if isinstance(rules.suppressed, Range):
        lines.append(f'suppressed = "{rules.suppressed.low}..{rules.suppressed.high}"')
    return lines if rules.bound is not None or rules.base is not None else ["exact = true", *lines]


def _hierarchies(trees: Mapping[str, Sequence[Mapping[str, Sequence[str]]]]) -> list[str]:
    found = []
    for dimension, lists in trees.items():
        for tree in lists:
            lines = [f"[[hierarchy.{quoted(dimension)}]]"]
            for label, parts in tree.items():
                lines.append(f"{quoted(label)} = [{', '.join(map(quoted, parts))}]")
            found.append("\n".join(lines))
    return found
