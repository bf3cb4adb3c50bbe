"""The safety map as a picture: which settings leave no count, and which leave all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from countleak.audit.report.drawing import MISSED, altair, save
from countleak.lab.bench.tables.safety import BASES, ROUNDINGS, Row


def draw_safety(rows: Sequence[Row], path: Path) -> None:
    """Draw the share of cells pinned over variables and people, a panel per base and rounding."""
    alt = altair()
    panels = []
    for rounding in ROUNDINGS:
        across = [
            _panel(alt, [r for r in rows if (r.setting.base, r.setting.rounding) == (b, rounding)])
            .properties(width=190, height=110, title=_title(b, rounding))
            for b in BASES
        ]  # fmt: skip
        panels.append(alt.hconcat(*across))
    title = f"Counts that all margins together pin, mean of {rows[0].worlds} worlds"
    save(alt.vconcat(*panels).properties(title=title), path)


def _title(base: int, rounding: str) -> str:
    return f"to the nearest {base}" if rounding == "nearest" else f"to {base}, up or down by chance"


def _panel(alt: Any, rows: Sequence[Row]) -> Any:
    """One heat map, with its shares written out."""
    values = [
        {
            "people": str(row.setting.people),
            "variables": f"{row.setting.variables} of {row.setting.values}",
            "share": row.share,
            "dark": row.share > 0.5,
        }
        for row in rows
    ]
    sizes = list(dict.fromkeys(each["variables"] for each in values))
    people = list(dict.fromkeys(each["people"] for each in values))
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(
            "variables:N",
            title="variables of so many values",
            sort=sizes,
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y("people:N", title="people", sort=people[::-1]),
    )
    colour = alt.Color(
        "share:Q",
        title="pinned",
        scale=alt.Scale(domain=[0, 1], range=["#f6f6f4", MISSED]),
        legend=alt.Legend(format="%"),
    )
    ink = alt.condition("datum.dark", alt.value("white"), alt.value("#333"))
    text = base.mark_text(fontSize=10).encode(text=alt.Text("share:Q", format=".0%"), color=ink)
    return base.mark_rect().encode(color=colour) + text
