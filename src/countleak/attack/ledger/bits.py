"""Compiled loops over rows of bits, and elimination modulo a prime.

Rows are (m, words) of 64 bits, the first cell lowest. Residues are below ``p``, a prime of 31 bits,
so that a product fits into 62 bits and the sum of four into 64.
"""

import numpy as np

from countleak.attack.solvers.machine import compiled

# Words of each row that are compared at once: those of all rows stay in the cache.
AT_ONCE = 512


@compiled()
def common(rows):
    """How many cells each pair of rows has in common, (m, m)."""
    m, words = rows.shape
    counts = np.zeros((m, m), np.int64)
    for start in range(0, words, AT_ONCE):
        end = min(start + AT_ONCE, words)
        for i in range(m):
            for j in range(i + 1):
                total = np.uint64(0)
                for k in range(start, end):
                    x = rows[i, k] & rows[j, k]
                    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
                    x = (x & np.uint64(0x3333333333333333)) + (
                        (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
                    )
                    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                    total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
                counts[i, j] += np.int64(total)
    for i in range(m):
        for j in range(i):
            counts[j, i] = counts[i, j]
    return counts


@compiled()
def sums_by_row(rows, weights, p):
    """The weights (n,) of each row's cells, added up modulo ``p``, (m,)."""
    sums = np.zeros(rows.shape[0], np.uint64)
    for i in range(rows.shape[0]):
        total = np.uint64(0)
        for cell in range(weights.size):
            bit = (rows[i, cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1)
            total += bit * weights[cell]
        sums[i] = total % p
    return sums


@compiled()
def sums_by_cell(rows, weights, p):
    """The weights (m,) of the rows that each cell is in, added up modulo ``p``, (64 words,)."""
    m, words = rows.shape
    sums = np.zeros(64 * words, np.uint64)
    for word in range(words):
        totals = np.zeros(64, np.uint64)
        for i in range(m):
            x, weight = rows[i, word], weights[i]
            if x and weight:
                for bit in range(64):
                    totals[bit] += ((x >> np.uint64(bit)) & np.uint64(1)) * weight
        for bit in range(64):
            sums[64 * word + bit] = totals[bit] % p
    return sums


@compiled()
def power(x, exponent, p):
    """``x`` to the power of ``exponent``, modulo ``p``."""
    result, base = np.uint64(1), x
    while exponent > np.uint64(0):
        if exponent & np.uint64(1):
            result = result * base % p
        base = base * base % p
        exponent >>= np.uint64(1)
    return result


@compiled()
def add_multiple(row, factor, other, end, p, inverse):
    """Add ``factor`` times ``other`` to ``row`` up to ``end``, modulo ``p``, by Montgomery.

    ``factor`` is given as its 2^32-fold, and ``inverse`` is that of -p modulo 2^32.
    """
    half = np.uint64(0xFFFFFFFF)
    for j in range(end):
        product = factor * other[j]
        product += (((product & half) * inverse) & half) * p
        total = row[j] + (product >> np.uint64(32))
        total = total - p if total >= p else total
        row[j] = total - p if total >= p else total


@compiled()
def negative_inverse(p):
    """The inverse of -p modulo 2^32, for an odd p."""
    x = p
    for _ in range(5):
        x = (x * (np.uint64(2) - p * x)) & np.uint64(0xFFFFFFFF)
    return (np.uint64(1) << np.uint64(32)) - x


@compiled()
def eliminate(matrix, p):
    """Turn a symmetric matrix into L D L' in place, in order; False if ``p`` is no use for it.

    Its lower triangle then holds L below the diagonal and D on it. Rows that depend on earlier ones
    have 0 in D, and must leave nothing: if one does, ``p`` divides what it should not.
    """
    m = matrix.shape[0]
    column, montgomery = np.zeros(m, np.uint64), negative_inverse(p)
    for k in range(m):
        pivot = matrix[k, k]
        if pivot == 0:
            for i in range(k + 1, m):
                if matrix[i, k] != 0:
                    return False
            continue
        inverse = power(pivot, p - np.uint64(2), p)
        for i in range(k + 1, m):
            # Negative, so that what follows is a sum.
            column[i] = (p - matrix[i, k]) % p
        for i in range(k + 1, m):
            if matrix[i, k] != 0:
                factor = matrix[i, k] * inverse % p
                matrix[i, k] = factor
                lifted = (factor << np.uint64(32)) % p
                add_multiple(matrix[i, k + 1 :], lifted, column[k + 1 :], i - k, p, montgomery)
    return True


@compiled()
def forward(matrix, right, p):
    """Replace ``right`` (m, c) by the inverse of L times it; rows that depend on others are 0."""
    m, c = right.shape
    montgomery = negative_inverse(p)
    for i in range(m):
        if matrix[i, i] == 0:
            right[i] = 0
            continue
        for k in range(i):
            if matrix[i, k] != 0 and matrix[k, k] != 0:
                lifted = ((p - matrix[i, k]) << np.uint64(32)) % p
                add_multiple(right[i], lifted, right[k], c, p, montgomery)


@compiled()
def backward(matrix, right, p):
    """Replace ``right`` (m, c) by the inverse of D L' times it, after ``forward``."""
    m, c = right.shape
    montgomery = negative_inverse(p)
    for i in range(m):
        if matrix[i, i] != 0:
            inverse = power(matrix[i, i], p - np.uint64(2), p)
            for j in range(c):
                right[i, j] = right[i, j] * inverse % p
    for i in range(m - 1, -1, -1):
        for k in range(i):
            if matrix[k, k] != 0 and matrix[i, i] != 0 and matrix[i, k] != 0:
                lifted = ((p - matrix[i, k]) << np.uint64(32)) % p
                add_multiple(right[k], lifted, right[i], c, p, montgomery)


@compiled()
def refine(labels, words):
    """New labels (n,) that tell apart whoever differs in label or word, and who is first of each.

    A table of open addresses, at most half full, holds the first of every pair.
    """
    n = labels.size
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    new, first = np.empty(n, np.int32), np.empty(n, np.int32)
    found = 0
    for i in range(n):
        x = words[i] * np.uint64(0x9E3779B97F4A7C15) + np.uint64(labels[i])
        x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        place = (x ^ (x >> np.uint64(32))) & mask
        while True:
            other = table[place]
            if other < 0:
                table[place] = i
                new[i] = found
                first[found] = i
                found += 1
                break
            if labels[other] == labels[i] and words[other] == words[i]:
                new[i] = new[other]
                break
            place = (place + np.uint64(1)) & mask
    return new, first[:found].copy()
