"""Mechanisms by name: the words that mean them, the options each takes, and how they are called."""

from collections.abc import Callable
from typing import Literal

from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    TwoSubsets,
    Uniform,
)
from countleak.cli.option_rules import Needs

MechanismWord = Literal["diffix", "gaussian", "laplace", "uniform", "round"]
# The mechanisms whose noise has a standard deviation to choose.
WITH_SIGMA = ("diffix", "gaussian", "laplace")
MECHANISM_NEEDS: Needs = {
    "--sigma": {"--mechanism": WITH_SIGMA},
    "--bound": {"--mechanism": ("uniform",)},
    "--base": {"--mechanism": ("round",)},
    "--random-rounding": {"--mechanism": ("round",)},
}


def mechanism_from(
    word: MechanismWord, sigma: float, bound: int, base: int, random_rounding: bool
) -> Mechanism:
    """The mechanism of that name; it takes of the numbers what its law has."""
    table: dict[str, Callable[[], Mechanism]] = {
        "diffix": lambda: SimulatedDiffix(sigma),
        "gaussian": lambda: Gaussian(sigma),
        "laplace": lambda: Laplace(sigma),
        "uniform": lambda: Uniform(bound),
        "round": lambda: RoundedToBase(base, random_rounding),
    }
    return table[word]()


def in_words(mechanism: Mechanism | TwoSubsets) -> str:
    """A mechanism as a journal names it, with all that tells it from another."""
    match mechanism:
        case TwoSubsets(each):
            return f"{in_words(each)}, two answers per query"
        case Uniform(bound):
            return f"uniform noise within ±{bound}"
        case RoundedToBase(base, by_chance):
            return f"rounding to multiples of {base}{' by chance' if by_chance else ''}"
        case Laplace(sigma):
            return f"Laplace noise of SD {sigma:.12g}"
        case Gaussian(sigma):
            return f"normal noise of SD {sigma:.12g}"
        case SimulatedDiffix(sigma, rounded, suppressing, clamped, _):
            parts = {
                "rounded": rounded,
                "low counts suppressed": suppressing,
                "no answer below 0": clamped,
            }
            switched_on = [text for text, is_on in parts.items() if is_on]
            return ", ".join([f"normal noise of SD {sigma:.12g}", *switched_on])
    raise AssertionError(mechanism)
