"""Auxiliary knowledge: some people's secrets are known beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.guess import Guess
from countleak.attack.queries.ids import Id, id_array, positions_of
from countleak.attack.transcript import Transcript
from countleak.errors import InputError


@runtime_checkable
class TakesKnown(Protocol):
    """A decoder that uses what is known by itself, suppressed answers included."""

    known: Mapping[Id, Any]


@dataclass(frozen=True)
class Informed:
    """``decoder`` with the bits of some ids ``known``: they are taken out of every count."""

    decoder: Decoder
    known: Mapping[Id, int]

    def decode(self, transcript: Transcript) -> Guess:
        """Decode what is left, and put the known bits back."""
        people, bits = known_bits(transcript.ids, self.known)
        if not people.any():
            return self.decoder.decode(transcript)
        if people.all():
            raise InputError("everyone's bit is known already; there is nothing to find out")
        if isinstance(self.decoder, TakesKnown):
            return replace(self.decoder, known=self.known).decode(transcript)  # type: ignore[type-var]
        rest = replace(
            transcript,
            queries=transcript.queries.without(people),
            share=np.add(transcript.share, transcript.queries.dot(bits.astype(np.float64))),
        )
        return _restored(self.decoder.decode(rest), transcript.ids, people, bits)


def known_bits(
    ids: NDArray[Any], known: Mapping[Id, int]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Who is known (n,), and their bits (n,), 0 for the others."""
    for person, bit in known.items():
        if bit not in (0, 1):
            raise InputError(f"the known bit of {person} is {bit!r}; it must be 0 or 1")
    people, bits = known_values(ids, known, np.int64)
    return people, bits


def known_values(
    ids: NDArray[Any], known: Mapping[Id, Any], kind: type[np.generic]
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Who is known (n,), and what (n,), 0 for the others."""
    people, values = np.zeros(ids.size, np.bool_), np.zeros(ids.size, kind)
    if not known:
        return people, values
    place = positions_of(id_array(known), ids)
    if (place < 0).any():
        stranger = list(known)[int(np.flatnonzero(place < 0)[0])]
        raise InputError(f"the secret of {stranger} is known, but no query is about that id")
    people[place], values[place] = True, list(known.values())
    return people, values


def _restored(
    guess: Guess, ids: NDArray[Any], known: NDArray[np.bool_], bits: NDArray[np.int64]
) -> Guess:
    """The guess about everyone: the known as they are, the rest as guessed."""

    def spread(rest: NDArray[Any], filler: Any) -> NDArray[Any]:
        full = np.full(ids.size, filler, dtype=rest.dtype)
        full[~known] = rest
        return full

    def with_bits(rest: NDArray[Any]) -> NDArray[Any]:
        full = bits.astype(rest.dtype)
        full[~known] = rest
        return full

    return Guess(
        ids,
        with_bits(guess.values),
        spread(guess.claimed, True),
        replace(guess.basis, known=int(known.sum())),
        margin=None if guess.margin is None else spread(guess.margin, 1.0),
        probability=None if guess.probability is None else with_bits(guess.probability),
        # Who is known beforehand is not given away by the answers.
        forced=spread(guess.forced, False),
    )
