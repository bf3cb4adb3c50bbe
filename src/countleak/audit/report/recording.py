"""From the result of an audit to its record: all that takes the truth, the target or some time."""

import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from math import isfinite
from typing import Any

import numpy as np

import countleak
from countleak.attack.guess import WORDS, Basis, Passing, Sampled
from countleak.attack.secrets import Bit, Category, Number
from countleak.audit.control import Control
from countleak.audit.families import statements
from countleak.audit.joining import BlocksResult
from countleak.audit.report.growth import growth_of
from countleak.audit.report.record import (
    Asked,
    Calibrated,
    Claims,
    Expected,
    Judged,
    Luck,
    Method,
    Record,
    Scored,
)
from countleak.audit.report.remedy import Remedy, Setting, remedy_for
from countleak.audit.report.residuals import Residuals, residuals_of
from countleak.audit.result import AuditResult
from countleak.audit.scores import calibration_of, wilson
from countleak.audit.targets.simulated import Simulated
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import CountleakError, NoResult
from countleak.progress import Progress, silent

SAMPLES = 3
# What figures depend on besides countleak itself.
PACKAGES = ("numpy", "scipy", "numba", "highspy", "duckdb", "sqlglot")
Found = AuditResult | BlocksResult
KINDS = {Bit: "bit", Category: "category", Number: "number"}


@dataclass(frozen=True)
class Notes:
    """What whoever runs an audit knows of it besides its result.

    ``allowed`` is how large an advantage over guessing may be, ``probed`` how many statements were
    sent beforehand; ``nothing`` says why the attack could not be carried out, if it could not.
    """

    system: str
    authorised_by: str | None = None
    seed: int = 0
    allowed: float | None = None
    control: Control | None = None
    probed: int = 0
    nothing: str = ""


def record_of(result: AuditResult, notes: Notes, progress: Progress = silent) -> Record:
    """The record of an audit; decoding fewer answers for its curve is what takes long.

    Of an attack that could not be carried out there are no figures: they would show nothing.
    """
    if notes.nothing:
        nobody = np.zeros_like(result.guess.claimed)
        guess = replace(result.guess, claimed=nobody, forced=nobody, probability=None)
        step = replace(result.steps[-1], guess=guess)
        result = replace(result, steps=(step,), score=None, truth=None, decoder=None)
    residuals = residuals_of(result.transcript, result.guess)
    score, expected = result.score, result.guess.expected_interval
    return Record(
        system=notes.system,
        simulated=isinstance(result.target, Simulated),
        secret=str(result.secret),
        kind=KINDS[type(result.secret)],
        people=len(result.audited),
        key=result.audited.key,
        authorised_by=notes.authorised_by,
        seed=notes.seed,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        asked=_asked(result, notes.probed),
        method=method_of(result),
        judged=judged_of(result, notes),
        score=None if score is None else scored_of(result),
        expected=None
        if expected is None or result.confidence is None
        else Expected(result.confidence, expected),
        calibration=calibrated_of(result),
        control=None if notes.control is None else Luck(**notes.control.record()),
        growth=growth_of(result, seed=notes.seed, progress=progress),
        residuals=residuals,
        remedy=_remedy(result, residuals, notes.allowed),
    )


def versions() -> dict[str, str]:
    """Of countleak, of Python and of what the figures depend on."""
    found = {"countleak": countleak.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "platform": f"{platform.system()} {platform.machine()}"}


def _asked(result: AuditResult, probed: int) -> Asked:
    transcript = result.transcript
    questions = getattr(result.target, "questions", None)
    sent = isinstance(questions, SqlQuestions)
    return Asked(
        family=transcript.queries.family.name,
        answers=len(transcript),
        suppressed=int((~transcript.released).sum()),
        statements=statements(transcript) + probed,
        probed=probed,
        stopped_early=result.steps[-1].reached,
        samples=_samples(result, questions),
        sent=sent,
    )


def _samples(result: AuditResult, questions: Any) -> tuple[str, ...]:
    """A few of the questions in SQL; none where they have no such form."""
    queries, people = result.transcript.queries, result.audited
    if not isinstance(questions, SqlQuestions):
        questions = SqlQuestions(people.table, people.key, result.secret, PLAIN)
    try:
        if queries.family.name == "tables" and questions.template is None:
            tables = questions.by_tables(queries, np.arange(len(queries)))
            return tuple(text for _, text in islice(tables, SAMPLES))
        positions = np.linspace(0, len(queries) - 1, min(SAMPLES, len(queries))).astype(np.int64)
        return tuple(questions.statement(queries, int(position)) for position in positions)
    except (CountleakError, NotImplementedError):
        return ()


def method_of(result: Found) -> Method:
    """How the answers were decoded."""
    basis = result.guess.basis
    record = {
        name: value
        for name, value in basis.record().items()
        if name not in (*WORDS, "decoder") and _is_plain(value)
    }
    return Method(
        basis.decoder,
        basis.picked_because,
        basis.stated,
        basis.inferred,
        basis.assuming,
        basis.misfit,
        record,
    )


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value."""
    if isinstance(value, dict):
        return all(_is_plain(part) for part in value.values())
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, str | int)


def judged_of(result: Found, notes: Notes) -> Judged:
    """Whether more leaks than is allowed, or why that cannot be told."""
    if notes.nothing or notes.allowed is None:
        return Judged(notes.allowed, nothing=notes.nothing)
    try:
        failed = result.leaks_more_than(notes.allowed)
        return Judged(notes.allowed, failed, result.verdict_in_words(notes.allowed))
    except NoResult as error:
        return Judged(notes.allowed, None, str(error))


def scored_of(result: Found) -> Scored:
    """How many guesses agree with the truth, which is known."""
    score = result.score
    assert score is not None
    bits = result.guess.names == () and score.errors is None
    return Scored(
        score.people,
        score.claims,
        score.right,
        score.baseline,
        score.accuracy,
        score.interval(),
        score.advantage,
        result.advantage_interval,
        score.kappa,
        score.alpha(score.people),
        score.alpha(0),
        score.false_positives if bits else None,
        score.false_negatives if bits else None,
        None if score.errors is None else score.errors.tolerance,
    )


def calibrated_of(result: Found) -> Calibrated | None:
    """Whether probabilities mean what they say; missing without the truth or probabilities."""
    if result.truth is None:
        return None
    found = calibration_of(result.guess, result.truth)
    if found is None:
        return None
    bins = (
        Claims(b.claims, b.confidence, b.right / b.claims, wilson(b.right, b.claims))
        for b in found.bins
    )
    return Calibrated(tuple(bins), found.error, found.brier)


def _remedy(result: AuditResult, residuals: Residuals | None, allowed: float | None) -> Remedy:
    guess = result.guess
    noise = None if guess.names or residuals is None else guess.basis.noise
    prior = float((guess.values == 1).mean()) if not guess.names and not guess.intervals else 0.5
    setting = Setting(
        len(result.audited),
        len(result.transcript),
        result.transcript.queries.family.name,
        prior,
        _noise_sd(guess.basis, residuals),
    )
    return remedy_for(setting, noise, allowed)


def _noise_sd(basis: Basis, residuals: Residuals | None) -> float:
    """The noise's SD: as it was sampled, for residuals of a guess that is in doubt are smaller."""
    if isinstance(basis, Sampled) and basis.sigma:
        return sum(basis.sigma) / len(basis.sigma)
    if isinstance(basis, Passing):
        return basis.sigma
    return 0.0 if residuals is None else residuals.sd
