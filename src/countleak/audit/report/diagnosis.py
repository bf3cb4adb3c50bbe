"""Pictures of noise and of calibration: what a fit left over, and how often claims were right."""

from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countleak.attack.diagnosis import Diagnosis
from countleak.attack.noise import Values, log_released
from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.audit.scores import Calibration, wilson


def draw_calibration(calibration: Calibration, path: Path) -> None:
    """Draw how often claims are right against how sure they were, with Wilson's intervals."""
    alt = altair()
    dots = []
    for b in calibration.bins:
        low, high = wilson(b.right, b.claims)
        share = b.right / b.claims
        dots.append(
            {"confidence": b.confidence, "right": share, "low": low, "high": high, "n": b.claims}
        )
    axis = alt.Axis(format="%", grid=False)
    least = min((dot["confidence"] for dot in dots), default=0.5)
    beside = alt.Scale(domain=[floor(10 * least) / 10, 1.0])
    # No interval is cut off.
    lowest = min([least, *(dot["low"] for dot in dots)])
    scale = alt.Scale(domain=[floor(10 * lowest) / 10, 1.0])
    across = alt.X("confidence:Q", title="confidence claimed", axis=axis, scale=beside)
    up = alt.Y("right:Q", title="claims that are right", axis=axis, scale=scale)
    most = max((dot["n"] for dot in dots), default=1)
    sizes = sorted({max(1, round(most * share)) for share in (0.1, 0.5, 1.0)})
    base = alt.Chart(alt.Data(values=dots)).encode(x=across)
    honest = alt.Chart(
        alt.Data(values=[{"confidence": v, "right": v} for v in (floor(10 * least) / 10, 1.0)])
    )
    chart = alt.layer(
        honest.mark_line(color=QUIET, strokeDash=[5, 4]).encode(x=across, y=up),
        base.mark_rule(color=RECOVERED).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(color=RECOVERED, filled=True).encode(
            y=up,
            size=alt.Size("n:Q", title="claims", legend=alt.Legend(values=sizes)),
            tooltip=["n:Q", "right:Q"],
        ),
    ).properties(width=320, height=300, title=f"Calibration error {calibration.error:.3f}")
    save(chart, path)


def draw_diagnosis(diagnosis: Diagnosis, path: Path) -> None:
    """Draw the residuals of a fit: a histogram beside the inferred law, and the noise by group."""
    alt = altair()
    values, counts = np.unique(np.round(diagnosis.residuals), return_counts=True)
    # A histogram of far-off answers would squeeze the noise into one bar.
    near = np.abs(values) <= 5 * diagnosis.sigma + 1
    law = _law(diagnosis, values[near])
    bars = [
        {"residual": int(value), "share": float(count / diagnosis.residuals.size), "law": float(p)}
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
        width=360,
        height=220,
        title=f"Residuals, and {diagnosis.noise.shape.value} noise of their size",
    )
    charts = [left]
    if diagnosis.groups:
        rows = [
            {"group": f"{g.value:g}", "sigma": g.sigma, "fit": "odd" if g.odd else "fits"}
            for g in diagnosis.groups
        ]
        order = [row["group"] for row in rows]
        colour = alt.Scale(domain=["fits", "odd"], range=[RECOVERED, MISSED])
        charts.append(
            alt.Chart(alt.Data(values=rows))
            .mark_bar()
            .encode(
                x=alt.X("group:N", sort=order, title=str(diagnosis.by)),
                y=alt.Y("sigma:Q", title="SD of the residuals, in people"),
                color=alt.Color("fit:N", scale=colour, title=None),
            )
            .properties(width=360, height=220, title=f"Noise by {diagnosis.by}")
        )
    save(alt.hconcat(*charts).configure_view(stroke=None), path)


def _law(diagnosis: Diagnosis, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of answers (k,) that the diagnosed noise puts at whole residuals (k,)."""
    sizes = Values(np.array([diagnosis.sigma]), np.zeros(1), 0.0)
    return np.asarray(np.exp(log_released(values, sizes, diagnosis.noise, True)[0]))
