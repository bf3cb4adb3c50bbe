"""Everything a system's owner asks about a budget of answers, in one object."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from time import monotonic
from typing import Any

from countleak.audit.budget.evolution import (
    Attack,
    OutOfTime,
    Recursion,
    decoders_for,
    genie_bound,
    large_n_limit,
)
from countleak.audit.budget.inverse import (
    accuracy_at,
    base_needed,
    bound_needed,
    normal_sigma_needed,
    queries_allowed,
    queries_needed,
    sigma_against_everyone,
    sigma_needed,
)
from countleak.audit.budget.prediction import Prediction, predict
from countleak.audit.budget.privacy import epsilon_of, sigma_for_epsilon
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.errors import MissingExtra, NoPrediction
from countleak.progress import Progress, silent

ROUNDING = (
    "a rounding error is taken for independent noise, an approximation; it has a hard bound, and "
    "a decoder that uses the bound (here only `bounded` does) gets more than its variance "
    "suggests, so a base that stops `lp` or `ls` is not safe"
)

# Seconds after which figures that are not found yet are left out.
TIME_LIMIT = 20.0
# The most figures that are searched for: two per decoder, and what would have kept the limit.
FIGURES = 13


@dataclass(frozen=True)
class Limits:
    """What an owner would accept: an ``advantage`` over guessing, ``epsilon`` at a ``delta``."""

    advantage: float = 0.1
    epsilon: float = 1.0
    delta: float = 1e-6


@dataclass(frozen=True)
class Row:
    """One kind of decoder, what is predicted for it, and the queries it needs for the target.

    ``prediction`` says which decoder attains it, if any; it is missing where there is none.
    """

    meant: str
    words: str
    prediction: Prediction | None
    queries_for_target: int | None

    @property
    def decoder(self) -> str | None:
        """The shipped decoder that attains the accuracy; missing where none does."""
        return self.prediction.decoder if self.prediction else None

    @property
    def accuracy(self) -> float | None:
        """What is predicted."""
        return self.prediction.accuracy if self.prediction else None

    @property
    def advantage(self) -> float | None:
        """The way from guessing to knowing, as predicted."""
        return self.prediction.advantage if self.prediction else None

    def record(self) -> dict[str, Any]:
        """The row as plain fields."""
        fields = _named(self.prediction) if self.prediction else dict.fromkeys(NAMED)
        return {
            **fields,
            "meant": self.meant,
            "accuracy": self.accuracy,
            "advantage": self.advantage,
            "queries_for_target": self.queries_for_target,
        }


NAMED = ("decoder", "within", "best", "reaches", "why")


def _named(prediction: Prediction) -> dict[str, Any]:
    """Who attains a prediction, as plain fields."""
    attained = prediction.attained
    return {name: getattr(attained, name) for name in NAMED}


@dataclass(frozen=True)
class Advice:
    """What an attacker gets, next to guessing, what would have stopped it, and the epsilon.

    A figure that has no closed form, or was not found in time, is missing, and ``remarks`` say why.
    ``rounding_helps`` is whether there is a base that would do, missing where that is not known.
    ``normal_sigma_needed`` and ``bound_needed`` are for noise with a bound: what normal noise would
    do in its place, and how far it would have to reach. ``epsilon_needed`` is what the least noise
    that keeps the limit costs.
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
    rounding_helps: bool | None
    epsilon: float | None
    sigma_for_epsilon: float | None
    normal_sigma_needed: float | None
    bound_needed: int | None
    epsilon_needed: float | None
    remarks: tuple[str, ...]

    @property
    def remedy(self) -> Gaussian | Laplace | SimulatedDiffix | None:
        """The least noise that keeps the limit: of the kind there is, or normal for a bound."""
        mechanism = self.prediction.attack.mechanism
        if isinstance(mechanism, Gaussian | Laplace | SimulatedDiffix):
            return replace(mechanism, sigma=self.sigma_needed) if self.sigma_needed else None
        return Gaussian(self.normal_sigma_needed) if self.normal_sigma_needed else None

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
            **_named(self.prediction),
            "meant": self.prediction.meant,
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
            "decoders": [row.record() for row in self.rows],
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
            "normal_sigma_needed": self.normal_sigma_needed,
            "bound_needed": self.bound_needed,
            "epsilon_needed": self.epsilon_needed,
            "remarks": list(self.remarks),
        }


def advise(
    attack: Attack,
    decoder: Recursion,
    limits: Limits,
    target: float | None = None,
    time_limit: float = TIME_LIMIT,
    progress: Progress = silent,
) -> Advice:
    """The advice about an attack, with ``decoder`` as the attacker to be stopped.

    Figures that are not found within ``time_limit`` seconds are missing.
    """
    until = monotonic() + time_limit
    remarks: list[str] = []
    done = 0

    def tried(make: Callable[[], Any]) -> Any:
        nonlocal done
        progress(done, FIGURES)
        done += 1
        try:
            return make()
        except OutOfTime:
            remarks.append(f"not all figures were found within {time_limit:g} s; they are left out")
        except (NoPrediction, MissingExtra) as error:
            remarks.append(str(error))
        return None

    prediction = predict(attack, decoder, until)
    accuracy_at(limits.advantage, attack.baseline)
    rows = tuple(
        _row(attack, each, target, until, tried) for each in decoders_for(attack.mechanism)
    )
    limit, delta, kind = limits.advantage, limits.delta, attack.mechanism
    sigma = normal = bound = None
    if isinstance(kind, Gaussian | Laplace | SimulatedDiffix):
        sigma = tried(lambda: sigma_needed(attack, decoder, limit, until))
    else:
        normal = tried(lambda: normal_sigma_needed(attack, decoder, limit, until))
    if isinstance(kind, Uniform):
        bound = tried(lambda: bound_needed(attack, decoder, limit, until))
    allowed = tried(lambda: queries_allowed(attack, decoder, limit, until))
    epsilon = tried(lambda: epsilon_of(kind, attack.queries, delta))
    private = None
    if epsilon is not None:
        private = tried(lambda: sigma_for_epsilon(kind, attack.queries, limits.epsilon, delta))
    bases = tried(lambda: (base_needed(attack, decoder, limit, until),))
    base = bases[0] if bases else None
    advice = Advice(
        prediction,
        target,
        limits,
        rows,
        large_n_limit(attack),
        genie_bound(attack),
        sigma,
        sigma_against_everyone(attack, limit),
        allowed,
        base,
        base is not None if bases else None,
        epsilon,
        private,
        normal,
        bound,
        None,
        (),
    )
    remedy = advice.remedy
    needed = tried(lambda: epsilon_of(remedy, attack.queries, delta)) if remedy else None
    progress(FIGURES, FIGURES)
    remarks += _left_out(attack, base)
    return replace(advice, epsilon_needed=needed, remarks=tuple(dict.fromkeys(remarks)))


def _left_out(attack: Attack, base: int | None) -> list[str]:
    """What the prediction of an attack leaves out or takes for granted, in words."""
    remarks = []
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
    return remarks


def _row(
    attack: Attack,
    decoder: Recursion,
    target: float | None,
    until: float,
    tried: Callable[[Callable[[], Any]], Any],
) -> Row:
    prediction: Prediction | None = tried(lambda: predict(attack, decoder, until))
    needed = None
    if target is not None:
        needed = tried(lambda: queries_needed(attack, decoder, target, until))
    return Row(decoder.name, decoder.words, prediction, needed)
