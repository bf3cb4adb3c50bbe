"""What a decoder gets right, with the name of the shipped decoder that attains it.

The recursions speak of decoders that do their task perfectly. Least squares and the linear program
do. The posterior is sampled, and the number of answers at which the prediction jumps, as it does
for bounded noise and for little noise in general, is where samplers get stuck: just below and above
it no shipped decoder attains the prediction, which an ideal one would. ``attained`` decides,
by what was measured (docs/budget.md).
"""

from dataclasses import dataclass, replace
from math import ceil, floor, inf, sqrt

from countleak.audit.budget.evolution import (
    EXACT,
    Attack,
    FixedPoint,
    LeastSquares,
    OutOfTime,
    Recursion,
    fixed_point,
)
from countleak.errors import NoPrediction

# So many answers below and above a jump, as shares of those at the jump, samplers get stuck.
BEFORE, AFTER = 0.75, 1.5
# A jump: one answer more, or so small a share of them, divides tau by so much.
FINEST, FALL = 0.002, 1.4


@dataclass(frozen=True)
class Measured:
    """Where a decoder was compared with its prediction, and how far apart they were at most.

    That is ``within``, and ``with_few`` where there are fewer answers than people.
    ``people`` is how many, ``sd`` the noise's SD in people, ``chance`` the prior and the density
    of the queries; each from least to most.
    """

    within: float
    with_few: float
    people: tuple[int, int] = (50, 1000)
    sd: tuple[float, float] = (0.5, 20.0)
    chance: tuple[float, float] = (0.2, 0.8)

    def off_by(self, attack: Attack) -> float:
        """How far prediction and decoder were apart at most, for so many answers."""
        return self.with_few if attack.queries < attack.people else self.within

    def left_by(self, attack: Attack) -> str:
        """What of an attack was not tried, in words; empty where all of it was."""
        density = attack.family.mean or 0.5
        for value, (least, most), what in (
            (attack.people, self.people, "people"),
            (sqrt(attack.law.variance), self.sd, "people of noise (SD)"),
            (attack.prior, self.chance, "as the prior"),
            (density, self.chance, "as the density"),
        ):
            # A base of 2 has an SD of .5 to within rounding.
            if not least - 1e-9 <= value <= most + 1e-9:
                return f"was tried with {least:g} to {most:g} {what} only"
        return ""


MEASURED = {
    "lp": Measured(within=0.02, with_few=0.06),
    "ls": Measured(within=0.02, with_few=0.06),
    "bayes": Measured(within=0.05, with_few=0.05),
    "bounded": Measured(within=0.05, with_few=0.05),
}


@dataclass(frozen=True)
class Attained:
    """The ``decoder`` that attains a prediction, and ``within`` how much it was measured to.

    Both are missing where none was shown to. Then ``why`` says why, and ``reaches`` is about what
    the ``best`` shipped decoder gets at least, where that is known.
    """

    decoder: str | None
    within: float | None
    best: str | None = None
    reaches: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Prediction:
    """What a decoder gets right of an attack's bits, on average over secrets and queries.

    ``meant`` is the decoder that was asked for; the one that attains it is ``attained.decoder``.
    """

    attack: Attack
    meant: str
    accuracy: float
    tau: float
    attained: Attained

    @property
    def decoder(self) -> str | None:
        """The shipped decoder that attains it; missing where none was shown to."""
        return self.attained.decoder

    @property
    def advantage(self) -> float:
        """(accuracy - baseline) / (1 - baseline): 0 for guessing, 1 for knowing everything."""
        return (self.accuracy - self.attack.baseline) / (1 - self.attack.baseline)


def predict(attack: Attack, decoder: Recursion, until: float = inf) -> Prediction:
    """The accuracy at the fixed point that is reached from knowing nothing, and who attains it."""
    point = fixed_point(attack, decoder, until)
    named = attained(attack, decoder, until)
    return Prediction(attack, decoder.name, point.accuracy, point.tau, named)


def attained(attack: Attack, decoder: Recursion, until: float = inf) -> Attained:
    """Which decoder attains the prediction for an attack, and how nearly."""
    measured = MEASURED[decoder.name]
    untried = measured.left_by(attack)
    if untried:
        why = f"no decoder was shown to attain this: `{decoder.name}` {untried}"
        return Attained(None, None, why=why)
    if decoder.name in ("lp", "ls") or not _near_jump(attack, decoder, until):
        return Attained(decoder.name, measured.off_by(attack))
    # Far fewer answers, before the jump, tell it what they predict; least squares have no jump.
    fewer = _point(attack, decoder, floor(attack.queries / AFTER), until)
    squares = _point(attack, LeastSquares(), attack.queries, until)
    known = [(fewer, decoder.name), (squares, LeastSquares.name)]
    # What is said to be reached at least is the prediction less what it was measured to be off by.
    reached = [
        (max(point.accuracy - MEASURED[name].off_by(attack), attack.baseline), name)
        for point, name in known
        if point
    ]
    reaches, best = max(reached) if reached else (None, None)
    return Attained(
        None,
        None,
        best,
        reaches,
        f"no shipped decoder attains this: `{decoder.name}` can get stuck near the number of "
        "answers at which the prediction jumps",
    )


def _near_jump(attack: Attack, decoder: Recursion, until: float) -> bool:
    """Whether the prediction jumps between ``queries / AFTER`` and ``queries / BEFORE``."""
    # Below half as many answers as people there is no jump, and not always a prediction.
    low = max(floor(attack.queries / AFTER), min(attack.people // 2 + 1, attack.queries), 1)
    high = max(ceil(attack.queries / BEFORE), low + 1)
    finest = max(1, round(FINEST * attack.queries))
    taus = {each: _tau(attack, decoder, each, until) for each in (low, high)}
    while high - low > finest:
        middle = (low + high) // 2
        taus[middle] = _tau(attack, decoder, middle, until)
        below, above = taus[low] / taus[middle], taus[middle] / taus[high]
        low, high = (low, middle) if below >= above else (middle, high)
    return taus[low] / taus[high] >= FALL


def _tau(attack: Attack, decoder: Recursion, queries: int, until: float) -> float:
    """tau after so many answers: infinite where nothing settles, as next to a jump."""
    point = _point(attack, decoder, queries, until)
    # Below this all is certain, and by how much says nothing.
    return max(point.tau, sqrt(EXACT)) if point else 1e9


def _point(attack: Attack, decoder: Recursion, queries: int, until: float) -> FixedPoint | None:
    """The fixed point after so many answers; missing where there is none."""
    try:
        return fixed_point(replace(attack, queries=max(queries, 1)), decoder, until)
    except OutOfTime:
        raise
    except NoPrediction:
        return None
