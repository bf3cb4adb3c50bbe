"""The control of an audit: the same attack on a twin of the system in which secrets are shuffled.

What it gets right about the people themselves is luck, so an attack is worth what it gets right
beyond that (Giomi and others, A Unified Framework for Quantifying Privacy Risk, 2023). The twin has
the noise that the system had: every answer less its true count, on the counts of shuffled secrets.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.secrets import Number
from countleak.audit.result import AuditResult
from countleak.audit.scores import wilson
from countleak.errors import InputError
from countleak.shares import percent

# 95% of a normal law.
Z = 1.96


@dataclass(frozen=True)
class Control:
    """Of ``people``, how many the attack got right, and how many the same attack on the twin."""

    people: int
    right: int
    by_luck: int

    @property
    def rates(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The centre and half the width of Wilson's interval, of the attack and of the control."""
        attack, luck = (wilson(right, self.people, Z) for right in (self.right, self.by_luck))
        return _centre(attack), _centre(luck)

    @property
    def risk(self) -> float:
        """(r_a - r_c)/(1 - r_c): how far the attack is from luck to knowing everything."""
        (attack, _), (luck, _) = self.rates
        return (attack - luck) / (1 - luck)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the risk lies, with 95% probability, both rates being uncertain."""
        (attack, error), (luck, luck_error) = self.rates
        by_attack = error / (1 - luck)
        by_luck = luck_error * (1 - attack) / (1 - luck) ** 2
        half = float(np.hypot(by_attack, by_luck))
        return max(self.risk - half, 0.0), min(self.risk + half, 1.0)

    def record(self) -> dict[str, Any]:
        """All of it as plain fields."""
        return {
            "right": self.right,
            "by_luck": self.by_luck,
            "risk": self.risk,
            "interval": self.interval,
        }

    def __str__(self) -> str:
        low, high = (percent(end) for end in self.interval)
        return (
            f"On a twin with shuffled secrets the same attack gets {self.by_luck} of {self.people} "
            f"right by luck; the risk beyond luck is {percent(self.risk)} ({low} to {high})."
        )


def control(result: AuditResult, decoder: Decoder, seed: int = 0) -> Control:
    """The same attack on a twin of the audited system; the truth must be known."""
    if result.truth is None or isinstance(result.secret, Number):
        raise InputError("a control compares bits or values with the truth, which is not known")
    names, transcript = result.transcript.names, result.transcript
    order = np.random.default_rng([seed, 31]).permutation(result.truth.size)
    counts, shuffled = (
        transcript.counts(_bits(values, names)) for values in (result.truth, result.truth[order])
    )
    twin = replace(transcript, values=transcript.values - counts + shuffled)
    guess = decoder.decode(twin)
    right, luck = (
        int((g.claimed & (g.values == result.truth)).sum()) for g in (result.guess, guess)
    )
    return Control(result.truth.size, right, luck)


def _bits(values: NDArray[Any], names: tuple[str, ...]) -> NDArray[np.float64]:
    held = [values == name for name in names] if names else [values]
    return np.concatenate(held).astype(np.float64)


def _centre(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    return (low + high) / 2, (high - low) / 2
