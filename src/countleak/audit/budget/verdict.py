"""A budget of answers in plain words: a verdict, a remedy with its price, and what is assumed."""

from countleak.audit.budget.advice import Advice
from countleak.audit.budget.evolution import Attack, decoders_for
from countleak.audit.budget.inverse import WIDEST_BOUND, accuracy_at
from countleak.audit.budget.laws import law_of
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.shares import percent


def verdict(advice: Advice) -> str:
    """Whose secrets the answers give away, next to guessing, and whether that is too many."""
    found = advice.prediction
    attack = found.attack
    n = attack.people
    gets = (
        f"{_people(found.accuracy, n)} of {n:,} people's secrets right ({percent(found.accuracy)})"
    )
    if found.decoder is None and found.attained.reaches is not None:
        gets += f", at least about {_people(found.attained.reaches, n)} with what is shipped here"
    if found.meant != decoders_for(attack.mechanism)[-1].name:
        gets += f" by `{found.meant}`, not the strongest attack"
    most = _limit(advice)
    ending = (
        f"That is within your limit of {most}: a prediction, no proof."
        if advice.kept
        else f"That breaks your limit of {most}."
    )
    lets = "lets" if attack.queries == 1 else "let"
    who = "an attacker" if found.decoder else "an ideal attacker"
    return (
        f"{_answers(attack.queries)} with {noise_in_words(attack.mechanism)} {lets} {who} get "
        f"{gets}, where guessing gets {_people(attack.baseline, n)}. {ending}"
    )


def remedy(advice: Advice) -> str:
    """What keeps the limit, and how wrong single answers become."""
    attack = advice.prediction.attack
    most = _limit(advice)
    if advice.kept:
        return f"None is needed for a limit of {most}. {_room(advice)}".rstrip()
    sentences = []
    if advice.remedy is not None:
        instead = " instead" if isinstance(attack.mechanism, Uniform | RoundedToBase) else ""
        sentences.append(
            f"{noise_in_words(advice.remedy)} or more on each answer{instead} keeps it at {most} "
            f"({_price(advice.remedy, attack)})."
        )
    if isinstance(attack.mechanism, Uniform):
        sentences.append(
            f"No uniform noise up to ±{WIDEST_BOUND} does."
            if advice.bound_needed is None
            else f"So does uniform noise within ±{advice.bound_needed} or more "
            f"({_price(Uniform(advice.bound_needed), attack)})."
        )
    if advice.base_needed is not None:
        sentences.append(f"So does rounding counts to multiples of {advice.base_needed}, unnoised.")
    if advice.queries_allowed == 0:
        sentences.append("No cap on the answers does: the first one breaks the limit.")
    elif advice.queries_allowed is not None:
        now = "rounding" if isinstance(attack.mechanism, RoundedToBase) else "noise"
        most_answers = _answers(advice.queries_allowed)
        sentences.append(f"With the {now} as it is, stop after {most_answers}.")
    text = " ".join(sentences) or f"None is known that keeps it at {most}."
    return f"{text[0].upper()}{text[1:]}"


def assumption(advice: Advice) -> str:
    """Which systems the prediction covers, and what to do about others."""
    family = advice.prediction.attack.family
    counts = {
        "signs": "weighs everyone with a random +1 or -1",
        "digits": "counts half of the people, by digits of their ids",
        "subsets": "counts a random half of the people",
    }.get(family.name, f"counts a random {family.mean:.0%} of the people")
    return (
        f"Every question {counts}, as free filters or SQL allow, and the attacker knows who is "
        "counted. A dashboard with few, fixed filters asks other questions, which can give away "
        "more or less: audit it as it is."
    )


def noise_in_words(mechanism: Mechanism) -> str:
    """What is done to a count, as one would say it."""
    if isinstance(mechanism, Uniform):
        return f"uniform noise within ±{mechanism.bound}"
    if isinstance(mechanism, RoundedToBase):
        return f"counts rounded to multiples of {mechanism.base}"
    assert isinstance(mechanism, Gaussian | Laplace | SimulatedDiffix)
    kind = "Laplace" if isinstance(mechanism, Laplace) else "normal"
    whole = ", rounded," if isinstance(mechanism, SimulatedDiffix) else ""
    return f"{kind} noise of SD {mechanism.sigma:.3g}{whole}"


def _limit(advice: Advice) -> str:
    baseline = advice.prediction.attack.baseline
    return percent(accuracy_at(advice.limits.advantage, baseline))


def _room(advice: Advice) -> str:
    """How far an attack within the limit is from breaking it."""
    room = []
    if advice.queries_allowed:
        room.append(f"up to {_answers(advice.queries_allowed)} with this noise")
    if advice.sigma_needed is not None:
        room.append(f"with noise down to SD {advice.sigma_needed:.3g}")
    return f"It holds {', or '.join(room)}." if room else ""


def _price(mechanism: Mechanism, attack: Attack) -> str:
    """How wrong single answers become."""
    off = f"19 of 20 answers are then off by up to {law_of(mechanism).usual:.3g}"
    if not attack.pinned:
        return off
    count = attack.people * attack.family.mean * attack.prior
    return f"{off}, where a count is about {count:.3g}"


def _answers(count: int) -> str:
    return f"{count:,} answer{'s' * (count != 1)}"


def _people(share: float, n: int) -> str:
    """So many of n people: all of them only where it is all."""
    count = int(share * n + 0.5)
    return f"over {n - 1:,}" if count == n and share < 1 else f"{count:,}"
