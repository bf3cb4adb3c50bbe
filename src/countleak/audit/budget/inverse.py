"""The planning questions turned round: how many queries, how much noise.

Accuracy rises with the queries and falls with the noise, so each answer is found by bisection
between a value that keeps the limit and one that breaks it. Each gives up when ``monotonic`` is
``until``.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from math import exp, floor, inf, log, sqrt

from countleak.audit.budget.bisection import turning_point
from countleak.audit.budget.channel import posterior_accuracy
from countleak.audit.budget.evolution import (
    LEAST_SIGMA,
    MOST_SIGMA,
    Attack,
    OutOfTime,
    Recursion,
    decoders_for,
    fixed_point,
)
from countleak.audit.budget.laws import MOST_VALUES
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.errors import InputError, NoPrediction
from countleak.shares import percent

# The search for a number of queries ends here: nobody asks so many.
ENOUGH_QUERIES = 10**9
# The widest uniform noise, ± this, whose values the closed form takes.
WIDEST_BOUND = (MOST_VALUES - 1) // 2


def accuracy_at(advantage: float, baseline: float) -> float:
    """The accuracy that has gone so much of the way from guessing to knowing."""
    if not 0 < advantage < 1:
        raise InputError(f"the limit is {advantage:g}; an advantage lies between 0 and 1")
    return baseline + advantage * (1 - baseline)


def queries_needed(attack: Attack, decoder: Recursion, target: float, until: float = inf) -> int:
    """The fewest queries with which the decoder gets ``target`` right."""
    _check_target(target, attack)

    def reached(queries: int) -> bool | None:
        return _reaches(replace(attack, queries=queries), decoder, target, until)

    most = 1
    while not reached(most):
        if most >= ENOUGH_QUERIES:
            raise NoPrediction(
                f"{decoder.name} does not get {percent(target)} right with {ENOUGH_QUERIES:.0e} "
                "queries"
            )
        most *= 2
    least = most // 2 + 1
    fewest = least + bisect_left(range(least, most), True, key=lambda m: reached(m) is True)
    if fewest > 1 and reached(fewest - 1) is None:
        raise NoPrediction(
            f"{decoder.name} gets {percent(target)} right with {fewest} queries or fewer; of fewer "
            "nothing is known in closed form: plan with that number, or run `countleak lab sweep`"
        )
    return fewest


def queries_allowed(attack: Attack, decoder: Recursion, limit: float, until: float = inf) -> int:
    """The most queries that keep the advantage over guessing at ``limit`` or under."""
    return queries_needed(attack, decoder, accuracy_at(limit, attack.baseline), until) - 1


def sigma_needed(attack: Attack, decoder: Recursion, limit: float, until: float = inf) -> float:
    """The least standard deviation that keeps the advantage over guessing at ``limit``.

    The mechanism's kind stays as it is: Gaussian, Laplace, or the simulated Diffix.
    """
    return sigma_for(attack, decoder, accuracy_at(limit, attack.baseline), until)


def sigma_for(attack: Attack, decoder: Recursion, target: float, until: float = inf) -> float:
    """The standard deviation at which the decoder just gets ``target`` right."""
    _check_target(target, attack)
    mechanism = attack.mechanism
    if not isinstance(mechanism, Gaussian | Laplace | SimulatedDiffix):
        raise InputError(f"{type(mechanism).__name__} has no standard deviation to choose")

    def breaks(level: float) -> bool:
        noisy = replace(attack, mechanism=replace(mechanism, sigma=exp(level)))
        # Where nothing is predicted the answers are nearly exact: no noise to plan with.
        return _reaches(noisy, decoder, target, until) is not False

    # From about the noise that hides one person in so many answers, outwards by factors of four.
    low = high = min(log(attack.queries) / 2, log(MOST_SIGMA / 4))
    while not breaks(low):
        high, low = low, low - log(4)
        _check_sigma(low, attack, decoder, target)
    while breaks(high):
        low, high = high, high + log(4)
        _check_sigma(high, attack, decoder, target)
    return exp(turning_point(breaks, low, high, halvings=18))


def _check_sigma(level: float, attack: Attack, decoder: Recursion, target: float) -> None:
    if not LEAST_SIGMA < exp(level) < MOST_SIGMA:
        raise NoPrediction(
            f"no noise leaves {decoder.name} at {percent(target)} with {attack.queries} queries "
            f"about {attack.people} people; plan with another number of queries"
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

    tau = exp(turning_point(breaks, log(LEAST_SIGMA), log(MOST_SIGMA), halvings=22))
    return tau * sqrt(attack.queries * attack.family.square)


def normal_sigma_needed(
    attack: Attack, decoder: Recursion, limit: float, until: float = inf
) -> float:
    """The least SD of normal noise, in place of the noise there is, that keeps the advantage."""
    normal, against = _in_place(attack, decoder, Gaussian(1.0))
    return sigma_needed(normal, against, limit, until)


def base_needed(attack: Attack, decoder: Recursion, limit: float, until: float = inf) -> int | None:
    """The least base such that counts rounded to it, unnoised, keep the advantage at ``limit``.

    The rounding error is taken for independent noise, an approximation that holds up to
    ``attack.widest_base``; missing where no base up to there is enough.
    """
    bases = range(2, min(floor(attack.widest_base), MOST_VALUES) + 1)
    return _least(bases, RoundedToBase, attack, decoder, limit, until)


def bound_needed(
    attack: Attack, decoder: Recursion, limit: float, until: float = inf
) -> int | None:
    """The least bound of uniform noise that keeps the advantage at ``limit``.

    Missing where no bound up to ``WIDEST_BOUND`` is enough.
    """
    return _least(range(1, WIDEST_BOUND + 1), Uniform, attack, decoder, limit, until)


def _least(
    sizes: range,
    mechanism: Callable[[int], Mechanism],
    attack: Attack,
    decoder: Recursion,
    limit: float,
    until: float,
) -> int | None:
    """The least of the sizes with which such noise keeps the advantage; missing where none does."""
    target = accuracy_at(limit, attack.baseline)

    def keeps(size: int) -> bool:
        changed, against = _in_place(attack, decoder, mechanism(size))
        return _reaches(changed, against, target, until) is False

    if not sizes or not keeps(sizes[-1]):
        return None
    return sizes[bisect_left(sizes, True, key=keeps)]


def _in_place(attack: Attack, decoder: Recursion, mechanism: Mechanism) -> tuple[Attack, Recursion]:
    """The attack under another mechanism, and the decoder it meets there.

    The strongest decoder for noise with a bound is another than for noise without one.
    """
    strongest = decoder == decoders_for(attack.mechanism)[-1]
    against = decoders_for(mechanism)[-1] if strongest else decoder
    return replace(attack, mechanism=mechanism), against


def _reaches(attack: Attack, decoder: Recursion, target: float, until: float) -> bool | None:
    """Whether the decoder gets ``target`` right; missing where nothing can be predicted."""
    try:
        return fixed_point(attack, decoder, until).accuracy >= target
    except OutOfTime:
        raise
    except NoPrediction:
        return None


def _check_target(target: float, attack: Attack) -> None:
    if not attack.baseline < target < 1:
        raise InputError(
            f"the target is {target:g}; guessing alone gets {attack.baseline:g}, so choose one "
            "between that and 1"
        )
