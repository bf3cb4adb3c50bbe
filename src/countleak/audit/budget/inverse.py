"""The planning questions turned round: how many queries, how much noise.

Accuracy rises with the queries and falls with the noise, so each answer is found by bisection
between a value that keeps the limit and one that breaks it.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, floor, log, sqrt

from countleak.audit.budget.channel import posterior_accuracy
from countleak.audit.budget.evolution import (
    LEAST_SIGMA,
    MOST_SIGMA,
    Attack,
    Recursion,
    predict,
)
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    SimulatedDiffix,
)
from countleak.errors import InputError, NoPrediction

# What nobody asks: the search for a number of queries ends there.
ENOUGH_QUERIES = 10**9


def accuracy_at(advantage: float, baseline: float) -> float:
    """The accuracy that has gone so much of the way from guessing to knowing."""
    if not 0 < advantage < 1:
        raise InputError(f"the limit is {advantage:g}; an advantage lies between 0 and 1")
    return baseline + advantage * (1 - baseline)


def queries_needed(attack: Attack, decoder: Recursion, target: float) -> int:
    """The fewest queries with which the decoder gets ``target`` right."""
    _check_target(target, attack)

    def reached(queries: int) -> bool | None:
        return _reaches(replace(attack, queries=queries), decoder, target)

    first = 1
    while not reached(first):
        if first >= ENOUGH_QUERIES:
            raise NoPrediction(
                f"{decoder.name} does not get {target:.1%} right with {ENOUGH_QUERIES:.0e} queries"
            )
        first *= 2
    low, high = first // 2, first
    while high - low > 1:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle
    if low and reached(low) is None:
        raise NoPrediction(
            f"{decoder.name} gets {target:.1%} right with {high} queries or fewer; of fewer "
            f"nothing is known in closed form: plan with that number, or run `countleak lab sweep`"
        )
    return high


def queries_allowed(attack: Attack, decoder: Recursion, limit: float) -> int:
    """The most queries that keep the advantage over guessing at ``limit`` or under."""
    return queries_needed(attack, decoder, accuracy_at(limit, attack.baseline)) - 1


def sigma_needed(attack: Attack, decoder: Recursion, limit: float) -> float:
    """The least standard deviation that keeps the advantage over guessing at ``limit``.

    The mechanism's kind stays as it is: Gaussian, Laplace, or the simulated Diffix.
    """
    return sigma_for(attack, decoder, accuracy_at(limit, attack.baseline))


def sigma_for(attack: Attack, decoder: Recursion, target: float) -> float:
    """The standard deviation at which the decoder just gets ``target`` right."""
    _check_target(target, attack)
    mechanism = attack.mechanism
    if not isinstance(mechanism, Gaussian | Laplace | SimulatedDiffix):
        raise InputError(f"{type(mechanism).__name__} has no standard deviation to choose")

    def breaks(level: float) -> bool:
        noisy = replace(attack, mechanism=replace(mechanism, sigma=exp(level)))
        # Where nothing is predicted the answers are nearly exact: no noise to plan with.
        return _reaches(noisy, decoder, target) is not False

    # From about the noise that hides one person in so many answers, outwards by factors of four.
    low = high = log(attack.queries) / 2
    while not breaks(low):
        high, low = low, low - log(4)
        _check_sigma(low, attack, decoder, target)
    while breaks(high):
        low, high = high, high + log(4)
        _check_sigma(high, attack, decoder, target)
    return exp(_bisect(breaks, low, high))


def _check_sigma(level: float, attack: Attack, decoder: Recursion, target: float) -> None:
    if not LEAST_SIGMA < exp(level) < MOST_SIGMA:
        raise NoPrediction(
            f"no noise leaves {decoder.name} at {target:.1%} with {attack.queries} queries about "
            f"{attack.people} people; plan with another number of queries"
        )


def sigma_against_everyone(attack: Attack, limit: float) -> float | None:
    """The least SD of normal noise that keeps even the genie bound at ``limit``.

    No attacker beats that bound, whatever the decoder and whatever else it knows.
    """
    if not attack.law.normal:
        return None
    target = accuracy_at(limit, attack.baseline)

    def breaks(level: float) -> bool:
        return posterior_accuracy(exp(level), attack.prior) >= target

    tau = exp(_bisect(breaks, log(LEAST_SIGMA), log(MOST_SIGMA)))
    return tau * sqrt(attack.queries * attack.family.square)


def base_needed(attack: Attack, decoder: Recursion, limit: float) -> int | None:
    """The least base such that counts rounded to it, unnoised, keep the advantage at ``limit``.

    The rounding error is taken for independent noise, an approximation that holds up to
    ``attack.widest_base``; missing where no base up to there is enough.
    """
    target = accuracy_at(limit, attack.baseline)
    low, high = 1, floor(attack.widest_base)

    def breaks(base: int) -> bool:
        rounded = replace(attack, mechanism=RoundedToBase(base))
        return _reaches(rounded, decoder, target) is not False

    if high < 2 or breaks(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if breaks(middle):
            low = middle
        else:
            high = middle
    return high


def _bisect(breaks: Callable[[float], bool], low: float, high: float) -> float:
    """Where ``breaks`` turns from true to false, from the side that keeps the limit."""
    while high - low > 1e-5:
        middle = (low + high) / 2
        if breaks(middle):
            low = middle
        else:
            high = middle
    return high


def _reaches(attack: Attack, decoder: Recursion, target: float) -> bool | None:
    """Whether the decoder gets ``target`` right; missing where nothing can be predicted."""
    try:
        return predict(attack, decoder).accuracy >= target
    except NoPrediction:
        return None


def _check_target(target: float, attack: Attack) -> None:
    if not attack.baseline < target < 1:
        raise InputError(
            f"the target is {target:g}; guessing alone gets {attack.baseline:g}, so choose one "
            "between that and 1"
        )
