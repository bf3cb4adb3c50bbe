"""Pictures of one attack: how the leak grows, and the noise that hid it."""

from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.audit.scores import Score

# Of one histogram, in pixels.
WIDTH = 330


def draw_leak(
    scores: Sequence[tuple[int, Score]],
    x: NDArray[np.float64],
    secret: NDArray[np.int64],
    title: str,
    path: Path,
) -> None:
    """Draw how the leak grows with the queries, and where each person's x (n,) ended up."""
    charts = altair().hconcat(_growth(scores), _people(x, secret))
    chart = charts.properties(title=altair().TitleParams(title, anchor="start"))
    save(chart.configure_view(stroke=None).configure_axis(labelColor="#444"), path)


def _growth(scores: Sequence[tuple[int, Score]]) -> Any:
    """The share recovered against the queries, with its interval and the baseline."""
    alt = altair()
    curve = [_point(m, score) for m, score in scores]
    base = alt.Chart(alt.Data(values=curve)).encode(
        x=alt.X("queries:Q", title="queries answered", axis=alt.Axis(grid=False))
    )
    share = alt.Axis(format="%", title="secrets recovered")
    lowest = min(point[name] for point in curve for name in ("low", "baseline") if point[name])
    scale = alt.Scale(domain=[floor(10 * lowest) / 10, 1.0])
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
    return (band + guessing + line + label).properties(
        width=400, height=240, title="The more answers, the more secrets recovered"
    )


def _people(x: NDArray[np.float64], secret: NDArray[np.int64]) -> Any:
    """Everyone's x as a dot, from the lowest up, by truth and by whether rounding it is right."""
    alt = altair()
    order = np.argsort(x, kind="stable")
    dots = [
        {
            "x": float(value),
            "secret": f"truth is {bit}",
            "place": rank,
            "guess": "right" if (value >= 0.5) == (bit == 1) else "wrong",
        }
        for rank, (value, bit) in enumerate(zip(x[order], secret[order], strict=True), 1)
    ]
    across = alt.X(
        "x:Q",
        title="value the linear program gives, rounded at 0.5",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(grid=False),
    )
    up = alt.Y(
        "place:Q",
        title="people, the lowest value first",
        scale=alt.Scale(domain=[0, len(dots)]),
        axis=alt.Axis(grid=False, tickMinStep=1),
    )
    colours = alt.Scale(domain=["right", "wrong"], range=[RECOVERED, MISSED])
    shapes = alt.Scale(domain=["truth is 0", "truth is 1"], range=["circle", "triangle-up"])
    half = alt.Chart(alt.Data(values=[{"x": 0.5}])).mark_rule(color=QUIET, strokeDash=[5, 4])
    points = (
        alt.Chart(alt.Data(values=dots))
        .mark_point(size=42, filled=True, opacity=0.85)
        .encode(
            x=across,
            y=up,
            color=alt.Color("guess:N", scale=colours, title="rounded, it is"),
            shape=alt.Shape("secret:N", scale=shapes, title=None),
        )
    )
    return (half.encode(x=across) + points).properties(
        width=300, height=240, title="Each person, after the last answer"
    )


def draw_residuals(series: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    """Draw answers less true counts, one histogram per system, side by side on one scale."""
    alt = altair()
    charts = []
    # One scale for all, that holds every bar.
    widest = max(float(np.abs(residuals).max()) for residuals in series.values())
    tallest = max(
        float(np.unique(np.round(residuals), return_counts=True)[1].max() / residuals.size)
        for residuals in series.values()
    )
    end = round(widest) + 1
    for name, residuals in series.items():
        values, counts = np.unique(np.round(residuals), return_counts=True)
        bars = [
            {"residual": int(value), "share": float(count / residuals.size)}
            for value, count in zip(values, counts, strict=True)
        ]
        chart = alt.Chart(alt.Data(values=bars)).mark_bar(
            color=RECOVERED, width=0.85 * WIDTH / (2 * end)
        )
        charts.append(
            chart.encode(
                x=alt.X(
                    "residual:Q",
                    title="answer less true count, in people",
                    scale=alt.Scale(domain=[-end, end], nice=False),
                    axis=alt.Axis(grid=False),
                ),
                y=alt.Y(
                    "share:Q",
                    title="share of the answers",
                    scale=alt.Scale(domain=[0, 1.1 * tallest]),
                    axis=alt.Axis(format="%"),
                ),
            ).properties(
                width=WIDTH,
                height=200,
                title=f"{name}: mean {residuals.mean():+.2f}, SD {residuals.std():.2f}",
            )
        )
    save(alt.hconcat(*charts).configure_view(stroke=None), path)


def _point(queries: int, score: Score) -> dict[str, Any]:
    low, high = score.interval() or (None, None)
    return {
        "queries": queries,
        "accuracy": score.accuracy,
        "low": low,
        "high": high,
        "baseline": score.baseline,
    }
