"""Everything a system's owner asks about a budget of answers, in one object."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from countleak.audit.budget.evolution import (
    DECODERS,
    Attack,
    Prediction,
    Recursion,
    genie_bound,
    large_n_limit,
    predict,
)
from countleak.audit.budget.inverse import (
    accuracy_at,
    base_needed,
    queries_allowed,
    queries_needed,
    sigma_against_everyone,
    sigma_needed,
)
from countleak.audit.budget.privacy import epsilon_of, sigma_for_epsilon
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, SimulatedDiffix
from countleak.errors import MissingExtra, NoPrediction

ROUNDING = (
    "a rounding error is taken for independent noise, an approximation; it has a hard bound, and "
    "a decoder that uses the bound (here only `bayes` does) gets more than its variance suggests, "
    "so a base that stops `lp` or `ls` is not safe"
)


@dataclass(frozen=True)
class Limits:
    """What an owner would accept: an ``advantage`` over guessing, ``epsilon`` at a ``delta``."""

    advantage: float = 0.1
    epsilon: float = 1.0
    delta: float = 1e-6


@dataclass(frozen=True)
class Row:
    """One decoder's accuracy and advantage, and the queries it needs for the target."""

    decoder: str
    words: str
    accuracy: float | None
    advantage: float | None
    queries_for_target: int | None


@dataclass(frozen=True)
class Advice:
    """What an attacker gets, next to guessing, what would have stopped it, and the epsilon.

    A figure that has no closed form is missing, and ``remarks`` say why.
    """

    prediction: Prediction
    target: float | None
    limits: Limits
    rows: tuple[Row, ...]
    large_n_limit: float | None
    genie_bound: float | None
    sigma_needed: float | None
    sigma_against_everyone: float | None
    queries_allowed: int | None
    base_needed: int | None
    epsilon: float | None
    sigma_for_epsilon: float | None
    remarks: tuple[str, ...]

    @property
    def sigma(self) -> float:
        """The standard deviation of an answer's noise."""
        mechanism = self.prediction.attack.mechanism
        return float(getattr(mechanism, "sigma", sqrt(self.prediction.attack.law.variance)))

    @property
    def kept(self) -> bool:
        """Whether the attack stays within the limit."""
        return self.prediction.advantage <= self.limits.advantage

    def record(self) -> dict[str, Any]:
        """The advice as plain fields."""
        attack = self.prediction.attack
        return {
            "decoder": self.prediction.decoder,
            "people": attack.people,
            "queries": attack.queries,
            "sigma": self.sigma,
            "mechanism": type(attack.mechanism).__name__,
            "family": attack.family.name,
            "prior": attack.prior,
            "accuracy": self.prediction.accuracy,
            "baseline": attack.baseline,
            "advantage": self.prediction.advantage,
            "target": self.target,
            "decoders": [
                {
                    "decoder": row.decoder,
                    "accuracy": row.accuracy,
                    "advantage": row.advantage,
                    "queries_for_target": row.queries_for_target,
                }
                for row in self.rows
            ],
            "large_n_limit": self.large_n_limit,
            "genie_bound": self.genie_bound,
            "limit": self.limits.advantage,
            "within_limit": self.kept,
            "sigma_needed": self.sigma_needed,
            "sigma_against_everyone": self.sigma_against_everyone,
            "queries_allowed": self.queries_allowed,
            "base_needed": self.base_needed,
            "delta": self.limits.delta,
            "epsilon": self.epsilon,
            "epsilon_wanted": self.limits.epsilon,
            "sigma_for_epsilon": self.sigma_for_epsilon,
            "remarks": list(self.remarks),
        }


def advise(
    attack: Attack, decoder: Recursion, limits: Limits, target: float | None = None
) -> Advice:
    """The advice about an attack, with ``decoder`` as the attacker to be stopped."""
    prediction = predict(attack, decoder)
    accuracy_at(limits.advantage, attack.baseline)
    remarks: list[str] = []

    def tried(make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (NoPrediction, MissingExtra) as error:
            remarks.append(str(error))
            return None

    rows = tuple(_row(attack, each, target, tried) for each in DECODERS)
    sigma = None
    if isinstance(attack.mechanism, Gaussian | Laplace | SimulatedDiffix):
        sigma = tried(lambda: sigma_needed(attack, decoder, limits.advantage))
    allowed = tried(lambda: queries_allowed(attack, decoder, limits.advantage))
    epsilon = tried(lambda: epsilon_of(attack.mechanism, attack.queries, limits.delta))
    private = None
    if epsilon is not None:
        private = tried(
            lambda: sigma_for_epsilon(
                attack.mechanism, attack.queries, limits.epsilon, limits.delta
            )
        )
    base = base_needed(attack, decoder, limits.advantage)
    if base is not None or isinstance(attack.mechanism, RoundedToBase):
        remarks.append(ROUNDING)
    if isinstance(attack.mechanism, SimulatedDiffix):
        remarks.append(
            "that low counts are suppressed and answers cut off at 0 is left out of the prediction"
        )
    if attack.family.name == "digits":
        remarks.append(
            "digit queries are predicted as random subsets; one particular secret scatters "
            "around the average, by up to .02 with few queries"
        )
    return Advice(
        prediction,
        target,
        limits,
        rows,
        large_n_limit(attack),
        genie_bound(attack),
        sigma,
        sigma_against_everyone(attack, limits.advantage),
        allowed,
        base,
        epsilon,
        private,
        tuple(dict.fromkeys(remarks)),
    )


def _row(
    attack: Attack,
    decoder: Recursion,
    target: float | None,
    tried: Callable[[Callable[[], Any]], Any],
) -> Row:
    prediction: Prediction | None = tried(lambda: predict(attack, decoder))
    needed = None
    if target is not None:
        needed = tried(lambda: queries_needed(attack, decoder, target))
    return Row(
        decoder.name,
        decoder.words,
        prediction.accuracy if prediction else None,
        prediction.advantage if prediction else None,
        needed,
    )
