"""Decoders: from everything asked and answered to a guess of every secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.programs import Certificate, Solution
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.errors import InputError, ShapeError


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess about n people: ``values`` (n,) in {0, 1} for those ``claimed`` (n,).

    ``margin`` (n,) in [0, 1] says how far each was from undecided; it is no probability. Decoders
    that know one give ``probability`` (n,) of a 1 in addition, and ``basis`` says in plain fields
    what else a guess rests on. ``forced`` (n,) marks who is proven: no other value fits the
    answers. Nobody is claimed when the program had no solution (then ``certificate`` holds the
    proof) or none was found in time.
    """

    ids: NDArray[np.int64]
    values: NDArray[np.int8]
    claimed: NDArray[np.bool_]
    margin: NDArray[np.float64]
    solution: Solution | None = None
    certificate: Certificate | None = None
    probability: NDArray[np.float64] | None = None
    forced: NDArray[np.bool_] | None = None
    basis: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields: dict[str, NDArray[Any]] = {
            "values": self.values,
            "claims": self.claimed,
            "margins": self.margin,
        }
        if self.probability is not None:
            fields["probabilities"] = self.probability
        for name, values in fields.items():
            if values.shape != self.ids.shape:
                raise ShapeError(f"{self.ids.size} ids but {values.size} {name}")

    def claims_at(self, precision: float) -> "Guess":
        """The same guess with claims about those only whose value is at least that probable."""
        if not 0.5 <= precision < 1:
            raise InputError(f"the precision is {precision:g}; choose one from 0.5 to below 1")
        if self.probability is None:
            raise InputError("this decoder gives no probabilities; decode with `auto` or `bayes`")
        sure = np.maximum(self.probability, 1 - self.probability) >= precision
        return replace(self, claimed=self.claimed & sure)


class Decoder(Protocol):
    """Anything that turns queries and answers into a Guess."""

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Guess every secret; suppressed answers are there to be used."""
        ...


def guess_from(
    ids: NDArray[np.int64],
    probability: NDArray[np.float64],
    basis: Mapping[str, Any],
    forced: NDArray[np.bool_] | None = None,
) -> Guess:
    """The guess that probabilities (n,) of a 1 lead to: the likelier value of everyone."""
    return Guess(
        ids,
        (probability >= 0.5).astype(np.int8),
        np.ones(ids.size, dtype=np.bool_),
        np.abs(2 * probability - 1),
        probability=probability,
        forced=forced,
        basis=basis,
    )
