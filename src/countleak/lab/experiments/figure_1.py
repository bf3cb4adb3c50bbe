"""Figure 1: accuracy of DMT with subset queries, against noise and against queries."""

import numpy as np

from countleak.lab.experiments import Claim, Experiment, Outcome, Settings
from countleak.lab.experiments.cells import Cell, cells, first_above, first_below, pick
from countleak.lab.experiments.trials import Trial, grid
from countleak.progress import Progress

SIZES = (50, 75, 100, 125, 150)
# 1, 3, ..., 59 primes of 50 queries each.
QUERIES = tuple(50 * primes for primes in range(1, 60, 2))
SIGMAS = tuple(float(sigma) for sigma in range(2, 9))
WIDE_SIGMAS = tuple(float(sigma) for sigma in range(1, 21))
MANY = range(100)


def trials() -> list[Trial]:
    """The authors' grid, the wider range of the captions, and 100 trials where claims are made."""
    planned = grid(n=SIZES, queries=QUERIES, sigma=SIGMAS, number=range(10))
    planned += grid(n=SIZES, queries=2550, sigma=WIDE_SIGMAS, number=range(10))
    planned += grid(n=100, queries=QUERIES, sigma=4.0, number=MANY)
    planned += grid(n=100, queries=2550, sigma=WIDE_SIGMAS, number=MANY)
    return list(dict.fromkeys(planned))


def run(settings: Settings, progress: Progress) -> Outcome:
    """Mean accuracy in every cell, and the claims of the two captions."""
    grid_cells = cells(
        settings.runner.run(trials(), settings.setting, progress), ("n", "queries", "sigma")
    )
    return Outcome("rows", tuple(cell.record() for cell in grid_cells), claims=claims(grid_cells))


def claims(grid_cells: list[Cell]) -> tuple[Claim, ...]:
    """What the captions say of n = 100, and that size matters little."""
    by_queries = pick(grid_cells, n=100, sigma=4.0)
    by_sigma = pick(grid_cells, n=100, queries=2550)
    return (
        crossing("Figure 1", "above", by_queries, "queries", 0.95, 1150, (1050, 1250)),
        crossing("Figure 1", "above", by_queries, "queries", 0.99, 2050, (1950, 2450)),
        crossing("Figure 1", "below", by_sigma, "sigma", 0.99, 5, (5, 5)),
        crossing("Figure 1", "below", by_sigma, "sigma", 0.95, 7, (7, 8)),
        _size_matters_little(grid_cells),
    )


def crossing(
    figure: str,
    side: str,
    grid_cells: list[Cell],
    axis: str,
    level: float,
    paper: float,
    agrees: tuple[float, float],
) -> Claim:
    """The claim that the mean first crosses ``level`` at ``paper`` of ``axis``."""
    first = (first_above if side == "above" else first_below)(grid_cells, axis, level)
    cell = pick(grid_cells, **{axis: first})[0] if first is not None else None
    ours = "never"
    if cell is not None and cell.band is not None:
        low, high = cell.band
        ours = (
            f"{first:g} (mean {cell.mean:.4f}, 95% {low:.4f} to {high:.4f}, {cell.trials} trials)"
        )
    inside = first is not None and agrees[0] <= first <= agrees[1]
    return Claim(
        f"{figure}, n = 100: mean accuracy is first {side} {level} at this value of {axis}",
        f"{paper:g} (10 trials)",
        ours,
        inside,
        "ten trials leave the paper's mean an error of about .003 to .01",
    )


def _size_matters_little(grid_cells: list[Cell]) -> Claim:
    means = {}
    for n in SIZES:
        grid_means = [c.mean for c in pick(grid_cells, n=n) if c.at["sigma"] in SIGMAS]
        means[n] = float(np.mean([mean for mean in grid_means if mean is not None]))
    spread = max(means.values()) - min(means.values())
    shown = ", ".join(f"n = {n}: {mean:.3f}" for n, mean in means.items())
    return Claim(
        "The size of the dataset does not seem to significantly affect reconstruction",
        "curves of n = 50 to 150 lie together",
        f"mean over the whole grid of queries and sigma: {shown}",
        spread < 0.02,
        f"the means differ by {spread:.3f}",
    )


EXPERIMENT = Experiment(
    "figure-1",
    "For n = 100 accuracy surpasses .95 at 1150 queries and .99 at 2050 (sigma 4), falls below "
    ".99 at sigma 5 and below .95 at sigma 7 (2550 queries); the size matters little.",
    "simulated",
    run,
)
