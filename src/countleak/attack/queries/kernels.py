"""Products with matrices of bits, compiled: bits stored eight to a byte, or made by a hash.

Eight entries of a vector have 256 partial sums, so that a byte of bits costs one addition (the
method of four Russians). Sums are taken in double precision and in an order that depends neither
on the number of threads nor on who else is asked about.

A hashed word holds 8 rows by 4 columns: bit 8 j + c is row c of column j. All of it is arithmetic
modulo 2^32 with multipliers below 2^31, so that SQL computes the same in signed 64 bits.
"""

import numpy as np
from numba import njit

from countleak.attack.queries.hashing import FIRST, MIXED_AGAIN
from countleak.attack.solvers.machine import compiled

jit = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
entry = compiled()

# Rows or columns whose sums stay in the fastest cache, and tables that are read for each.
BLOCK, TABLES = 2048, 4


@jit
def _word(row_key, column_key):
    h = np.uint32(row_key ^ column_key)
    h = np.uint32(h * np.uint32(FIRST))
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(MIXED_AGAIN))
    return np.uint32(h ^ (h >> np.uint32(16)))


@jit
def _transposed(word):
    """An 8 x 8 matrix of bits transposed (Warren, Hacker's Delight, 7-3)."""
    swap = (word ^ (word >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    word ^= swap ^ (swap << np.uint64(7))
    swap = (word ^ (word >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    word ^= swap ^ (swap << np.uint64(14))
    swap = (word ^ (word >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return word ^ (swap ^ (swap << np.uint64(28)))


@jit
def _sums(x, table):
    """table (256,) = the sum of x (8,) over the bits of each byte."""
    table[0] = 0.0
    for t in range(8):
        half, v = 1 << t, x[t]
        for h in range(half):
            table[half + h] = table[h] + v


@jit
def _byte(word, t):
    return (word >> np.uint64(8 * t)) & np.uint64(255)


@entry
def hashed_times(row_keys, column_keys, x, out, first, last):
    """out[first:last] (., 8) = the rows of those keys times x (k, 4); k is a multiple of 8."""
    step = BLOCK // 8
    T = np.empty((TABLES, 256))
    W = np.empty((TABLES, step), np.uint64)
    for top in range(first, last, step):
        here = min(step, last - top)
        out[top : top + here] = 0.0
        for q in range(0, column_keys.size, 2 * TABLES):
            for p in range(TABLES):
                _sums(x[q + 2 * p : q + 2 * p + 2].ravel(), T[p])
                left, right, words = column_keys[q + 2 * p], column_keys[q + 2 * p + 1], W[p]
                for g in range(here):
                    key = row_keys[top + g]
                    low, high = np.uint64(_word(key, left)), np.uint64(_word(key, right))
                    words[g] = _transposed(low | (high << np.uint64(32)))
            T0, T1, T2, T3 = T[0], T[1], T[2], T[3]
            for g in range(here):
                a, b, c, d = W[0, g], W[1, g], W[2, g], W[3, g]
                for t in range(8):
                    out[top + g, t] += (T0[_byte(a, t)] + T1[_byte(b, t)]) + (
                        T2[_byte(c, t)] + T3[_byte(d, t)]
                    )


@entry
def hashed_transposed_times(row_keys, column_keys, y, out, first, last):
    """out[first:last] (., 4) = the columns of those keys times y (g, 8); g is a multiple of 4."""
    step = BLOCK // 4
    T = np.empty((TABLES, 256))
    W = np.empty((TABLES, step), np.uint32)
    for top in range(first, last, step):
        here = min(step, last - top)
        out[top : top + here] = 0.0
        for g in range(0, row_keys.size, TABLES):
            for p in range(TABLES):
                _sums(y[g + p], T[p])
                key, words = row_keys[g + p], W[p]
                for k in range(here):
                    words[k] = _word(key, column_keys[top + k])
            T0, T1, T2, T3 = T[0], T[1], T[2], T[3]
            for k in range(here):
                a, b = np.uint64(W[0, k]), np.uint64(W[1, k])
                c, d = np.uint64(W[2, k]), np.uint64(W[3, k])
                for t in range(4):
                    out[top + k, t] += (T0[_byte(a, t)] + T1[_byte(b, t)]) + (
                        T2[_byte(c, t)] + T3[_byte(d, t)]
                    )


@entry
def packed_times(bits, x, out, first, last):
    """out[first:last] = rows of bits (m, w) times x (8 w,); w is a multiple of 8."""
    T = np.empty((8, 256))
    for top in range(first, last, BLOCK):
        here = min(BLOCK, last - top)
        out[top : top + here] = 0.0
        for k in range(0, bits.shape[1], 8):
            for p in range(8):
                _sums(x[8 * (k + p) : 8 * (k + p) + 8], T[p])
            T0, T1, T2, T3 = T[0], T[1], T[2], T[3]
            T4, T5, T6, T7 = T[4], T[5], T[6], T[7]
            for i in range(top, top + here):
                out[i] += (
                    (T0[bits[i, k]] + T1[bits[i, k + 1]])
                    + (T2[bits[i, k + 2]] + T3[bits[i, k + 3]])
                ) + (
                    (T4[bits[i, k + 4]] + T5[bits[i, k + 5]])
                    + (T6[bits[i, k + 6]] + T7[bits[i, k + 7]])
                )


@jit
def _columns(bits, i, top, words):
    """words[k], byte by byte = the columns of byte top + k in the eight rows from i on."""
    if i + 8 > bits.shape[0]:
        words[:] = 0
        for t in range(bits.shape[0] - i):
            for k in range(words.size):
                words[k] |= np.uint64(bits[i + t, top + k]) << np.uint64(8 * t)
    else:
        a, b, c, d = bits[i], bits[i + 1], bits[i + 2], bits[i + 3]
        e, f, g, h = bits[i + 4], bits[i + 5], bits[i + 6], bits[i + 7]
        for k in range(words.size):
            at = top + k
            low = (
                np.uint32(a[at])
                | np.uint32(b[at]) << np.uint32(8)
                | np.uint32(c[at]) << np.uint32(16)
                | np.uint32(d[at]) << np.uint32(24)
            )
            high = (
                np.uint32(e[at])
                | np.uint32(f[at]) << np.uint32(8)
                | np.uint32(g[at]) << np.uint32(16)
                | np.uint32(h[at]) << np.uint32(24)
            )
            words[k] = np.uint64(np.uint32(low)) | (np.uint64(np.uint32(high)) << np.uint64(32))
    for k in range(words.size):
        words[k] = _transposed(words[k])


@entry
def packed_transposed_times(bits, y, out, first, last):
    """out[8 first : 8 last] = the columns in those bytes of bits (m, w) times y, m or longer.

    The length of y is a multiple of 32, 0 beyond m.
    """
    step = BLOCK // 8
    m = bits.shape[0]
    T = np.empty((TABLES, 256))
    W = np.empty((TABLES, step), np.uint64)
    for top in range(first, last, step):
        here = min(step, last - top)
        out[8 * top : 8 * (top + here)] = 0.0
        for i in range(0, m, 8 * TABLES):
            for p in range(TABLES):
                _sums(y[i + 8 * p : i + 8 * p + 8], T[p])
                _columns(bits, i + 8 * p, top, W[p, :here])
            T0, T1, T2, T3 = T[0], T[1], T[2], T[3]
            for k in range(here):
                a, b, c, d = W[0, k], W[1, k], W[2, k], W[3, k]
                for t in range(8):
                    out[8 * (top + k) + t] += (T0[_byte(a, t)] + T1[_byte(b, t)]) + (
                        T2[_byte(c, t)] + T3[_byte(d, t)]
                    )


@entry
def hashed_bits(row_keys, parts, column_keys, places, out):
    """out (m, n) = the bit of row i and column j, 0 or 1."""
    for i in range(row_keys.size):
        for j in range(column_keys.size):
            word = _word(row_keys[i], column_keys[j])
            out[i, j] = (word >> np.uint32(8 * places[j] + parts[i])) & np.uint32(1)
