"""By hand, on an idle machine: python -m tests.audit.report.measure

How large the report of 5,000 people is, and how soon a browser has opened it from disk.
"""

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import countleak as cl
from countleak.attack.guess import FromFile, bits_from
from countleak.attack.guess_file import write_guess
from countleak.audit.report.record import write_record
from countleak.audit.report.recording import Notes, record_of
from countleak.audit.report.report import read_report
from countleak.audit.report.to_html import to_html
from tests.browser import chromium

PEOPLE = 5000
OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def crowd(folder: Path) -> None:
    """The record of a small audit, and a guess about many people."""
    census = cl.generated_census(24, seed=3)
    result = cl.audit(census, secret="sex = 1", target=cl.Gaussian(1.5), queries=120)
    ids = np.arange(100_000, 100_000 + PEOPLE)
    basis = FromFile(decoder="bayes", fields_of_file={})
    guess = bits_from(ids, np.random.default_rng(1).random(ids.size), basis)
    write_guess(folder / "guess.jsonl", guess, result.secret)
    write_record(folder, replace(record_of(result, Notes("a system")), people=PEOPLE))


def main() -> None:
    with TemporaryDirectory() as name, chromium() as visitor:
        folder = Path(name)
        crowd(folder)
        for show in (False, True):
            page = folder / "report.html"
            page.write_text(to_html(read_report(folder, show_ids=show)), encoding="utf-8")
            with visitor.visit(page.as_uri(), offline=True) as visit:
                opened = visit.page.evaluate(OPENED)
            size = page.stat().st_size / 1000
            ids = "with" if show else "without"
            sys.stdout.write(
                f"{PEOPLE} people, {ids} ids: {size:.0f} kB, open in {opened:.0f} ms\n"
            )


if __name__ == "__main__":
    main()
