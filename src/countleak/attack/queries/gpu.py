"""Products of hashed rows on a GPU: the sums of ``hashing``, hundreds of times as fast.

``hashed.cu`` multiplies the words of the hash with the bit planes of a vector, which has to be of
whole numbers for that: a vector is scaled to 16 bits or, with two ``digits``, to 31, and sums are
exact from there on. An entry is off by at most ``1 / 2^16`` of the largest, or ``1 / 2^31``.
"""

import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.hashing import HashedRows
from countleak.errors import NoResult

SOURCE = Path(__file__).with_name("hashed.cu")
# Of a digit of 16 bits, the largest; and what two digits count in.
LARGEST, RADIX = 2**15 - 1, 2**16
# As in the source: the keys that a block takes, and those of a stage; threads, bytes of a stage.
OUTER, INNER, THREADS, STAGES = 128, 64, 256, 3
# Blocks under which a product is cut along its sums too.
BLOCKS = 1024


class NoGpu(NoResult):
    """There is no GPU that can be used, and why."""


def device() -> str:
    """The name of the GPU that products are computed on; raises NoGpu."""
    try:
        import cupy
    except ImportError:
        raise NoGpu("CuPy is not installed; install countleak with the extra `gpu`") from None
    try:
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoGpu(f"CuPy finds no GPU ({error})") from None
    if int(cupy.cuda.Device().compute_capability) < 80:
        raise NoGpu(f"{name} has no binary tensor cores; compute capability 8.0 is needed")
    return str(name)


@dataclass(frozen=True, eq=False)
class OnGpu:
    """The products of ``rows`` on the GPU, of vectors that are rounded to ``digits`` of 16 bits."""

    rows: HashedRows
    digits: int = 1
    _keys: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        device()

    @property
    def shape(self) -> tuple[int, int]:
        """m and n."""
        return self.rows.shape

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q x (m,)."""
        (by_row, row_at), (by_column, column_at) = self.rows.by_row, self.rows.by_column
        values = np.zeros(4 * by_column.size)
        values[column_at] = x
        return self._product("row", by_row, "column", by_column, values, 8)[row_at]

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q'y (n,)."""
        (by_row, row_at), (by_column, column_at) = self.rows.by_row, self.rows.by_column
        # A row may have been taken twice.
        values = np.bincount(row_at, y, minlength=8 * by_row.size)
        return self._product("column", by_column, "row", by_row, values, 4)[column_at]

    def _product(
        self,
        out_side: str,
        out_keys: NDArray[np.uint32],
        in_side: str,
        in_keys: NDArray[np.uint32],
        values: NDArray[np.float64],
        slots: int,
    ) -> NDArray[np.float64]:
        """The sums for ``slots`` outputs per key, of the values at the other side's keys."""
        import cupy

        outer, inner = self._on_device(out_side, out_keys), self._on_device(in_side, in_keys)
        per_key = values.size // in_keys.size
        whole, unit = _whole(values, self.digits)
        sums = np.zeros(out_keys.size * slots)
        stages = inner.size // INNER
        tiles = outer.size // OUTER
        cuts = max(1, min(stages, BLOCKS // tiles))
        most = -(-stages // cuts)
        for digit in range(self.digits):
            part = cupy.zeros(inner.size * per_key, cupy.int16)
            part[: values.size] = cupy.asarray(_digit(whole, digit, self.digits))
            planes = cupy.empty(inner.size * slots * 16, cupy.uint32)
            spread, product = _kernels(slots)
            words = planes.size
            spread((-(-words // THREADS),), (THREADS,), (part, planes, np.uint64(words)))
            out = cupy.zeros(outer.size * slots, cupy.int64)
            grid = (tiles, -(-stages // most))
            given = (outer, inner, planes, out, np.int32(stages), np.int32(most))
            product(grid, (THREADS,), given, shared_mem=product.max_dynamic_shared_size_bytes)
            sums += out[: sums.size].get() * (unit * float(RADIX) ** digit)
        return sums

    def _on_device(self, side: str, keys: NDArray[np.uint32]) -> Any:
        """The keys of a side, and any others up to a multiple of what a block takes."""
        import cupy

        if side not in self._keys:
            padded = np.zeros(-(-keys.size // OUTER) * OUTER, np.uint32)
            padded[: keys.size] = keys
            self._keys[side] = cupy.asarray(padded)
        return self._keys[side]


def _whole(values: NDArray[np.float64], digits: int) -> tuple[NDArray[np.int64], float]:
    """The values as whole numbers of so many digits, and the unit that they count in.

    Whole numbers that fit are taken as they are.
    """
    largest = float(np.abs(values).max(initial=0.0))
    most = LARGEST * RADIX ** (digits - 1)
    if largest <= most and np.array_equal(values, np.rint(values)):
        return values.astype(np.int64), 1.0
    unit = largest / most
    return np.rint(values / unit).astype(np.int64), unit


def _digit(whole: NDArray[np.int64], digit: int, digits: int) -> NDArray[np.int16]:
    """One digit, the last of them the highest; all but that lie between -2^15 and 2^15 - 1."""
    for _ in range(digit):
        whole = (whole + RADIX // 2) >> 16
    if digit == digits - 1:
        return whole.astype(np.int16)
    return (((whole + RADIX // 2) & (RADIX - 1)) - RADIX // 2).astype(np.int16)


@cache
def _kernels(slots: int) -> tuple[Any, Any]:
    """``spread`` and ``product`` for so many outputs per key, compiled for this GPU."""
    import cupy
    from cupy_backends.cuda.libs import nvrtc

    chip = cupy.cuda.Device().compute_capability
    # Names with an `a` have what one chip alone can do; CuPy's own compiler call leaves it out.
    options = [f"-DSLOTS={slots}", "-std=c++17", f"-arch=sm_{chip}"]
    if chip == "90":
        options = [*options[:-1], "-arch=sm_90a", "-DWARPGROUP"]
    program = nvrtc.createProgram(SOURCE.read_text(), SOURCE.name, [], [])
    nvrtc.compileProgram(program, options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        binary.write(nvrtc.getCUBIN(program))
        binary.flush()
        module = cupy.RawModule(path=binary.name)
        product, spread = module.get_function("product"), module.get_function("spread")
    product.max_dynamic_shared_size_bytes = slots * 16 * 32 * (INNER // 8) * STAGES
    return spread, product
