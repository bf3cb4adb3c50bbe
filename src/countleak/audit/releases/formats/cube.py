"""Tables whose numbers are listed in the order of their dimensions, without labels of their own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from countleak.audit.releases.formats.rows import Rows
from countleak.errors import InputError
from countleak.files import Name


@dataclass(frozen=True)
class Dimension:
    """A dimension with its labels in order; ``measures``: they are kinds of numbers, not groups."""

    name: str
    labels: Sequence[str]
    measures: bool = False


def rows_of(
    path: Name,
    dimensions: Sequence[Dimension],
    texts: Iterable[tuple[int, str]],
    count: str | None,
) -> Rows:
    """The rows of numbers given by position, the last dimension fastest; of one measure only."""
    chosen, names = {}, []
    for at, dimension in enumerate(dimensions):
        if dimension.measures:
            chosen[at] = _chosen(path, dimension, count)
        else:
            names.append(dimension.name)
    given = list(texts)
    shape = [len(dimension.labels) for dimension in dimensions]
    places = np.array([at for at, _ in given], np.int64)
    coordinates = np.unravel_index(places, shape) if shape else ()
    kept = np.ones(places.size, np.bool_)
    for at, position in chosen.items():
        kept &= coordinates[at] == position
    columns = [
        [dimension.labels[i] for i in coordinates[at][kept].tolist()]
        for at, dimension in enumerate(dimensions)
        if at not in chosen
    ]
    shown = [given[i][1] for i in np.flatnonzero(kept).tolist()]
    measure = [dimensions[at].labels[position] for at, position in chosen.items()]
    header = [*names, count or ", ".join(measure) or "count"]
    if len(set(header)) < len(header):
        raise InputError(f"{path}: two dimensions or the count have one name, {header}; rename one")
    rows = [list(row) for row in zip(*columns, shown, strict=True)]
    numbered = list(zip((places[kept] + 1).tolist(), rows, strict=True))
    return Rows(header, numbered, len(names), unit="number")


def _chosen(path: Name, dimension: Dimension, count: str | None) -> int:
    """Which of the measures is the count."""
    if count in dimension.labels:
        return list(dimension.labels).index(str(count))
    if len(dimension.labels) > 1:
        which = ", ".join(map(repr, dimension.labels))
        raise InputError(
            f"{path}: it has {which} by {dimension.name!r}; say which counts people in a "
            f"releases.toml, like count = {dimension.labels[0]!r}"
        )
    return 0
