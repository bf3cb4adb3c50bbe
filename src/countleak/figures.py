"""Pictures of what an attack found, drawn with altair."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.bench.solvers import OURS, Row, growth
from countleak.errors import MissingExtra
from countleak.scores import Score

RECOVERED, MISSED, QUIET = "#1b7f79", "#d1495b", "#8a8f98"


def draw_leak(
    growth: Sequence[tuple[int, Score]],
    x: NDArray[np.float64],
    secret: NDArray[np.int8],
    title: str,
    path: Path,
) -> None:
    """Draw how the leak grows with the queries, and where each person's x (n,) ended up."""
    alt = _altair()
    curve = [_point(m, score) for m, score in growth]
    base = alt.Chart(alt.Data(values=curve)).encode(
        x=alt.X("queries:Q", title="queries answered", axis=alt.Axis(grid=False))
    )
    share = alt.Axis(format="%", title="secrets recovered")
    scale = alt.Scale(domain=[0.4, 1.0], clamp=True)
    band = base.mark_area(color=RECOVERED, opacity=0.18).encode(
        y=alt.Y("low:Q", axis=share, scale=scale), y2="high:Q"
    )
    line = base.mark_line(color=RECOVERED, strokeWidth=2.5, point={"color": RECOVERED}).encode(
        y=alt.Y("accuracy:Q", axis=share, scale=scale)
    )
    guessing = base.mark_line(color=QUIET, strokeDash=[5, 4]).encode(
        y=alt.Y("baseline:Q", scale=scale)
    )
    label = (
        alt.Chart(alt.Data(values=[{**curve[-1], "text": "guessing without any answer"}]))
        .mark_text(align="right", dy=12, color=QUIET)
        .encode(x="queries:Q", y=alt.Y("baseline:Q", scale=scale), text="text:N")
    )
    left = (band + guessing + line + label).properties(
        width=400, height=240, title="The more answers, the fewer secrets"
    )
    dots = [
        {
            "x": float(value),
            "secret": f"truth is {bit}",
            "place": rank,
            "guess": "right" if (value >= 0.5) == (bit == 1) else "wrong",
        }
        for rank, (value, bit) in enumerate(zip(x, secret, strict=True))
    ]
    right = (
        alt.Chart(alt.Data(values=dots))
        .mark_point(size=42, filled=True, opacity=0.85)
        .encode(
            x=alt.X(
                "x:Q",
                title="value the linear program gives, rounded at 0.5",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(grid=False),
            ),
            y=alt.Y("place:Q", axis=None),
            color=alt.Color(
                "guess:N",
                scale=alt.Scale(domain=["right", "wrong"], range=[RECOVERED, MISSED]),
                title=None,
            ),
            shape=alt.Shape(
                "secret:N",
                scale=alt.Scale(
                    domain=["truth is 0", "truth is 1"], range=["circle", "triangle-up"]
                ),
                title=None,
            ),
        )
        .properties(width=300, height=240, title="Each person, after the last answer")
    )
    chart = alt.hconcat(left, right).properties(title=alt.TitleParams(title, anchor="start"))
    _save(chart.configure_view(stroke=None).configure_axis(labelColor="#444"), path)


def draw_growth(rows: Sequence[Row], path: Path) -> None:
    """Draw each solver's median time against n, on logarithmic scales, with the fitted exponent."""
    alt = _altair()
    points = [
        {
            "n": row.n,
            "milliseconds": 1000 * row.median_seconds,
            "solver": _legend(rows, row.solver, row.threads),
            "ours": row.solver == OURS,
        }
        for row in rows
    ]
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("n:Q", scale=alt.Scale(type="log", nice=False), title="people n"),
            y=alt.Y("milliseconds:Q", scale=alt.Scale(type="log"), title="milliseconds, median"),
            color=alt.Color("solver:N", title=None, sort=None),
            strokeWidth=alt.condition("datum.ours", alt.value(4), alt.value(1.5)),
        )
        .properties(width=460, height=340, title="From problem to certified solution")
    )
    _save(chart, path)


def _legend(rows: Sequence[Row], solver: str, threads: int) -> str:
    exponent = growth(rows, solver, threads)
    fitted = f", ~ n^{exponent:.1f}" if exponent is not None else ""
    return f"{solver}{fitted}" if threads == 1 else f"{solver}, {threads} threads{fitted}"


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise MissingExtra("drawing", "report") from None
    return altair


def _point(queries: int, found: Score) -> dict[str, Any]:
    low, high = found.interval() or (None, None)
    return {
        "queries": queries,
        "accuracy": found.accuracy,
        "low": low,
        "high": high,
        "baseline": found.baseline,
    }


def _save(chart: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path), **({"scale_factor": 2} if path.suffix == ".png" else {}))
