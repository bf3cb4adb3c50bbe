"""How accurate a decoder is, from the size of the attack alone: state evolution.

To a decoder that solves for all n people at once, each person's bit looks like r = X + tau Z. The
noise tau comes from the answers' noise w and from the errors E about all others, and E comes from
tau; both settle where, with v the variance of a query's entry, V = n v E and r = w + N(0, V):

    ls      tau^2 = Var(r) / (m v)                        E of clip(X + tau Z, 0, 1)
    lp      tau^2 = E clip(r, -b, b)^2 / (m v kappa^2)    the same E
            with Pr(|r| <= b) = kappa = (n/m) Pr(0 < X + tau Z < 1)
    bayes   tau^2 = 1 / (m v J(r)), J Fisher's            E of the posterior mean

ls: approximate message passing (Donoho, Maleki, Montanari 2009) with the box as denoiser. lp: its
form for robust regression (Donoho, Montanari 2016, whose clipped score is that of the absolute
loss). bayes: the generalised form (Rangan 2011) with the posterior on both sides; under normal
noise it is ls with another E. The fixed point meant is the one reached from knowing nothing.

Queries with a mean (counts, not ±1 sums) also tell the total. That fixes E c = prior, and takes one
direction out of the noise: the diagonal of (v I + mean^2 11')^-1 is that of I/v less the share
mean^2 / (v + n mean^2), by which tau^2 shrinks.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from time import monotonic
from typing import ClassVar, Protocol

from countleak.audit.budget.channel import boxed, posterior_accuracy, posterior_error
from countleak.audit.budget.laws import Law, law_of
from countleak.audit.targets.simulated import Mechanism, RoundedToBase, Uniform
from countleak.errors import InputError, NoPrediction

STEPS, TOLERANCE, DAMPING = 20_000, 1e-8, 0.7
# Where the closed form keeps its digits: noise in people, chances, people and answers.
LEAST_SIGMA, MOST_SIGMA = 1e-3, 1e6
LEAST_CHANCE = 1e-6
MOST_PEOPLE, MOST_QUERIES = 10**9, 10**12
# A share of undecided people per answer below which lp is as with none undecided.
LEAST_KAPPA = 1e-4
# A tau^2 at which less than one bit in 10^50 is wrong.
EXACT = 1e-3
# Noise variances under which half as many answers as people leave the recursion astray.
NEARLY_EXACT = 1.0


@dataclass(frozen=True)
class Family:
    """The entries of a kind of query: their ``mean`` and ``variance``."""

    name: str
    mean: float
    variance: float

    @property
    def square(self) -> float:
        """The mean square of an entry."""
        return self.variance + self.mean**2


SUBSETS = Family("subsets", 0.5, 0.25)
DIGITS = Family("digits", 0.5, 0.25)
SIGNS = Family("signs", 0.0, 1.0)


def subsets_of(density: float) -> Family:
    """Random subsets that hold each person with probability ``density``."""
    _check_chance("density", density)
    return Family(f"subsets of density {density:g}", density, density * (1 - density))


def _check_chance(name: str, chance: float) -> None:
    if not LEAST_CHANCE <= chance <= 1 - LEAST_CHANCE:
        raise InputError(
            f"the {name} is {chance:g}; it must lie between 0 and 1, by {LEAST_CHANCE:g} or more"
        )


def check_answers(mechanism: Mechanism, queries: int) -> None:
    """Raise unless the closed forms keep their digits for so many answers with such noise."""
    if not 1 <= queries <= MOST_QUERIES:
        raise InputError(f"the closed form holds for 1 to {MOST_QUERIES:.0e} queries; plan fewer")
    sigma = getattr(mechanism, "sigma", 1.0)
    if not LEAST_SIGMA <= sigma <= MOST_SIGMA:
        raise InputError(
            f"sigma is {sigma:g}; the closed form holds from {LEAST_SIGMA:g} to {MOST_SIGMA:g}"
        )


@dataclass(frozen=True)
class Attack:
    """``queries`` answers about ``people`` people, of whom a share ``prior`` has the secret bit."""

    people: int
    queries: int
    mechanism: Mechanism
    prior: float = 0.5
    family: Family = SUBSETS

    def __post_init__(self) -> None:
        if self.people < 2 or self.queries < 1:
            raise InputError(
                f"{self.people} people and {self.queries} queries; there must be at least 2 and 1"
            )
        if self.people > MOST_PEOPLE or self.queries > MOST_QUERIES:
            raise InputError(
                f"too many people or queries; the closed form goes up to {MOST_PEOPLE:.0e} and "
                f"{MOST_QUERIES:.0e}"
            )
        check_answers(self.mechanism, self.queries)
        _check_chance("prior", self.prior)
        if isinstance(self.mechanism, RoundedToBase) and self.mechanism.base > self.widest_base:
            raise NoPrediction(
                f"rounding to {self.mechanism.base} leaves hardly any two counts of "
                f"{self.people} people apart, and is no noise then; plan with a base up to "
                f"{self.widest_base:.0f}"
            )

    @property
    def widest_base(self) -> float:
        """The base up to which a rounding error is as good as uniform: two SD of a count."""
        return 2 * sqrt(self.people * self.prior * self.family.variance)

    @cached_property
    def law(self) -> Law:
        """The law of an answer's noise."""
        return law_of(self.mechanism)

    @property
    def baseline(self) -> float:
        """What guessing without any answer gets right."""
        return max(self.prior, 1 - self.prior)

    @property
    def pinned(self) -> bool:
        """Whether the answers reveal the total."""
        return self.family.mean != 0

    @property
    def share_left(self) -> float:
        """What knowing the total leaves of tau^2."""
        mean, variance = self.family.mean, self.family.variance
        return 1 - mean**2 / (variance + self.people * mean**2)


class Recursion(Protocol):
    """A decoder as its recursion."""

    name: ClassVar[str]
    words: ClassVar[str]

    def start(self, attack: Attack) -> float:
        """tau^2 of one who knows nothing yet."""
        ...

    def step(self, attack: Attack, tau2: float) -> float:
        """The next tau^2; infinite where the decoder has no answer of its own."""
        ...

    def accuracy(self, attack: Attack, tau2: float) -> float:
        """The share of bits it gets right."""
        ...


def _ignorance(attack: Attack) -> float:
    """V of one who knows the prior alone."""
    return attack.people * attack.family.variance * attack.prior * (1 - attack.prior)


@dataclass(frozen=True)
class LeastSquares:
    """Least squares over 0 <= x <= 1, rounded."""

    name: ClassVar[str] = "ls"
    words: ClassVar[str] = "least squares in the box, rounded"

    def start(self, attack: Attack) -> float:
        return (attack.law.variance + _ignorance(attack)) / (
            attack.queries * attack.family.variance
        )

    def step(self, attack: Attack, tau2: float) -> float:
        n, m, v = attack.people, attack.queries, attack.family.variance
        seen = boxed(sqrt(tau2), attack.prior, attack.pinned)
        return (attack.law.variance + n * v * seen.error) / (m * v)

    def accuracy(self, attack: Attack, tau2: float) -> float:
        seen = boxed(sqrt(tau2), attack.prior, attack.pinned)
        _check_unique(self.name, attack, seen.inside)
        return seen.accuracy


@dataclass(frozen=True)
class LeastAbsolute:
    """The paper's linear program: least absolute residuals over 0 <= x <= 1, rounded."""

    name: ClassVar[str] = "lp"
    words: ClassVar[str] = "the paper's linear program, rounded"

    def start(self, attack: Attack) -> float:
        return LeastSquares().start(attack)

    def step(self, attack: Attack, tau2: float) -> float:
        n, m, v = attack.people, attack.queries, attack.family.variance
        seen = boxed(sqrt(tau2), attack.prior, attack.pinned)
        kappa = max(n / m * seen.inside, LEAST_KAPPA)
        if kappa >= 1:
            return inf
        V = n * v * seen.error
        b = attack.law.quantile(kappa, V)
        return attack.law.clipped(b, V) / (m * v * kappa**2)

    def accuracy(self, attack: Attack, tau2: float) -> float:
        seen = boxed(sqrt(tau2), attack.prior, attack.pinned)
        _check_unique(self.name, attack, seen.inside)
        return seen.accuracy


@dataclass(frozen=True)
class Posterior:
    """The likelier bit of everyone, given all answers, the prior and the law of the noise."""

    name: ClassVar[str] = "bayes"
    words: ClassVar[str] = "the likelier bit, knowing prior and noise"

    def start(self, attack: Attack) -> float:
        information = attack.law.information(_ignorance(attack))
        return 1 / (attack.queries * attack.family.variance * information)

    def step(self, attack: Attack, tau2: float) -> float:
        n, m, v = attack.people, attack.queries, attack.family.variance
        V = n * v * posterior_error(sqrt(tau2), attack.prior)
        return 1 / (m * v * attack.law.information(V))

    def accuracy(self, attack: Attack, tau2: float) -> float:
        return posterior_accuracy(sqrt(tau2), attack.prior)


@dataclass(frozen=True)
class BoundedPosterior(Posterior):
    """The same where the noise has a hard bound, which another decoder uses."""

    name: ClassVar[str] = "bounded"
    words: ClassVar[str] = "the likelier bit, knowing prior and bound"


DECODERS: tuple[Recursion, ...] = (
    LeastAbsolute(), LeastSquares(), Posterior(), BoundedPosterior()
)  # fmt: skip


def decoders_for(mechanism: Mechanism) -> tuple[Recursion, ...]:
    """The decoders that are predicted for such answers, the strongest last."""
    left_out = "bayes" if is_bounded(mechanism) else "bounded"
    return tuple(decoder for decoder in DECODERS if decoder.name != left_out)


def is_bounded(mechanism: Mechanism) -> bool:
    """Whether no answer can be further than so much from its count."""
    return isinstance(mechanism, Uniform | RoundedToBase)


class OutOfTime(NoPrediction):
    """The time for a prediction is over."""


@dataclass(frozen=True)
class FixedPoint:
    """Where a recursion settles: the share of bits right, and the noise tau of each."""

    accuracy: float
    tau: float


def fixed_point(attack: Attack, decoder: Recursion, until: float = inf) -> FixedPoint:
    """The fixed point that is reached from knowing nothing, before ``monotonic`` is ``until``."""
    possible = decoders_for(attack.mechanism)
    if decoder not in possible:
        names = ", ".join(each.name for each in possible)
        bound = "a hard bound" if is_bounded(attack.mechanism) else "no hard bound"
        raise InputError(
            f"{decoder.name} is no decoder for noise with {bound}; predict one of {names}"
        )
    if attack.queries <= attack.people / 2 and attack.law.variance < NEARLY_EXACT:
        raise _too_few(decoder.name, attack)
    tau2 = decoder.start(attack) * attack.share_left
    for _ in range(STEPS):
        if monotonic() > until:
            raise OutOfTime(
                f"{decoder.name}: {attack.queries} answers about {attack.people} people take too "
                "long to predict; plan with other numbers, or run `countleak lab sweep`"
            )
        new = decoder.step(attack, tau2) * attack.share_left
        if new == inf:
            raise _too_few(decoder.name, attack)
        if abs(new - tau2) <= TOLERANCE * tau2 or new < EXACT:
            return FixedPoint(decoder.accuracy(attack, new), sqrt(new))
        tau2 += DAMPING * (new - tau2)
    raise NoPrediction(
        f"{decoder.name}: the recursion does not settle for {attack.queries} answers about "
        f"{attack.people} people; plan with more queries or more noise, or run "
        "`countleak lab sweep`"
    )


def _check_unique(name: str, attack: Attack, inside: float) -> None:
    """Refuse where more people are undecided than there are answers to decide them."""
    if attack.people * inside >= attack.queries:
        raise _too_few(name, attack)


def _too_few(name: str, attack: Attack) -> NoPrediction:
    return NoPrediction(
        f"{name}: {attack.queries} answers about {attack.people} people are met by many "
        "solutions alike, and which one comes out is the solver's choice; plan with more than "
        "half as many queries as people, or run `countleak lab sweep`"
    )


def large_n_limit(attack: Attack) -> float | None:
    """What many people together leave under normal noise: tau^2 = Var(w) / (m v), no error left.

    With prior 1/2 and counts this is Phi(sqrt(m) / (4 sigma)). A few people can do better.
    """
    return _yardstick(attack, attack.family.variance)


def genie_bound(attack: Attack) -> float | None:
    """What nobody beats under normal noise: every other bit known, tau^2 = Var(w) / (m square).

    With prior 1/2 and counts this is Phi(sqrt(m / 8) / sigma).
    """
    return _yardstick(attack, attack.family.square)


def _yardstick(attack: Attack, energy: float) -> float | None:
    if not attack.law.normal:
        return None
    tau2 = attack.law.variance / (attack.queries * energy)
    return posterior_accuracy(sqrt(tau2), attack.prior)
