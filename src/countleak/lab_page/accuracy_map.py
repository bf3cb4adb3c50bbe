"""Predicted accuracy over noise and questions, and one's own system on it; by ``audit.budget``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from time import monotonic
from typing import Self

import numpy as np

from countleak.audit.budget.evolution import (
    Attack,
    LeastAbsolute,
    LeastSquares,
    Posterior,
    Recursion,
    fixed_point,
)
from countleak.audit.budget.inverse import accuracy_at, queries_allowed, sigma_needed
from countleak.audit.budget.prediction import Prediction, predict
from countleak.audit.targets.simulated import Gaussian, Laplace
from countleak.errors import NoPrediction
from countleak.lab_page.settings import among, number, whole, within

LAWS = {"gaussian": "normal noise", "laplace": "Laplace noise"}
ATTACKERS = {
    "bayes": "the strongest attacker",
    "lp": "the paper's linear program",
    "ls": "least squares",
}
_RECURSIONS: dict[str, Recursion] = {
    "bayes": Posterior(),
    "lp": LeastAbsolute(),
    "ls": LeastSquares(),
}
# From left to right and from bottom to top, in even steps of the logarithm.
COLUMNS, ROWS = 24, 18
LEAST_SD, MOST_SD = 0.5, 32.0
LEAST_QUESTIONS, MOST_QUESTIONS = 50, 20_000
LEAST_PEOPLE, MOST_PEOPLE = 20, 1000
# What the remedies may take; those that are not found by then are left out.
SECONDS = 3.0


@dataclass(frozen=True)
class MapSettings:
    """A system on the map: its people and noise, how much is asked, and by whom.

    ``limit`` is the advantage over guessing that its owner would accept.
    """

    people: int = 100
    questions: int = 2500
    sd: float = 4.0
    law: str = "gaussian"
    attacker: str = "bayes"
    share: float = 0.5
    limit: float = 0.1

    def __post_init__(self) -> None:
        within("people", self.people, LEAST_PEOPLE, MOST_PEOPLE)
        within("questions", self.questions, LEAST_QUESTIONS, MOST_QUESTIONS)
        within("SD", self.sd, LEAST_SD, MOST_SD)
        within("share", self.share, 0.05, 0.95)
        within("limit", self.limit, 0.01, 0.9)
        among("noise", self.law, LAWS)
        among("attacker", self.attacker, ATTACKERS)

    @classmethod
    def of_form(cls, form: Mapping[str, str]) -> Self:
        """The settings that a form sends; what it leaves out stays as it is."""
        values: dict[str, object] = {
            name: form[name] for name in ("law", "attacker") if name in form
        }
        for name in ("people", "questions"):
            if name in form:
                values[name] = whole(name, form[name])
        if "sd" in form:
            values["sd"] = number("SD", form["sd"])
        for name in ("share", "limit"):
            if name in form:
                values[name] = number(name, form[name]) / 100
        return cls(**values)  # type: ignore[arg-type]

    @property
    def command(self) -> str:
        """The same prediction on the command line."""
        words = [f"countleak budget --n {self.people} -m {self.questions} --sigma {self.sd:g}"]
        default = MapSettings()
        for option, value, usual in (
            ("--mechanism", self.law, default.law),
            ("--decoder", self.attacker, default.attacker),
            ("--prior", f"{self.share:g}", f"{default.share:g}"),
            ("--limit", f"{self.limit:g}", f"{default.limit:g}"),
        ):
            if value != usual:
                words.append(f"{option} {value}")
        return " ".join(words)

    def attack(self, sd: float, questions: int) -> Attack:
        """The attack at a point of the map."""
        mechanism = Gaussian(sd) if self.law == "gaussian" else Laplace(sd)
        return Attack(self.people, questions, mechanism, self.share)


@dataclass(frozen=True)
class AccuracyMap:
    """Accuracies by column (noise) and row (questions), None where nothing is predicted.

    ``prediction`` is that for the system itself, missing with its reason in ``why``. The remedies
    are missing where none was found.
    """

    settings: MapSettings
    sds: tuple[float, ...]
    questions: tuple[int, ...]
    accuracies: tuple[tuple[float | None, ...], ...]
    baseline: float
    most_accuracy: float
    prediction: Prediction | None
    why: str
    sd_needed: float | None
    questions_allowed: int | None


def accuracy_map(settings: MapSettings) -> AccuracyMap:
    """The map for a system, and the system's place on it."""
    recursion = _RECURSIONS[settings.attacker]
    own = settings.attack(settings.sd, settings.questions)
    prediction, why = None, ""
    until = monotonic() + SECONDS
    try:
        prediction = predict(own, recursion, until)
    except NoPrediction as error:
        why = str(error)
    sd_needed = allowed = None
    try:
        sd_needed = sigma_needed(own, recursion, settings.limit, until)
        allowed = queries_allowed(own, recursion, settings.limit, until)
    except NoPrediction as error:
        why = why or str(error)
    at_any_place = replace(settings, sd=LEAST_SD, questions=LEAST_QUESTIONS, limit=0.1)
    return AccuracyMap(
        settings,
        _sds(),
        _questions(),
        _accuracies(at_any_place),
        own.baseline,
        accuracy_at(settings.limit, own.baseline),
        prediction,
        why,
        sd_needed,
        allowed,
    )


def _sds() -> tuple[float, ...]:
    return tuple(np.geomspace(LEAST_SD, MOST_SD, COLUMNS).tolist())


def _questions() -> tuple[int, ...]:
    counts = np.geomspace(LEAST_QUESTIONS, MOST_QUESTIONS, ROWS)
    return tuple(round(count) for count in counts.tolist())


@lru_cache(maxsize=64)
def _accuracies(settings: MapSettings) -> tuple[tuple[float | None, ...], ...]:
    """The accuracies of a map, column by column; they do not depend on the system's place."""
    recursion = _RECURSIONS[settings.attacker]

    def accuracy(sd: float, questions: int) -> float | None:
        try:
            return fixed_point(settings.attack(sd, questions), recursion, inf).accuracy
        except NoPrediction:
            return None

    return tuple(tuple(accuracy(sd, count) for count in _questions()) for sd in _sds())
