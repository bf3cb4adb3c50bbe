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


class Squares(NamedTuple):
    """Bits where all noise is Gaussian, in k blocks of n, and the sums that their draws depend on.

    W holds the answers' weights, beta / variance. ``x``, ``size``, ``twice`` and ``c`` are changed
    in place.
    """

    x: NDArray[Any]  # (kn,) bits
    size: NDArray[Any]  # (kn,) what each adds to a count,
    twice: NDArray[Any]  # (kn,) and whether it is counted twice
    free: NDArray[Any]  # (kn,) which of them are drawn; the others stay as they are
    c: NDArray[Any]  # (kn,) A'W(b - A size)
    G: NDArray[Any]  # (k, n, n) A'WA
    share: float  # how many of the ones are counted twice,
    variance: float  # and that of what else a one adds


@kernel
def _log_odds(v, j, squares):
    """How much likelier the answers are if bit j of block v is 1: counted once, and twice.

    What it adds is integrated out, given that of all others.
    """
    own, share, variance = squares.G[v, j, j], squares.share, squares.variance
    at = v * squares.G.shape[1] + j
    towards = squares.c[at] + own * squares.size[at]
    once, twice = towards - own / 2 + np.log(1.0 - share), -np.inf
    if share > 0.0:
        twice = 2 * (towards - own) + np.log(share)
    if variance > 0.0:
        widened = 1.0 + variance * own
        once += 0.5 * (variance * (towards - own) ** 2 / widened - np.log(widened))
        twice += 0.5 * (variance * (towards - 2 * own) ** 2 / widened - np.log(widened))
    return once, twice


@kernel
def _either(once, twice):
    """The logarithm of the sum of both weights."""
    if twice == -np.inf:
        return once
    high = max(once, twice)
    return high + np.log(np.exp(once - high) + np.exp(twice - high))


@kernel
def _set_bit(v, j, one, once, twice, squares, rng):
    """Make bit j of block v a 0 or a 1; draw what it adds then, given both log-weights."""
    own, variance = squares.G[v, j, j], squares.variance
    at = v * squares.G.shape[1] + j
    size, is_twice = 0.0, False
    if one:
        is_twice = twice > -np.inf and rng.random() < 1.0 / (1.0 + np.exp(once - twice))
        size = 2.0 if is_twice else 1.0
        if variance > 0.0:
            widened = 1.0 + variance * own
            left = squares.c[at] + own * (squares.size[at] - size)
            size += variance * left / widened + np.sqrt(variance / widened) * rng.normal(0.0, 1.0)
    squares.x[at] = 1 if one else 0
    squares.twice[at] = is_twice
    _resize(v, j, size, squares)


@kernel
def draw_sizes(squares, rng):
    """Draw what every one adds, and leave the bits as they are."""
    k, n = squares.G.shape[0], squares.G.shape[1]
    for v in range(k):
        for j in range(n):
            if squares.x[v * n + j]:
                once, twice = _log_odds(v, j, squares)
                _set_bit(v, j, True, once, twice, squares, rng)


@kernel
def _resize(v, j, size, squares):
    n = squares.G.shape[1]
    step = size - squares.size[v * n + j]
    if step != 0.0:
        squares.size[v * n + j] = size
        for i in range(n):
            squares.c[v * n + i] -= step * squares.G[v, j, i]


@kernel
def _swap(v, a, b, squares):
    """Let two bits of block v exchange what they are."""
    x, size, twice, n = squares.x, squares.size, squares.twice, squares.G.shape[1]
    one, other = v * n + a, v * n + b
    x[one], x[other] = x[other], x[one]
    twice[one], twice[other] = twice[other], twice[one]
    was = size[one]
    _resize(v, a, size[other], squares)
    _resize(v, b, was, squares)


@kernel
def _gain_of_swap(v, a, b, squares):
    """Change of log-likelihood when two bits of block v exchange what they are."""
    n, G = squares.G.shape[1], squares.G
    step = squares.size[v * n + b] - squares.size[v * n + a]
    towards = squares.c[v * n + a] - squares.c[v * n + b]
    return step * towards - 0.5 * step**2 * (G[v, a, a] + G[v, b, b] - 2 * G[v, a, b])


@kernel
def gram_sweep(squares, odds, rng, exchanges, total):
    """``sweep`` where all noise is Gaussian. A proposal costs one step, a change of a bit n."""
    x, free = squares.x, squares.free
    n = x.size
    for j in range(n):
        once, twice = _log_odds(0, j, squares)
        p = 1.0 / (1.0 + np.exp(-(odds + _either(once, twice)))) if free[j] else float(x[j])
        total[j] += p
        _set_bit(0, j, rng.random() < p, once, twice, squares, rng)
    for _ in range(exchanges):
        a, b = int(rng.random() * n), int(rng.random() * n)
        if x[a] == x[b] or not free[a] or not free[b]:
            continue
        if np.log(rng.random()) < _gain_of_swap(0, a, b, squares):
            _swap(0, a, b, squares)


@kernel
def gram_sweep_values(squares, rates, rng, exchanges, total):
    """``sweep_values`` where all noise is Gaussian: one block per value."""
    x, free = squares.x, squares.free
    k, n = squares.G.shape[0], squares.G.shape[1]
    log, once, twice = np.empty(k), np.empty(k), np.empty(k)
    value = np.empty(n, np.int64)
    for j in range(n):
        for v in range(k):
            if x[v * n + j]:
                value[j] = v
            once[v], twice[v] = _log_odds(v, j, squares)
            log[v] = rates[v] + _either(once[v], twice[v])
        new = value[j]
        if free[j]:
            new = _draw_value(log, j, n, rng, total)
        else:
            total[new * n + j] += 1.0
        for v in range(k):
            if v == new or v == value[j]:
                _set_bit(v, j, v == new, once[v], twice[v], squares, rng)
        value[j] = new
    for _ in range(exchanges):
        a, b = int(rng.random() * n), int(rng.random() * n)
        u, w = value[a], value[b]
        if u == w or not free[a] or not free[b]:
            continue
        gain = _gain_of_swap(u, a, b, squares) + _gain_of_swap(w, a, b, squares)
        if np.log(rng.random()) < gain:
            _swap(u, a, b, squares)
            _swap(w, a, b, squares)
            value[a], value[b] = w, u
