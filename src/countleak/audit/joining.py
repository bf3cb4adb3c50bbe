"""What became of the blocks of a large table, put together: one guess, one score, one verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.guess import Basis, FromFile, Guess
from countleak.attack.secrets import Secret
from countleak.audit.judgement import Judgement
from countleak.audit.people import People
from countleak.audit.result import GuessedPeople
from countleak.audit.scores import Score
from countleak.errors import NoResult
from countleak.foreign import brief

# So many blocks are named one by one.
MOST_NAMED = 5
DIFFERS = "the noise of each block by itself, as its own guess says"


@dataclass(frozen=True)
class Block:
    """What became of a block: its ``number`` from 1 on, how much it was asked, and its sums.

    ``nothing`` says why it shows nothing, ``unfit`` why its model does not fit, in words; both are
    empty where all is well. ``refused`` is what the system said where it would answer no more.
    ``settings`` is a fingerprint of how it was attacked.
    """

    number: int
    people: int
    answers: int
    suppressed: int
    claims: int
    right: int | None
    nothing: str
    unfit: str
    refused: str
    family: str
    settings: str

    @property
    def fault(self) -> str:
        """Why the block cannot pass; empty where it can."""
        return self.nothing or self.unfit


@dataclass(frozen=True, kw_only=True)
class InBlocks(Basis):
    """The guesses about ``blocks`` of people, each on its own; chains differ by so much at most."""

    blocks: int
    disagreement: float = 0.0


@dataclass(frozen=True, eq=False)
class BlocksResult(Judgement):
    """An audit of the people ``audited`` in ``blocks``: one guess about all, and one score.

    ``score`` and ``truth`` (n,) are missing where the truth is not known. ``simulated`` says
    whether the system was.
    """

    audited: People
    secret: Secret
    joined: Guess
    score: Score | None
    truth: NDArray[Any] | None
    blocks: tuple[Block, ...]
    simulated: bool

    @property
    def guess(self) -> Guess:
        """The guess about everyone; nobody is claimed of a block that shows nothing."""
        return self.joined

    @property
    def people(self) -> GuessedPeople:
        """One row per person."""
        return GuessedPeople(self.audited, self.guess)

    @property
    def answered(self) -> int:
        """How many questions were answered, suppressed answers among them."""
        return sum(block.answers for block in self.blocks)

    @property
    def suppressed(self) -> int:
        """How many answers say only that a count is low."""
        return sum(block.suppressed for block in self.blocks)

    @property
    def refused(self) -> str | None:
        """What the system said where it refused to answer more; None where it answered all."""
        return next((block.refused for block in self.blocks if block.refused), None)

    @property
    def nothing(self) -> str | None:
        """Why blocks could not be attacked, where any could not; the whole has not passed then."""
        return _named([(block.number, block.nothing) for block in self.blocks if block.nothing])

    @property
    def unfit(self) -> str | None:
        """Why a low success shows nothing about the system; None where all models fit."""
        if faults := faults_of(self.blocks):
            return f"{faults}: this audit has not passed"
        if self.refused:
            return f"the system would not answer all ({self.refused}): this audit has not passed"
        return self.overrated

    def leaks_more_than(self, allowed: float) -> bool:
        """Whether more leaks than is ``allowed``; raises where any block leaves that open."""
        if self.score is not None and not self.score.claims and self.nothing:
            raise NoResult(f"{self.nothing}: this audit shows nothing")
        return super().leaks_more_than(allowed)

    def __str__(self) -> str:
        size = max(block.people for block in self.blocks)
        lines = [
            f"{self.answered} answers about {len(self.audited)} people in {len(self.blocks)} "
            f"blocks of up to {size}, {self.suppressed} suppressed; "
            f"secret: {brief(str(self.secret))}.",
            *self.found_in_words(),
        ]
        if faults := faults_of(self.blocks):
            lines.append(f"These blocks show nothing, or not what leaks: {faults}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<audit in blocks: {' '.join(str(self).split())}>"


def faults_of(blocks: Sequence[Block]) -> str | None:
    """Which blocks cannot pass, and why; None where all can."""
    return _named([(block.number, block.fault) for block in blocks if block.fault])


def _named(faults: Sequence[tuple[int, str]]) -> str | None:
    named = [f"block {number}: {why}" for number, why in faults[:MOST_NAMED]]
    more = len(faults) - len(named)
    return "; ".join([*named, *([f"and {more} blocks more"] if more else [])]) or None


def joined(
    people: People, secret: Secret, guesses: Iterator[Guess | None], blocks: Sequence[Block]
) -> Guess:
    """One guess about ``people`` from those about each of the blocks, None where there is none."""
    n, names = len(people), secret.names
    values = np.full(n, names[0], np.array(names).dtype) if names else np.zeros(n, np.int64)
    claimed, forced = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    probability: NDArray[np.float64] | None = np.empty((n, len(names)) if names else n)
    bases, implied, at = [], [], 0
    for block, guess in zip(blocks, guesses, strict=True):
        here = slice(at, at + block.people)
        at += block.people
        if guess is None:
            probability = None
            continue
        values[here], claimed[here], forced[here] = guess.values, guess.claimed, guess.forced
        if guess.probability is None:
            probability = None
        elif probability is not None:
            probability[here] = guess.probability
        bases.append(guess.basis)
        if guess.implied.any():
            implied.append(guess.basis.assuming or "the system was read rightly")
    basis = _basis(bases, implied, blocks)
    return Guess(
        people.ids, values, claimed, basis, probability=probability, names=names, forced=forced
    )


def _basis(bases: Sequence[Basis], implied: Sequence[str], blocks: Sequence[Block]) -> InBlocks:
    """What the guess about all rests on: on what every block rests, and on all that any assumes."""
    decoders = sorted({basis.decoder for basis in bases}) or ["none"]
    inferred = {basis.inferred for basis in bases}
    stated = {basis.stated for basis in bases}
    disagreement = max((_disagreement(basis) for basis in bases), default=0.0)
    assumed = list(dict.fromkeys(implied))
    more = ["more of that kind"] if len(assumed) > MOST_NAMED else []
    return InBlocks(
        decoder=" or ".join(decoders),
        picked_because=f"{len(blocks)} blocks were decoded one by one",
        stated=stated.pop() if len(stated) == 1 else (),
        inferred=inferred.pop() if len(inferred) == 1 else (DIFFERS,) if inferred else (),
        assuming=" and ".join([*assumed[:MOST_NAMED], *more]),
        misfit=faults_of(blocks) or "",
        blocks=len(blocks),
        disagreement=disagreement,
    )


def _disagreement(basis: Basis) -> float:
    held = basis.fields_of_file if isinstance(basis, FromFile) else {}
    found = held.get("disagreement", 0.0)
    return float(found) if isinstance(found, int | float) else 0.0
