"""pytauargus, the tool that offices protect single tables with: its suppression and its audit."""

import tempfile
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.errors import MissingExtra
from countleak.lab.bench.tables.residents import TOTAL

Cell = tuple[str, ...]
PRIMARY, SECONDARY = "U", "M"
# So far two linear programs that are solved in floating point may differ.
EDGE = 1e-5


@dataclass(frozen=True)
class Audited:
    """What its audit says of a suppressed cell: what it can be, and whether that is too narrow.

    The audit grants a reader that every cell lies between the smallest and the largest one, or a
    little wider where protection asks for it: ``beforehand``.
    """

    low: float
    high: float
    flagged: bool
    beforehand: tuple[float, float]


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
        beforehand = _beforehand(result.engine, Path(folder) / "granted")
    cells = [tuple(row[name].strip() for name in columns) for row in rows]
    status = {cell: row["status"] for cell, row in zip(cells, rows, strict=True)}
    return Protected(
        {cell: row["weight"] for cell, row in zip(cells, rows, strict=True)},
        frozenset(cell for cell, what in status.items() if what == PRIMARY),
        frozenset(cell for cell, what in status.items() if what == SECONDARY),
        {
            cells[r["cell"]]: Audited(r["min"], r["max"], r["unsafe"], beforehand[r["cell"]])
            for r in audit
        },
        protected - begin,
        seconds,
    )


def _beforehand(engine: Any, file: Path) -> list[tuple[float, float]]:
    """What each cell of the table is granted to lie between, from the file that the audit reads.

    After a line and the number of cells it has a line per cell: number, value, weight, status,
    least and largest.
    """
    # As Engine.audit calls it.
    engine._tau.write_jj_format(0, str(file), *engine._table_cell_bounds(0), False, False, False)
    _, count, *lines = file.read_text(encoding="utf-8").splitlines()
    fields = [line.split() for line in lines[: int(count)]]
    return [(float(each[4]), float(each[5])) for each in fields]


def pytauargus() -> Any:
    """The package, or the error that names the extra that brings it."""
    try:
        import pytauargus
    except ImportError:
        raise MissingExtra("suppressing tables with pytauargus", "bench") from None
    return pytauargus
