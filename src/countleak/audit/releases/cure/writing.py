"""Protected tables as files, with the `releases.toml` that says how they were made."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from countleak.attack.noise import Below, Range
from countleak.attack.perturbation import Perturbation
from countleak.audit.releases.cure import as_written
from countleak.audit.releases.description import Described
from countleak.audit.releases.guessing import beginning, hierarchies, quoted
from countleak.audit.releases.mechanisms import LAWS
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
    tables = dict(zip(names, described.tables, strict=True))
    p_tables = {_p_table(name): each for name, each in tables.items() if _special(each)}
    paths = [folder / name for name in (*names, *p_tables, DESCRIPTION)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise InputError(f"{path}: is there already; name an empty folder to write to")
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, stated in tables.items():
        _write_table(stated.release, folder / name)
    for name, stated in p_tables.items():
        _write_p_table(stated, folder / name)
    said = [_described(each, name) for name, each in tables.items()]
    with plain_errors(paths[-1]), paths[-1].open("x", encoding="utf-8") as file:
        file.write("\n\n".join([*said, *hierarchies(described.trees)]) + "\n")
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


def _p_table(file: str) -> str:
    """What the p-table of a table's file is called."""
    return str(Path(file).with_suffix(".ptable"))


def _special(stated: Stated) -> bool:
    """Whether it takes a p-table to say what keys add to its counts."""
    keys = stated.rules.keys
    return keys is not None and keys != Perturbation.within(keys.bound)


def _write_p_table(stated: Stated, path: Path) -> None:
    every = () if stated.rules.keys is None else stated.rules.keys.added
    rows = [(count, value) for count, some in enumerate(every) for value in sorted(some)]
    with plain_errors(path), path.open("x", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("pcv", "pvalue"), *rows])


def _described(stated: Stated, file: str) -> str:
    lines = [*beginning(stated.release, file), *_noise(stated, file)]
    rules = stated.rules
    if rules.base is not None:
        how = "random" if rules.random_rounding else "nearest"
        lines += [f"rounded_to = {rules.base}", f'rounding = "{how}"']
    match rules.suppressed:
        case Range(low, high):
            lines.append(f'suppressed = "{low}..{high}"')
        case Below(answer):
            lines.append(f"not_shown_below = {answer!r}")
    return "\n".join(lines)


def _noise(stated: Stated, file: str) -> list[str]:
    """What is added to the counts of a table; that it is exact where nothing is done to them."""
    rules = stated.rules
    if _special(stated):
        return [f"p_table = {quoted(_p_table(file))}"]
    if rules.keys is not None:
        return [f"perturbed_within = {rules.keys.bound}"]
    if rules.bound is not None:
        return [f"noise_within = {rules.bound!r}"]
    if rules.sigma is not None:
        law = next(name for name, shape in LAWS.items() if shape is rules.shape)
        return [f"noise_sd = {rules.sigma!r}", f"noise_law = {quoted(law)}"]
    return [] if rules.base is not None else ["exact = true"]
