"""The Bayesian decoder: the probability of every bit, given all that was answered.

Bits are independent with a common prior rate; answers are rounded Gaussian (or Laplace) counts
around the truth, as ``noise`` says; suppressed and clamped ones speak too. ``inference`` samples
the posterior.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from countleak.attack.decoders import Guess, guess_from
from countleak.attack.decoders.known import known_bits
from countleak.attack.noise import Noise
from countleak.attack.posterior.evidence import gather
from countleak.attack.posterior.fit import fit
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.errors import InputError


@dataclass(frozen=True)
class Bayes:
    """Posterior probabilities under ``noise``; what it leaves open is estimated on the way.

    ``prior`` is the rate of ones, estimated unless given; ``known`` maps ids to bits known
    beforehand. Drawing takes ``seed``; ``effort`` says how long, by the size of the task if not
    given.
    """

    noise: Noise = field(default_factory=Noise)
    prior: float | None = None
    known: Mapping[int, int] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"the prior rate is {self.prior:g}; it lies between 0 and 1")

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Sample, and guess the likelier value of everyone."""
        found = self.posterior(queries, answers)
        return guess_from(
            queries.ids,
            found.probability,
            {
                "decoder": "bayes",
                "sigma": [float(s) for s in found.values.sigma],
                "offset": found.values.offset,
                "wrong_answers": found.values.wrong,
                "prior": float(found.rates[0]),
                "disagreement": found.disagreement,
            },
        )

    def posterior(self, queries: Queries, answers: Answers) -> Posterior:
        """What the samples say about the bits and the noise."""
        known, bits = known_bits(queries.ids, self.known)
        return fit(
            queries,
            answers,
            gather(queries, answers, self.noise),
            np.random.default_rng([self.seed, 5]),
            prior=self.prior,
            known=known,
            bits=bits,
            effort=self.effort,
        )
