"""The sampler's compiled loops: draws of single bits or values, and exchanges between two people.

Every answer has a cell in a table of log-likelihoods, in which one person more in its count moves
it one cell down and one person less one cell up. A bit's odds are one sum over the answers it is
in, of the change of log-likelihood of either move.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.machine import compiled

kernel = compiled(fastmath={"reassoc", "contract"})


class Chain(NamedTuple):
    """Bits and what their draws depend on; ``x`` and ``cell`` are changed in place."""

    x: NDArray[Any]  # (n,) bits
    free: NDArray[Any]  # (n,) which of them are drawn; the others stay as they are
    cell: NDArray[Any]  # (m,) where each answer is in the table
    start: NDArray[Any]  # (n+1,) the answers about bit j are rows[start[j] : start[j + 1]],
    middle: NDArray[Any]  # (n,) those from middle[j] on with weight -1
    rows: NDArray[Any]
    up: NDArray[Any]  # change of log-likelihood of each cell's move up,
    down: NDArray[Any]  # and of its move down


@kernel
def _gain(j, step, chain):
    """Change of log-likelihood when bit j moves by ``step``."""
    cell, start, middle, rows = chain.cell, chain.start, chain.middle, chain.rows
    up, down = chain.up, chain.down
    gain = 0.0
    if step > 0:
        for t in range(start[j], middle[j]):
            gain += down[cell[rows[t]]]
        for t in range(middle[j], start[j + 1]):
            gain += up[cell[rows[t]]]
    else:
        for t in range(start[j], middle[j]):
            gain += up[cell[rows[t]]]
        for t in range(middle[j], start[j + 1]):
            gain += down[cell[rows[t]]]
    return gain


@kernel
def _move(j, step, chain):
    cell, start, middle, rows = chain.cell, chain.start, chain.middle, chain.rows
    for t in range(start[j], middle[j]):
        cell[rows[t]] -= step
    for t in range(middle[j], start[j + 1]):
        cell[rows[t]] += step


@kernel
def sweep(chain, odds, beta, rng, exchanges, total):
    """Draw every bit once, then try ``exchanges`` exchanges, at inverse temperature ``beta``.

    ``odds`` is the prior log-odds of a one. Adds to ``total`` (n,) each bit's probability of being
    1 given all others.
    """
    x, free = chain.x, chain.free
    n = x.size
    for j in range(n):
        if not free[j]:
            total[j] += x[j]
            continue
        step = 1 - 2 * x[j]
        gain = _gain(j, step, chain)
        p = 1.0 / (1.0 + np.exp(-(odds + beta * gain * step)))
        total[j] += p
        if (1 if rng.random() < p else 0) != x[j]:
            x[j] += step
            _move(j, step, chain)
    drawn = np.flatnonzero(free)
    for _ in range(exchanges if drawn.size else 0):
        a, b = drawn[int(rng.random() * drawn.size)], drawn[int(rng.random() * drawn.size)]
        if x[a] == x[b]:
            continue
        step = 1 - 2 * x[a]
        gain = _gain(a, step, chain)
        _move(a, step, chain)
        gain += _gain(b, -step, chain)
        if np.log(rng.random()) < beta * gain:
            _move(b, -step, chain)
            x[a] += step
            x[b] -= step
        else:
            _move(a, -step, chain)


@kernel
def sweep_values(chain, rates, beta, rng, exchanges, total):
    """The same where each of n people has one of k values: bit ``v * n + j`` says j has value v.

    ``rates`` (k,) are the logarithms of how common each value is. The answers about one value say
    nothing of another, so the changes of leaving one and taking another add up.
    """
    x, free = chain.x, chain.free
    k = rates.size
    n = x.size // k
    log = np.empty(k)
    value = np.empty(n, np.int64)
    for j in range(n):
        for v in range(k):
            if x[v * n + j]:
                value[j] = v
        if not free[j]:
            total[value[j] * n + j] += 1.0
            continue
        now = value[j]
        for v in range(k):
            step = -1 if v == now else 1
            gain = _gain(v * n + j, step, chain)
            # Staying costs nothing; what leaving would change is counted against it.
            log[v] = rates[v] + beta * (-gain if v == now else gain)
        new = _draw_value(log, j, n, rng, total)
        if new != now:
            _take_value(j, now, new, n, chain)
            value[j] = new
    for _ in range(exchanges):
        a, b = int(rng.random() * n), int(rng.random() * n)
        u, w = value[a], value[b]
        if u == w or not free[a] or not free[b]:
            continue
        gain = _gain(u * n + a, -1, chain)
        gain += _gain(w * n + a, 1, chain)
        _take_value(a, u, w, n, chain)
        gain += _gain(w * n + b, -1, chain)
        gain += _gain(u * n + b, 1, chain)
        if np.log(rng.random()) < beta * gain:
            _take_value(b, w, u, n, chain)
            value[a], value[b] = w, u
        else:
            _take_value(a, w, u, n, chain)


@kernel
def _draw_value(log, j, n, rng, total):
    """The value of person j drawn by log-weights (k,); adds the probability of each to total."""
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    for v in range(weight.size):
        total[v * n + j] += weight[v]
    left = rng.random()
    for v in range(weight.size - 1):
        left -= weight[v]
        if left < 0:
            return v
    return weight.size - 1


@kernel
def _take_value(j, old, new, n, chain):
    _move(old * n + j, -1, chain)
    _move(new * n + j, 1, chain)
    chain.x[old * n + j] = 0
    chain.x[new * n + j] = 1


@kernel
def gram_sweep(x, free, c, G, odds, rng, exchanges, total):
    """The same where all noise is Gaussian: c (n,) is A'W(b - Ax) and G (n, n) is A'WA.

    W holds the answers' weights, beta / variance. A proposal costs one step, a change of a bit n.
    """
    n = x.size
    for j in range(n):
        if not free[j]:
            total[j] += x[j]
            continue
        step = 1 - 2 * x[j]
        p = 1.0 / (1.0 + np.exp(-(odds + c[j] + G[j, j] * (x[j] - 0.5))))
        total[j] += p
        if (1 if rng.random() < p else 0) != x[j]:
            x[j] += step
            for k in range(n):
                c[k] -= step * G[j, k]
    for _ in range(exchanges):
        a, b = int(rng.random() * n), int(rng.random() * n)
        if x[a] == x[b] or not free[a] or not free[b]:
            continue
        step = 1 - 2 * x[a]
        gain = step * (c[a] - c[b]) - 0.5 * (G[a, a] + G[b, b] - 2 * G[a, b])
        if np.log(rng.random()) < gain:
            x[a] += step
            x[b] -= step
            for k in range(n):
                c[k] -= step * (G[a, k] - G[b, k])


@kernel
def gram_sweep_values(x, free, c, G, rates, rng, exchanges, total):
    """``sweep_values`` where all noise is Gaussian: c (kn,), G (k, n, n), one block per value."""
    k, n = G.shape[0], G.shape[1]
    log = np.empty(k)
    value = np.empty(n, np.int64)
    for j in range(n):
        for v in range(k):
            if x[v * n + j]:
                value[j] = v
        if not free[j]:
            total[value[j] * n + j] += 1.0
            continue
        for v in range(k):
            log[v] = rates[v] + c[v * n + j] + G[v, j, j] * (x[v * n + j] - 0.5)
        new = _draw_value(log, j, n, rng, total)
        if new != value[j]:
            _flip(j, value[j], -1, x, c, G)
            _flip(j, new, 1, x, c, G)
            value[j] = new
    for _ in range(exchanges):
        a, b = int(rng.random() * n), int(rng.random() * n)
        u, w = value[a], value[b]
        if u == w or not free[a] or not free[b]:
            continue
        gain = c[u * n + b] - c[u * n + a] + c[w * n + a] - c[w * n + b]
        gain -= 0.5 * (G[u, a, a] + G[u, b, b]) - G[u, a, b]
        gain -= 0.5 * (G[w, a, a] + G[w, b, b]) - G[w, a, b]
        if np.log(rng.random()) < gain:
            _flip(a, u, -1, x, c, G)
            _flip(a, w, 1, x, c, G)
            _flip(b, w, -1, x, c, G)
            _flip(b, u, 1, x, c, G)
            value[a], value[b] = w, u


@kernel
def _flip(j, v, step, x, c, G):
    n = G.shape[1]
    x[v * n + j] += step
    for i in range(n):
        c[v * n + i] -= step * G[v, j, i]
