"""The counts behind a number by the rules stated of it, whether it was shown or not."""

from math import ceil, floor, inf

from countleak.attack.noise import Below, Range
from countleak.attack.rules import EDGE, Rules

Ends = tuple[float, float]


def counts_behind(rules: Rules, number: float, within: float | None = None) -> Ends | None:
    """The least and the greatest count that can be shown as ``number``; None where none can.

    ``within``: how far numbers are from their counts, where the noise itself has no bound.
    """
    if rules.base is not None and within is None and number % rules.base:
        return None
    if rules.keys is not None:
        ends = rules.keys.counts_behind(number)
    else:
        limits = rules.limits()
        reach = limits.reach if limits is not None and within is None else within
        ends = (0.0, inf) if reach is None else _around(number, reach)
    if rules.floor is not None and number <= rules.floor and ends is not None:
        ends = 0.0, ends[1]
    return None if ends is None else _less_hidden(ends, rules)


def counts_hidden(rules: Rules, within: float | None = None) -> Ends:
    """The least and the greatest count of a number that was not shown because of its size."""
    match rules.suppressed:
        case Range(low, high):
            return float(low), float(high)
        case Below(answer) if rules.keys is not None:
            return 0.0, rules.keys.most_below(answer)
        case Below(answer):
            limits = rules.limits()
            reach = limits.reach if limits is not None and within is None else within
            if reach is None:
                return 0.0, inf
            if rules.base is not None:
                # The greatest multiple that is not shown, and the counts around it.
                return 0.0, float(
                    floor(rules.base * (ceil(answer / rules.base) - 1) + reach + EDGE)
                )
            return 0.0, ceil(answer + reach - EDGE) - 1.0
    return 0.0, inf


def counts_kept_back(rules: Rules) -> Ends:
    """The least and the greatest count of a number that was not hidden for its own size."""
    match rules.suppressed:
        case Range(0, high):
            return high + 1.0, inf
    return 0.0, inf


def has_gaps(rules: Rules, ends: Ends) -> bool:
    """Whether some counts between the ends are none that can be behind a number that was shown."""
    if isinstance(rules.suppressed, Range):
        inside = ends[0] < rules.suppressed.low and rules.suppressed.high < ends[1]
    else:
        inside = False
    return inside or (rules.keys is not None and rules.keys.has_gaps)


def _around(number: float, reach: float) -> Ends | None:
    low, high = max(0.0, float(ceil(number - reach - EDGE))), float(floor(number + reach + EDGE))
    return (low, high) if low <= high else None


def _less_hidden(ends: Ends, rules: Rules) -> Ends | None:
    """The counts that are left where those of a range were not shown."""
    low, high = ends
    if isinstance(rules.suppressed, Range):
        least, most = rules.suppressed.low, rules.suppressed.high
        low = most + 1.0 if least <= low <= most else low
        high = least - 1.0 if least <= high <= most else high
    return (low, high) if low <= high else None
