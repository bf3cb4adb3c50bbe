r"""Answers that a real Diffix gave, as Cohen and Nissim recorded them.

Their public folder holds, for each range of client ids, a log of queries and answers and the
true ids and bits as MATLAB files. The log is a list of Perl hashes:

    { db => "banking", ..., power => 0.5, mult => 2, offset => 5,
      sql => "SELECT ...", answer => 32, ... },
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.arithmetic import Arithmetic
from countleak.attack.queries.digits import digit_queries_of
from countleak.attack.secrets import Bit
from countleak.attack.transcript import LARGEST, Answers, Transcript
from countleak.audit.people import People
from countleak.errors import InputError
from countleak.files import read_text

LOG_NAME = re.compile(r"aircloak_output_cleaned_(\d+)_(\d+)\.txt")
FIELD = re.compile(r"""(\w+)\s*=>\s*("(?:[^"\\]|\\.)*"|[^,\s{}]*)""")


@dataclass(frozen=True)
class Entry:
    """One record of a log, and the line it starts on."""

    line: int
    prime: int
    constant: int
    exponent: float
    answer: float | None
    sql: str


@dataclass(frozen=True)
class Log:
    """A log read and sorted: what the attack uses, and what is set apart.

    ``entries`` are the usable records, each query once. Set apart are ``integer_exponents``
    (their subsets are everyone), ``failed`` (the system gave no answer), ``repeated`` (a query
    with an answer it had before) and ``conflicting`` (one query, different answers: noise that
    sticks cannot do that).
    """

    path: Path
    entries: tuple[Entry, ...]
    integer_exponents: tuple[Entry, ...]
    failed: tuple[Entry, ...]
    repeated: tuple[Entry, ...]
    conflicting: tuple[Entry, ...]

    @property
    def secret(self) -> Bit:
        """The secret the queries ask about, like ``status = 'C'``."""
        conditions = {m for e in self.entries for m in re.findall(r"AND (\w+ = '[^']*')", e.sql)}
        if len(conditions) != 1:
            raise InputError(
                f"{self.path}: the queries ask about {sorted(conditions) or 'no condition'}, "
                "expected one; split the log by condition"
            )
        return Bit(conditions.pop())

    def queries(self, ids: NDArray[np.int64], arithmetic: Arithmetic | None = None) -> Queries:
        """The usable entries as digit queries over ``ids``."""
        return digit_queries_of(
            ids,
            np.array([e.prime for e in self.entries]),
            np.array([e.constant for e in self.entries]),
            np.array([e.exponent for e in self.entries]),
            arithmetic=arithmetic,
        )

    def answers(self) -> Answers:
        """Their answers. Diffix answers 0 for a count it suppresses, so 0 is read as that."""
        values = np.array([e.answer for e in self.entries], dtype=np.float64)
        return Answers.to_all(values, values != 0)

    def transcript(
        self, ids: NDArray[np.int64], arithmetic: Arithmetic | None = None
    ) -> Transcript:
        """The usable entries as queries over ``ids``, beside their answers."""
        return Transcript.of(self.queries(ids, arithmetic), self.answers())

    def remarks(self) -> list[str]:
        """A line for each kind of record that was set apart."""
        kinds = {
            "with whole exponents": self.integer_exponents,
            "without an answer": self.failed,
            "of queries answered before, alike": self.repeated,
            "of queries answered twice, differently": self.conflicting,
        }
        return [
            f"{self.path.name}: {len(entries)} records {kind} left out (first: line "
            f"{entries[0].line})"
            for kind, entries in kinds.items()
            if entries
        ]


def read_log(path: Path) -> Log:
    """The records of an authors' log; a malformed one is reported by file and line."""
    text = read_text(path)
    entries = list(_entries(path, text))
    if not entries:
        raise InputError(f"{path}: there are no records; expected lines like {{ db => ... }}")
    by_query: dict[tuple[int, int, float], list[Entry]] = {}
    failed, integer = [], []
    for entry in entries:
        if entry.answer is None:
            failed.append(entry)
        elif entry.exponent.is_integer():
            integer.append(entry)
        else:
            by_query.setdefault((entry.prime, entry.constant, entry.exponent), []).append(entry)
    agreed = {q: len({e.answer for e in same}) == 1 for q, same in by_query.items()}
    if not any(agreed.values()):
        raise InputError(
            f"{path}: none of the {len(entries)} records can be used; all failed, have whole "
            "exponents or contradict each other"
        )
    return Log(
        path,
        tuple(same[0] for q, same in by_query.items() if agreed[q]),
        tuple(integer),
        tuple(failed),
        tuple(e for q, same in by_query.items() if agreed[q] for e in same[1:]),
        tuple(e for q, same in by_query.items() if not agreed[q] for e in same),
    )


def _entries(path: Path, text: str) -> Iterator[Entry]:
    """The records in order; a brace opens one and the next closes it."""
    start: int | None = None
    fields: dict[str, str] = {}
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        rest = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        if rest.count('"') % 2:
            raise InputError(f"{path} line {number}: a quote is not closed; is the file cut off?")
        if "{" in rest:
            if start is not None:
                raise InputError(
                    f"{path} line {number}: a record starts before the one of line {start} ended; "
                    "fix or remove it"
                )
            start, fields = number, {}
        fields |= dict(FIELD.findall(line))
        if "}" in rest:
            if start is None:
                raise InputError(f"{path} line {number}: a record ends that did not start")
            yield _entry(path, start, fields)
            start = None
    if start is not None:
        raise InputError(
            f"{path} line {number}: the file is cut off in the record of line {start}; "
            "remove the record or fetch the file again"
        )


def _entry(path: Path, line: int, fields: dict[str, str]) -> Entry:
    try:
        answer = fields["answer"]
        # Words in place of a number ("failed", a time-out) are queries the system did not answer.
        answered = not answer.startswith('"') and answer not in ("", "undef")
        entry = Entry(
            line,
            int(fields["mult"]),
            int(fields["offset"]),
            float(fields["power"]),
            float(answer) if answered else None,
            fields["sql"].strip('"'),
        )
    except KeyError as error:
        raise InputError(
            f"{path} line {line}: the record has no {error.args[0]!r}; fix or remove it"
        ) from None
    except ValueError as error:
        raise InputError(
            f"{path} line {line}: malformed record ({error}); fix or remove it"
        ) from None
    if entry.answer is not None and not abs(entry.answer) < LARGEST:
        raise InputError(f"{path} line {line}: answer is {entry.answer}; fix or remove the record")
    stated = _predicate(entry)
    if _squeezed(stated) not in _squeezed(entry.sql):
        raise InputError(
            f"{path} line {line}: the fields say {stated!r}, the SQL asks something else; "
            "fix or remove the record"
        )
    return entry


def _predicate(entry: Entry) -> str:
    """The query in SQL, to the letter as it was asked of Diffix."""
    power = f"pow((client_id * {entry.prime}), {entry.exponent:g})"
    return f"floor({entry.constant} * {power} + 0.5) = floor({entry.constant} * {power})"


def _squeezed(sql: str) -> str:
    return re.sub(r"\s+", "", sql)


@dataclass(frozen=True, eq=False)
class RecordedRange:
    """One range of client ids of the authors' folder: the people, the truth and the log."""

    low: int
    high: int
    people: People
    log: Log

    @property
    def name(self) -> str:
        """The range, like 2000-3000."""
        return f"{self.low}-{self.high}"

    @property
    def secret(self) -> NDArray[np.int64]:
        """The true bits (n,)."""
        bits: NDArray[np.int64] = self.people.truth(Bit("truth = 1"))
        return bits


@dataclass(frozen=True, eq=False)
class Recorded:
    """A target that repeats recorded answers."""

    answers: Answers

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """The recorded answers to the queries at ``positions``."""
        yield self.answers.only(positions)


def read_ranges(folder: Path) -> list[RecordedRange]:
    """Every range whose log lies in the authors' folder, by lowest id."""
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder; name the folder `data` of the authors' repository"
        )
    folder = _data(folder)
    found = [(path, match) for path in folder.iterdir() if (match := LOG_NAME.fullmatch(path.name))]
    if not found:
        raise InputError(
            f"{folder}: no file aircloak_output_cleaned_LOW_HIGH.txt here; name the "
            "folder `data` of the authors' repository"
        )
    spans = sorted((int(match[1]), int(match[2]), path) for path, match in found)
    return [_read_range(folder, low, high, path) for low, high, path in spans]


def _read_range(folder: Path, low: int, high: int, path: Path) -> RecordedRange:
    ids = _vector(folder / f"client_id_{low}_{high}_ordered.mat", "client_id")
    truth_path = folder / f"true_status_client_id_{low}_{high}_ordered.mat"
    truth = _vector(truth_path, "true_status")
    if truth.size != ids.size:
        raise InputError(f"{truth_path}: {truth.size} values for {ids.size} ids; fetch it again")
    log = read_log(path)
    for entry in log.entries:
        if not re.search(rf"\bBETWEEN {low} and {high}\b", entry.sql, re.IGNORECASE):
            raise InputError(
                f"{path} line {entry.line}: the SQL does not ask about ids from {low} to {high}; "
                "is this the log of another range?"
            )
    return RecordedRange(low, high, People(ids, {"truth": truth}), log)


def _data(folder: Path) -> Path:
    """The folder ``data`` of the authors' repository, given itself or the repository."""
    return folder / "data" if (folder / "data").is_dir() else folder


def people_files(folder: Path) -> list[Path]:
    """The files of the authors' folder that hold the people of the simulations."""
    names = ("binary_client_ids_2500_2600.mat", "census_uids_sex_1000_6000.mat")
    return [path for name in names if (path := _data(folder) / name).is_file()]


def read_presence(folder: Path) -> People:
    """The clients present among ids 2500-2600, from the authors' folder."""
    present = _vector(_data(folder) / "binary_client_ids_2500_2600.mat", "true_status")
    return People(2500 + np.flatnonzero(present), {})


def read_census(folder: Path, n: int) -> People:
    """The first n of the authors' census rows: ids 1000, 1001, ... and ``sex``."""
    path = _data(folder) / "census_uids_sex_1000_6000.mat"
    ids, sexes = _vector(path, "census_uids"), _vector(path, "census_sexes")
    return People(ids[:n], {"sex": sexes[:n]}, "uid")


def _vector(path: Path, name: str) -> NDArray[Any]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; it belongs to the authors' folder")
    # Slow to import, and only the authors' files need it.
    from scipy.io import loadmat

    try:
        return np.asarray(loadmat(path)[name]).ravel().astype(np.int64)
    except KeyError:
        raise InputError(f"{path}: there is no variable {name!r}; fetch the file again") from None
    # loadmat raises whatever the bytes lead it into.
    except Exception as error:
        raise InputError(
            f"{path}: not a MATLAB file ({type(error).__name__}); fetch it again"
        ) from None
