"""A matrix of two values held as bits: products by table lookup, Gram matrix by counting.

Every matrix whose entries take two values is ``low + span * bits``; 0/1 and ±1 queries are the
cases that matter. Any other is held as float64 (``dense``) and served by the same functions.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from countleak.attack.solvers.machine import compiled
from countleak.errors import InputError

# Kernels are called from compiled code only: wrappers for Python would double their compile time.
jit = njit(
    nogil=True, fastmath=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
plain = njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)  # a NaN is seen
entry = compiled(fastmath=True)


class Matrix(NamedTuple):
    """A (m, n), as compiled code reads it; ``prepare`` builds one for many right-hand sides."""

    m: int
    n: int
    low: float
    span: float
    by_row: NDArray[Any]  # (n/8, m) uint8: bit t of [k, i] is entry (i, 8k+t); empty if dense
    by_column: NDArray[Any]  # (m/8, n) uint8: bit t of [k, j] is entry (8k+t, j); empty if dense
    dense: NDArray[Any]  # (m, n) float64; empty if bits
    gram: NDArray[Any]  # (n, n) A'A in float32, for preconditioners and starts only


@intrinsic
def _count(context, word):
    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@entry
def _transpose(rows, out):
    """Bits of out (n, m/8) = bits of rows (m, n/8) transposed, in blocks of 8 x 8.

    Ever larger off-diagonal blocks of a 64-bit word are swapped (Warren, Hacker's Delight, 7-3).
    """
    m, width = rows.shape
    for i in range(0, m, 8):
        for k in range(width):
            word = np.uint64(0)
            for t in range(min(8, m - i)):
                word |= np.uint64(rows[i + t, k]) << np.uint64(8 * t)
            for shift, mask in (
                (7, 0x00AA00AA00AA00AA),
                (14, 0x0000CCCC0000CCCC),
                (28, 0x00000000F0F0F0F0),
            ):
                swap = (word ^ (word >> np.uint64(shift))) & np.uint64(mask)
                word ^= swap ^ (swap << np.uint64(shift))
            for t in range(min(8, out.shape[0] - 8 * k)):
                out[8 * k + t, i >> 3] = (word >> np.uint64(8 * t)) & np.uint64(255)


@entry
def _count_pairs(words, low, span, m, G):
    """G = A'A from the columns' words (n, m/64), by the rows that each pair of columns shares."""
    n, width = words.shape
    ones = np.empty(n)
    for j in range(n):
        total = np.uint64(0)
        for k in range(width):
            total += _count(words[j, k])
        ones[j] = total
    for top in range(0, n, 32):  # 32 columns stay in cache while all others pass by
        for i in range(top, n):
            for j in range(top, min(top + 32, i + 1)):
                total = np.uint64(0)
                for k in range(width):
                    total += _count(words[i, k] & words[j, k])
                G[i, j] = G[j, i] = (
                    low * low * m + low * span * (ones[i] + ones[j]) + span * span * total
                )


@jit
def _lookup(B, x, out):
    """out[i] = sum of x over the bits of column i of B, whose row k covers x[8k : 8k+8].

    Eight entries have 256 partial sums, so a byte of bits costs one addition ("four Russians").
    """
    T = np.zeros((4, 256))
    out[:] = 0.0
    for k in range(0, B.shape[0], 4):
        for c in range(4):
            for t in range(8):
                j, half = 8 * (k + c) + t, 1 << t
                v = x[j] if j < x.size else 0.0
                for h in range(half):
                    T[c, half + h] = T[c, h] + v
        T0, T1, T2, T3 = T[0], T[1], T[2], T[3]
        B0, B1, B2, B3 = B[k], B[k + 1], B[k + 2], B[k + 3]
        for i in range(out.size):
            out[i] += (T0[B0[i]] + T1[B1[i]]) + (T2[B2[i]] + T3[B3[i]])


@jit
def _affine(Q, x, out):
    total = 0.0
    for j in range(x.size):
        total += x[j]
    for i in range(out.size):
        out[i] = Q.low * total + Q.span * out[i]


@jit
def times(Q, x, out):
    """out (m,) = A x."""
    if Q.dense.size:
        for i in range(Q.m):
            total = 0.0
            for j in range(Q.n):
                total += Q.dense[i, j] * x[j]
            out[i] = total
    else:
        _lookup(Q.by_row, x, out)
        if Q.low != 0.0 or Q.span != 1.0:
            _affine(Q, x, out)


@jit
def transposed_times(Q, y, out):
    """out (n,) = A'y."""
    if Q.dense.size:
        out[:] = 0.0
        for i in range(Q.m):
            for j in range(Q.n):
                out[j] += Q.dense[i, j] * y[i]
    else:
        _lookup(Q.by_column, y, out)
        if Q.low != 0.0 or Q.span != 1.0:
            _affine(Q, y, out)


@jit
def scaled_row(Q, i, scale, out):
    """out (n,) = scale * (row i of A)."""
    if Q.dense.size:
        for j in range(Q.n):
            out[j] = scale * Q.dense[i, j]
    else:
        bits, t = Q.by_column[i >> 3], i & 7
        zero, one = scale * Q.low, scale * Q.span
        for j in range(Q.n):
            out[j] = zero + one * ((bits[j] >> t) & 1)


@jit
def select(A, rows, columns):
    """The Matrix of these rows and columns of A, without its Gram matrix."""
    m, n = rows.size, columns.size
    if A.dense.size:
        by_row, by_column, dense = A.by_row, A.by_column, np.empty((m, n))
        for i in range(m):
            for j in range(n):
                dense[i, j] = A.dense[rows[i], columns[j]]
    else:
        dense = A.dense
        by_row, by_column = (
            np.zeros((4 * ((n + 31) // 32), m), np.uint8),
            np.zeros((4 * ((m + 31) // 32), n), np.uint8),
        )
        for i in range(m):
            bits, t = A.by_column[rows[i] >> 3], rows[i] & 7
            for j in range(n):
                bit = (bits[columns[j]] >> t) & 1
                by_row[j >> 3, i] |= bit << (j & 7)
                by_column[i >> 3, j] |= bit << (i & 7)
    return Matrix(m, n, A.low, A.span, by_row, by_column, dense, np.empty((0, 0), np.float32))


def prepare(A: NDArray[Any]) -> Matrix:
    """A Matrix equal to A (m, n), any real dtype; two-valued ones are packed into bits."""
    m, n = A.shape
    low, high = A.min(), A.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError("a query weighs someone by a number that is not finite; leave it out")
    gram = np.zeros((n, n), np.float32)
    none = np.empty((0, 0), np.uint8)
    two_valued = (float(high) - float(low) == 1 and A.dtype.kind in "biu") or bool(
        ((low == A) | (high == A)).all()
    )
    if not two_valued:
        dense = np.array(A, np.float64, order="C")
        return Matrix(m, n, 0.0, 1.0, none, none, dense, (dense.T @ dense).astype(np.float32))
    bits = A.view(np.uint8) if (low, high) == (0, 1) and A.itemsize == 1 else high == A
    rows = np.packbits(bits, axis=1, bitorder="little")
    columns = np.zeros((n, -(-m // 64) * 8), np.uint8)  # a multiple of four bytes, and of a word
    _transpose(rows, columns)
    span = float(high) - float(low) if high > low else 1.0
    low = float(low) - (span if high == low else 0.0)  # a constant matrix is all `high`
    _count_pairs(columns.view(np.uint64), low, span, m, gram)
    by_row = np.zeros((-(-n // 32) * 4, m), np.uint8)
    by_row[: rows.shape[1]] = rows.T
    return Matrix(m, n, low, span, by_row, np.ascontiguousarray(columns.T), np.empty((0, 0)), gram)
