"""Ours beside the authors' own results, cell by cell."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from countleak.errors import InputError
from countleak.experiments import Outcome
from countleak.records import read_text


@dataclass(frozen=True)
class Published:
    """One cell of the authors' results; an infeasible trial counts as accuracy 0 in their mean."""

    program: str
    n: int
    queries: int
    sigma: float
    multiplier: float
    trials: int
    mean: float
    sd: float
    infeasible: int

    @property
    def feasible_mean(self) -> float | None:
        """Their mean over the feasible trials alone."""
        solved = self.trials - self.infeasible
        return self.mean * self.trials / solved if solved else None


def read_paper_results(path: Path) -> tuple[Published, ...]:
    """The cells of a file with columns lp, n, m, sigma, dini_bound, trials, mean_accuracy, ..."""
    rows = csv.DictReader(StringIO(read_text(path)))
    if not {"lp", "m", "sigma", "mean_accuracy"} <= set(rows.fieldnames or ()):
        raise InputError(f"{path} line 1: not the authors' results; expected columns lp, n, m, ...")
    found = []
    for number, row in enumerate(rows, 2):
        try:
            found.append(
                Published(
                    row["lp"],
                    int(row["n"]),
                    int(row["m"]),
                    float(row["sigma"]),
                    float(row["dini_bound"]),
                    int(row["trials"]),
                    float(row["mean_accuracy"]),
                    float(row["sd"]),
                    int(row["infeas"]),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} line {number}: not a cell of the authors' results ({error}); "
                "check the file"
            ) from None
    return tuple(found)


def compare(outcomes: Mapping[str, Outcome], published: Sequence[Published]) -> list[str]:
    """What the comparison says, a sentence each: accuracy for DMT, feasibility for DiNi."""
    lines = []
    if "figure-1" in outcomes and (line := _compare_dmt(outcomes["figure-1"], published)):
        lines.append(line)
    if "figure-3" in outcomes and (line := _compare_dini(outcomes["figure-3"], published)):
        lines.append(line)
    return lines


def _compare_dmt(outcome: Outcome, published: Sequence[Published]) -> str | None:
    ours = {(r["n"], r["queries"], r["sigma"]): r for r in outcome.records}
    pairs = [
        (cell, ours[cell.n, cell.queries, cell.sigma])
        for cell in published
        if cell.program == "dmt" and (cell.n, cell.queries, cell.sigma) in ours
    ]
    if not pairs:
        return None
    differences, standard = [], []
    for cell, record in pairs:
        difference = record["accuracy"] - cell.mean
        low, high = record["interval"]
        # Where all trials agree a spread of zero would be too sure: one wrong bit in all of them.
        least = 1 / (cell.n * cell.trials)
        error = sqrt(cell.sd**2 / cell.trials + ((high - low) / 3.92) ** 2)
        differences.append(difference)
        standard.append(abs(difference) / max(error, least))
    within = np.mean(np.array(standard) <= 2.5)
    return (
        f"DMT against the authors' results, {len(pairs)} cells: mean difference "
        f"{np.mean(differences):+.4f}; {within:.1%} of cells within 2.5 standard errors of the "
        "difference."
    )


def _compare_dini(outcome: Outcome, published: Sequence[Published]) -> str | None:
    ours = {
        (r["multiplier"], r["queries"], r["sigma"]): r
        for r in outcome.records
        if r["decoder"] == "dini-vertex"
    }
    pairs = [
        (cell, ours[cell.multiplier, cell.queries, cell.sigma])
        for cell in published
        if cell.program == "dini" and (cell.multiplier, cell.queries, cell.sigma) in ours
    ]
    if not pairs:
        return None
    theirs = sum(cell.infeasible for cell, _ in pairs) / sum(cell.trials for cell, _ in pairs)
    share = np.mean([1 - record["feasible_share"] for _, record in pairs])
    gaps = [
        record["accuracy"] - cell.feasible_mean
        for cell, record in pairs
        if cell.feasible_mean is not None and record["accuracy"] is not None
    ]
    return (
        f"DiNi against the authors' results, {len(pairs)} cells: infeasible {share:.1%} of trials, "
        f"theirs {theirs:.1%}; mean accuracy of the feasible ones differs by {np.mean(gaps):+.3f}, "
        "as it may: which feasible point a solver returns decides it, and theirs was another."
    )


def published_points(
    published: Sequence[Published], program: str, where: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The authors' cells of a program that match ``where``, as points for a figure."""
    points = []
    for cell in published:
        at = {
            "n": cell.n,
            "queries": cell.queries,
            "sigma": cell.sigma,
            "multiplier": cell.multiplier,
        }
        if cell.program == program and all(at[k] == v for k, v in where.items() if k in at):
            points.append({**at, "accuracy": cell.feasible_mean})
    return points
