"""The picture of a budget: predicted accuracy against the answers given."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from countleak.audit.budget.advice import Advice
from countleak.audit.budget.evolution import MOST_QUERIES, decoders_for, fixed_point
from countleak.audit.budget.inverse import accuracy_at
from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.errors import NoPrediction
from countleak.shares import percent


def draw_budget(advice: Advice, path: Path) -> None:
    """Draw each decoder's predicted accuracy against the queries, with guessing and the limit."""
    alt = altair()
    attack = advice.prediction.attack
    decoders = decoders_for(attack.mechanism)
    # From a twentieth of the queries to four times as many, evenly on the logarithmic scale.
    counts = sorted(
        {
            min(max(1, round(attack.queries * 2**step)), MOST_QUERIES)
            for step in np.arange(-4.5, 2.1, 0.25)
        }
    )
    lines = []
    for queries in counts:
        for decoder in decoders:
            try:
                accuracy = fixed_point(replace(attack, queries=queries), decoder).accuracy
            except NoPrediction:
                continue
            lines.append({"queries": queries, "decoder": decoder.name, "accuracy": accuracy})
    who = advice.prediction.decoder or f"ideal {advice.prediction.meant}"
    most = accuracy_at(advice.limits.advantage, attack.baseline)
    rules = [
        {"accuracy": attack.baseline, "what": "guessing without any answer"},
        {"accuracy": most, "what": "the limit"},
    ]
    scale = alt.Scale(domain=[min(0.5, attack.baseline), 1.0])
    across = alt.X("queries:Q", title="answers given", scale=alt.Scale(type="log", nice=False))
    up = alt.Y("accuracy:Q", title="secrets right", scale=scale, axis=alt.Axis(format="%"))
    names = [decoder.name for decoder in decoders]
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
        title=f"{attack.people} people, {who}: "
        f"{percent(advice.prediction.accuracy)} right after {attack.queries} answers",
    )
    save(chart.configure_view(stroke=None), path)
