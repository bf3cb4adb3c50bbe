"""Message passing as a decoder: a probability for each of very many people, from products alone.

The law of the noise is what is stated of it, or the likeliest of those that ``channels`` knows by
the residuals of a first pass. Where messages do not settle nothing is made up: the guess is that of
least squares then, without probabilities.
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from countleak.attack.guess import Guess, Passing, bits_from
from countleak.attack.noise import Noise, Shape
from countleak.attack.queries.gpu import OnGpu, quickest
from countleak.attack.readings import base_of
from countleak.attack.rules import Rules
from countleak.attack.solvers.amp import MessagePassing, Passed
from countleak.attack.solvers.box import BoxSquares
from countleak.attack.solvers.channels import Channel, Laplace, Mixed, Normal, Rounded
from countleak.attack.solvers.products import Products, arrays_of, on_host
from countleak.attack.transcript import Transcript
from countleak.errors import InputError
from countleak.progress import Progress, silent

# Rounding to so small a share of the residuals' SD is as good as none.
FINE = 0.5
# Parameters that laws have, beyond one.
MORE = {"normal": 0, "Laplace": 0, "mixed": 2}


@dataclass(frozen=True)
class Messages:
    """Message passing over all released answers; those that were suppressed are left out.

    ``prior`` is the rate of ones, estimated unless given; what ``rules`` state of the noise is used
    as it is.
    """

    prior: float | None = None
    rules: Rules = field(default_factory=Rules)
    progress: Progress = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"the prior rate is {self.prior:g}; it lies between 0 and 1")

    def decode(self, transcript: Transcript) -> Guess:
        """Pass messages, and guess the likelier value of everyone."""
        released = transcript.where(transcript.released)
        products, computed = quickest(released.queries.rows)
        passed = self._passed(products, released.b)
        basis = Passing(
            decoder="messages",
            law=passed.channel.name,
            sigma=passed.channel.sigma,
            prior=passed.rate,
            density=passed.density,
            tau=passed.tau,
            rounds=passed.rounds,
            computed=computed,
            misfit=passed.doubt,
            noise=noise_of(passed.channel),
        )
        if passed.settled:
            return bits_from(transcript.ids, on_host(passed.probability), basis)
        b = arrays_of(products).asarray(released.b)
        x = on_host(BoxSquares(1e-3, 300, rough=True).solve(products, b).x)
        everyone = np.ones(x.size, np.bool_)
        values = (x >= 0.5).astype(np.int8)
        return Guess(transcript.ids, values, everyone, basis, margin=2 * np.abs(x - 0.5))

    def _passed(self, products: Products, b: NDArray[np.float64]) -> Passed:
        """The messages under the law that is stated, or the likeliest."""
        stated = stated_channel(self.rules)
        first = self._solved(products, b, stated or Normal())
        if stated is not None:
            return first
        channel = likeliest(replace(first, residuals=on_host(first.residuals)), base_of(b))
        if channel.name == "normal":
            return first
        second = self._solved(products, b, channel)
        return second if second.settled or not first.settled else first

    def _solved(self, products: Products, b: NDArray[np.float64], channel: Channel) -> Passed:
        if isinstance(products, OnGpu):
            # Of all laws the normal one alone gets by without SciPy's functions.
            products = replace(products, on_host=not isinstance(channel, Normal))
        solver = MessagePassing(channel, self.prior, progress=self.progress)
        return solver.solve(products, arrays_of(products).asarray(b))


def stated_channel(rules: Rules) -> Channel | None:
    """The channel of a law that is stated; None where none is."""
    variance = None if rules.sigma is None else rules.sigma**2
    match rules.shape:
        case Shape.GAUSSIAN:
            return Normal() if variance is None else Normal(variance, stated=True)
        case Shape.LAPLACE:
            return Laplace() if variance is None else Laplace(variance, stated=True)
        case Shape.UNIFORM if rules.bound is not None:
            return Rounded(int(2 * rules.bound + 1))
        case Shape.EXACT if rules.base is not None:
            return Rounded(2 * rules.base if rules.random_rounding else rules.base)
    return None


def likeliest(passed: Passed, base: int) -> Channel:
    """The law that the residuals of a first pass speak for, answers being multiples of ``base``."""
    e, V = passed.residuals - passed.residuals.mean(), passed.blur
    if base > max(FINE * sqrt(max(float((e * e).mean()) - V, 0.0)), 1):
        # Where steps are wide, what rounding does is no noise that is independent of the counts,
        # and residuals of a first pass, which took it for that, are no judge.
        return Rounded(base)
    candidates: list[Channel] = [Normal(), Laplace(), Mixed()]
    fitted = [channel.fitted(e, V) for channel in candidates]
    merit = [
        e.size * channel.log_likelihood(e, V) - MORE[channel.name] * log(e.size) / 2
        for channel in fitted
    ]
    best = int(np.argmax(merit))
    # The simplest law unless another is clearly likelier.
    return candidates[best] if merit[best] > merit[0] + log(e.size) else candidates[0]


def noise_of(channel: Channel) -> Noise:
    """The law as other parts of countleak know it."""
    if isinstance(channel, Laplace):
        return Noise(channel.sigma, shape=Shape.LAPLACE)
    if isinstance(channel, Rounded) and channel.variance < channel.base**2 / 12:
        return Noise(shape=Shape.EXACT, base=channel.base)
    return Noise(channel.sigma)
