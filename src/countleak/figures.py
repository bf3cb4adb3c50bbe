"""Pictures of what an attack found, drawn with altair."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.bench.categories import Row as CategoryRow
from countleak.bench.questions import Curve
from countleak.bench.solvers import OURS, Row, growth
from countleak.budget.advice import Advice
from countleak.budget.evolution import DECODERS, predict
from countleak.budget.inverse import accuracy_at
from countleak.diagnosis import Diagnosis
from countleak.errors import InputError, MissingExtra, NoPrediction
from countleak.noise import Values, log_released
from countleak.scores import Calibration, Score, wilson

FORMATS = (".svg", ".png", ".html")
RECOVERED, MISSED, QUIET = "#1b7f79", "#d1495b", "#8a8f98"


def draw_leak(
    scores: Sequence[tuple[int, Score]],
    x: NDArray[np.float64],
    secret: NDArray[np.int8],
    title: str,
    path: Path,
) -> None:
    """Draw how the leak grows with the queries, and where each person's x (n,) ended up."""
    alt = _altair()
    curve = [_point(m, score) for m, score in scores]
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


def draw_curves(
    rows: Sequence[Mapping[str, Any]],
    points: Sequence[Mapping[str, Any]],
    x: str,
    series: str,
    levels: Sequence[float],
    title: str,
    stem: Path,
) -> None:
    """Draw mean accuracy against ``x`` with its band, a line a value of ``series``.

    ``points`` are the paper's, drawn as dots; ``levels`` are ruled. Written as SVG, PNG and
    interactive HTML beside ``stem``.
    """
    alt = _altair()
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
        _save(chart, stem.parent / f"{stem.name}{suffix}")


def draw_map(rows: Sequence[Mapping[str, Any]], x: str, y: str, title: str, stem: Path) -> None:
    """Draw mean accuracy over two fields as a heat map: the map a system's owner wants."""
    alt = _altair()
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
        _save(chart, stem.parent / f"{stem.name}{suffix}")


def draw_residuals(series: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    """Draw answers less true counts, a histogram a system, side by side on one scale."""
    alt = _altair()
    charts = []
    for name, residuals in series.items():
        values, counts = np.unique(np.round(residuals), return_counts=True)
        bars = [
            {"residual": int(value), "share": float(count / residuals.size)}
            for value, count in zip(values, counts, strict=True)
        ]
        chart = alt.Chart(alt.Data(values=bars)).mark_bar(color=RECOVERED, width=9)
        charts.append(
            chart.encode(
                x=alt.X(
                    "residual:Q",
                    title="answer less true count, in people",
                    scale=alt.Scale(domain=[-16, 16]),
                    axis=alt.Axis(grid=False),
                ),
                y=alt.Y(
                    "share:Q",
                    title="share of the answers",
                    scale=alt.Scale(domain=[0, 0.16]),
                    axis=alt.Axis(format="%"),
                ),
            ).properties(
                width=330,
                height=200,
                title=f"{name}: mean {residuals.mean():+.2f}, SD {residuals.std():.2f}",
            )
        )
    _save(alt.hconcat(*charts).configure_view(stroke=None), path)


def draw_orders(curves: Sequence[Curve], path: Path) -> None:
    """Draw the true share right against queries, the mean of all systems, a line an order.

    A system that was asked no more, because its guess was sure, stays at its last share.
    """
    alt = _altair()
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
        x=alt.X("queries:Q", title="queries answered", axis=alt.Axis(grid=False)),
        color=alt.Color("order:N", title=None, sort=None),
    )
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(strokeWidth=2.5).encode(
        y=alt.Y("share:Q", title="secrets recovered", scale=scale, axis=alt.Axis(format="%"))
    )
    systems = len({(curve.ids, curve.salt) for curve in curves})
    title = f"Random and chosen questions, {systems} systems, mean and 95%"
    _save((band + line).properties(width=460, height=300, title=title), path)


def draw_calibration(found: Calibration, path: Path) -> None:
    """Draw how often claims are right against how sure they were, with Wilson's intervals."""
    alt = _altair()
    dots = []
    for b in found.bins:
        low, high = wilson(b.right, b.claims)
        share = b.right / b.claims
        dots.append(
            {"confidence": b.confidence, "right": share, "low": low, "high": high, "n": b.claims}
        )
    axis = alt.Axis(format="%", grid=False)
    scale = alt.Scale(domain=[0.4, 1.0], clamp=True)
    across = alt.X("confidence:Q", title="confidence claimed", axis=axis, scale=scale)
    up = alt.Y("right:Q", title="claims that are right", axis=axis, scale=scale)
    base = alt.Chart(alt.Data(values=dots)).encode(x=across)
    honest = alt.Chart(alt.Data(values=[{"confidence": v, "right": v} for v in (0.4, 1.0)]))
    chart = alt.layer(
        honest.mark_line(color=QUIET, strokeDash=[5, 4]).encode(x=across, y=up),
        base.mark_rule(color=RECOVERED).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(color=RECOVERED, filled=True).encode(
            y=up, size=alt.Size("n:Q", title="claims"), tooltip=["n:Q", "right:Q"]
        ),
    ).properties(width=320, height=300, title=f"Calibration error {found.error:.3f}")
    _save(chart, path)


def draw_diagnosis(found: Diagnosis, path: Path) -> None:
    """Draw what the fit left over: its histogram beside the law found, and the noise by group."""
    alt = _altair()
    values, counts = np.unique(np.round(found.residuals), return_counts=True)
    # A histogram of far-off answers would squeeze the noise into one bar.
    near = np.abs(values) <= 5 * found.sigma + 1
    law = _law(found, values[near])
    bars = [
        {"residual": int(value), "share": float(count / found.residuals.size), "law": float(p)}
        for value, count, p in zip(values[near], counts[near], law, strict=True)
    ]
    base = alt.Chart(alt.Data(values=bars)).encode(
        x=alt.X("residual:Q", title="answer less fitted count, in people")
    )
    axis = alt.Axis(format="%", title="share of the answers")
    left = (
        base.mark_bar(color=RECOVERED, opacity=0.7).encode(y=alt.Y("share:Q", axis=axis))
        + base.mark_line(color=MISSED, point={"color": MISSED}).encode(y=alt.Y("law:Q", axis=axis))
    ).properties(
        width=360, height=220, title=f"Residuals, and {found.shape.value} noise of their size"
    )
    charts = [left]
    if found.groups:
        rows = [
            {"group": f"{g.value:g}", "sigma": g.sigma, "fit": "odd" if g.odd else "fits"}
            for g in found.groups
        ]
        order = [row["group"] for row in rows]
        colour = alt.Scale(domain=["fits", "odd"], range=[RECOVERED, MISSED])
        charts.append(
            alt.Chart(alt.Data(values=rows))
            .mark_bar()
            .encode(
                x=alt.X("group:N", sort=order, title=str(found.by)),
                y=alt.Y("sigma:Q", title="SD of the residuals, in people"),
                color=alt.Color("fit:N", scale=colour, title=None),
            )
            .properties(width=360, height=220, title=f"Noise by {found.by}")
        )
    _save(alt.hconcat(*charts).configure_view(stroke=None), path)


def _law(found: Diagnosis, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of answers (k,) that the diagnosed noise puts at whole residuals (k,)."""
    if found.bound is not None:
        return np.where(np.abs(values) <= found.bound, 1 / (2 * found.bound + 1), 0.0)
    sizes = Values(np.array([found.sigma]), 0.0, 0.0)
    return np.asarray(np.exp(log_released(values, sizes, found.shape, True)[0]))


def draw_budget(advice: Advice, path: Path) -> None:
    """Draw each decoder's predicted accuracy against the queries, with guessing and the limit."""
    alt = _altair()
    attack = advice.prediction.attack
    # From a twentieth of the queries to four times as many, evenly on the logarithmic scale.
    counts = sorted(
        {max(1, round(attack.queries * 2**step)) for step in np.arange(-4.5, 2.1, 0.25)}
    )
    lines = []
    for queries in counts:
        for decoder in DECODERS:
            try:
                found = predict(replace(attack, queries=queries), decoder)
            except NoPrediction:
                continue
            lines.append({"queries": queries, "decoder": decoder.name, "accuracy": found.accuracy})
    most = accuracy_at(advice.limits.advantage, attack.baseline)
    rules = [
        {"accuracy": attack.baseline, "what": "guessing without any answer"},
        {"accuracy": most, "what": "the limit"},
    ]
    scale = alt.Scale(domain=[min(0.5, attack.baseline), 1.0])
    across = alt.X("queries:Q", title="answers given", scale=alt.Scale(type="log", nice=False))
    up = alt.Y("accuracy:Q", title="secrets right", scale=scale, axis=alt.Axis(format="%"))
    names = [decoder.name for decoder in DECODERS]
    curves = (
        alt.Chart(alt.Data(values=lines))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=across,
            y=up,
            color=alt.Color(
                "decoder:N",
                sort=names,
                scale=alt.Scale(domain=names, range=[QUIET, RECOVERED, MISSED]),
            ),
        )
    )
    ruled = alt.Chart(alt.Data(values=rules)).encode(y=up)
    texts = ruled.mark_text(align="left", x=6, dy=-6, color=QUIET).encode(text="what:N")
    here = {"queries": attack.queries, "accuracy": advice.prediction.accuracy}
    dot = alt.Chart(alt.Data(values=[here])).mark_point(size=90, filled=True, color="#222")
    chart = (
        ruled.mark_rule(color=QUIET, strokeDash=[5, 4])
        + texts
        + curves
        + dot.encode(x=across, y=up)
    ).properties(
        width=460,
        height=280,
        title=f"{attack.people} people, {advice.prediction.decoder}: "
        f"{advice.prediction.accuracy:.1%} right after {attack.queries} answers",
    )
    _save(chart.configure_view(stroke=None), path)


def draw_categories(rows: Sequence[CategoryRow], path: Path) -> None:
    """Draw mean accuracy against queries a value, a line a decoder, ± 2 standard errors."""
    alt = _altair()
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
    across = alt.X("queries:Q", title="queries a value", axis=alt.Axis(grid=False))
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
            x=alt.datum(max(row.queries for row in rows)), text="text:N"
        ),
    ).properties(width=460, height=280, title="A four-valued secret, all values together")
    _save(chart, path)


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


def require_drawing(path: Path | None = None) -> None:
    """Raise before hours of work what would only be noticed after: no altair, no such format."""
    _altair()
    if path is not None and path.suffix not in FORMATS:
        raise InputError(f"{path}: cannot draw {path.suffix!r}; choose {', '.join(FORMATS)}")


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
    options: dict[str, dict[str, Any]] = {
        ".png": {"scale_factor": 2},
        ".html": {"inline": True},
    }
    chart.save(str(path), **options.get(path.suffix, {}))
