"""All that methods for very many people ask of a matrix: its two products."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Products(Protocol):
    """A matrix Q (m, n) of 0 and 1, wherever its products are computed.

    Vectors are NumPy's, or those of the module that a matrix names as its ``arrays``, which must
    answer to NumPy's functions as CuPy's do.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """m and n."""
        ...

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q x (m,)."""
        ...

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q'y (n,)."""
        ...


def arrays_of(products: Products) -> Any:
    """The module whose arrays a matrix takes and gives: NumPy, unless it names another."""
    return getattr(products, "arrays", np)


def on_host(vector: Any) -> NDArray[np.float64]:
    """A vector of any module, as NumPy's."""
    return np.asarray(vector.get() if hasattr(vector, "get") else vector)


class Centred:
    """Q - d, whose entries are 0 on average, for Q whose entries are 1 with frequency d.

    What is lost is what answers have in common, the sum of all bits times d: whoever uses this
    takes the level of the answers as unknown. Without it no direction stands out, which is what
    first-order methods and message passing need.
    """

    def __init__(self, products: Products):
        """Measure the density, with one product."""
        m, n = products.shape
        self._products, self.shape, self.arrays = products, (m, n), arrays_of(products)
        self.density = float(products.dot(self.arrays.ones(n)).mean()) / n
        self.variance = max(self.density * (1 - self.density), 1e-12)

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q - d) x."""
        out: NDArray[np.float64] = self._products.dot(x) - self.density * x.sum()
        return out

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q - d)'y."""
        out: NDArray[np.float64] = self._products.tdot(y) - self.density * y.sum()
        return out
