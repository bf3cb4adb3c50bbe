"""The one search that planning needs: where something that only ever turns once does so."""

from collections.abc import Callable


def turning_point(
    breaks: Callable[[float], bool], low: float, high: float, halvings: int = 50
) -> float:
    """Where ``breaks`` turns from true at ``low`` to false at ``high``, from the false side.

    The interval is halved so many times.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        if breaks(middle):
            low = middle
        else:
            high = middle
    return high
