"""What several ladders say together, and whether that can be believed.

Ladders that have mixed predict each other: the share of secrets on which a ladder agrees with the
others' likelier value is what their probabilities say it should be. Where ladders are frozen, each
in a place of its own, they are surer than that, and about as wrong about the truth as about each
other, since the truth is one more draw from the same posterior. So the sureness is measured on the
ladders, each left out in turn, and taken down to what was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from countleak.attack.posterior.ladders import Outcome
from countleak.attack.posterior.messages import Messages
from countleak.attack.posterior.secret_draws import Kind

# Ladders are settled when they agree with each other to within this share of all secrets of what
# their probabilities promise.
SETTLED = 0.01
# Ladders whose probabilities differ by less, on average, are in the same place.
CLOSE = 0.05
# A place this many nats above all that is known of the others is the right one.
FAR_ABOVE = 25.0
# An offset of more standard deviations of the noise than this is there.
NO_OFFSET = 0.1
# Messages that leave this many times the variance that ladders do have not found what these have.
NOISIER = 2.0
# The weight of ladders or messages, whichever tell more, in their average.
TELLS_MORE = 0.75
# The sureness of probabilities is compared with what came of them in this many bins.
BINS = 20


@dataclass(frozen=True, eq=False)
class Consensus:
    """The ``probability`` (n,) that ladders agree on, and the ``leaders`` it rests on.

    ``disagreement`` is the mean distance between the probabilities of all ladders, and of message
    passing where there is any, and their average; ``doubt`` says in words why the probabilities
    are not simply the leaders' average, and is empty where they are.
    """

    probability: NDArray[np.float64]
    leaders: tuple[Outcome, ...]
    disagreement: float
    doubt: str = ""


def overstated(runs: Sequence[Outcome], kind: Kind, known: NDArray[np.bool_]) -> float:
    """By how much ladders promise to agree more than they do, as a share of what is not ``known``.

    Every one is predicted by every other; one alone has nothing to be compared with.
    """
    members = [_shares(run.probability, kind)[:, _open_people(known, kind)] for run in runs]
    people = np.arange(members[0].shape[1])
    if not people.size:
        return 0.0
    excess = []
    for sure, seen in permutations(members, 2):
        guess = sure.argmax(axis=0)
        excess.append(float((sure - seen)[guess, people].mean()))
    return float(np.mean(excess)) if excess else 0.0


def leading(runs: Sequence[Outcome], kind: Kind, messages: Messages | None) -> list[Outcome]:
    """The ladders that are in the likeliest place, if it is far above the others; else all.

    A place that was found twice, by ladders or by messages, is compared with each of the others by
    likelihood and entropy. The entropy of independent bits is more than that of a ladder which is
    frozen, so a place found once counts without any, and the others with that of their average, as
    if all the places between them were as good.
    """
    best = max(runs, key=lambda run: run.likelihood)
    near = [_are_close(run.probability, best.probability) for run in runs]
    leaders = [run for run, is_near in zip(runs, near, strict=True) if is_near]
    others = [run for run, is_near in zip(runs, near, strict=True) if not is_near]
    if not others:
        return list(runs)
    witnessed = (
        messages is not None
        and messages.settled
        and _are_close(messages.probability, best.probability)
    )
    found = float(np.mean([run.likelihood for run in leaders]))
    if len(leaders) > 1 or witnessed:
        found += min(run.entropy for run in leaders)
        left = max(run.likelihood + run.entropy for run in others)
    else:
        left = max(run.likelihood for run in others)
        left += kind.entropy(np.mean([run.probability for run in others], axis=0))
    return leaders if found > left + FAR_ABOVE else list(runs)


def _are_close(p: NDArray[np.float64], q: NDArray[np.float64]) -> bool:
    return float(np.abs(p - q).mean()) < CLOSE


def agree(
    runs: Sequence[Outcome], kind: Kind, messages: Messages | None, known: NDArray[np.bool_]
) -> Consensus:
    """What all ladders say, and the messages where the ladders do not agree.

    Bits that are ``known`` (n,) are the same in all, and stay so.
    """
    leaders = leading(runs, kind, messages)
    probability, doubt = np.mean([run.probability for run in leaders], axis=0), ""
    excess = overstated(leaders, kind, known)
    if excess > SETTLED:
        asked = _open_people(known, kind)
        shares = _shares(probability, kind)
        shares[:, asked] = taken_down([_shares(run.probability, kind)[:, asked] for run in leaders])
        probability = shares[1] if kind.blocks == 1 else shares.ravel()
        doubt = f"chains disagree about {excess:.1%} of the people more than they should"
        if messages is not None and _can_stand_in(messages, leaders):
            probability, doubt = _with_messages(probability, messages, doubt)
    members = [run.probability for run in runs]
    members += [] if messages is None else [messages.probability]
    centre = np.mean(members, axis=0)
    spread = float(np.mean([np.abs(member - centre) for member in members]))
    return Consensus(probability, tuple(leaders), spread, doubt)


def _can_stand_in(messages: Messages, runs: Sequence[Outcome]) -> bool:
    """Whether messages settled on noise like the ladders', and no ladder found an offset.

    Message passing does not know of offsets.
    """
    sigma = max(float(run.values.sigma.max()) for run in runs)
    offset = max(float(np.abs(run.values.offsets).max()) for run in runs)
    # Rounding to whole people is part of the messages' noise, but need not be of the ladders'.
    quiet = messages.variance <= NOISIER * (sigma**2 + 1 / 12)
    return messages.settled and quiet and offset <= NO_OFFSET * sigma


def _with_messages(
    probability: NDArray[np.float64], messages: Messages, doubt: str
) -> tuple[NDArray[np.float64], str]:
    """An average of the messages and the ladders, in which those that tell more count more.

    Neither is checked by anything else, so none is sure alone.
    """
    expected = float(np.maximum(probability, 1 - probability).mean())
    weight = TELLS_MORE if messages.expected_right > expected else 1 - TELLS_MORE
    mixed = weight * messages.probability + (1 - weight) * probability
    return mixed, f"{doubt}; averaged with message passing"


def taken_down(members: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The average of members' shares (k, people), no surer than members are of each other."""
    promised, kept = (found.ravel() for found in _left_out(members))
    # Bins are narrow where little is left open.
    edges = 1 - np.logspace(0, -4, BINS + 1)
    at = np.clip(np.searchsorted(edges, promised, side="right") - 1, 0, BINS - 1)
    count = np.bincount(at, minlength=BINS)
    there = count > 0
    claimed = np.bincount(at, promised, BINS)[there] / count[there]
    came = np.bincount(at, kept, BINS)[there] / count[there]
    came = isotonic_regression(came, weights=count[there].astype(np.float64)).x
    average = np.mean(members, axis=0)
    guess, people = average.argmax(axis=0), np.arange(average.shape[1])
    sure = average[guess, people]
    honest = np.clip(np.minimum(sure, np.interp(sure, claimed, came)), 1 / len(average), 1.0)
    # What is taken goes to the other values as they share the rest, or as everyone does if none
    # of the rest is left.
    rest = average + 1e-9 * (average.mean(axis=1, keepdims=True) + 1 / average.size)
    rest[guess, people] = 0.0
    lowered = rest * ((1 - honest) / rest.sum(axis=0))
    lowered[guess, people] = honest
    return np.asarray(lowered)


def _left_out(
    members: Sequence[NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How sure the others are of their guess, and how sure each member is of it (members, people).

    Members are shares of values (k, people).
    """
    total = np.sum(members, axis=0)
    people = np.arange(total.shape[1])
    promised, kept = [], []
    for member in members:
        others = (total - member) / max(len(members) - 1, 1)
        guess = others.argmax(axis=0)
        promised.append(others[guess, people])
        kept.append(member[guess, people])
    return np.array(promised), np.array(kept)


def _open_people(known: NDArray[np.bool_], kind: Kind) -> NDArray[np.bool_]:
    """Whose secrets (people,) are not known, from whether each bit is."""
    return ~known[: kind.people(known.size)]


def _shares(probability: NDArray[np.float64], kind: Kind) -> NDArray[np.float64]:
    """Probabilities of each value (k, people), from those of all bits."""
    if kind.blocks == 1:
        return np.stack([1 - probability, probability])
    return probability.reshape(kind.blocks, -1).copy()
