"""The Bayesian decoder: the probability of every bit, given all that was answered.

Bits are independent with a common prior rate; answers are rounded Gaussian (or Laplace) counts
around the truth, as ``noise`` says; suppressed and clamped ones speak too. ``posterior`` samples
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from countleak.attack.check import check_fit
from countleak.attack.decoders.known import known_bits
from countleak.attack.guess import Guess, Sampled, bits_from
from countleak.attack.noise import Noise
from countleak.attack.posterior.evidence import Evidence, gather
from countleak.attack.posterior.fit import Known, Starts, fit_secrets
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.posterior.secret_draws import Bits
from countleak.attack.queries.ids import Id
from countleak.attack.transcript import Transcript
from countleak.errors import InputError
from countleak.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Bayes:
    """Posterior probabilities under ``noise``; what is unknown of it is estimated on the way.

    ``prior`` is the rate of ones, estimated unless given; ``known`` maps ids to bits known
    beforehand. Drawing takes ``seed``; ``effort`` says how long, by the size of the task if not
    given, and ``starts`` where from, if that was worked out before. ``name`` and ``groups``, the
    parameter by which the noise's groups differ, are for the record. Unless ``checked``, a model
    that does not fit goes unnoticed. Rounds of sampling are reported to ``progress``.
    """

    noise: Noise = field(default_factory=Noise)
    prior: float | None = None
    known: Mapping[Id, int] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0
    starts: Starts = ()
    name: str = "bayes"
    groups: str | None = None
    checked: bool = True
    progress: Progress = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        if self.prior is not None and not 0 < self.prior < 1:
            raise InputError(f"the prior rate is {self.prior:g}; it lies between 0 and 1")

    def decode(self, transcript: Transcript) -> Guess:
        """Sample, and guess the likelier value of everyone.

        Probabilities are widened, or withdrawn, as far as the model does not fit the answers.
        """
        evidence = gather(transcript, self.noise)
        posterior = self._fit(transcript, evidence)
        check = check_fit(transcript, evidence, posterior, self.seed) if self.checked else None
        doubts = [posterior.doubt, check.doubt if check else ""]
        basis = Sampled(
            decoder=self.name,
            groups=self.groups,
            known=len(self.known),
            sigma=tuple(posterior.values.sigma.tolist()),
            offset=posterior.values.offset,
            wrong_answers=posterior.values.wrong,
            prior=float(posterior.rates[0]),
            disagreement=posterior.disagreement,
            doubt="; ".join(filter(None, doubts)) or None,
            misfit=check.misfit if check else "",
        )
        probability = posterior.probability
        if check is not None:
            probability = check.applied(probability, np.isin(transcript.ids, list(self.known)))
        guess = bits_from(transcript.ids, probability, basis)
        return replace(guess, probability=None, margin=None) if basis.misfit else guess

    def posterior(self, transcript: Transcript) -> Posterior:
        """What the samples say about the bits and the noise."""
        return self._fit(transcript, gather(transcript, self.noise))

    def _fit(self, transcript: Transcript, evidence: Evidence) -> Posterior:
        return fit_secrets(
            transcript,
            evidence,
            np.random.default_rng([self.seed, 5]),
            kind=Bits(self.prior),
            known=Known(*known_bits(transcript.ids, self.known)) if self.known else None,
            effort=self.effort,
            starts=self.starts,
            progress=self.progress,
        )
