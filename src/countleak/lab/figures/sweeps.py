"""Pictures of many simulated attacks: curves and maps of mean accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countleak.audit.report.drawing import FORMATS, QUIET, altair, save
from countleak.shares import percent

# What a field of a trial is, on an axis or over a legend.
TITLES = {
    "n": "people",
    "queries": "questions answered",
    "sigma": "noise (SD, in people)",
    "bound": "noise (within ±, in people)",
    "base": "rounded to multiples of",
    "size": "size of the noise, as each mechanism takes it",
    "multiplier": "DiNi's bound B",
    "sign_noise": "noise of a ±1 answer",
    "family": "questions",
    "mechanism": "noise",
    "decoder": "decoder",
    "suppression": "low counts",
    "world": "who is asked about",
}
# What its values are called, where they do not say it themselves.
VALUES = {
    "sign_noise": {"direct": "SD sigma", "two-subsets": "two counts", "double": "SD 2 sigma"},
    "suppression": {"True": "suppressed", "False": "answered"},
    "decoder": {"dmt": "linear program", "dmt-integer": "whole numbers"},
}
WIDTH = 420
SHARE = "secrets right, mean of trials"


def _shown(field: str, value: Any) -> str:
    """A value as a legend shows it."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return VALUES.get(field, {}).get(text, text)


def _title(field: str) -> str:
    return TITLES.get(field, field.replace("_", " "))


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
            series: _shown(series, row[series]),
            "accuracy": row["accuracy"],
            "low": row["interval"][0] if row["interval"] else row["accuracy"],
            "high": row["interval"][1] if row["interval"] else row["accuracy"],
        }
        for row in rows
        if row["accuracy"] is not None
    ]
    order = [_shown(series, value) for value in dict.fromkeys(row[series] for row in rows)]
    # A single curve needs no name; beside the others the levels are named.
    legend = alt.Legend(title=_title(series), labelLimit=400, offset=40) if len(order) > 1 else None
    colour = alt.Color(f"{series}:N", sort=order, scale=alt.Scale(domain=order), legend=legend)
    # Bands of a few trials would squeeze the curves.
    lowest = min([0.5, *(v["accuracy"] - 0.05 for v in values)])
    scale = alt.Scale(domain=[lowest, 1.0], zero=False)
    share = alt.Y("accuracy:Q", title=SHARE, scale=scale, axis=alt.Axis(format="%"))
    across = alt.X(f"{x}:Q", title=_title(x), axis=alt.Axis(grid=False))
    base = alt.Chart(alt.Data(values=values)).encode(x=across, color=colour)
    tooltip = [f"{series}:N", f"{x}:Q", "accuracy:Q", "low:Q", "high:Q"]
    layers = [
        base.mark_area(fillOpacity=0.15, clip=True).encode(
            y=alt.Y("low:Q", scale=scale), y2="high:Q"
        ),
        base.mark_line(point={"size": 14}).encode(y=share, tooltip=tooltip),
    ]
    if points:
        dots = [
            {x: p[x], series: _shown(series, p[series]), "accuracy": p["accuracy"]} for p in points
        ]
        layers.append(
            alt.Chart(alt.Data(values=dots))
            .mark_point(size=36, strokeWidth=1.6)
            .encode(x=across, y=share, color=colour)
        )
    for level in levels:
        rule = alt.Chart(alt.Data(values=[{"level": level, "text": f"{level:.0%}"}])).encode(
            y=alt.Y("level:Q", scale=scale)
        )
        layers += [
            rule.mark_rule(color=QUIET, strokeDash=[4, 4]),
            rule.mark_text(color=QUIET, align="left", dx=4).encode(
                x=alt.value(WIDTH), text="text:N"
            ),
        ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=260, title=title)
    for suffix in FORMATS:
        save(chart, stem.parent / f"{stem.name}{suffix}")


def draw_map(rows: Sequence[Mapping[str, Any]], x: str, y: str, title: str, stem: Path) -> None:
    """Draw mean accuracy over two fields as a heat map: the map a system's owner wants."""
    alt = altair()
    values = [
        {x: row[x], y: row[y], "accuracy": share, "text": percent(share, 0)}
        for row in rows
        if (share := row["accuracy"]) is not None
    ]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(f"{x}:O", title=_title(x), axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{y}:O", title=_title(y), sort="descending"),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "accuracy:Q",
            scale=alt.Scale(scheme="redyellowgreen", domain=[0.5, 1.0], reverse=True),
            legend=alt.Legend(format="%", titleLimit=400),
            title="secrets right",
        ),
        tooltip=[f"{x}:O", f"{y}:O", "accuracy:Q"],
    )
    dark = "datum.accuracy < 0.57 || datum.accuracy > 0.93"
    text = base.mark_text(fontSize=11).encode(
        text="text:N", color=alt.condition(dark, alt.value("white"), alt.value("#222"))
    )
    chart = (cells + text).properties(
        title=title,
        width=46 * len({v[x] for v in values}),
        height=34 * len({v[y] for v in values}),
    )
    for suffix in FORMATS:
        save(chart, stem.parent / f"{stem.name}{suffix}")
