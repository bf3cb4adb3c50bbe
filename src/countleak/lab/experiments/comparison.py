"""Our results beside the authors' own, cell by cell."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from countleak.audit.scores import wilson
from countleak.errors import InputError
from countleak.files import read_text
from countleak.lab.experiments import Claim, Outcome
from countleak.shares import percent


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
    results = []
    for number, row in enumerate(rows, 2):
        try:
            results.append(
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
    return tuple(results)


def compare(outcomes: Mapping[str, Outcome], published: Sequence[Published]) -> list[Claim]:
    """Ours against theirs: mean accuracy for DMT, how often there is a solution for DiNi."""
    comparisons = {"figure-1": _compare_dmt, "figure-3": _compare_dini}
    claims = [
        compared(outcomes[name], published)
        for name, compared in comparisons.items()
        if name in outcomes
    ]
    return [claim for claim in claims if claim is not None]


def _compare_dmt(outcome: Outcome, published: Sequence[Published]) -> Claim | None:
    ours = {(r["n"], r["queries"], r["sigma"]): r for r in outcome.records}
    differences, standard = [], []
    for cell in published:
        record = ours.get((cell.n, cell.queries, cell.sigma))
        if cell.program != "dmt" or record is None or record["standard_error"] is None:
            continue
        # Where all trials agree a spread of zero would be too sure: one wrong bit in all of them.
        theirs = max(cell.sd / sqrt(cell.trials), 1 / (cell.n * cell.trials))
        differences.append(record["accuracy"] - cell.mean)
        standard.append(abs(differences[-1]) / hypot(theirs, record["standard_error"]))
    if not differences:
        return None
    mean, within = float(np.mean(differences)), float(np.mean(np.array(standard) <= 2.5))
    return Claim(
        "The authors' own DMT means, cell by cell",
        f"{len(differences)} cells of 10 trials",
        f"mean difference {mean:+.4f}; {percent(within)} of cells within 2.5 standard errors of it",
        abs(mean) < 0.003 and within >= 0.95,
        "a generated census holds other people than theirs",
    )


def _compare_dini(outcome: Outcome, published: Sequence[Published]) -> Claim | None:
    ours = {
        (r["multiplier"], r["queries"], r["sigma"]): r
        for r in outcome.records
        if r["decoder"] == "dini-vertex"
    }
    pairs = [
        (cell, ours[cell.multiplier, cell.queries, cell.sigma])
        for cell in published
        if cell.program == "dini"
        and cell.n == 100
        and cell.multiplier < 3
        and (cell.multiplier, cell.queries, cell.sigma) in ours
    ]
    if not pairs:
        return None
    trials = sum(cell.trials for cell, _ in pairs)
    # Every cell counts as often as it does with them, however many trials we ran there.
    infeasible = round(sum((1 - record["feasible_share"]) * cell.trials for cell, record in pairs))
    theirs = sum(cell.infeasible for cell, _ in pairs)
    low, high = wilson(infeasible, trials)
    their_low, their_high = wilson(theirs, trials)
    gaps = [
        record["accuracy"] - cell.feasible_mean
        for cell, record in pairs
        if cell.feasible_mean is not None and record["accuracy"] is not None
    ]
    return Claim(
        "The authors' own DiNi programs with B = 2.5: the share without a solution",
        f"{theirs} of {trials} ({their_low:.3f} to {their_high:.3f})",
        f"{infeasible} of {trials} ({low:.3f} to {high:.3f}); mean accuracy of the feasible ones "
        f"differs by {np.mean(gaps):+.3f}, as it may: which feasible point a solver returns "
        "decides it",
        low <= their_high and their_low <= high,
        "a generated census holds other people than theirs",
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
