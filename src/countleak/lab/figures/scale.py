"""Pictures of how far the attack goes: time against people, and the noise that still leaks."""

from collections.abc import Sequence
from math import sqrt
from pathlib import Path

from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.lab.bench.scale import Leak, Row, exponent

PREDICTED, LAW = "95% leak, by state evolution", "a multiple of the square root of n"


def draw_scale(rows: Sequence[Row], path: Path) -> None:
    """Draw each method's time and memory against people, on logarithmic scales."""
    alt = altair()
    panels = []
    for what, title in (("seconds", "seconds of processor time"), ("memory", "memory, MiB")):
        points = [
            {"n": row.n, "value": getattr(row, what), "method": _legend(rows, row.method)}
            for row in rows
        ]
        log = alt.Scale(type="log", nice=False)
        panels.append(
            alt.Chart(alt.Data(values=points))
            .mark_line(point=True, strokeWidth=2.5)
            .encode(
                x=alt.X("n:Q", scale=log, title="people, and as many counts"),
                y=alt.Y("value:Q", scale=log, title=title),
                color=alt.Color(
                    "method:N", title=None, sort=None, legend=alt.Legend(labelLimit=400)
                ),
            )
            .properties(width=300, height=280)
        )
    save(alt.hconcat(*panels).properties(title="From answers to secrets"), path)


def _legend(rows: Sequence[Row], method: str) -> str:
    k = exponent(rows, method, "seconds")
    return method if k is None else f"{method}, ~ n^{k:.1f}"


def draw_leaks(found: Sequence[Leak], path: Path) -> None:
    """Draw the noise at which 95% still leak against people, with the square-root law beside it."""
    alt = altair()
    log = alt.Scale(type="log", nice=False)
    last, layers = found[-1], []
    # The law lies under the line: they are hard to tell apart.
    for what, width, opacity in ((LAW, 9.0, 0.35), (PREDICTED, 2.5, 1.0)):
        values = [
            {
                "n": leak.n,
                "sigma": leak.sigma if what == PREDICTED else last.sigma * sqrt(leak.n / last.n),
                "what": what,
            }
            for leak in found
        ]
        layers.append(
            alt.Chart(alt.Data(values=values))
            .mark_line(strokeWidth=width, opacity=opacity)
            .encode(
                x=alt.X("n:Q", scale=log, title="people, and as many counts"),
                y=alt.Y("sigma:Q", scale=log, title="SD of the noise, in people"),
                color=alt.Color(
                    "what:N",
                    title=None,
                    scale=alt.Scale(domain=[PREDICTED, LAW], range=[RECOVERED, QUIET]),
                    legend=alt.Legend(
                        labelLimit=400, symbolType="stroke", symbolOpacity=1, orient="bottom"
                    ),
                ),
            )
        )
    tried = [
        {"n": leak.n, "sigma": leak.sigma, "share": f"{leak.attained:.1%}"}
        for leak in found
        if leak.attained is not None
    ]
    marks = alt.Chart(alt.Data(values=tried)).encode(
        x=alt.X("n:Q", scale=log), y=alt.Y("sigma:Q", scale=log)
    )
    points = marks.mark_point(filled=True, size=60, color=MISSED)
    shares = marks.mark_text(dy=-10, dx=-8, align="right", color=QUIET).encode(text="share:N")
    title = "Noise that still leaks 95%; dots: simulated, what message passing got right"
    save(alt.layer(*layers, points, shares).properties(width=460, height=320, title=title), path)
