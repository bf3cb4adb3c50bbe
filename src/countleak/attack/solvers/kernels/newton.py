"""Newton's equations of a linear program with boxes, for a dense matrix of many rows.

With xi = (x, p, q), M = [A, I, -I] and costs (c, 1, 1), every program of ours reads

    minimise c'x + 1'(p + q)   subject to  M xi = b,  0 <= x <= 1,  0 <= p, q (<= beta);

its multipliers obey z - t = (c, 1, 1) - M'y, z for the lower bounds and t for the upper ones. For
the pairs s z = mu and r t = mu, r the room below the upper bound, Newton's equations come down to

    (A'DA + H) dx = A'D f + h_x,
    D = 1 / (theta_p + theta_q),  H = 1 / theta_x,  theta = 1 / (z/s + t/r),

n by n and positive definite (Portnoy and Koenker, 1997). Conjugate gradients solve them; the
preconditioner takes the heavy rows one by one and all the others at their mean weight, for which
A'A was counted beforehand.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.kernels.bits import (
    Matrix,
    jit,
    plain,
    scaled_row,
    times,
    transposed_times,
)
from countleak.attack.solvers.kernels.lapack import add_gram, factor_cholesky, solve_cholesky

# Rows of a Gram matrix at a time, so that they are still in cache when multiplied.
BLOCK = 256
# From this n on the preconditioner is float32: conjugate gradients correct what that loses.
SINGLE = 400


class Program(NamedTuple):
    """minimise constant + c'x + sum |b - Ax|  over  0 <= x <= 1.

    Where a point carries upper bounds of p and q, |b - Ax| <= beta as well.
    """

    A: Matrix
    b: NDArray[Any]
    c: NDArray[Any]
    constant: float
    beta: float
    price: float  # what a reduced cost c - A'y typically is, away from zero
    size: float  # and a residual b - Ax, at least


class Pairs(NamedTuple):
    """A point of the iteration, or a step of it; the first len(t) of xi have upper bounds."""

    s: NDArray[Any]  # (n+2m,) xi = (x, p, q)
    z: NDArray[Any]  # (n+2m,) multipliers of xi >= 0
    r: NDArray[Any]  # (n,) or (n+2m,) room below the upper bound
    t: NDArray[Any]  # like r, multipliers of the upper bound
    y: NDArray[Any]  # (m,) multipliers of M xi = b


class System(NamedTuple):
    """Newton's equations at a point, and room for their solution."""

    theta: NDArray[Any]  # (n+2m,)
    D: NDArray[Any]  # (m,)
    H: NDArray[Any]  # (n,)
    low: NDArray[Any]  # (n+2m,) what z must gain
    high: NDArray[Any]  # like t, what t must gain
    h: NDArray[Any]  # (n+2m,) low - high, the force on xi
    f: NDArray[Any]  # (m,) what the rows see of that force and of their residual
    dx: NDArray[Any]  # (n,)
    Adx: NDArray[Any]  # (m,)
    left: NDArray[Any]  # (n,) right-hand side not yet met by dx
    work: NDArray[Any]  # (m,)


@jit
def new_pairs(m, n, bounded):
    """Room for a point or a step."""
    N = n + 2 * m
    upper = N if bounded else n
    return Pairs(np.zeros(N), np.zeros(N), np.zeros(upper), np.zeros(upper), np.zeros(m))


@jit
def new_system(m, n, upper):
    """Room for Newton's equations with ``upper`` upper bounds."""
    N = n + 2 * m
    return System(
        np.empty(N),
        np.empty(m),
        np.empty(n),
        np.empty(N),
        np.empty(upper),
        np.empty(N),
        np.empty(m),
        np.zeros(n),
        np.zeros(m),
        np.empty(n),
        np.empty(m),
    )


@jit
def dot(a, b):
    """a'b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit
def move(s, ds, length):
    """Add length * ds to s."""
    for j in range(s.size):
        s[j] += length * ds[j]


@jit
def weigh(system, at):
    """Fill in theta, D and H."""
    theta, D, H = system.theta, system.D, system.H
    m, n, upper = D.size, H.size, at.r.size
    for j in range(upper):
        theta[j] = 1 / (at.z[j] / at.s[j] + at.t[j] / at.r[j])
    for j in range(upper, theta.size):
        theta[j] = at.s[j] / at.z[j]
    p, q = theta[n : n + m], theta[n + m :]
    for i in range(m):
        D[i] = 1 / (p[i] + q[i])
    for j in range(n):
        H[j] = 1 / theta[j]


@plain
def sound(system):
    """Whether D and H are numbers still: what is not would send the selection of rows astray."""
    total = 0.0
    for i in range(system.D.size):
        total += system.D[i]
    for j in range(system.H.size):
        total += system.H[j]
    return total < np.inf


@jit
def aim(s, z, ds, dz, target, gain):
    """Set gain to what z lacks for s z = target, the last step's curvature counted in."""
    for j in range(s.size):
        gain[j] = (target - ds[j] * dz[j]) / s[j] - z[j]


@jit
def load(system, A, e):
    """Set up the right-hand side: gains aimed at, the rows' residual e, less what dx meets."""
    theta, low, high, h, f, work = (
        system.theta,
        system.low,
        system.high,
        system.h,
        system.f,
        system.work,
    )
    m, n = A.m, A.n
    for j in range(low.size):
        h[j] = low[j]
    for j in range(high.size):
        h[j] -= high[j]
    p, q, hp, hq = theta[n : n + m], theta[n + m :], h[n : n + m], h[n + m :]
    for i in range(m):
        f[i] = e[i] - p[i] * hp[i] + q[i] * hq[i]
    for i in range(m):
        work[i] = system.D[i] * (f[i] - system.Adx[i])
    transposed_times(A, work, system.left)
    for j in range(n):
        system.left[j] += h[j] - system.H[j] * system.dx[j]


@jit
def complete(system, at, step):
    """Fill in the whole step from dx.

    What is left over goes to the larger multiplier of x, so that z - t = (c, 1, 1) - M'y holds
    however early the linear solver stopped.
    """
    m, n = system.D.size, system.H.size
    theta, h, ds, dz, dt, dy = system.theta, system.h, step.s, step.z, step.t, step.y
    for i in range(m):
        dy[i] = system.D[i] * (system.f[i] - system.Adx[i])
    p, hp, dp, zp = theta[n : n + m], h[n : n + m], ds[n : n + m], dz[n : n + m]
    for i in range(m):
        dp[i] = p[i] * (hp[i] + dy[i])
        zp[i] = -dy[i]
    q, hq, dq, zq = theta[n + m :], h[n + m :], ds[n + m :], dz[n + m :]
    for i in range(m):
        dq[i] = q[i] * (hq[i] - dy[i])
        zq[i] = dy[i]
    for j in range(n):
        ds[j] = system.dx[j]
        dz[j] = system.low[j] - at.z[j] / at.s[j] * ds[j]
    for j in range(dt.size):
        step.r[j] = -ds[j]
        dt[j] = system.high[j] + at.t[j] / at.r[j] * ds[j]
    for j in range(n, dt.size):
        dz[j] += dt[j]
    for j in range(n):
        if at.t[j] > at.z[j]:
            dt[j] += system.left[j]
        else:
            dz[j] -= system.left[j]


@jit
def longest(s, ds):
    """Inverse of the longest step along ds that keeps s >= 0."""
    most = 0.0
    # Divisions and dependences are slow: most blocks need only the test.
    for first in range(0, s.size, 64):
        last, shorter = min(first + 64, s.size), 0
        for j in range(first, last):
            shorter += -ds[j] > most * s[j]
        if shorter:
            for j in range(first, last):
                most = max(most, -ds[j] / s[j])
    return most


@plain
def kth_largest(values, k):
    """The k-th largest of values, 1 <= k <= len (Hoare's selection)."""
    v, left, right, k = values.copy(), 0, values.size - 1, k - 1
    while left < right:
        pivot, i, j = v[(left + right) >> 1], left, right
        while i <= j:
            while v[i] > pivot:
                i += 1
            while v[j] < pivot:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return v[k]


@plain
def largest(values, k):
    """Indices (k,), increasing, of k largest values."""
    out, count = np.empty(k, np.int64), 0
    bar = kth_largest(values, k) if 0 < k < values.size else 0.0
    more = 0  # ties fill what the strictly larger ones leave
    for i in range(values.size):
        more += values[i] > bar
    ties = k - more if 0 < k < values.size else k
    for i in range(values.size):
        if count < k and (k == values.size or values[i] > bar or (values[i] == bar and ties > 0)):
            ties -= values[i] == bar
            out[count] = i
            count += 1
    return out


@jit
def factor(A, D, H, heavy, rest, ridge, G):
    """Overwrite G with the Cholesky factor of A'DA + H, rows not ``heavy`` at weight ``rest``.

    False if it has none.
    """
    n = A.n
    for i in range(n):
        for j in range(n):
            G[i, j] = rest * A.gram[i, j] if rest > 0 else 0.0
    W = np.empty((min(heavy.size, BLOCK), n), G.dtype)
    for first in range(0, heavy.size, BLOCK):
        rows = min(BLOCK, heavy.size - first)
        for k in range(rows):
            i = heavy[first + k]
            scaled_row(A, i, np.sqrt(max(D[i] - rest, 0.0)), W[k])
        add_gram(W, rows, G)
    for j in range(n):
        G[j, j] += H[j] + ridge * (G[j, j] + H[j])
    return factor_cholesky(G)


@jit
def precondition(system, A, rows, single, double):
    """Cholesky factors, one of them empty, from the ``rows`` heaviest rows.

    Float32 where room for it is given and it goes through, else float64 with as much of a ridge
    as it takes.
    """
    D, H = system.D, system.H
    heavy = largest(D, rows)
    rest = 0.0
    for i in range(A.m):
        rest += D[i]
    for k in range(rows):
        rest -= D[heavy[k]]
    rest = max(rest, 0.0) / (A.m - rows) if rows < A.m and A.gram.size else 0.0
    if single.size and factor(A, D, H, heavy, rest, 0.0, single):
        return single, double
    if not double.size:
        double = np.empty((A.n, A.n))
    ridge = 0.0
    while ridge < 1 and not factor(A, D, H, heavy, rest, ridge, double):
        ridge = max(1e-14, 100 * ridge)
    return single[:0], double


@jit
def apply(single, double, v, out):
    """out = (preconditioner)^-1 v."""
    if single.size:
        short = np.empty(v.size, np.float32)
        for j in range(v.size):
            short[j] = v[j]
        solve_cholesky(single, short)
        for j in range(v.size):
            out[j] = short[j]
    else:
        for j in range(v.size):
            out[j] = v[j]
        solve_cholesky(double, out)


@jit
def excess(left, floor, z, t):
    """Largest of |left| / max(floor, z, t): below 1, the multipliers can take it."""
    worst = 0.0
    for j in range(left.size):
        ratio = abs(left[j]) / max(floor, max(z[j], t[j]))
        worst = ratio if ratio > worst else worst
    return worst


@jit
def refine(system, A, single, double, at, floor, enough, limit):
    """Take conjugate-gradient steps until the multipliers can take what is left; their number."""
    H, work, left = system.H, system.work, system.left
    g, d, Bd, Ad = np.empty(A.n), np.zeros(A.n), np.empty(A.n), np.empty(A.m)
    old = 0.0
    for k in range(limit):
        if excess(left, floor, at.z, at.t) <= enough:
            return k
        apply(single, double, left, g)
        new = dot(left, g)
        ratio = new / old if k else 0.0
        old = new
        for j in range(A.n):
            d[j] = g[j] + ratio * d[j]
        times(A, d, Ad)
        for i in range(A.m):
            work[i] = system.D[i] * Ad[i]
        transposed_times(A, work, Bd)
        for j in range(A.n):
            Bd[j] += H[j] * d[j]
        length = new / dot(d, Bd)
        move(system.dx, d, length)
        move(system.Adx, Ad, length)
        move(left, Bd, -length)
    return limit
