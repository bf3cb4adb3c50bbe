"""Pictures of many simulated attacks: curves and maps of mean accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countleak.audit.report.drawing import FORMATS, QUIET, altair, save


def draw_curves(
    rows: Sequence[Mapping[str, Any]],
    points: Sequence[Mapping[str, Any]],
    x: str,
    series: str,
    levels: Sequence[float],
    title: str,
    stem: Path,
) -> None:
    """Draw mean accuracy against ``x`` with its band, one line per value of ``series``.

    ``points`` are the paper's, drawn as dots; ``levels`` are ruled. Written as SVG, PNG and
    interactive HTML beside ``stem``.
    """
    alt = altair()
    values = [
        {
            x: row[x],
            series: str(row[series]),
            "accuracy": row["accuracy"],
            "low": row["interval"][0] if row["interval"] else row["accuracy"],
            "high": row["interval"][1] if row["interval"] else row["accuracy"],
        }
        for row in rows
        if row["accuracy"] is not None
    ]
    order = [str(value) for value in dict.fromkeys(row[series] for row in rows)]
    colour = alt.Color(f"{series}:N", title=series.replace("_", " "), sort=order)
    scale = alt.Scale(domain=[min([0.5, *(v["low"] for v in values)]), 1.0], zero=False)
    share = alt.Y("accuracy:Q", title="mean accuracy", scale=scale)
    across = alt.X(f"{x}:Q", title=x, axis=alt.Axis(grid=False))
    base = alt.Chart(alt.Data(values=values)).encode(x=across, color=colour)
    tooltip = [f"{series}:N", f"{x}:Q", "accuracy:Q", "low:Q", "high:Q"]
    layers = [
        base.mark_area(fillOpacity=0.15).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(point={"size": 14}).encode(y=share, tooltip=tooltip),
    ]
    if points:
        dots = [{x: p[x], series: str(p[series]), "accuracy": p["accuracy"]} for p in points]
        layers.append(
            alt.Chart(alt.Data(values=dots))
            .mark_point(size=36, strokeWidth=1.6)
            .encode(x=across, y=share, color=colour)
        )
    for level in levels:
        rule = alt.Chart(alt.Data(values=[{"level": level}]))
        layers.append(
            rule.mark_rule(color=QUIET, strokeDash=[4, 4]).encode(y=alt.Y("level:Q", scale=scale))
        )
    chart = alt.layer(*layers).properties(width=420, height=260, title=title)
    for suffix in FORMATS:
        save(chart, stem.parent / f"{stem.name}{suffix}")


def draw_map(rows: Sequence[Mapping[str, Any]], x: str, y: str, title: str, stem: Path) -> None:
    """Draw mean accuracy over two fields as a heat map: the map a system's owner wants."""
    alt = altair()
    values = [{x: row[x], y: row[y], "accuracy": row["accuracy"]} for row in rows]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(f"{x}:O", title=x), y=alt.Y(f"{y}:O", title=y, sort="descending")
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "accuracy:Q",
            scale=alt.Scale(scheme="redyellowgreen", domain=[0.5, 1.0], reverse=True),
            title="mean accuracy",
        ),
        tooltip=[f"{x}:O", f"{y}:O", "accuracy:Q"],
    )
    text = base.mark_text(fontSize=10).encode(text=alt.Text("accuracy:Q", format=".2f"))
    chart = (cells + text).properties(title=title, width=46 * len({v[x] for v in values}))
    for suffix in FORMATS:
        save(chart, stem.parent / f"{stem.name}{suffix}")
