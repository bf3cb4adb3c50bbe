"""From near the optimum to the optimum: what is basic, its small program, the exact solution.

A row or column is basic when its pair is undecided at the optimum: a row met exactly, an entry of
x strictly inside its bounds. All here is a guess until ``certified`` confirms it.
"""

import numpy as np

from countleak.attack.solvers.kernels.bits import (
    jit,
    plain,
    scaled_row,
    select,
    times,
    transposed_times,
)
from countleak.attack.solvers.kernels.lapack import add_gram, factor_cholesky, solve_cholesky
from countleak.attack.solvers.kernels.newton import Program, dot, largest, new_pairs

# A column is settled when its odds of being basic are below one in MARGIN, and SHARE times as many
# rows are kept as columns, the likeliest ones: both tuned at n = 50 ... 1000.
MARGIN = 20.0
SHARE = 3


@plain
def bounds(program, x, y):
    """Objective at x, dual bound at y, largest residual: from x and y alone."""
    A, b, c = program.A, program.b, program.c
    Ax, Ay = np.empty(A.m), np.empty(A.n)
    times(A, x, Ax)
    transposed_times(A, y, Ay)
    upper = lower = program.constant
    worst = 0.0
    for i in range(A.m):
        size = abs(b[i] - Ax[i])
        worst = max(worst, size)
        upper += size
        lower += b[i] * y[i] - program.beta * max(abs(y[i]) - 1, 0.0)
    for j in range(A.n):
        upper += c[j] * x[j]
        lower -= max(Ay[j] - c[j], 0.0)
    return upper, lower, worst


@plain
def certified(program, bounded, x, y, tol):
    """Whether x and y, each within its bounds, prove each other optimal to the relative gap tol."""
    upper, lower, worst = bounds(program, x, y)
    return upper - lower <= tol * max(1.0, upper) and not (
        bounded and worst > program.beta * (1 + 1e-9)
    )


@jit
def lean(program, at):
    """How basic each row (m,) and column (n,) looks: theta and D, scaled so that 1 is even odds."""
    m, n = program.A.m, program.A.n
    rows, columns, size = np.empty(m), np.empty(n), 0.0
    for i in range(m):
        size += abs(at.s[n + i] - at.s[n + m + i]) / m
    size = max(size, program.size)
    for j in range(n):
        columns[j] = program.price / (at.z[j] / at.s[j] + at.t[j] / at.r[j])
    for i in range(m):
        theta = 0.0
        for k in (n + i, n + m + i):
            theta += 1 / (at.z[k] / at.s[k] + (at.t[k] / at.r[k] if at.t.size > n else 0.0))
        rows[i] = size / theta
    return rows, columns


@jit
def settle(program, at, by_row, by_column, x, y):
    """Put settled entries of x and y at their bounds; returns the basic rows and columns.

    ``by_row`` and ``by_column`` are as ``lean`` returns them.
    """
    m, n = program.A.m, program.A.n
    k = sure = likely = 0
    for j in range(n):
        k += by_column[j] >= 1
        x[j] = 1.0 if at.t[j] > at.z[j] else 0.0
    for i in range(m):
        sure += by_row[i] >= 10
        likely += by_row[i] >= 0.1
        y[i] = 1.0 if at.y[i] > 0 else -1.0
    # A vertex has as many basic rows as columns.
    met = min(max(k, sure), likely)
    rows, columns = largest(by_row, met), largest(by_column, k)
    for j in columns:
        x[j] = at.s[j]
    for i in rows:
        y[i] = at.y[i]
    return rows, columns


@jit
def snap(program, bounded, at, x, y):
    """Overwrite x, y with the optimal face the point leans to.

    Basic rows are met and basic columns priced out exactly by the least change of the others, in
    the norm of the iteration.
    """
    A, b, c = program.A, program.b, program.c
    m, n = A.m, A.n
    by_row, by_column = lean(program, at)
    rows, columns = settle(program, at, by_row, by_column, x, y)
    met, k = rows.size, columns.size
    if k == 0 or met == 0:
        return
    tall = met > k  # W, weighted and with its longer side down
    W, line = np.empty((max(k, met), min(k, met))), np.empty(n)
    for i in range(met):
        scaled_row(A, rows[i], 1.0, line)
        for j in range(k):
            if tall:
                W[i, j] = line[columns[j]] * np.sqrt(by_row[rows[i]])
            else:
                W[j, i] = line[columns[j]] * np.sqrt(by_column[columns[j]])
    S = np.zeros((W.shape[1], W.shape[1]))
    add_gram(W, W.shape[0], S)
    for j in range(S.shape[0]):
        S[j, j] *= 1 + 1e-13
    if not factor_cholesky(S):
        return
    Ax, Ay, short, long = np.empty(m), np.empty(n), np.empty(S.shape[0]), np.empty(W.shape[0])
    for _ in range(3):  # the second and third time refine the first
        times(A, x, Ax)
        transposed_times(A, y, Ay)
        unmet, unpriced = np.empty(met), np.empty(k)
        for i in range(met):
            r = at.s[n + rows[i]] - at.s[n + m + rows[i]]
            unmet[i] = b[rows[i]] - Ax[rows[i]]
            if bounded and abs(r) > program.beta / 2:
                unmet[i] -= program.beta if r > 0 else -program.beta
        for j in range(k):
            unpriced[j] = c[columns[j]] - Ay[columns[j]]
        if tall:
            for i in range(met):
                long[i] = unmet[i] * np.sqrt(by_row[rows[i]])
            least_squares(W, S, long, short)
            for j in range(k):
                x[columns[j]] += short[j]
            least_norm(W, S, unpriced, long)
            for i in range(met):
                y[rows[i]] += long[i] * np.sqrt(by_row[rows[i]])
        else:
            for j in range(k):
                long[j] = unpriced[j] * np.sqrt(by_column[columns[j]])
            least_squares(W, S, long, short)
            for i in range(met):
                y[rows[i]] += short[i]
            least_norm(W, S, unmet, long)
            for j in range(k):
                x[columns[j]] += long[j] * np.sqrt(by_column[columns[j]])
    for j in range(n):
        x[j] = min(max(x[j], 0.0), 1.0)
    for i in range(m):
        if not bounded:
            y[i] = min(max(y[i], -1.0), 1.0)


@jit
def least_squares(W, S, goal, out):
    """out = argmin |W out - goal|, S the factor of W'W."""
    out[:] = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            out[j] += W[i, j] * goal[i]
    solve_cholesky(S, out)


@jit
def least_norm(W, S, goal, out):
    """out = the smallest with W'out = goal; overwrites goal."""
    solve_cholesky(S, goal)
    for i in range(W.shape[0]):
        total = 0.0
        for j in range(W.shape[1]):
            total += W[i, j] * goal[j]
        out[i] = total


@jit
def sift(program, at, x, y, kept_rows, kept_columns):
    """The program of the rows and columns that still matter, its point, and which they are.

    All others are settled where they lean, in x and y.
    """
    A, b = program.A, program.b
    m, n = A.m, A.n
    bounded = at.t.size > n
    by_row, by_column = lean(program, at)
    for j in range(n):
        if kept_columns[j]:
            by_column[j] = 1e300
    for i in range(m):
        if kept_rows[i]:
            by_row[i] = 1e300
    k = 0
    for j in range(n):
        k += by_column[j] * MARGIN >= 1
    columns = largest(by_column, k)
    rows = largest(by_row, min(m, SHARE * k + 10) if k else 0)
    for j in range(n):
        x[j] = 1.0 if at.t[j] > at.z[j] else 0.0
    for i in range(m):
        y[i] = 1.0 if at.y[i] > 0 else -1.0
    for j in columns:
        x[j] = 0.0
    for i in rows:
        y[i] = 0.0
    Ax, Ay = np.empty(m), np.empty(n)
    times(A, x, Ax)
    transposed_times(A, y, Ay)
    constant = program.constant + dot(program.c, x)
    for i in range(m):
        constant += y[i] * (b[i] - Ax[i])

    M, N = rows.size, columns.size
    kept = select(A, rows, columns)
    small, B, C = new_pairs(M, N, bounded), np.empty(M), np.empty(N)
    for i in range(M):
        B[i] = b[rows[i]] - Ax[rows[i]]
        small.y[i] = at.y[rows[i]]
        for k, o in ((N + i, n + rows[i]), (N + M + i, n + m + rows[i])):
            small.s[k], small.z[k] = at.s[o], at.z[o]
            if bounded:
                small.r[k], small.t[k] = at.r[o], at.t[o]
    product = np.empty(N)
    transposed_times(kept, small.y, product)
    for j in range(N):
        o = columns[j]
        C[j] = program.c[o] - Ay[o]
        small.s[j], small.z[j], small.r[j], small.t[j] = at.s[o], at.z[o], at.r[o], at.t[o]
        shift = product[j] - C[j] - (small.t[j] - small.z[j])  # z - t = c - A'y, restored
        small.t[j] += max(shift, 0.0)
        small.z[j] += max(-shift, 0.0)
    return (
        Program(kept, B, C, constant, program.beta, program.price, program.size),
        small,
        rows,
        columns,
    )


@jit
def keep(program, x, y, rows, columns):
    """Mark the rows and columns that x and y show were wrongly settled; returns how many."""
    A, b, c = program.A, program.b, program.c
    Ax, Ay = np.empty(A.m), np.empty(A.n)
    times(A, x, Ax)
    transposed_times(A, y, Ay)
    count = 0
    for i in range(A.m):
        if (b[i] - Ax[i]) * y[i] < 0:
            rows[i] = True
            count += 1
    for j in range(A.n):
        if (Ay[j] - c[j]) * (x[j] - 0.5) < 0:
            columns[j] = True
            count += 1
    return count
