"""What state evolution predicts, beside what message passing found."""

from time import monotonic

from countleak.attack.guess import Guess, Passing
from countleak.audit.budget.evolution import (
    LEAST_CHANCE,
    LEAST_SIGMA,
    Attack,
    Posterior,
    fixed_point,
    subsets_of,
)
from countleak.audit.targets.simulated import Gaussian, Laplace, Mechanism
from countleak.errors import InputError, NoPrediction
from countleak.shares import percent

SECONDS = 2.0


def predicted_right(guess: Guess, answers: int) -> float | None:
    """The share of right bits predicted for so many answers and the noise that was found.

    None where the guess is no settled one of message passing, or nothing can be predicted.
    """
    basis = guess.basis
    if not isinstance(basis, Passing) or basis.misfit or basis.law not in ("normal", "Laplace"):
        return None
    sigma = max(basis.sigma, LEAST_SIGMA)
    mechanism: Mechanism = Laplace(sigma) if basis.law == "Laplace" else Gaussian(sigma)
    prior = min(max(basis.prior, LEAST_CHANCE), 1 - LEAST_CHANCE)
    try:
        family = subsets_of(basis.density)
        attack = Attack(guess.ids.size, answers, mechanism, prior, family)
        return fixed_point(attack, Posterior(), monotonic() + SECONDS).accuracy
    except (InputError, NoPrediction):
        return None


def predicted_in_words(guess: Guess, answers: int) -> str:
    """The same as a sentence; empty where nothing is predicted."""
    right = predicted_right(guess, answers)
    if right is None:
        return ""
    return (
        f"State evolution predicts {percent(right)} right for {answers} answers with such noise, "
        "as `countleak budget` does"
    )
