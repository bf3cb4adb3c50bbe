"""All that methods for very many people ask of a matrix: its two products."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Products(Protocol):
    """A matrix Q (m, n) of 0 and 1, wherever its products are computed.

    Vectors may be those of any array module that answers to NumPy's functions.
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


class Centred:
    """Q - d, whose entries are 0 on average, for Q whose entries are 1 with frequency d.

    What is lost is what answers have in common, the sum of all bits times d: whoever uses this
    takes the level of the answers as unknown. Without it no direction stands out, which is what
    first-order methods and message passing need.
    """

    def __init__(self, products: Products):
        """Measure the density, with one product."""
        m, n = products.shape
        self._products, self.shape = products, (m, n)
        self.density = float(products.dot(np.ones(n)).mean()) / n
        self.variance = max(self.density * (1 - self.density), 1e-12)

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q - d) x."""
        return np.asarray(self._products.dot(x) - self.density * x.sum())

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q - d)'y."""
        return np.asarray(self._products.tdot(y) - self.density * y.sum())
