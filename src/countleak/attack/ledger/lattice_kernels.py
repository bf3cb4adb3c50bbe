"""The compiled loops over whole solutions of a piece of (L): all of them, or a walk among them."""

from math import exp, lgamma

import numpy as np

from countleak.attack.solvers.machine import compiled


@compiled()
def enumerate_points(starts, rows, row_low, row_high, low, high, points, most_steps):
    """Fill ``points`` with all solutions and return how many; -1 if they or the steps do not fit.

    Cell j is in the rows ``rows[starts[j]:starts[j + 1]]``; cells are taken in this order.
    """
    n, m = low.size, row_low.size
    # What cells from k on add to a row at least, and at most.
    least, most = np.zeros((n + 1, m)), np.zeros((n + 1, m))
    for k in range(n - 1, -1, -1):
        least[k], most[k] = least[k + 1], most[k + 1]
        for at in range(starts[k], starts[k + 1]):
            least[k, rows[at]] += low[k]
            most[k, rows[at]] += high[k]
    x, top, sums = np.zeros(n), np.zeros(n), np.zeros(m)
    found, steps, k, entering = 0, 0, 0, True
    while k >= 0:
        steps += 1
        if steps > most_steps:
            return -1
        if entering:
            first, last = low[k], high[k]
            for at in range(starts[k], starts[k + 1]):
                i = rows[at]
                first = max(first, row_low[i] - sums[i] - most[k + 1, i])
                last = min(last, row_high[i] - sums[i] - least[k + 1, i])
            x[k], top[k] = first, last
        else:
            for at in range(starts[k], starts[k + 1]):
                sums[rows[at]] -= x[k]
            x[k] += 1
        if x[k] > top[k]:
            k, entering = k - 1, False
            continue
        for at in range(starts[k], starts[k + 1]):
            sums[rows[at]] += x[k]
        if k + 1 < n:
            k, entering = k + 1, True
            continue
        if found == points.shape[0]:
            return -1
        for j in range(n):
            points[found, j] = x[j]
        found += 1
        entering = False
    return found


@compiled()
def walk(basis, effect, slack, x, low, high, log_rate, chosen, signs, uniform, draws):
    """Walk from ``x`` along sums of up to three basis moves; every few steps goes into ``draws``.

    ``effect`` (k, m) is what each move does to rows that may vary, ``slack`` (2, m) how far those
    can still fall and rise. Along a line the next point is drawn by its weight, so that it never
    has to be rejected.
    """
    n, m = x.size, slack.shape[1]
    every = chosen.shape[0] // draws.shape[0]
    d, e = np.zeros(n), np.zeros(m)
    for step in range(chosen.shape[0]):
        d[:], e[:] = 0.0, 0.0
        for part in range(chosen.shape[1]):
            sign = signs[step, part]
            if sign != 0:
                d += sign * basis[chosen[step, part]]
                e += sign * effect[chosen[step, part]]
        back, ahead = -64.0, 64.0
        for j in range(n):
            if d[j] > 0:
                ahead = min(ahead, np.floor((high[j] - x[j]) / d[j]))
                back = max(back, -np.floor((x[j] - low[j]) / d[j]))
            elif d[j] < 0:
                ahead = min(ahead, np.floor((x[j] - low[j]) / -d[j]))
                back = max(back, -np.floor((high[j] - x[j]) / -d[j]))
        for i in range(m):
            if e[i] > 0:
                ahead = min(ahead, np.floor(slack[1, i] / e[i]))
                back = max(back, -np.floor(slack[0, i] / e[i]))
            elif e[i] < 0:
                ahead = min(ahead, np.floor(slack[0, i] / -e[i]))
                back = max(back, -np.floor(slack[1, i] / -e[i]))
        size = int(ahead - back) + 1
        if size > 1:
            weight = np.zeros(size)
            for at in range(size):
                t = back + at
                for j in range(n):
                    if d[j] != 0:
                        weight[at] += t * d[j] * log_rate[j] - lgamma(x[j] + t * d[j] + 1)
            top, total = weight.max(), 0.0
            for at in range(size):
                weight[at] = exp(weight[at] - top)
                total += weight[at]
            left, at = uniform[step] * total, 0
            while at < size - 1 and left > weight[at]:
                left -= weight[at]
                at += 1
            x += (back + at) * d
            slack[0] += (back + at) * e
            slack[1] -= (back + at) * e
        if (step + 1) % every == 0:
            for j in range(n):
                draws[(step + 1) // every - 1, j] = x[j]


@compiled()
def log_weights(points, log_rate):
    """The log of the weight of each point: of independent Poisson counts, up to a constant."""
    weights = np.zeros(points.shape[0])
    for at in range(points.shape[0]):
        for j in range(points.shape[1]):
            weights[at] += points[at, j] * log_rate[j] - lgamma(points[at, j] + 1.0)
    return weights
