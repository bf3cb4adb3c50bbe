"""The pictures of a report; each is missing where it would show nothing."""

from math import ceil

from markupsafe import Markup

from countleak.audit.report.growth import Growth
from countleak.audit.report.record import Calibrated
from countleak.audit.report.report import AtRisk
from countleak.audit.report.residuals import Residuals
from countleak.audit.report.svg import WIDTH, Axis, Plot, doubling_ticks, round_ticks
from countleak.shares import percent

# The people as squares: so many at most, in so many columns.
SQUARES, COLUMNS = 400, 40
FEW = 6


def growth_picture(growth: Growth, baseline: float | None) -> Markup | None:
    """The share right, and the share expected, against the answers; takes two points or more."""
    points = growth.points
    if len(points) < 2:
        return None
    shown = [s for p in points for s in (p.right, p.expected) if s is not None]
    ends = [p.interval[0] for p in points if p.interval] or [
        p.expected_interval[0] for p in points if p.expected_interval
    ]
    if not shown:
        return None
    lowest = min([*shown, *ends, *([] if baseline is None else [baseline])])
    low = max(0.0, int(10 * lowest - 1e-9) / 10)
    first, last = points[0].answers, points[-1].answers
    # Few points are named themselves, for they are far apart.
    ticks = [p.answers for p in points] if len(points) <= FEW else doubling_ticks(first, last)
    plot = Plot(
        Axis(
            "answers, on a logarithmic scale",
            first,
            last,
            [(tick, f"{tick:,.0f}") for tick in ticks],
            logarithmic=True,
        ),
        Axis("share of guesses", low, 1.0, [(t, f"{t:.0%}") for t in round_ticks(low, 1.0)]),
    )
    band = [(p.answers, *p.interval) for p in points if p.interval]
    if not band:
        band = [(p.answers, *p.expected_interval) for p in points if p.expected_interval]
    if len(band) > 1:
        plot.area(band, "band")
    if baseline is not None:
        plot.line([(first, baseline), (last, baseline)], "quiet")
    expected = [(p.answers, p.expected) for p in points if p.expected is not None]
    right = [(p.answers, p.right) for p in points if p.right is not None]
    if expected:
        plot.line(expected, "law")
    if right:
        plot.line(right, "accent")
    for answers, share in right or expected:
        plot.dot(answers, share, "accent-fill")
    told = ", ".join(f"{percent(share)} after {n:,}" for n, share in right or expected)
    what = "Share of guesses that are right" if right else "Share of guesses expected to be right"
    return plot.drawn("growth", f"{what}, against the answers", f"{what}: {told} answers.")


def calibration_picture(calibrated: Calibrated) -> Markup | None:
    """How often claims are right against how sure they were; takes two confidences or more."""
    bins = calibrated.bins
    if len(bins) < 2:
        return None
    low = int(10 * min(b.confidence for b in bins)) / 10
    ticks = [(t, f"{t:.0%}") for t in round_ticks(low, 1.0)]
    bottom = int(10 * min([low, *(b.interval[0] for b in bins)])) / 10
    plot = Plot(
        Axis("how sure the claims were", low, 1.0, ticks),
        Axis(
            "share of them right", bottom, 1.0, [(t, f"{t:.0%}") for t in round_ticks(bottom, 1.0)]
        ),
        height=300,
    )
    plot.line([(low, low), (1.0, 1.0)], "quiet")
    most = max(b.claims for b in bins)
    for b in bins:
        plot.line([(b.confidence, b.interval[0]), (b.confidence, b.interval[1])], "accent")
        plot.dot(b.confidence, b.right, "accent-fill", 3 + 5 * (b.claims / most) ** 0.5)
    told = "; ".join(
        f"of {b.claims} claims made with {percent(b.confidence)}, {percent(b.right)} are right"
        for b in bins
    )
    return plot.drawn(
        "calibration", "How often claims are right, against how sure they were", f"{told}."
    )


def residuals_picture(residuals: Residuals, unit: str) -> Markup | None:
    """The histogram of what the guess leaves over, beside the law; takes two bars or more."""
    bars, width = residuals.bars, residuals.width
    if len(bars) < 2:
        return None
    low, high = bars[0].centre - width / 2, bars[-1].centre + width / 2
    top = 1.08 * max([b.share for b in bars] + [b.law or 0.0 for b in bars])
    # Long numbers take more room.
    longest = max(len(f"{end:,.0f}") for end in (low, high))
    most = min(8, WIDTH // (10 * longest))
    plot = Plot(
        Axis(
            f"answer less what the guess implies, in {unit}",
            low,
            high,
            [(t, f"{t:,.6g}".replace("-", "\N{MINUS SIGN}")) for t in round_ticks(low, high, most)],
        ),
        Axis(
            "share of the answers",
            0.0,
            top,
            [(t, f"{100 * t:.3g}%") for t in round_ticks(0.0, top, 5)],
        ),
    )
    for b in bars:
        plot.bar(b.centre, width, b.share, "bar")
    law = [(b.centre, b.law) for b in bars if b.law is not None]
    if law:
        plot.line(law, "accent")
    about = f"{residuals.answers:,} answers, mean {residuals.mean:+.2f}, SD {residuals.sd:.2f}"
    return plot.drawn(
        "residuals", "What the guess leaves over of the answers", f"A histogram of {about}."
    )


def groups_picture(residuals: Residuals, unit: str) -> Markup | None:
    """The noise of each group of queries, where it differs."""
    groups = residuals.groups
    if residuals.by is None or len(groups) < 2:
        return None
    top = 1.1 * max(g.sd for g in groups)
    every = ceil(len(groups) / 8)
    ticks = [(i, g.value) for i, g in enumerate(groups) if i % every == 0]
    plot = Plot(
        Axis(f"queries by their {residuals.by}", -0.6, len(groups) - 0.4, ticks),
        Axis(
            f"SD of what is left over, in {unit}",
            0.0,
            top,
            [(t, f"{t:.3g}") for t in round_ticks(0.0, top, 5)],
        ),
    )
    for i, g in enumerate(groups):
        plot.bar(i, 0.8, g.sd, "accent-fill" if g.odd else "bar")
    told = "; ".join(f"{g.value}: {g.sd:.2f}{' (odd)' if g.odd else ''}" for g in groups)
    return plot.drawn("groups", f"Noise by {residuals.by}", f"SD of the residuals. {told}.")


def people_picture(people: AtRisk) -> Markup | None:
    """Everyone as a square, the surest first; a square stands for several where they are many."""
    total = sum(c.people for c in people.classes)
    if not total:
        return None
    each = ceil(total / SQUARES)
    rows = ceil(total / each / COLUMNS)
    size = WIDTH / COLUMNS
    paths: list[str] = []
    place, before = 0, 0
    for level, c in enumerate(people.classes):
        before += c.people
        until = round(before / each) if before < total else ceil(total / each)
        squares = "".join(
            f"M{(k % COLUMNS) * size:.0f} {(k // COLUMNS) * size:.0f}h8v8h-8z"
            for k in range(place, until)
        )
        if squares:
            paths.append(f'<path class="sure{level}" d="{squares}"/>')
        place = until
    told = ", ".join(f"{c.people:,} {c.name}" for c in people.classes if c.people)
    return Markup(
        f'<svg class="squares" viewBox="0 0 {WIDTH} {rows * size:.0f}" role="img" '
        f'aria-label="Each square is {each:,} {"person" if each == 1 else "people"}: {told}.">'
        f"{''.join(paths)}</svg>"
    )
