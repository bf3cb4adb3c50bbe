"""From the start to the optimum: Mehrotra's predictor-corrector (1992) on Newton's equations.

Once the gap is a few per cent, the rows and columns still undecided are few: ``finish`` sifts them
into a small program, which is iterated to the end. Its solution is accepted only if it is certified
for the whole program; if not, the iteration resumes.
"""

import numpy as np

from countleak.attack.solvers.kernels.bits import jit, plain, times, transposed_times
from countleak.attack.solvers.kernels.finish import bounds, certified, keep, sift, snap
from countleak.attack.solvers.kernels.lapack import solve_cholesky
from countleak.attack.solvers.kernels.newton import (
    SINGLE,
    aim,
    apply,
    complete,
    dot,
    factor,
    load,
    longest,
    move,
    new_pairs,
    new_system,
    precondition,
    refine,
    sound,
    weigh,
)
from countleak.attack.solvers.machine import compiled

entry = compiled()
# Relative gap at which the undecided part is small enough to be solved alone.
SIFT = 0.02
# Relative gap from which the exact solution is tried at every iteration.
POLISH = 1e-5
# Of a multiplier, what the linear solver may leave for it to take.
ENOUGH = 0.7
# How a loop ended.
OPTIMAL, CENTRED, INFEASIBLE, STOPPED, BROKEN, REACHED = range(6)


@jit
def fit(A, b):
    """Ridge least squares about x = 1/2, not clipped; the ridge is the noise left over 1/4."""
    m, n = A.m, A.n
    x, r, Ar = np.full(n, 0.5), np.empty(m), np.empty(n)
    times(A, x, r)
    for i in range(m):
        r[i] = b[i] - r[i]
    transposed_times(A, r, Ar)
    G, h, ridge, none = (
        np.empty((n, n), np.float32),
        np.empty(n, np.float32),
        np.empty(n),
        np.empty(0, np.int64),
    )
    trace = 0.0
    for j in range(n):
        trace += A.gram[j, j]
    square = dot(r, r)
    # As if the true x - 1/2 were independent signs over two.
    noise = max(square - trace / 4, 0.1 * square)
    for _ in range(2):
        for j in range(n):
            ridge[j] = 4 * noise / m + 1e-6 * trace / n + 1e-30
            h[j] = Ar[j]
        if not factor(A, b, ridge, none, 1.0, 0.0, G):
            break
        solve_cholesky(G, h)
        explained = 0.0
        for j in range(n):
            explained += h[j] * (Ar[j] + ridge[j] * h[j])
            x[j] = 0.5 + h[j]
        estimate = max(square - explained, 0.0) * m / max(m - n, 0.1 * m)
        if 0.6 * noise < estimate < 1.7 * noise:
            break
        noise = estimate
    return x


@jit
def price(A, at, floor):
    """Set the multipliers of x from y: t - z = A'y, neither below ``floor``."""
    Ay = np.empty(A.n)
    transposed_times(A, at.y, Ay)
    for j in range(A.n):
        at.z[j] = floor + max(-Ay[j], 0.0)
        at.t[j] = floor + max(Ay[j], 0.0)


@jit
def start(program, bounded):
    """A point near least squares, inside every bound and feasible but for rows beyond beta."""
    A, b, beta = program.A, program.b, program.beta
    m, n = A.m, A.n
    at, x, fitted, Ax = new_pairs(m, n, bounded), fit(A, b), np.empty(m), np.empty(m)
    times(A, x, fitted)
    for j in range(n):
        at.s[j] = min(max(x[j], 0.05), 0.95)
        at.r[j] = 1 - at.s[j]
    times(A, at.s[:n], Ax)
    size = before = 0.0
    for i in range(m):
        size += abs(b[i] - Ax[i]) / m
        before += abs(b[i] - fitted[i]) / m
    mu = 0.3 * max(size, 1e-3)
    for i in range(m):
        # y follows the residual before clipping, for which A'y all but vanishes, unless x was far
        # outside the box.
        p, q, r = n + i, n + m + i, b[i] - Ax[i]
        pull = b[i] - fitted[i] if before > 0.5 * size else r
        at.y[i] = pull / (mu + np.hypot(mu, pull))
        low = mu / (1 + abs(at.y[i]))
        if bounded:
            r, low = min(max(r, -0.9 * beta), 0.9 * beta), min(low, 0.05 * beta)
        at.s[p], at.s[q] = low + max(r, 0.0), low + max(-r, 0.0)
        at.z[p], at.z[q] = 1 - at.y[i], 1 + at.y[i]
        if bounded:
            for k in (p, q):
                at.r[k] = beta - at.s[k]
                at.t[k] = mu / at.r[k]
                at.z[k] += at.t[k]
    price(A, at, mu)
    return at


@jit
def residual(program, at, Ax, e):
    """e = b - M xi, and its largest entry."""
    m, n = program.A.m, program.A.n
    worst = 0.0
    for i in range(m):
        e[i] = program.b[i] - Ax[i] - at.s[n + i] + at.s[n + m + i]
        worst = max(worst, abs(e[i]))
    return worst


@jit
def relative_gap(program, at, Ax):
    """The gap between (P) at x and (D) at y, relative to max(1, upper)."""
    upper = lower = program.constant
    for i in range(program.A.m):
        upper += abs(program.b[i] - Ax[i])
        lower += program.b[i] * at.y[i] - program.beta * max(abs(at.y[i]) - 1, 0.0)
    for j in range(program.A.n):
        upper += program.c[j] * at.s[j]
        lower -= max(at.t[j] - at.z[j], 0.0)
    return (upper - lower) / max(1.0, upper)


@jit
def read(program, bounded, at, x, y):
    """Copy x and y of the point, put exactly inside their bounds."""
    for j in range(program.A.n):
        x[j] = min(max(at.s[j], 0.0), 1.0)
    for i in range(program.A.m):
        y[i] = at.y[i] if bounded else min(max(at.y[i], -1.0), 1.0)


@jit
def refuted(program, at, y):
    """Whether y, copied from the point, proves by (I) that no x meets the bound.

    And clearly so, for the sizes that cancel in it.
    """
    A = program.A
    total = spread = 0.0
    for i in range(A.m):
        y[i] = at.y[i]
        total += (abs(program.b[i]) + program.beta) * abs(y[i])
        spread += program.b[i] * y[i] - program.beta * abs(y[i])
    value = spread
    for j in range(A.n):
        total += abs(at.t[j] - at.z[j])
        value -= max(at.t[j] - at.z[j], 0.0)
    # The multipliers stand in for A'y, which is computed only where they promise a proof.
    if value < 1e-7 * total:
        return False
    Ay = np.empty(A.n)
    transposed_times(A, y, Ay)
    for j in range(A.n):
        spread -= max(Ay[j], 0.0)
    return spread > 1e-8 * total


@plain
def predict(system, A, single, double, at, step, e):
    """Set step to one aimed at zero; returns how much all the products s z and r t would change.

    One use of the preconditioner is exact enough for that.
    """
    for j in range(at.z.size):
        system.low[j] = -at.z[j]
    for j in range(at.t.size):
        system.high[j] = -at.t[j]
    system.dx[:] = 0.0
    system.Adx[:] = 0.0
    load(system, A, e)
    apply(single, double, system.left, system.dx)
    times(A, system.dx, system.Adx)
    system.left[:] = 0.0
    complete(system, at, step)
    primal = 1 / max(1.0, longest(at.s, step.s), longest(at.r, step.r))
    dual = 1 / max(1.0, longest(at.z, step.z), longest(at.t, step.t))
    return (
        primal * (dot(step.s, at.z) + dot(step.r, at.t))
        + dual * (dot(at.s, step.z) + dot(at.r, step.t))
        + primal * dual * (dot(step.s, step.z) + dot(step.r, step.t))
    )


@plain
def solved(program, bounded, at, x, y, gap, tol):
    """Whether x and y, overwritten by what the point leads to, are certified to tol."""
    if gap < POLISH:
        snap(program, bounded, at, x, y)
        if certified(program, bounded, x, y, tol):
            return True
    if gap < tol:
        read(program, bounded, at, x, y)
        return certified(program, bounded, x, y, tol)
    return False


@plain
def iterate(program, at, x, y, tol, until, limit):
    """Move ``at`` towards the optimum; returns how that ended and after how many iterations.

    OPTIMAL: x, y are certified to tol; REACHED: the relative gap is below ``until``; INFEASIBLE:
    y proves it; STOPPED: none of these within ``limit`` iterations; BROKEN: rounding left
    no direction to follow. In the last two x and y are those of the last point.
    """
    A = program.A
    m, n, N, L = A.m, A.n, at.s.size, at.t.size
    bounded = n < L
    step, system, e, Ax = new_pairs(m, n, bounded), new_system(m, n, L), np.empty(m), np.empty(m)
    single = np.empty((n, n) if n >= SINGLE else (0, 0), np.float32)
    double = np.empty((n, n) if n < SINGLE else (0, 0))
    rows = m if m <= 2 * n else 2 * n // 3 if A.gram.size else n + n // 2
    enough, before = ENOUGH, np.inf
    times(A, at.s[:n], Ax)

    for iteration in range(limit):
        # residuals
        off = residual(program, at, Ax, e)
        gap = relative_gap(program, at, Ax)
        products = dot(at.s, at.z) + dot(at.r, at.t)
        mu = products / (N + L)
        if not 0 < mu < np.inf:
            read(program, bounded, at, x, y)
            return BROKEN, iteration
        if mu > 0.9 * before:  # poor progress: solve the equations more exactly
            rows, enough = min(m, 2 * rows), max(0.1 * enough, 1e-6)
        before = mu
        if not bounded or off < 1e-6 * program.beta:
            if solved(program, bounded, at, x, y, gap, tol):
                return OPTIMAL, iteration
            # Just beyond the limit of feasibility the bounds cross; that is no gap to sift at.
            if gap < until and until > 0:
                return REACHED, iteration
        if bounded and (gap < 0 or off >= 1e-6 * program.beta) and refuted(program, at, y):
            return INFEASIBLE, iteration

        # direction: the predictor,
        weigh(system, at)
        if not sound(system):
            read(program, bounded, at, x, y)
            return BROKEN, iteration
        single, double = precondition(system, A, rows, single, double)
        change = predict(system, A, single, double, at, step, e)
        target = mu * max(0.0, 1 + change / products) ** 3

        # then the corrector, aimed at the centre and starting from where the predictor ended
        aim(at.s, at.z, step.s, step.z, target, system.low)
        aim(at.r, at.t, step.r, step.t, target, system.high)
        load(system, A, e)
        if refine(system, A, single, double, at, 2 * mu, enough, 60) > 12:
            rows = min(m, 2 * rows)
        complete(system, at, step)

        # step
        primal = min(1.0, 0.9995 / max(longest(at.s, step.s), longest(at.r, step.r), 1e-9))
        dual = min(1.0, 0.9995 / max(longest(at.z, step.z), longest(at.t, step.t), 1e-9))

        # update
        advance(at, step, primal, dual)
        move(Ax, system.Adx, primal)
    read(program, bounded, at, x, y)
    return STOPPED, limit


@jit
def advance(at, step, primal, dual):
    """Take the step, each side by its own length."""
    move(at.s, step.s, primal)
    move(at.r, step.r, primal)
    move(at.z, step.z, dual)
    move(at.t, step.t, dual)
    move(at.y, step.y, dual)


@entry
def optimise(program, bounded, tol, limit):
    """Solve the whole program until it can be sifted, then the small one; resume if that fails."""
    A = program.A
    x, y, at, until, done, extra = np.empty(A.n), np.empty(A.m), start(program, bounded), SIFT, 0, 0
    while True:
        status, iterations = iterate(program, at, x, y, tol, until, limit - done)
        done += iterations
        if status != REACHED:
            return x, y, status, done + extra
        kept_rows, kept_columns = np.zeros(A.m, np.bool_), np.zeros(A.n, np.bool_)
        for _ in range(3):
            small, inner, rows, columns = sift(program, at, x, y, kept_rows, kept_columns)
            if 2 * rows.size * columns.size > A.m * A.n:
                break
            xs, ys = np.empty(columns.size), np.empty(rows.size)
            if columns.size:
                status, iterations = iterate(small, inner, xs, ys, tol, 0.0, 30)
                extra += iterations
                if status != OPTIMAL:
                    break
            for j in range(xs.size):
                x[columns[j]] = xs[j]
            for i in range(ys.size):
                y[rows[i]] = ys[i]
            if certified(program, bounded, x, y, tol):
                return x, y, OPTIMAL, done + extra
            if 4 * keep(program, x, y, kept_rows, kept_columns) > rows.size + columns.size:
                break  # not a few oversights: it was too early
        until = 0.01 * until if until > 1e-6 else 0.0


@entry
def within_bound(program, x):
    """Whether |b - Ax| <= beta."""
    return bounds(program, x, np.zeros(program.A.m))[2] <= program.beta
