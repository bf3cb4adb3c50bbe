"""Auxiliary knowledge: some people's bits are known beforehand, and fix their variables."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder, Guess
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.errors import InputError


@runtime_checkable
class TakesKnown(Protocol):
    """A decoder that uses what is known by itself, suppressed answers included."""

    known: Mapping[int, int]


@dataclass(frozen=True)
class Informed:
    """``decoder`` with the bits of some ids ``known``: they are taken out of every count."""

    decoder: Decoder
    known: Mapping[int, int]

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Decode what is left, and put the known bits back."""
        held, bits = known_bits(queries.ids, self.known)
        if not held.any():
            return self.decoder.decode(queries, answers)
        if held.all():
            raise InputError("everyone's bit is known already; there is nothing to find out")
        if isinstance(self.decoder, TakesKnown):
            return replace(self.decoder, known=self.known).decode(queries, answers)  # type: ignore[type-var]
        rest = Queries(
            queries.ids[~held], queries.matrix[:, ~held], queries.family, queries.parameters
        )
        share = (queries.matrix[:, held] @ bits[held]).astype(np.float64)
        left = Answers(answers.query, answers.values - share[answers.query], answers.released)
        return _restored(self.decoder.decode(rest, left), queries.ids, held, bits)


def known_bits(
    ids: NDArray[np.int64], known: Mapping[int, int]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Who is known (n,), and their bits (n,), 0 for the others."""
    place = {person: at for at, person in enumerate(ids.tolist())}
    held, bits = np.zeros(ids.size, np.bool_), np.zeros(ids.size, np.int64)
    for person, bit in known.items():
        if person not in place:
            raise InputError(f"the bit of {person} is known, but no query is about that id")
        if bit not in (0, 1):
            raise InputError(f"the known bit of {person} is {bit!r}; it must be 0 or 1")
        held[place[person]], bits[place[person]] = True, bit
    return held, bits


def _restored(
    guess: Guess, ids: NDArray[np.int64], held: NDArray[np.bool_], bits: NDArray[np.int64]
) -> Guess:
    def spread(values: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
        full = known.copy()
        full[~held] = values
        return full

    exact = bits.astype(np.float64)
    probability = None if guess.probability is None else spread(guess.probability, exact)
    forced = None
    if guess.forced is not None:
        forced = spread(guess.forced.astype(np.float64), held.astype(np.float64)) > 0
    return Guess(
        ids,
        spread(guess.values.astype(np.float64), exact).astype(np.int8),
        spread(guess.claimed.astype(np.float64), np.ones(ids.size)) > 0,
        spread(guess.margin, np.ones(ids.size)),
        guess.solution,
        guess.certificate,
        probability,
        forced,
        {**guess.basis, "known": int(held.sum())},
    )
