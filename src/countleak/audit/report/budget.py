"""The picture of a budget: predicted accuracy against the answers given."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from countleak.audit.budget.advice import Advice
from countleak.audit.budget.evolution import (
    MOST_QUERIES,
    Attack,
    Recursion,
    decoders_for,
    fixed_point,
)
from countleak.audit.budget.inverse import accuracy_at
from countleak.audit.budget.verdict import noise_in_words
from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, save
from countleak.errors import NoPrediction
from countleak.shares import percent

FIELDS = ("queries", "decoder", "accuracy")


def draw_budget(advice: Advice, path: Path) -> None:
    """Draw each decoder's predicted accuracy against the queries, with guessing and the limit."""
    alt = altair()
    attack = advice.prediction.attack
    decoders = decoders_for(attack.mechanism)
    lines = _curves(attack, decoders)
    ideal = "" if advice.prediction.decoder else "; to an ideal attacker"
    most = accuracy_at(advice.limits.advantage, attack.baseline)
    rules = [
        {"accuracy": attack.baseline, "what": "guessing without any answer"},
        {"accuracy": most, "what": "your limit"},
    ]
    # A little below guessing, so that its line is none of the frame's.
    lowest = min(attack.baseline, *(accuracy for _, _, accuracy in lines))
    scale = alt.Scale(domain=[lowest - 0.06 * (1 - lowest), 1.0], nice=False)
    across = alt.X("queries:Q", title="answers given", scale=alt.Scale(type="log", nice=False))
    up = alt.Y(
        "accuracy:Q", title="secrets right, predicted", scale=scale, axis=alt.Axis(format="%")
    )
    names = [_name(decoder) for decoder in decoders]
    curves = (
        alt.Chart(alt.Data(values=[dict(zip(FIELDS, line, strict=True)) for line in lines]))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=across,
            y=up,
            color=alt.Color(
                "decoder:N",
                title="an attacker who uses",
                sort=names,
                legend=alt.Legend(orient="bottom", direction="vertical", labelLimit=400),
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
        title=alt.TitleParams(
            f"The more answers, the more secrets: {attack.queries:,} give away "
            f"{percent(advice.prediction.accuracy)}",
            subtitle=f"{attack.people:,} people; {noise_in_words(attack.mechanism)}{ideal}",
        ),
    )
    save(chart.configure_view(stroke=None), path)


def _curves(attack: Attack, decoders: Sequence[Recursion]) -> list[tuple[int, str, float]]:
    """Points of the decoders' curves, as ``FIELDS``; none where nothing is predicted."""
    # From a twentieth of the queries to four times as many, evenly on the logarithmic scale.
    counts = sorted(
        {
            min(max(1, round(attack.queries * 2**step)), MOST_QUERIES)
            for step in np.arange(-4.5, 2.1, 0.25)
        }
    )
    points = []
    for queries in counts:
        for decoder in decoders:
            try:
                accuracy = fixed_point(replace(attack, queries=queries), decoder).accuracy
            except NoPrediction:
                continue
            points.append((queries, _name(decoder), accuracy))
    return points


def _name(decoder: Recursion) -> str:
    return f"{decoder.name}: {decoder.words}"
