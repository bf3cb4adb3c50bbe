"""From trials to cells: means with their intervals, over the trials that differ in number alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import stdtrit

from countleak.audit.scores import wilson
from countleak.errors import SolverError


@dataclass(frozen=True)
class Cell:
    """The trials at one point of a grid; accuracy is that of the ``claimed`` ones.

    Others were ``infeasible``, with a proof, or could not be solved and count nowhere.
    """

    at: Mapping[str, Any]
    trials: int
    claimed: int
    infeasible: int
    people: int
    mean: float | None
    sd: float | None
    baseline: float
    seconds: float

    @property
    def error(self) -> float | None:
        """Standard error of the mean: where all trials agree, as if one bit more were wrong."""
        if self.sd is None:
            return None
        return max(self.sd / sqrt(self.claimed), 1 / (self.people * self.claimed))

    @property
    def band(self) -> tuple[float, float] | None:
        """The mean's 95% interval, by Student's t."""
        if self.mean is None or self.error is None:
            return None
        half = float(stdtrit(self.claimed - 1, 0.975)) * self.error
        return max(0.0, self.mean - half), min(1.0, self.mean + half)

    @property
    def feasible(self) -> tuple[float, tuple[float, float]]:
        """The share of trials whose program had a solution, with Wilson's interval."""
        decided = self.claimed + self.infeasible
        if not decided:
            raise SolverError(f"none of the {self.trials} trials at {dict(self.at)} was solved")
        return self.claimed / decided, wilson(self.claimed, decided)

    def record(self) -> dict[str, Any]:
        """The cell as flat fields."""
        return {
            **self.at,
            "trials": self.trials,
            "accuracy": self.mean,
            "interval": self.band,
            "standard_error": self.error,
            "baseline": self.baseline,
            "feasible_share": self.feasible[0],
            "ms_per_program": 1000 * self.seconds,
        }


def cells(records: Iterable[Mapping[str, Any]], by: Sequence[str]) -> list[Cell]:
    """The cells of trials that agree on the fields ``by``, in the order they first occur."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record["trial"][name] for name in by), []).append(record)
    return [_cell(dict(zip(by, key, strict=True)), group) for key, group in groups.items()]


def _cell(at: dict[str, Any], group: Sequence[Mapping[str, Any]]) -> Cell:
    accuracies = [record["accuracy"] for record in group if record["accuracy"] is not None]
    return Cell(
        at,
        len(group),
        len(accuracies),
        sum(record["rests_on"]["status"] == "infeasible" for record in group),
        int(group[0]["people"]),
        float(np.mean(accuracies)) if accuracies else None,
        float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
        float(np.mean([record["baseline"] for record in group])),
        float(np.mean([record["rests_on"].get("seconds", 0.0) for record in group])),
    )


def pick(among: Iterable[Cell], **at: Any) -> list[Cell]:
    """The cells with these values."""
    return [cell for cell in among if all(cell.at[k] == v for k, v in at.items())]


def first_above(among: Sequence[Cell], axis: str, level: float) -> float | None:
    """The smallest value of ``axis`` at which the mean exceeds ``level``."""
    above = [cell.at[axis] for cell in among if cell.mean is not None and cell.mean > level]
    return min(above) if above else None


def first_below(among: Sequence[Cell], axis: str, level: float) -> float | None:
    """The smallest value of ``axis`` at which the mean is under ``level``."""
    below = [cell.at[axis] for cell in among if cell.mean is not None and cell.mean < level]
    return min(below) if below else None
