"""The categorical decoder: one value of several for everyone, all values at once.

A loan's status is A, B, C or D, and a system that counts may be asked about each. Decoded one by
one, a person may end up with two values or with none. Decoded together every answer about one
value speaks about the others too, since each person has exactly one: the posterior is over values,
not bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Guess, guess_from
from countleak.attack.diagnosis import lowest_answer
from countleak.attack.noise import Noise, Threshold
from countleak.attack.posterior.evidence import are_whole, gather, no_evidence, stack
from countleak.attack.posterior.fit import Asked, fit_values
from countleak.attack.posterior.sampling import Effort
from countleak.errors import InputError, ShapeError


@dataclass(frozen=True, eq=False)
class Categories:
    """A guess about n people: ``probability`` (n, k) of each of k values, named by ``names``.

    Claimed are those marked in ``claimed`` (n,), each with the likeliest value; ``basis`` says in
    plain fields what the guess rests on.
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    probability: NDArray[np.float64]
    claimed: NDArray[np.bool_]
    basis: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names) or len(self.names) < 2:
            raise InputError(f"values {', '.join(self.names)}; there must be two or more, no twins")
        if self.probability.shape != (self.ids.size, len(self.names)):
            raise ShapeError(
                f"{self.ids.size} ids and {len(self.names)} values, but probabilities of shape "
                f"{self.probability.shape}"
            )
        if self.claimed.shape != self.ids.shape:
            raise ShapeError(f"{self.ids.size} ids but {self.claimed.size} claims")

    @property
    def values(self) -> NDArray[np.str_]:
        """Everyone's likeliest value (n,), by name."""
        return np.asarray(np.array(self.names)[self.probability.argmax(axis=1)])

    @property
    def sureness(self) -> NDArray[np.float64]:
        """The probability (n,) of that value."""
        return np.asarray(self.probability.max(axis=1))

    def claims_at(self, precision: float) -> "Categories":
        """The same guess with claims about those only whose value is at least that probable."""
        if not 0 < precision < 1:
            raise InputError(f"the precision is {precision:g}; it lies between 0 and 1")
        return replace(self, claimed=self.claimed & (self.sureness >= precision))

    def guess(self, name: str) -> Guess:
        """The guess about one value: who has it and who does not."""
        if name not in self.names:
            raise InputError(f"there is no value {name!r}; choose {', '.join(self.names)}")
        return guess_from(self.ids, self.probability[:, self.names.index(name)], self.basis)


@dataclass(frozen=True)
class Categorical:
    """Posterior probabilities of all values together.

    ``noise`` is that of every answer; unless given, its size is estimated, a floor that answers
    pile up at is believed, and where any was suppressed the threshold is Diffix's. ``other`` names
    a value that nobody asked about, for whoever has none of the rest. ``rates`` are the shares of
    the values, estimated unless given; ``known`` maps ids to values known beforehand. Drawing
    takes ``seed``; ``effort`` says how long, by the size of the task if not given.
    """

    noise: Noise | None = None
    other: str | None = None
    rates: Mapping[str, float] | None = None
    known: Mapping[int, str] = field(default_factory=dict)
    effort: Effort | None = None
    seed: int = 0

    def decode(self, asked: Mapping[str, Asked]) -> Categories:
        """Guess everyone's value from questions and answers about each, by name."""
        names, parts = self._parts(asked)
        ids = _common_ids(asked)
        noise = self.noise or assumed_noise(list(asked.values()))
        whole = all(are_whole(answers) for _, answers in asked.values())
        evidence = stack(
            [
                no_evidence(ids.size, noise, whole)
                if part is None or _says_nothing(part, noise)
                else gather(*part, noise, whole=whole)
                for part in parts
            ]
        )
        if not evidence.said.size:
            raise InputError("no answer was released and the threshold is not known; give one")
        held, values = self._known(ids, names)
        found = fit_values(
            parts,
            evidence,
            np.random.default_rng([self.seed, 4]),
            rates=self._rates(names),
            known=held,
            values=values,
            effort=self.effort,
        )
        probability = found.probability.reshape(len(names), -1).T
        return Categories(
            ids,
            names,
            probability / probability.sum(axis=1, keepdims=True),
            np.ones(ids.size, np.bool_),
            {
                "decoder": "categorical",
                "answers": {name: len(answers) for name, (_, answers) in asked.items()},
                "sigma": [float(s) for s in found.values.sigma],
                "offset": found.values.offset,
                "rates": dict(zip(names, found.rates.tolist(), strict=True)),
                "known": int(held.sum()),
                "disagreement": found.disagreement,
            },
        )

    def _parts(
        self, asked: Mapping[str, Asked]
    ) -> tuple[tuple[str, ...], tuple[Asked | None, ...]]:
        parts: dict[str, Asked | None] = dict(asked)
        if self.other is not None:
            if self.other in asked:
                raise InputError(
                    f"{self.other!r} was asked about, so it cannot stand for the rest; rename it"
                )
            parts[self.other] = None
        if len(parts) < 2:
            raise InputError(
                f"answers about {len(parts)} value; give those of two or more, or name the other"
            )
        return tuple(parts), tuple(parts.values())

    def _known(
        self, ids: NDArray[np.int64], names: tuple[str, ...]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        place = {person: at for at, person in enumerate(ids.tolist())}
        held, values = np.zeros(ids.size, np.bool_), np.zeros(ids.size, np.int64)
        for person, name in self.known.items():
            if person not in place:
                raise InputError(f"the value of {person} is known, but no query is about that id")
            if name not in names:
                raise InputError(
                    f"the known value of {person} is {name!r}; it must be one of {', '.join(names)}"
                )
            held[place[person]], values[place[person]] = True, names.index(name)
        return held, values

    def _rates(self, names: tuple[str, ...]) -> tuple[float, ...] | None:
        if self.rates is None:
            return None
        if set(self.rates) != set(names) or not all(rate > 0 for rate in self.rates.values()):
            raise InputError(
                f"rates of {', '.join(self.rates)}; give {', '.join(names)} one above 0"
            )
        total = sum(self.rates.values())
        return tuple(self.rates[name] / total for name in names)


def assumed_noise(asked: Sequence[Asked]) -> Noise:
    """The noise to believe in unless told: of unknown size, with the floor and threshold seen."""
    told = np.concatenate([answers.values[answers.released] for _, answers in asked])
    suppressed = any(not answers.released.all() for _, answers in asked)
    return Noise(
        floor=lowest_answer(told) if told.size else None,
        threshold=Threshold() if suppressed else None,
    )


def _says_nothing(part: Asked, noise: Noise) -> bool:
    return noise.threshold is None and not part[1].released.any()


def _common_ids(asked: Mapping[str, Asked]) -> NDArray[np.int64]:
    first, *others = asked
    ids = asked[first][0].ids
    for name in others:
        if not np.array_equal(asked[name][0].ids, ids):
            raise InputError(
                f"the questions about {name} and {first} are about different people; plan both "
                "over the same ids"
            )
    return ids
