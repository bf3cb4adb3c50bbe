"""The robust decoder: the Bayesian one, for answers that are not all alike.

Some answers may have nothing to do with their counts, all may be off by a constant, and groups of
queries, told apart by a parameter such as the exponent of a digit query, may carry noise of their
own. How many, how much and how large is estimated from the answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.guess import Guess
from countleak.attack.noise import UNKNOWN, Noise, Shape, Suppression
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries import Queries
from countleak.attack.queries.ids import Id
from countleak.attack.transcript import Transcript
from countleak.progress import Progress, silent


@dataclass(frozen=True)
class Robust:
    """Posterior probabilities with gross errors, an offset and a sigma per group.

    ``by`` names the parameter of the queries whose values are the groups, if there is one.
    """

    by: str | None = None
    shape: Shape = Shape.GAUSSIAN
    floor: float | None = None
    threshold: Suppression | None = None
    prior: float | None = None
    known: Mapping[Id, int] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0
    progress: Progress = field(default=silent, repr=False, compare=False)

    def decode(self, transcript: Transcript) -> Guess:
        """Sample, and guess the likelier value of everyone."""
        return self.bayes(transcript.queries).decode(transcript)

    def bayes(self, queries: Queries) -> Bayes:
        """The Bayesian decoder of these assumptions, for these queries."""
        groups = None if self.by is None else queries.groups_by(self.by)
        noise = Noise(
            UNKNOWN,
            UNKNOWN,
            UNKNOWN,
            groups,
            self.shape,
            self.floor,
            threshold=self.threshold,
        )
        return Bayes(
            noise,
            self.prior,
            self.known,
            self.effort,
            self.seed,
            name="robust",
            groups=self.by,
            progress=self.progress,
        )
