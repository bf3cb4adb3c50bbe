"""The report: the verdict on an audit and all that it rests on, from what lies in its folder.

A `Report` is what the file `report.json` holds; the page, SARIF and JUnit show parts of it.
"""

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from countleak.attack.guess import Guess
from countleak.attack.guess_file import read_guess
from countleak.attack.queries.files import FAMILIES
from countleak.attack.queries.ids import id_list
from countleak.audit.report.hiding import without_ids
from countleak.audit.report.record import FILE, Record, read_record
from countleak.audit.report.verdict import Outcome, Verdict, verdict_of
from countleak.errors import InputError
from countleak.files import Name
from countleak.foreign import brief

VERSION = 1
FILES = (FILE, "queries.jsonl", "answers.jsonl", "guess.jsonl")
# So many people are listed; with their ids hidden a long list says no more than a short one.
MOST_LISTED, MOST_HIDDEN = 100, 10
# How sure claims are, in classes from the surest on; the last is what is left.
CLASSES = (
    ("almost certain", 0.99),
    ("very likely", 0.95),
    ("likely", 0.8),
    ("leaning", 0.6),
    ("open", 0.0),
)
# From here on a claim about one person singles them out.
SINGLED_OUT = 0.95


@dataclass(frozen=True)
class Class:
    """How many claims are about as sure: with ``least`` probability or more."""

    name: str
    least: float
    people: int


@dataclass(frozen=True)
class Person:
    """A person at risk: how sure the claim is, and whether it is proven, implied, or only claimed.

    ``id`` and ``value`` are hidden unless they were asked for. Numbers have an ``interval``.
    """

    rank: int
    standing: str
    confidence: float | None
    id: str | None = None
    value: str | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class AtRisk:
    """The people by how sure the claims about them are, the surest first, ``more`` not listed."""

    classes: tuple[Class, ...]
    proven: int
    implied: int
    shown: bool
    listed: tuple[Person, ...]
    more: int


@dataclass(frozen=True)
class Article29:
    """The three risks of opinion WP 216 of the Article 29 working party, in its words."""

    singling_out: str
    linkability: str
    inference: str


@dataclass(frozen=True)
class Report:
    """The verdict, the audit's own record, who is at risk, and what was not tested.

    ``digests`` are SHA-256 of the audit's files, by name.
    """

    verdict: Verdict
    audit: Record
    people: AtRisk
    not_tested: tuple[str, ...]
    article_29: Article29
    digests: dict[str, str]

    def record(self) -> dict[str, Any]:
        """The report as plain fields: what its JSON schema describes."""
        return {"countleak": "report", "version": VERSION, **asdict(self)}


def read_report(folder: Name, *, show_ids: bool = False) -> Report:
    """The report on the audit in a folder; ids and values of people are hidden unless wanted."""
    folder = Path(folder)
    record = read_record(folder)
    guess, secret = read_guess(folder / "guess.jsonl")
    if str(secret) != record.secret or guess.ids.size != record.people:
        raise InputError(
            f"{folder}: guess.jsonl and {FILE} are of different audits; run `countleak audit` again"
        )
    if not show_ids:
        samples = tuple(without_ids(text, record.key) for text in record.asked.samples)
        record = replace(record, asked=replace(record.asked, samples=samples))
    if record.judged.nothing:
        # Claims that rest on nothing put nobody at risk.
        nobody = np.zeros_like(guess.claimed)
        guess = replace(guess, claimed=nobody, forced=nobody, probability=None)
    people = _at_risk(guess, show_ids)
    verdict = verdict_of(record, people.proven or people.implied, bool(people.proven))
    return Report(
        verdict,
        record,
        people,
        not_tested(record),
        _article_29(record, people, verdict),
        {name: _digest(folder / name) for name in FILES if (folder / name).is_file()},
    )


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _at_risk(guess: Guess, show: bool) -> AtRisk:
    proven, implied = int(guess.proven.sum()), int(guess.implied.sum())
    claimed, sure = guess.claimed, _sureness(guess)
    order = np.lexsort((-sure, ~guess.forced, ~claimed))[: int(claimed.sum())]
    listed = order[: MOST_LISTED if show else MOST_HIDDEN]
    ids = id_list(guess.ids) if show else []
    return AtRisk(
        _classes(guess),
        proven,
        implied,
        show,
        tuple(_person(guess, int(i), rank, ids) for rank, i in enumerate(listed, 1)),
        order.size - listed.size,
    )


def _sureness(guess: Guess) -> Any:
    """What people are ranked by (n,): probability, or how narrow an interval is, or a margin."""
    if guess.confidence is not None:
        return guess.confidence
    if guess.intervals is not None:
        return -guess.intervals.error
    return np.zeros(guess.ids.size) if guess.margin is None else guess.margin


def _classes(guess: Guess) -> tuple[Class, ...]:
    """How many claims are in each class of confidence; none where there are no probabilities."""
    if guess.confidence is None:
        return ()
    confidence = np.where(guess.forced, 1.0, guess.confidence)[guess.claimed]
    classes, above = [], np.zeros(confidence.size, np.bool_)
    for name, least in CLASSES:
        here = (confidence >= least) & ~above
        classes.append(Class(name, least, int(here.sum())))
        above |= here
    return tuple(classes)


def _person(guess: Guess, i: int, rank: int, ids: list[Any]) -> Person:
    standing = "proven" if guess.proven[i] else "implied" if guess.forced[i] else "claimed"
    confidence = None if guess.confidence is None else float(guess.confidence[i])
    if not ids:
        return Person(rank, standing, confidence)
    person, value = ids[i], guess.values[i].item()
    name = ", ".join(map(str, person)) if isinstance(person, list | tuple) else str(person)
    parts = guess.intervals
    if parts is None:
        return Person(rank, standing, confidence, name, str(value))
    interval = float(parts.low[i]), float(parts.high[i])
    return Person(rank, standing, confidence, name, f"{value:,.6g}", interval)


def not_tested(record: Record) -> tuple[str, ...]:
    """What this audit leaves open, in sentences."""
    others = sorted(set(FAMILIES) - {record.asked.family, "signs"})
    open_points = [
        f"Other questions: only {record.asked.family} were asked, not {', '.join(others)}.",
        f"Other secrets: only {brief(record.secret)} was attacked.",
        "Other people than those who were named to this audit, and whether someone is in the data.",
        "An attacker who knows some people's secrets beforehand, or has other data about them.",
        "Whether a better attack exists: this is what one attack found.",
        "Linking records across tables or releases.",
        "How long answers take, what errors say, and who can reach the system.",
    ]
    if record.simulated:
        open_points.insert(
            0, "The real system: the answers were simulated, under noise that was stated."
        )
    if record.score is None and not record.judged.nothing:
        open_points.insert(0, "Whether the guesses are right: the truth is not known here.")
    if record.control is None:
        open_points.append(
            "What the same attack gets right by luck, on a twin of the system (--control)."
        )
    return tuple(open_points)


def _article_29(record: Record, people: AtRisk, verdict: Verdict) -> Article29:
    sure = sum(c.people for c in people.classes if c.least >= SINGLED_OUT)
    if verdict.outcome is Outcome.NOTHING:
        return Article29("not shown", "not assessed", "not shown")
    singled = (
        f"{sure:,} of {record.people:,} people are claimed one by one with a probability of "
        f"{SINGLED_OUT:.0%} or more"
        if people.classes
        else "claims come without probabilities, so nobody is singled out for sure"
    )
    inference = {
        Outcome.LEAKS: "shown: the secret is deduced with significant probability from the answers",
        Outcome.CONFIDENCE: "not measured, for the truth is not known; see what the attack expects",
    }.get(verdict.outcome, "not shown by this attack, and not ruled out")
    return Article29(singled, "not assessed", inference)
