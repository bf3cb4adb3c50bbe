"""The interior point's compiled loops, bottom up: bits, lapack, newton, finish, path, centre.

All of it is compiled by Numba: half a minute the first time ever, then loaded from its cache.
"""
