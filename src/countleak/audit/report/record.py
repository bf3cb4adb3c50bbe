"""What an audit keeps of itself beside its queries, answers and guess: the file `audit.json`.

It holds what its report needs and nobody's true value: of the truth only how many guesses agree
with it. Everything in it is plain fields, so that the same dataclasses are written and read.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from countleak.audit.report.growth import Growth
from countleak.audit.report.remedy import Remedy
from countleak.audit.report.residuals import Residuals
from countleak.audit.report.structure import structured
from countleak.errors import InputError
from countleak.files import Name, header_line, read_text, replacing, require_writable

FILE, KIND, VERSION = "audit.json", "audit", 1
Interval = tuple[float, float]


@dataclass(frozen=True)
class Asked:
    """What was asked: ``answers`` came back of which ``suppressed`` say only that they are low.

    ``samples`` are a few of the questions as SQL, which was ``sent`` so or is only how it reads.
    """

    family: str
    answers: int
    suppressed: int
    statements: int
    probed: int = 0
    stopped_early: bool = False
    samples: tuple[str, ...] = ()
    sent: bool = False


@dataclass(frozen=True)
class Scored:
    """How many guesses agree with the truth; shares next to what guessing without answers gets.

    ``interval`` and ``advantage_interval`` hold the figure with 95% probability. Numbers are right
    within the share ``tolerance``.
    """

    people: int
    claims: int
    right: int
    baseline: float
    accuracy: float | None
    interval: Interval | None
    advantage: float | None
    advantage_interval: Interval | None
    kappa: float | None
    alpha_ids_known: float
    alpha_ids_free: float
    false_positives: int | None = None
    false_negatives: int | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Claims:
    """Claims of about the same confidence: how many, and the share of them that is right."""

    claims: int
    confidence: float
    right: float
    interval: Interval


@dataclass(frozen=True)
class Calibrated:
    """Whether probabilities mean what they say: claims by confidence, and how far off they are."""

    bins: tuple[Claims, ...]
    error: float
    brier: float


@dataclass(frozen=True)
class Luck:
    """What the same attack gets right on a twin with shuffled secrets, and the risk beyond that."""

    right: int
    by_luck: int
    risk: float
    interval: Interval


@dataclass(frozen=True)
class Expected:
    """The share of guesses that should be right by the decoder's own probabilities."""

    share: float
    interval: Interval


@dataclass(frozen=True)
class Method:
    """How the answers were decoded, and what that rests on; ``solved`` is what a solver says."""

    decoder: str
    because: str
    stated: tuple[str, ...]
    inferred: tuple[str, ...]
    assuming: str
    misfit: str
    solved: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """How much was ``allowed``, whether more leaks, and why that cannot be told, if it cannot.

    ``nothing`` says why the audit shows nothing at all, where the attack could not be carried out.
    """

    allowed: float | None = None
    failed: bool | None = None
    words: str = ""
    nothing: str = ""


@dataclass(frozen=True)
class Record:
    """An audit, as plain fields.

    ``kind`` says whether the secret is a bit, a category or a number; ``key`` are the columns that
    tell ``people`` apart; ``finished`` is a time in UTC. What could not be measured is None.
    """

    system: str
    simulated: bool
    secret: str
    kind: str
    people: int
    key: tuple[str, ...]
    authorised_by: str | None
    seed: int
    finished: str
    versions: dict[str, str]
    asked: Asked
    method: Method
    judged: Judged
    score: Scored | None
    expected: Expected | None
    calibration: Calibrated | None
    control: Luck | None
    growth: Growth
    residuals: Residuals | None
    remedy: Remedy


def write_record(folder: Path, record: Record) -> None:
    """Keep the record of an audit in its folder."""
    path = folder / FILE
    require_writable(path, KIND)
    with replacing(path) as file:
        file.write(header_line(KIND, {"format": VERSION, **asdict(record)}))


def read_record(folder: Name) -> Record:
    """The record that an audit kept in its folder."""
    path = Path(folder) / FILE
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder; name the folder of an audit")
    if not path.exists():
        raise InputError(
            f"{folder}: no {FILE} there, so no audit left a record of itself; run `countleak "
            "audit` with this folder again (answers that are kept are not asked for again)"
        )
    try:
        fields = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON; run `countleak audit` again") from None
    if not isinstance(fields, dict) or fields.get("countleak") != KIND:
        raise InputError(f"{path}: not the record of an audit; run `countleak audit` again")
    if fields.get("format") != VERSION:
        raise InputError(
            f"{path}: format {fields.get('format')!r}, this countleak reads {VERSION}; run "
            "`countleak audit` again"
        )
    try:
        return structured(Record, fields)
    except InputError as error:
        raise InputError(f"{path}: {error}; run `countleak audit` again") from None
