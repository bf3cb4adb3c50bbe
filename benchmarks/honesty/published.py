"""Statistical offices: cells of all tables of up to three of five known columns, 300 people."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.honesty.system import answered, bits, counted, matching, noisy, system
from benchmarks.worlds import World, random_tables
from countleak.attack.noise import Range, Shape
from countleak.attack.queries import Queries
from countleak.attack.queries.tables import table_queries
from countleak.attack.rules import Rules

PEOPLE = 300
SIZES = (2, 3, 4, 5, 6)
TABLES = 25
MOST_SUPPRESSED = 2
# A cell's perturbation by its key: -2, -1, 0, 1, 2 up to these.
KEY_LIMITS = (0.1, 0.3, 0.7, 0.9)


def cells(rng: np.random.Generator) -> Queries:
    """Every cell with people in it, of every table of up to three columns."""
    columns = {f"c{k}": rng.integers(0, size, PEOPLE) for k, size in enumerate(SIZES)}
    tables = random_tables(list(columns), TABLES, rng)
    return table_queries(np.arange(PEOPLE), columns, tables)


def suppressed_cells(queries: Queries, secret: NDArray[np.int8]) -> World:
    """Exact counts, of which those of 1 and 2 are suppressed and zeros shown."""
    counts = counted(queries, secret)
    return answered(queries, secret, counts, (counts < 1) | (counts > MOST_SUPPRESSED))


@system()
def tables_suppressed(rng: np.random.Generator) -> World:
    """Tables of exact counts, 12% ones; cells of 1 and 2 are suppressed, zeros shown."""
    return suppressed_cells(cells(rng), bits(PEOPLE, 0.12, rng))


@system(
    rules=Rules(Shape.EXACT, suppressed=Range(1, MOST_SUPPRESSED)),
)
def tables_suppressed_told(rng: np.random.Generator) -> World:
    """The same tables, and the auditor states the rule."""
    return suppressed_cells(cells(rng), bits(PEOPLE, 0.12, rng))


@system(rules=Rules(Shape.EXACT))
def tables_exact_told(rng: np.random.Generator) -> World:
    """Tables of exact counts, 30% ones, and the auditor says that they are exact."""
    queries, secret = cells(rng), bits(PEOPLE, 0.3, rng)
    return noisy(queries, secret, np.zeros(len(queries)))


@system()
def tables_cell_key(rng: np.random.Generator) -> World:
    """Tables with 30% ones, moved by up to 2 by a key of who is counted; zeros stay zero."""
    queries, secret = cells(rng), bits(PEOPLE, 0.3, rng)
    counts = counted(queries, secret)
    key = (matching(queries, secret) @ rng.random(PEOPLE)) % 1.0
    moved = counts + np.searchsorted(KEY_LIMITS, key) - 2
    return answered(queries, secret, np.where(counts > 0, np.maximum(moved, 0), 0.0))


SYSTEMS = (tables_suppressed, tables_suppressed_told, tables_exact_told, tables_cell_key)
