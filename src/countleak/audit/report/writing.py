"""The report as files: a page for people, JSON for programs, SARIF and JUnit for a build."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from countleak.attack.guess_file import write_guess
from countleak.attack.queries.files import write_queries
from countleak.attack.transcript import Answers, Journal
from countleak.audit.report.record import write_record
from countleak.audit.report.recording import Notes, record_of
from countleak.audit.report.report import Report, read_report
from countleak.audit.report.to_html import BEGINNING, to_html
from countleak.audit.report.to_junit import SUITE, to_junit
from countleak.audit.report.to_sarif import to_sarif
from countleak.audit.result import AuditResult
from countleak.errors import InputError
from countleak.files import Name, replacing, require_own
from countleak.progress import Progress, silent

PAGE, TWIN, SARIF, JUNIT = "report.html", "report.json", "report.sarif", "report.xml"


def write(
    result: AuditResult,
    folder: Name,
    *,
    system: str | None = None,
    show_ids: bool = False,
    progress: Progress = silent,
) -> Report:
    """Keep an audit in a folder of its own, and write its report there.

    ``system`` is what to call what was asked. Ids and values of people are hidden unless shown.
    """
    folder = Path(folder)
    about = system or type(result.target).__name__
    keep(result, folder, about)
    write_record(folder, record_of(result, Notes(about), progress))
    report = read_report(folder, show_ids=show_ids)
    write_files(report, folder)
    return report


def keep(result: AuditResult, folder: Path, about: str) -> None:
    """Write the files of an audit that was not kept while it ran; those of another stay."""
    transcript = result.transcript
    queries, path = transcript.queries, folder / "answers.jsonl"
    positions = transcript.about * len(queries) + np.arange(len(queries))
    answers = Answers(positions, transcript.values, transcript.released)
    journal = Journal(path, queries, result.secret, about)
    with journal.writing():
        before = answers.only(journal.answers.query)
        if not np.array_equal(before.values, journal.answers.values, equal_nan=True):
            raise InputError(f"{path}: holds the answers of another audit; name another folder")
        left = answers.only(journal.open_questions())
        if len(left):
            journal.append(left)
    write_queries(folder / "queries.jsonl", queries)
    write_guess(folder / "guess.jsonl", result.guess, result.secret)


def write_files(report: Report, folder: Path) -> list[Path]:
    """Write the report in every format; the page comes last, for it takes the extra `report`."""
    return [
        _write(folder / TWIN, lambda: _line(report.record()), _is_twin),
        _write(folder / SARIF, lambda: _line(to_sarif(report)), _is_sarif),
        _write(folder / JUNIT, lambda: to_junit(report), _is_junit),
        _write(folder / PAGE, lambda: to_html(report), _is_page),
    ]


def write_page(path: Path, page: str) -> None:
    """Write a page where nothing stands, or another one of ours."""
    _write(path, lambda: page, _is_page)


def _write(path: Path, make: Callable[[], str], recognise: Callable[[bytes], bool]) -> Path:
    require_own(path, "a report of countleak", recognise)
    text = make()
    with replacing(path) as file:
        file.write(text)
    return path


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n"


def _is_page(line: bytes) -> bool:
    return line.startswith(BEGINNING.encode())


def _is_twin(line: bytes) -> bool:
    return line.startswith(b'{"countleak": "report"')


def _is_sarif(line: bytes) -> bool:
    return b'"driver": {"name": "countleak"' in line


def _is_junit(line: bytes) -> bool:
    return line.startswith(f'<testsuites name="{SUITE}"'.encode())
