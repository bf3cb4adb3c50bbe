"""Pictures of measurements: solvers, secrets, exact counts, orders of asking, side by side."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.lab.bench.categories import Row as CategoryRow
from countleak.lab.bench.exact import ENOUGH
from countleak.lab.bench.exact import Row as ExactRow
from countleak.lab.bench.questions import Curve
from countleak.lab.bench.solvers import OURS, Row, growth


def draw_orders(curves: Sequence[Curve], path: Path) -> None:
    """Draw the true share right against queries, the mean of all systems, one line per order.

    A system whose questions ended, because its guess was sure, stays at its last share.
    """
    alt = altair()
    points = []
    for order in dict.fromkeys(curve.order for curve in curves):
        mine = [curve for curve in curves if curve.order == order]
        for m in sorted({int(m) for curve in mine for m in curve.queries}):
            shares = [
                float(curve.accuracy[np.searchsorted(curve.queries, m, side="right") - 1])
                for curve in mine
            ]
            half = 1.96 * float(np.std(shares)) / np.sqrt(len(shares))
            mean = float(np.mean(shares))
            points.append(
                {
                    "queries": m,
                    "order": order,
                    "share": mean,
                    "low": mean - half,
                    "high": min(1.0, mean + half),
                }
            )
    scale = alt.Scale(domain=[min(p["low"] for p in points), 1.0], zero=False)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("queries:Q", title="questions answered", axis=alt.Axis(grid=False)),
        color=alt.Color(
            "order:N",
            title="next question by",
            sort=None,
            # The legend of a pale band would be too pale to read.
            legend=alt.Legend(symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=3),
        ),
    )
    band = base.mark_area(fillOpacity=0.15).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(strokeWidth=2.5).encode(
        y=alt.Y("share:Q", title="secrets recovered", scale=scale, axis=alt.Axis(format="%"))
    )
    systems = len({(curve.ids, curve.salt) for curve in curves})
    title = f"Random and chosen questions: {systems} systems, mean and 95%"
    save((band + line).properties(width=460, height=300, title=title), path)


def draw_categories(rows: Sequence[CategoryRow], path: Path) -> None:
    """Draw mean accuracy against queries per value, one line per decoder, ± 2 standard errors."""
    alt = altair()
    values = [
        {
            "queries": row.queries,
            "decoder": row.decoder,
            "accuracy": row.accuracy,
            "low": row.accuracy - 2 * row.standard_error,
            "high": min(1.0, row.accuracy + 2 * row.standard_error),
        }
        for row in rows
    ]
    order = list(dict.fromkeys(row.decoder for row in rows))
    scale = alt.Scale(domain=[0.5, 1.0], clamp=True)
    share = alt.Y("accuracy:Q", title="values recovered", scale=scale, axis=alt.Axis(format="%"))
    measured = sorted({row.queries for row in rows})
    axis = alt.Axis(grid=False, values=measured)
    across = alt.X("queries:Q", title="queries per value", axis=axis)
    colour = alt.Color(
        "decoder:N",
        title=None,
        sort=order,
        scale=alt.Scale(domain=order, range=[RECOVERED, "#d18f1e", MISSED]),
    )
    base = alt.Chart(alt.Data(values=values)).encode(x=across, color=colour)
    guessing = [{"baseline": rows[0].baseline, "text": "naming everyone the commonest value"}]
    rule = alt.Chart(alt.Data(values=guessing)).encode(y=alt.Y("baseline:Q", scale=scale))
    chart = alt.layer(
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(point=True, strokeWidth=2.5).encode(y=share),
        rule.mark_rule(color=QUIET, strokeDash=[5, 4]),
        rule.mark_text(align="right", dy=10, color=QUIET).encode(
            x=alt.datum(measured[-1]), text="text:N"
        ),
    ).properties(
        width=460, height=280, title="A secret of four values, decoded together or one by one"
    )
    save(chart, path)


def draw_exact(rows: Sequence[ExactRow], time_limit: float, path: Path) -> None:
    """Draw the share of worlds solved, and proven, against exact counts, one panel per n."""
    alt = altair()
    panels = []
    for n in dict.fromkeys(row.n for row in rows):
        mine = [row for row in rows if row.n == n]
        limit = mine[0].information_limit
        values = [
            {"queries": row.m, "what": what, "share": count / row.worlds}
            for row in mine
            for what, count in (("everyone right", row.solved), ("proven unique", row.proven))
        ]
        across = alt.Scale(domain=[0.9 * limit, max(row.m for row in mine)], nice=False)
        base = alt.Chart(alt.Data(values=values)).encode(
            x=alt.X("queries:Q", title="exact counts m", scale=across, axis=alt.Axis(grid=False)),
            y=alt.Y(
                "share:Q",
                title="share of the worlds",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            color=alt.Color(
                "what:N",
                title=None,
                sort=None,
                scale=alt.Scale(range=[RECOVERED, MISSED]),
                legend=alt.Legend(offset=40),
            ),
        )
        known = [{"queries": limit, "text": f"2n / log2 n = {limit:.0f}"}]
        rule = alt.Chart(alt.Data(values=known)).encode(x=alt.X("queries:Q", scale=across))
        wanted = alt.Chart(alt.Data(values=[{"share": ENOUGH}])).encode(y="share:Q")
        chart = alt.layer(
            base.mark_line(point=True, strokeWidth=2.5),
            rule.mark_rule(color=QUIET, strokeDash=[5, 4]),
            rule.mark_text(align="left", dx=4, color=QUIET).encode(
                y=alt.datum(0.03), text="text:N"
            ),
            wanted.mark_rule(color=QUIET, opacity=0.5),
            wanted.mark_text(color=QUIET, align="left", dx=3).encode(
                x=alt.value(220), text=alt.datum(f"{ENOUGH:.0%}")
            ),
        )
        panels.append(chart.properties(width=220, height=220, title=f"{n} people"))
    title = f"Exact counts, {rows[0].worlds} worlds per point, {time_limit:g} s each on one core"
    save(alt.hconcat(*panels).properties(title=title), path)


def draw_growth(rows: Sequence[Row], path: Path) -> None:
    """Draw each solver's median time against n, on logarithmic scales, with the fitted exponent."""
    alt = altair()
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
            x=alt.X(
                "n:Q",
                scale=alt.Scale(type="log", nice=False),
                title="people n",
                axis=alt.Axis(values=sorted({row.n for row in rows})),
            ),
            y=alt.Y(
                "milliseconds:Q",
                scale=alt.Scale(type="log", nice=False),
                title="milliseconds, median",
            ),
            color=alt.Color("solver:N", title=None, sort=None, legend=alt.Legend(labelLimit=400)),
            strokeWidth=alt.condition("datum.ours", alt.value(4), alt.value(1.5)),
        )
        .properties(width=460, height=340, title="From problem to certified solution")
    )
    save(chart, path)


def _legend(rows: Sequence[Row], solver: str, threads: int) -> str:
    exponent = growth(rows, solver, threads)
    fitted = f", ~ n^{exponent:.1f}" if exponent is not None else ""
    return f"{solver}{fitted}" if threads == 1 else f"{solver}, {threads} threads{fitted}"
