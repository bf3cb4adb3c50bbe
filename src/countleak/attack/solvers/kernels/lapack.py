"""BLAS and LAPACK inside compiled code, in the precision of the arrays they are given.

SciPy's own routines, reached by address. They are registered with LLVM under names of ours, because
a name survives in Numba's cache and an address would not. Matrices are read as Fortran reads them,
that is transposed; every one passed here is either symmetric or meant so.
"""

import llvmlite.binding
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address


def _routine(module, name, arguments):
    address = get_cython_function_address(f"scipy.linalg.cython_{module}", name)
    llvmlite.binding.add_symbol(f"countleak_{name}", address)
    return types.ExternalFunction(f"countleak_{name}", types.void(*[types.intp] * arguments))


_spotrf, _dpotrf = (_routine("lapack", p + "potrf", 5) for p in "sd")
_spotrs, _dpotrs = (_routine("lapack", p + "potrs", 8) for p in "sd")
_ssyrk, _dsyrk = (_routine("blas", p + "syrk", 10) for p in "sd")
_jit = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_jit
def factor_cholesky(G):
    """Overwrite G (n, n) with its Cholesky factor; True if G was positive definite."""
    k = np.array([ord("L"), G.shape[0], 0], np.int32)
    a = k.ctypes.data
    if G.itemsize == 4:
        _spotrf(a, a + 4, G.ctypes.data, a + 4, a + 8)
    else:
        _dpotrf(a, a + 4, G.ctypes.data, a + 4, a + 8)
    return k[2] == 0


@_jit
def solve_cholesky(C, r):
    """Overwrite r (n,) with G^-1 r, C the factor of G."""
    k = np.array([ord("L"), C.shape[0], 1, 0], np.int32)
    a = k.ctypes.data
    if C.itemsize == 4:
        _spotrs(a, a + 4, a + 8, C.ctypes.data, a + 4, r.ctypes.data, a + 4, a + 12)
    else:
        _dpotrs(a, a + 4, a + 8, C.ctypes.data, a + 4, r.ctypes.data, a + 4, a + 12)
    return k[3]  # the use keeps k, hence its address, alive during the call


@_jit
def add_gram(W, rows, G):
    """Add W'W to G (n, n), in the triangle Cholesky reads; W (rows, n)."""
    k = np.array([ord("L"), ord("N"), G.shape[0], rows], np.int32)
    one = np.ones(1, G.dtype)
    a, c = k.ctypes.data, one.ctypes.data
    if G.itemsize == 4:
        _ssyrk(a, a + 4, a + 8, a + 12, c, W.ctypes.data, a + 8, c, G.ctypes.data, a + 8)
    else:
        _dsyrk(a, a + 4, a + 8, a + 12, c, W.ctypes.data, a + 8, c, G.ctypes.data, a + 8)
    return k[3] * one[0]
