"""Plots as SVG that takes its colours from the page around it: two axes, and what is drawn in them.

A plot is 360 units wide and is shown at about that many pixels on a telephone, so that its text can
be read there. The classes of its parts (axis, grid, accent, band, quiet, law) are styled by the
page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import floor, log10

from markupsafe import Markup

WIDTH = 360
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 28, 40
# The width of a character of a tick, at most.
DIGIT = 7
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high`` with labelled ``ticks``."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def scaled(self, begin: float, end: float) -> Scale:
        """Where values lie between two ends."""

        def place(value: float) -> float:
            if self.logarithmic:
                return log10(value)
            return value

        low, high = place(self.low), place(self.high)
        return lambda value: begin + (place(value) - low) / ((high - low) or 1.0) * (end - begin)


@dataclass
class Plot:
    """A picture that is being drawn: across ``x`` and up ``y``."""

    x: Axis
    y: Axis
    height: int = 250
    _parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.across = self.x.scaled(LEFT, WIDTH - RIGHT)
        self.up = self.y.scaled(self.height - BOTTOM, TOP)

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through points."""
        path = "L".join(f"{self.across(x):.1f} {self.up(y):.1f}" for x, y in points)
        self._parts.append(f'<path class="line {kind}" d="M{path}"/>')

    def area(self, points: Sequence[tuple[float, float, float]], kind: str) -> None:
        """What lies between (x, low, high)."""
        above = [f"{self.across(x):.1f} {self.up(high):.1f}" for x, _, high in points]
        below = [f"{self.across(x):.1f} {self.up(low):.1f}" for x, low, _ in reversed(points)]
        self._parts.append(f'<path class="{kind}" d="M{"L".join(above + below)}Z"/>')

    def dot(self, x: float, y: float, kind: str, radius: float = 3.0) -> None:
        """A dot."""
        self._parts.append(
            f'<circle class="{kind}" cx="{self.across(x):.1f}" cy="{self.up(y):.1f}" '
            f'r="{radius:.1f}"/>'
        )

    def bar(self, x: float, width: float, y: float, kind: str) -> None:
        """A bar from the x axis to y, ``width`` wide and centred on x."""
        left, right = self.across(x - width / 2), self.across(x + width / 2)
        top, bottom = self.up(y), self.up(self.y.low)
        gap = min(1.0, (right - left) / 5)
        self._parts.append(
            f'<rect class="{kind}" x="{left + gap / 2:.1f}" y="{top:.1f}" '
            f'width="{right - left - gap:.1f}" height="{max(bottom - top, 0):.1f}"/>'
        )

    def drawn(self, name: str, title: str, description: str) -> Markup:
        """The picture; who cannot see it hears its title and description.

        Its ``name`` is one that no other picture of the page has.
        """
        return Markup(
            f'<svg class="plot" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-labelledby="{name}t {name}d"><title id="{name}t">{escape(title)}</title>'
            f'<desc id="{name}d">{escape(description)}</desc>'
            f"{self._axes()}{''.join(self._parts)}</svg>"
        )

    def _axes(self) -> str:
        bottom, right = self.height - BOTTOM, WIDTH - RIGHT
        parts = []
        for value, text in self.y.ticks:
            y = self.up(value)
            parts.append(
                f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
                f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">'
                f"{escape(text)}</text>"
            )
        free = float(WIDTH)
        # From the right, for the end of the axis is named whatever else is.
        for value, text in reversed(self.x.ticks):
            x, width = self.across(value), DIGIT * len(text)
            # What would hang over the edge is aligned with it.
            anchor, end = ("end", x) if x > right - 12 else ("middle", x + width / 2)
            parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v4"/>')
            # What would run into its neighbour is left out.
            if end <= free:
                free = end - width - DIGIT
                parts.append(
                    f'<text class="tick" x="{x:.1f}" y="{bottom + 15}" text-anchor="{anchor}">'
                    f"{escape(text)}</text>"
                )
        parts.append(f'<text class="title" x="0" y="11">{escape(self.y.title)}</text>')
        middle = (LEFT + right) / 2
        parts.append(
            f'<path class="axis" d="M{LEFT} {bottom}H{right}"/>'
            f'<text class="title" x="{middle}" y="{self.height - 6}" text-anchor="middle">'
            f"{escape(self.x.title)}</text>"
        )
        return "".join(parts)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round values from low to high."""
    span = (high - low) or 1.0
    power = 10.0 ** floor(log10(span / most))
    step = next(power * s for s in (1, 2, 5, 10) if span / (power * s) <= most)
    first = -floor(-(low - 1e-9 * span) / step)
    return [k * step for k in range(first, first + most + 2) if k * step <= high + 1e-9 * span]


def doubling_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values for a logarithmic axis."""
    powers = range(floor(log10(low)), floor(log10(high)) + 1)
    steps: tuple[tuple[int, ...], ...] = ((1, 2, 5), (1, 3), (1,))
    for factors in steps:
        ticks = [f * 10.0**p for p in powers for f in factors if low <= f * 10.0**p <= high]
        if len(ticks) <= most:
            return ticks
    return ticks
