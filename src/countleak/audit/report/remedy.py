"""What would have kept the secret, and what that costs whoever wants the counts."""

from dataclasses import dataclass
from math import sqrt

from countleak.attack.noise import Noise, Shape
from countleak.audit.budget.advice import Advice, Limits, advise
from countleak.audit.budget.evolution import DIGITS, SUBSETS, Attack, Family, decoders_for
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Uniform,
)
from countleak.errors import InputError, NoPrediction
from countleak.progress import Progress, silent

# What an owner accepts who has not said: a tenth of the way from guessing to knowing.
ACCEPTED = 0.1
SECONDS = 10.0
# Families whose questions are as good as random halves of the people.
FAMILIES: dict[str, Family] = {
    "subsets": SUBSETS,
    "modular": SUBSETS,
    "hashed": SUBSETS,
    "digits": DIGITS,
}


@dataclass(frozen=True)
class Remedy:
    """What keeps the advantage over guessing at ``allowed``, each alone; None where unknown.

    ``noise_now`` is what the system does, of SD ``noise_sd_now``. ``noise_sd`` on each of as many
    answers keeps it against this attack, as normal noise where it is ``in_place`` of a bound or of
    rounding; ``noise_sd_against_all`` against any; ``answers`` in all with the system as it is;
    ``base`` to round counts to in place of noise, where ``rounding_helps``. ``epsilon`` is what the
    answers cost at ``delta`` as differential privacy, ``noise_sd_for_epsilon`` the noise at which
    they cost ``epsilon_wanted``. A count is ``typical_count`` on average, in people, so that noise
    can be weighed against it. ``why`` says why nothing could be computed, ``remarks`` what was left
    out.
    """

    allowed: float
    noise_now: str = ""
    noise_sd_now: float | None = None
    noise_sd: float | None = None
    in_place: bool = False
    noise_sd_against_all: float | None = None
    answers: int | None = None
    base: int | None = None
    rounding_helps: bool | None = None
    epsilon: float | None = None
    delta: float | None = None
    epsilon_wanted: float | None = None
    noise_sd_for_epsilon: float | None = None
    typical_count: float | None = None
    why: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def noise_suffices(self) -> bool:
        """Whether the noise there is keeps it, by the prediction."""
        if self.in_place or self.noise_sd is None or self.noise_sd_now is None:
            return False
        return self.noise_sd <= self.noise_sd_now


@dataclass(frozen=True)
class Setting:
    """The size of an attack: how many people and answers, and what a question is like.

    A share ``prior`` of the people has the secret; ``sd`` is the noise's, in people.
    """

    people: int
    answers: int
    family: str
    prior: float
    sd: float


def remedy_for(
    setting: Setting, noise: Noise | None, allowed: float | None, progress: Progress = silent
) -> Remedy:
    """The remedy against an attack of this size on a system with this noise."""
    limit = ACCEPTED if not allowed or allowed >= 1 else allowed
    family = FAMILIES.get(setting.family)
    if noise is None:
        return Remedy(
            limit, why="the prediction is for yes-or-no secrets under noise of a known law"
        )
    if family is None:
        other = f"the prediction is for questions about random sets, not for {setting.family}"
        return Remedy(limit, why=other)
    mechanism, words = _mechanism(noise, setting.sd)
    try:
        prior = min(max(setting.prior, 0.5 / setting.people), 1 - 0.5 / setting.people)
        attack = Attack(setting.people, setting.answers, mechanism, prior, family)
        strongest = decoders_for(mechanism)[-1]
        advice = advise(attack, strongest, Limits(limit), time_limit=SECONDS, progress=progress)
    except (NoPrediction, InputError) as error:
        return Remedy(limit, words, why=str(error))
    return _told(advice, words, setting)


def _told(advice: Advice, words: str, setting: Setting) -> Remedy:
    private = advice.epsilon is not None
    return Remedy(
        advice.limits.advantage,
        words,
        advice.sigma,
        advice.remedy.sigma if advice.remedy else None,
        advice.sigma_needed is None and advice.remedy is not None,
        advice.sigma_against_everyone,
        advice.queries_allowed,
        advice.base_needed,
        advice.rounding_helps,
        advice.epsilon,
        advice.limits.delta if private else None,
        advice.limits.epsilon if private else None,
        advice.sigma_for_epsilon,
        setting.people * setting.prior / 2,
        remarks=advice.remarks,
    )


def _mechanism(noise: Noise, sd: float) -> tuple[Mechanism, str]:
    """The mechanism nearest to some noise, and what it is in words."""
    if noise.shape is Shape.UNIFORM and noise.bound is not None and noise.bound >= 1:
        return Uniform(int(noise.bound)), f"uniform noise within ± {noise.bound:g}"
    if noise.shape is Shape.EXACT and noise.base > 1:
        rounded = RoundedToBase(noise.base, noise.random_rounding)
        return rounded, f"counts rounded to multiples of {noise.base}"
    # Answers to whole people are off by that of rounding at least.
    sd = max(sd, sqrt(1 / 12))
    if noise.shape is Shape.EXACT:
        return Gaussian(sd), "no noise at all, taken for that of rounding to whole people"
    if noise.shape is Shape.LAPLACE:
        return Laplace(sd), f"Laplace noise of SD {sd:.2f}"
    return Gaussian(sd), f"normal noise of SD {sd:.2f}"
