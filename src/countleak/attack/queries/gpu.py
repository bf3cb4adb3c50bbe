"""Products of hashed rows on a GPU: the sums of ``hashing``, hundreds of times as fast.

``hashed.cu`` multiplies the words of the hash with the bit planes of a vector, which has to be of
whole numbers for that: a vector is scaled to 16 bits or, with two ``digits``, to 31, and sums are
exact from there on. An entry is off by at most ``1 / 2^16`` of the largest, or ``1 / 2^31``.
"""

import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.rows import Rows
from countleak.errors import NoResult

SOURCE = Path(__file__).with_name("hashed.cu")
# Of a digit of 16 bits, the largest; and what two digits count in.
LARGEST, RADIX = 2**15 - 1, 2**16
# As in the source: the keys that a block takes, and those of a stage; threads, bytes of a stage.
OUTER, INNER, THREADS, STAGES = 128, 64, 256, 3
# Blocks under which a product is cut along its sums too.
BLOCKS = 1024
# Entries of a matrix from which it is worth while to load CuPy.
MANY = 2**32


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


def quickest(rows: Rows) -> tuple["Rows | OnGpu", str]:
    """The products of ``rows``, and where they are computed: on the GPU if they are many hashed.

    Without a GPU that can be used, and for all other rows, on the processor.
    """
    if not isinstance(rows, HashedRows) or rows.rows.size * rows.columns.size < MANY:
        return rows, "on the processor"
    try:
        return OnGpu(rows), f"on {device()}"
    except NoGpu as why:
        return rows, f"on the processor: {why}"


@dataclass(frozen=True, eq=False)
class OnGpu:
    """The products of ``rows`` on the GPU, of vectors that are rounded to ``digits`` of 16 bits.

    They are CuPy's, or NumPy's ``on_host``, as are the products.
    """

    rows: HashedRows
    digits: int = 1
    on_host: bool = False

    def __post_init__(self) -> None:
        device()

    @property
    def arrays(self) -> Any:
        """The module whose arrays are taken and given."""
        if self.on_host:
            return np
        import cupy

        return cupy

    @property
    def shape(self) -> tuple[int, int]:
        """m and n."""
        return self.rows.shape

    @cached_property
    def _sides(self) -> tuple["_Side", "_Side"]:
        return _Side.of(self.rows.by_row, 8), _Side.of(self.rows.by_column, 4)

    def dot(self, x: Any) -> Any:
        """Q x (m,)."""
        of_rows, of_columns = self._sides
        return self._product(x, of_columns, of_rows)

    def tdot(self, y: Any) -> Any:
        """Q'y (n,)."""
        of_rows, of_columns = self._sides
        return self._product(y, of_rows, of_columns)

    def _product(self, vector: Any, inner: "_Side", outer: "_Side") -> Any:
        """For each place of the ``outer`` side, the sum of the inner values at its ones."""
        import cupy

        values = cupy.zeros(inner.keys.size * inner.share)
        # A row may have been taken twice.
        cupy.add.at(values, inner.place, cupy.asarray(vector, np.float64))
        whole, unit = _whole(values, self.digits)
        stages, tiles = inner.keys.size // INNER, outer.keys.size // OUTER
        most = -(-stages // max(1, min(stages, BLOCKS // tiles)))
        spread, product = _kernels(outer.share)
        planes = cupy.empty(inner.keys.size * outer.share * 16, np.uint32)
        sums = cupy.zeros(outer.keys.size * outer.share)
        for digit in range(self.digits):
            words = -(-planes.size // THREADS)
            part = _digit(whole, digit, self.digits)
            spread((words,), (THREADS,), (part, planes, np.uint64(planes.size)))
            out = cupy.zeros(sums.size, np.int64)
            given = (outer.keys, inner.keys, planes, out, np.int32(stages), np.int32(most))
            shared = product.max_dynamic_shared_size_bytes
            product((tiles, -(-stages // most)), (THREADS,), given, shared_mem=shared)
            sums += out * (unit * float(RADIX) ** digit)
        found = sums[outer.place]
        return found.get() if self.on_host else found


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows, or columns: the ``keys`` that a ``share`` of them have in common, and their places.

    Keys are filled up to a multiple of what a block takes; nothing is at the places of the others.
    """

    keys: Any
    place: Any
    share: int

    @classmethod
    def of(cls, sides: tuple[NDArray[np.uint32], NDArray[np.int64]], share: int) -> "_Side":
        import cupy

        keys, place = sides
        padded = np.zeros(-(-keys.size // OUTER) * OUTER, np.uint32)
        padded[: keys.size] = keys
        return cls(cupy.asarray(padded), cupy.asarray(place), share)


def _whole(values: Any, digits: int) -> tuple[Any, float]:
    """The values as whole numbers of so many digits, and the unit that they count in.

    Whole numbers that fit are taken as they are.
    """
    largest = float(abs(values).max())
    most = LARGEST * RADIX ** (digits - 1)
    nearest = np.rint(values)
    if largest <= most and bool((values == nearest).all()):
        return nearest.astype(np.int64), 1.0
    unit = largest / most
    return np.rint(values / unit).astype(np.int64), unit


def _digit(whole: Any, digit: int, digits: int) -> Any:
    """One digit, the last of them the highest; all but that lie between -2^15 and 2^15 - 1."""
    for _ in range(digit):
        whole = (whole + RADIX // 2) >> 16
    if digit < digits - 1:
        whole = ((whole + RADIX // 2) & (RADIX - 1)) - RADIX // 2
    return whole.astype(np.int16)


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
