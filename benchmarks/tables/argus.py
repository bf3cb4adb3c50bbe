"""pytauargus, the tool that offices protect single tables with: its suppression and its audit."""

import tempfile
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables.residents import TOTAL
from countleak.errors import MissingExtra

Cell = tuple[str, ...]
PRIMARY, SECONDARY = "U", "M"


@dataclass(frozen=True)
class Audited:
    """What its audit says of a suppressed cell: what it can be, and whether that is too narrow."""

    low: float
    high: float
    flagged: bool


@dataclass(frozen=True, eq=False)
class Protected:
    """A table after its suppression: every cell's ``value``, and who is hidden and why.

    ``primary`` cells break the rule themselves, ``secondary`` ones are hidden to protect those;
    ``audited`` says of both what the tool's own audit found. Times are in seconds.
    """

    value: Mapping[Cell, float]
    primary: frozenset[Cell]
    secondary: frozenset[Cell]
    audited: Mapping[Cell, Audited]
    protect_seconds: float
    audit_seconds: float

    @property
    def hidden(self) -> frozenset[Cell]:
        """All cells that are not shown."""
        return self.primary | self.secondary


def protect(
    columns: Mapping[str, NDArray[np.str_]],
    weight: NDArray[np.int64],
    rule: str = "FREQ(3,30)",
    method: str = "OPT(1)",
) -> Protected:
    """The table by all ``columns`` of the sums of ``weight`` (n,), suppressed by a safety rule.

    FREQ(3, 30) hides cells of one or two respondents, which must stay uncertain by 30%; OPT is
    its optimal choice of further cells, MOD the one for large tables with hierarchies.
    """
    micro = {name: column.tolist() for name, column in columns.items()}
    # It leaves its solvers' logs in the current folder.
    with tempfile.TemporaryDirectory(prefix="countleak-") as folder, chdir(folder):
        begin = perf_counter()
        result = pytauargus().protect(
            {**micro, "weight": weight.tolist()},
            list(columns),
            response="weight",
            safety_rules=rule,
            suppress=method,
            totcode=TOTAL,
            workdir=folder,
        )
        rows = result.tables[0].rows
        protected = perf_counter()
        audit = result.engine.audit(0)
        seconds = perf_counter() - protected
    cells = [tuple(row[name].strip() for name in columns) for row in rows]
    status = {cell: row["status"] for cell, row in zip(cells, rows, strict=True)}
    return Protected(
        {cell: row["weight"] for cell, row in zip(cells, rows, strict=True)},
        frozenset(cell for cell, what in status.items() if what == PRIMARY),
        frozenset(cell for cell, what in status.items() if what == SECONDARY),
        {cells[r["cell"]]: Audited(r["min"], r["max"], r["unsafe"]) for r in audit},
        protected - begin,
        seconds,
    )


def pytauargus() -> Any:
    """The package, or the error that names the extra that brings it."""
    try:
        import pytauargus
    except ImportError:
        raise MissingExtra("suppressing tables with pytauargus", "bench") from None
    return pytauargus
