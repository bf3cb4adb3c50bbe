"""One ladder of the sampler: replicas of a state at rising temperatures that exchange places.

Parallel tempering (Swendsen and Wang 1986; Geyer 1991): the likelihood is raised to beta <= 1, so
that the coldest replica, at beta = 1, is carried over the barriers at which a single chain freezes.
The spacing adapts during the first rounds until neighbours exchange equally often (Miasojedow,
Moulines and Vihola 2013). Among many people neighbours must be too close to reach far, so a ladder
that starts at random bits is cooled down slowly instead (Kirkpatrick, Gelatt and Vecchi 1983).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Values, mean_values
from countleak.attack.posterior.replicas import Replica, log_prior
from countleak.attack.posterior.secret_draws import Kind

# Neighbours should exchange about this often.
EXCHANGE_RATE = 0.35
# Cooling begins at this inverse temperature and takes this share of the rounds to settle.
HOT, COOLING = 0.02, 0.8
# Samples of a ladder that are handed over whole.
SAMPLES = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """Bits (n,), what each adds to a count, and values of the noise, drawn together."""

    x: NDArray[np.int64]
    counted: NDArray[np.float64]
    values: Values


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the kept samples of one ladder say.

    ``probability`` (n,) of a one; mean ``values`` of the noise and ``rates`` of the secrets;
    ``residuals`` (lines, width), how often each cell of the table was met; the offsets' deviations
    (p,); ``likelihood``, the mean log-likelihood with the prior of offsets, and ``entropy`` of the
    bits, both in nats; the chance of there being an error per person; and a few ``samples``.
    """

    probability: NDArray[np.float64]
    values: Values
    rates: NDArray[np.float64]
    residuals: NDArray[np.float64]
    offset_sd: NDArray[np.float64]
    likelihood: float
    entropy: float
    per_person_chance: float = 0.0
    samples: tuple[Sample, ...] = ()


class Ladder:
    """Replicas, coldest first, that settle for some rounds and are then sampled."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        kind: Kind,
        rng: np.random.Generator,
        table: tuple[int, int],
        cooled: bool,
    ):
        """``table`` is the shape of the evidence's; those ``cooled`` start hot."""
        self.replicas, self.kind, self.rng, self.cooled = list(replicas), kind, rng, cooled
        self.table = table
        self.gaps = np.full(len(self.replicas) - 1, 0.2)
        self.rounds = 0

    def settle(self, rounds: int, unused: NDArray[np.float64]) -> None:
        """Rounds that are not kept, during which the temperatures adapt."""
        for k in range(rounds):
            cooled = min(1.0, k / (COOLING * rounds)) if self.cooled else 1.0
            exchanged = self._advance(HOT ** (1 - cooled), unused, unused)
            pace = 6.0 / (k + 12) ** 0.7
            for c, taken in exchanged:
                step = np.exp(pace * (taken - EXCHANGE_RATE))
                self.gaps[c] = np.clip(self.gaps[c] * step, 0.02, 0.5)

    def keep(self, rounds: int, unused: NDArray[np.float64]) -> Outcome:
        """What as many further rounds say."""
        total, met = np.zeros(unused.size), np.zeros(self.table)
        draws: list[Values] = []
        shares: list[NDArray[np.float64]] = []
        likelihoods: list[float] = []
        samples: list[Sample] = []
        for k in range(rounds):
            self._advance(1.0, total, unused)
            coldest = self.replicas[0]
            draws.append(coldest.values)
            shares.append(coldest.rates)
            coldest.count_into(met)
            likelihoods.append(coldest.likelihood + log_prior(coldest.values))
            if (k + 1) % max(rounds // SAMPLES, 1) == 0:
                samples.append(Sample(coldest.bits.copy(), coldest.counted.copy(), coldest.values))
        offsets = np.array([v.offsets for v in draws])
        per_person = np.array([v.has_errors_per_person for v in draws])
        p = total / rounds
        return Outcome(
            p,
            mean_values(draws),
            np.mean(shares, axis=0),
            met / rounds,
            offsets.std(axis=0),
            float(np.mean(likelihoods)),
            self.kind.entropy(p),
            float(np.mean(per_person)),
            tuple(samples),
        )

    def _advance(
        self, heat: float, total: NDArray[np.float64], unused: NDArray[np.float64]
    ) -> list[tuple[int, bool]]:
        """One round of every replica; which neighbours were tried, and whether they exchanged."""
        betas = heat * np.exp(-np.concatenate([[0.0], np.cumsum(self.gaps)]))
        for at, (replica, beta) in enumerate(zip(self.replicas, betas, strict=True)):
            replica.advance(float(beta), self.rng, unused if at else total)
        tried = []
        for c in range(self.rounds % 2, len(self.replicas) - 1, 2):
            colder, hotter = self.replicas[c], self.replicas[c + 1]
            gain = (betas[c] - betas[c + 1]) * (hotter.likelihood - colder.likelihood)
            taken = bool(np.log(self.rng.random()) < gain)
            if taken:
                self.replicas[c], self.replicas[c + 1] = hotter, colder
            tried.append((c, taken))
        self.rounds += 1
        return tried
