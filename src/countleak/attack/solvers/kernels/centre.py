"""The analytic centre of the feasible set of (F), or the proof that there is no such set."""

import numpy as np

from countleak.attack.solvers.kernels.bits import times
from countleak.attack.solvers.kernels.finish import bounds
from countleak.attack.solvers.kernels.newton import (
    SINGLE,
    aim,
    complete,
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
from countleak.attack.solvers.kernels.path import (
    BROKEN,
    CENTRED,
    INFEASIBLE,
    STOPPED,
    advance,
    entry,
    fit,
    price,
    read,
    refuted,
    residual,
)


@entry
def centre(program, tol, limit):
    """Newton's method for the pairs of x at 1 and those of p and q at 1/2.

    Each row has two of every slack, so these are the conditions for the largest
    sum log x + log(1 - x) + sum log(beta - r) + log(beta + r), r = b - Ax.
    """
    A, b, beta = program.A, program.b, program.beta
    m, n = A.m, A.n
    at, x, y, Ax, e = new_pairs(m, n, True), fit(A, b), np.empty(m), np.empty(m), np.empty(m)
    for j in range(n):
        at.s[j] = min(max(x[j], 0.05), 0.95)
        at.r[j] = 1 - at.s[j]
    times(A, at.s[:n], Ax)
    for i in range(m):
        half = 0.5 * min(max(b[i] - Ax[i], -0.9 * beta), 0.9 * beta)
        for k, s in ((n + i, beta / 2 + half), (n + m + i, beta / 2 - half)):
            at.s[k], at.r[k], at.z[k], at.t[k] = s, beta - s, 0.5 / s, 0.5 / (beta - s)
        at.y[i] = at.t[n + i] - at.z[n + i]
    price(A, at, 1.0)
    step, system, L = new_pairs(m, n, True), new_system(m, n, n + 2 * m), n + 2 * m
    single = np.empty((n, n) if n >= SINGLE else (0, 0), np.float32)
    double = np.empty((n, n) if n < SINGLE else (0, 0))
    rows = min(m, n)

    for iteration in range(limit):
        # residuals
        off = residual(program, at, Ax, e)
        if refuted(program, at, y):
            return x, y, INFEASIBLE, iteration
        spread = 0.0
        for j in range(L):
            goal = 1.0 if j < n else 0.5
            spread = max(
                spread, abs(at.s[j] * at.z[j] / goal - 1), abs(at.r[j] * at.t[j] / goal - 1)
            )
        if not spread < np.inf:
            return x, y, BROKEN, iteration
        if spread < tol and off < tol * beta:
            read(program, True, at, x, y)
            if bounds(program, x, y)[2] < beta:
                return x, y, CENTRED, iteration

        # direction
        weigh(system, at)
        if not sound(system):
            return x, y, BROKEN, iteration
        single, double = precondition(system, A, rows, single, double)
        for array in (step.s, step.z, step.r, step.t, system.dx, system.Adx):
            array[:] = 0.0
        aim(at.s[:n], at.z[:n], step.s[:n], step.z[:n], 1.0, system.low[:n])
        aim(at.r[:n], at.t[:n], step.r[:n], step.t[:n], 1.0, system.high[:n])
        aim(at.s[n:], at.z[n:], step.s[n:], step.z[n:], 0.5, system.low[n:])
        aim(at.r[n:], at.t[n:], step.r[n:], step.t[n:], 0.5, system.high[n:])
        load(system, A, e)
        if refine(system, A, single, double, at, 0.0, 0.01 * min(spread, 1.0), 60) > 12:
            rows = min(m, 2 * rows)
        complete(system, at, step)

        # step
        primal = 1 / max(1.0, longest(at.s, step.s) / 0.9, longest(at.r, step.r) / 0.9)
        dual = 1 / max(1.0, longest(at.z, step.z) / 0.9, longest(at.t, step.t) / 0.9)

        # update
        advance(at, step, primal, dual)
        move(Ax, system.Adx, primal)
    return x, y, STOPPED, limit
