"""The categorical decoder: one value of several for everyone, all values at once.

A loan's status is A, B, C or D, and a system that counts may be asked about each. Decoded one by
one, a person may end up with two values or with none. Decoded together every answer about one
value speaks about the others too, since each person has exactly one: the posterior is over values,
not bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders.known import known_values
from countleak.attack.diagnosis import lowest_answer
from countleak.attack.guess import Guess, Sampled, names_from
from countleak.attack.noise import Noise, Threshold
from countleak.attack.posterior.evidence import are_whole, gather, no_evidence, stack
from countleak.attack.posterior.fit import Known, fit_values
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries.ids import Id
from countleak.attack.transcript import Transcript
from countleak.errors import InputError


@dataclass(frozen=True)
class Categorical:
    """Posterior probabilities of all values together.

    ``noise`` is that of every answer; unless given, its size is estimated, a floor that answers
    pile up at is believed, and where any was suppressed the threshold is Diffix's. ``rates`` are
    the shares of the values, estimated unless given; ``known`` maps ids to values known
    beforehand. Drawing takes ``seed``; ``effort`` says how long, by the size of the task if not
    given.
    """

    noise: Noise | None = None
    rates: Mapping[str, float] | None = None
    known: Mapping[Id, str] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0

    def decode(self, transcript: Transcript) -> Guess:
        """Guess everyone's value from the answers about each."""
        names, ids = transcript.names, transcript.ids
        if len(names) < 2:
            raise InputError(f"{len(names)} values; the secret must be one of two or more")
        parts = transcript.by_value()
        noise = self.noise or assumed_noise(transcript)
        whole = are_whole(transcript.b)
        evidence = stack(
            [
                no_evidence(ids.size, noise, whole)
                if part is None or _says_nothing(part, noise)
                else gather(part, noise, whole=whole)
                for part in parts.values()
            ]
        )
        if not evidence.said.size:
            raise InputError("no answer was released and the threshold is not known; give one")
        posterior = fit_values(
            list(parts.values()),
            evidence,
            np.random.default_rng([self.seed, 4]),
            rates=self._rates(names),
            known=self._known(ids, names),
            effort=self.effort,
        )
        probability = posterior.probability.reshape(len(names), -1).T
        basis = Sampled(
            decoder="categorical",
            known=len(self.known),
            answers={name: len(part) for name, part in parts.items() if part is not None},
            sigma=tuple(posterior.values.sigma.tolist()),
            offset=posterior.values.offset,
            rates=dict(zip(names, posterior.rates.tolist(), strict=True)),
            disagreement=posterior.disagreement,
        )
        return names_from(ids, names, probability / probability.sum(axis=1, keepdims=True), basis)

    def _known(self, ids: NDArray[Any], names: tuple[str, ...]) -> Known:
        for person, name in self.known.items():
            if name not in names:
                raise InputError(
                    f"the known value of {person} is {name!r}; it must be one of {', '.join(names)}"
                )
        positions = {person: names.index(name) for person, name in self.known.items()}
        return Known(*known_values(ids, positions, np.int64))

    def _rates(self, names: tuple[str, ...]) -> tuple[float, ...] | None:
        if self.rates is None:
            return None
        if set(self.rates) != set(names) or not all(rate > 0 for rate in self.rates.values()):
            raise InputError(
                f"rates of {', '.join(self.rates)}; give {', '.join(names)} one above 0"
            )
        total = sum(self.rates.values())
        return tuple(self.rates[name] / total for name in names)


def assumed_noise(transcript: Transcript) -> Noise:
    """The noise to believe in unless told: of unknown size, with the floor and threshold seen."""
    return Noise(
        floor=lowest_answer(transcript.b) if transcript.b.size else None,
        threshold=None if transcript.released.all() else Threshold(),
    )


def _says_nothing(part: Transcript, noise: Noise) -> bool:
    return noise.threshold is None and not part.released.any()
