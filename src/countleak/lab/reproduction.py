"""All that can be reproduced: the experiments, their figures, and every claim on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import countleak
from countleak.errors import MissingExtra
from countleak.files import replacing
from countleak.lab.experiments import (
    Claim,
    Outcome,
    beyond,
    feasibility,
    figure_1,
    figure_2,
    figure_3,
    precision,
    presence,
    table_1,
)
from countleak.lab.experiments.comparison import Published, published_points
from countleak.lab.figures.sweeps import draw_curves

# In the order of the paper, and then what goes beyond it.
CATALOGUE = {
    experiment.name: experiment
    for experiment in (
        table_1.EXPERIMENT,
        precision.EXPERIMENT,
        presence.EXPERIMENT,
        figure_1.EXPERIMENT,
        figure_2.EXPERIMENT,
        figure_3.EXPERIMENT,
        feasibility.EXPERIMENT,
        *beyond.EXPERIMENTS,
    )
}


@dataclass(frozen=True)
class Curve:
    """A panel: accuracy against ``x``, one line per value of ``series``, of rows ``where``."""

    experiment: str
    name: str
    title: str
    x: str
    series: str
    where: Mapping[str, Any]
    program: str | None = None
    levels: tuple[float, ...] = (0.95, 0.99)


CURVES = (
    Curve(
        "figure-1",
        "1b-queries",
        "DMT, subset queries, sigma 4",
        "queries",
        "n",
        {"sigma": 4.0},
        "dmt",
    ),
    Curve(
        "figure-1",
        "1a-noise",
        "DMT, subset queries, 2550 queries",
        "sigma",
        "n",
        {"queries": 2550},
        "dmt",
    ),
    Curve(
        "figure-2",
        "2b-queries",
        "DMT, ±1 queries, n = 100, sigma 4",
        "queries",
        "sign_noise",
        {"family": "signs", "n": 100, "sigma": 4.0},
    ),
    Curve(
        "figure-2",
        "2a-noise",
        "DMT, ±1 queries, n = 100, 2550 queries",
        "sigma",
        "sign_noise",
        {"family": "signs", "n": 100, "queries": 2550},
    ),
    Curve(
        "figure-3",
        "3b-queries-vertex",
        "DiNi by vertex, sigma 4, by multiplier B",
        "queries",
        "multiplier",
        {"decoder": "dini-vertex", "sigma": 4.0},
        "dini",
        (),
    ),
    Curve(
        "figure-3",
        "3b-queries-centre",
        "DiNi by centre, sigma 4, by multiplier B",
        "queries",
        "multiplier",
        {"decoder": "dini-centre", "sigma": 4.0},
        None,
        (),
    ),
    Curve(
        "figure-3",
        "3a-noise-vertex",
        "DiNi by vertex, 2550 queries, by multiplier B",
        "sigma",
        "multiplier",
        {"decoder": "dini-vertex", "queries": 2550},
        "dini",
        (),
    ),
    Curve(
        "figure-3",
        "3a-noise-centre",
        "DiNi by centre, 2550 queries, by multiplier B",
        "sigma",
        "multiplier",
        {"decoder": "dini-centre", "queries": 2550},
        None,
        (),
    ),
    Curve("families", "families", "Digit queries and random subsets", "queries", "family", {}),
    Curve("integer", "integer", "Linear and integer programs", "queries", "decoder", {}),
    Curve("people", "people", "More people, sigma 4", "n", "queries", {}),
    Curve(
        "suppression",
        "suppression",
        "Low counts suppressed or not, sigma 4, 12 of 101 present",
        "queries",
        "suppression",
        {"sigma": 4.0},
    ),
)
# Of the authors' 21 multipliers, those drawn.
DRAWN = {"multiplier": (2.5, 3.0, 4.0, 5.0, 10.0)}


def draw_figures(
    outcomes: Mapping[str, Outcome], published: Sequence[Published], folder: Path
) -> dict[str, Path]:
    """Draw every panel there are rows for, as SVG, PNG and interactive HTML; the SVGs by name."""
    drawn = {}
    for curve in CURVES:
        outcome = outcomes.get(curve.experiment)
        rows = [
            dict(record)
            for record in (outcome.records if outcome else ())
            if all(record[k] == v for k, v in curve.where.items())
            and record[curve.series] in DRAWN.get(curve.series, (record[curve.series],))
        ]
        if not rows:
            continue
        points = [
            point
            for point in published_points(published, curve.program or "", curve.where)
            if point[curve.series] in {row[curve.series] for row in rows}
        ]
        stem = folder / curve.name
        draw_curves(rows, points, curve.x, curve.series, curve.levels, curve.title, stem)
        drawn[curve.name] = folder / f"{curve.name}.svg"
    return drawn


def write_page(
    outcomes: Mapping[str, Outcome],
    comparisons: Sequence[Claim],
    figures: Mapping[str, Path],
    data: Path | None,
    path: Path,
    remark: str = "",
) -> Path:
    """One self-contained page: every claim as a row, then the figures; its path.

    A ``remark`` on how it was run is shown at its top.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("a report", "report") from None
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        files("countleak.lab").joinpath("reproduction.html.j2").read_text(encoding="utf-8")
    )
    titles = {curve.name: curve.title for curve in CURVES}
    page = template.render(
        claims=[claim for outcome in outcomes.values() for claim in outcome.claims]
        + list(comparisons),
        figures=[(titles[name], svg.read_text(encoding="utf-8")) for name, svg in figures.items()],
        experiments=[CATALOGUE[name] for name in outcomes],
        census="the authors' census rows" if data else "a generated census",
        version=countleak.__version__,
        remark=remark,
    )
    with replacing(path) as file:
        file.write(page)
    return path
