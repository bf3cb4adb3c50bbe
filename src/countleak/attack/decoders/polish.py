"""The last step to the likeliest bits: descend on the squared error, and prove where that ends.

Rounding each bit by itself need not give the whole-number vector of least squared error, which
under Gaussian noise is the likeliest. Flipping one or two bits at a time as long as the error
falls nearly always does, in under a millisecond per step. For few people a search by partial sums
(sphere decoding: Agrell, Eriksson, Vardy and Zeger 2002) proves it, or says how far a better one
could be.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.guess import Guess, Polish
from countleak.attack.programs import Dmt
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Transcript


@dataclass(frozen=True)
class Polished:
    """The guess of ``decoder``, improved by 1- and 2-bit descent on the squared error.

    Up to ``prove_up_to`` people the search continues to a proof, within ``nodes`` partial sums.
    """

    decoder: Decoder = field(default_factory=LeastSquares)
    prove_up_to: int = 60
    nodes: int = 5_000_000

    def decode(self, transcript: Transcript) -> Guess:
        """Decode, descend, prove."""
        guess = self.decoder.decode(transcript)
        problem = Dmt().problem(transcript)
        A, b = problem.A.astype(np.float64), problem.b
        x = descend(A, b, guess.values.astype(np.float64))
        relaxed = box_least_squares(NormalEquations.of(A, b))
        lower, proven = max(0.0, relaxed.squares - relaxed.gap), False
        if x.size <= self.prove_up_to and b.size >= x.size:
            # It loads Numba, which only a proof should have to wait for.
            from countleak.attack.posterior.sphere import search

            x, proven = search(A, b, x, self.nodes)
        squares = float(((b - A @ x) ** 2).sum())
        polish = Polish(
            polished_bits=int((x != guess.values).sum()),
            squares=squares,
            # The least squares over the box are a bound for whole numbers as well.
            squares_at_least=squares if proven else lower,
            optimal="proven" if proven else "not proven",
        )
        basis = replace(guess.basis, polish=polish)
        return replace(guess, values=x.astype(np.int8), basis=basis)


def descend(
    A: NDArray[np.float64], b: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bits (n,) from which no flip of one or two bits lowers the squared error."""
    G, c = A.T @ A, A.T @ b
    x = x.copy()
    upper = np.triu_indices(x.size, 1)
    while True:
        step = 1 - 2 * x
        # Flipping j changes the error by G_jj - 2 step_j (c - Gx)_j; two interact by their overlap.
        one = np.diag(G) - 2 * step * (c - G @ x)
        best = int(one.argmin())
        if one[best] < -1e-9:
            x[best] += step[best]
            continue
        two = (one[:, None] + one[None, :] + 2 * np.outer(step, step) * G)[upper]
        pair = int(two.argmin()) if two.size else -1
        if pair < 0 or two[pair] >= -1e-9:
            return x
        for j in (upper[0][pair], upper[1][pair]):
            x[j] += step[j]
