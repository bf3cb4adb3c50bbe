"""A data set of people that fits everything published, and how much another one could differ."""

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np

from countleak.attack.ledger.variability import Variability, variability
from countleak.audit.releases.model import Model
from countleak.errors import InputError
from countleak.files import Name, plain_errors

MOST_PEOPLE = 10_000_000


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """One data set that fits, and another one as far from it as was found."""

    model: Model
    variability: Variability

    @property
    def people(self) -> int:
        """How many people the data set has."""
        return int(self.variability.first.sum())

    @property
    def people_fixed(self) -> bool:
        """Whether both data sets have as many people."""
        return self.people == int(self.variability.second.sum())

    @property
    def share(self) -> float | None:
        """The share of people that differ between the two; None where there is nobody."""
        return self.variability.at_least / self.people if self.people else None

    def __str__(self) -> str:
        v = self.variability
        if v.determined:
            return f"The data are determined: {self.people} people, and no other data set fits."
        share = "" if self.share is None else f" ({self.share:.1%})"
        another = f"Another one that fits as exactly differs in {v.at_least} people{share}."
        lines = [
            f"A data set of {self.people} people fits everything published.",
            another if v.at_least else "No other was found.",
            f"No two that fit differ in more than {_number(v.at_most)} (certified in fractions), "
            f"or in more than {_number(v.searched)} by the search in floating point.",
        ]
        if not self.people_fixed:
            lines.append("How many people there are was not published.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The reconstruction as plain fields, without the people."""
        v = self.variability
        return {
            "people": self.people,
            "differ_at_least": v.at_least,
            "share_at_least": self.share,
            "differ_at_most": v.at_most if np.isfinite(v.at_most) else None,
            "differ_at_most_searched": v.searched if np.isfinite(v.searched) else None,
            "determined": v.determined,
        }

    def write(self, path: Name) -> None:
        """Write the data set as CSV, one row per person, to a file that is not there yet."""
        axes = self.model.axes
        if self.people > MOST_PEOPLE:
            raise InputError(f"{path}: {self.people} people are too many; publish totals, or less")
        where = np.flatnonzero(self.variability.first)
        shape = tuple(len(axis.groups) for axis in axes)
        places = np.transpose(np.unravel_index(where, shape)) if axes else where[:, None][:, :0]
        with plain_errors(path), open(path, "x", encoding="utf-8", newline="") as file:  # noqa: PTH123
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([axis.name for axis in axes])
            for cell, at in zip(where.tolist(), places.tolist(), strict=True):
                labels = [axis.groups[k] for axis, k in zip(axes, at, strict=True)]
                writer.writerows([labels] * int(self.variability.first[cell]))


def reconstruct_records(model: Model, time_limit: float = 60.0) -> Reconstruction:
    """A data set that fits the tables, with its variability."""
    return Reconstruction(model, variability(model.ledger, time_limit))


def _number(most: float) -> str:
    return f"{most:g} people" if np.isfinite(most) else "no number that is known"
