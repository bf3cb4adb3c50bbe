"""Audits small enough to be made for tests, each kept in a folder of its own."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countleak as cl
from countleak.attack.guess import FromFile, bits_from
from countleak.attack.guess_file import write_guess
from countleak.audit.control import control
from countleak.audit.report.record import Record, write_record
from countleak.audit.report.recording import Notes, record_of
from countleak.audit.report.writing import keep
from countleak.audit.result import AuditResult

HOSTILE = "<script>alert('x')</script>"


@dataclass(frozen=True)
class Kept:
    """An audit that was kept: where, its result and its record."""

    folder: Path
    result: AuditResult
    record: Record


def kept(folder, result, **notes):
    about = notes.pop("system", "a simulated system")
    keep(result, folder, about)
    record = record_of(result, Notes(about, **notes))
    write_record(folder, record)
    return Kept(folder, result, record)


def subset_audit(sigma, **settings):
    census = cl.generated_census(24, seed=3)
    pool = cl.random_subsets(census.ids, 120, np.random.default_rng(5))
    return cl.audit(census, secret="sex = 1", target=cl.Gaussian(sigma), queries=pool, **settings)


@pytest.fixture(scope="session")
def leaking(tmp_path_factory) -> Kept:
    """Nearly all is given away, more than is allowed."""
    result = subset_audit(1.5)
    return kept(
        tmp_path_factory.mktemp("leaking"),
        result,
        authorised_by="A. Reviewer",
        allowed=0.3,
        control=control(result, result.decoder),
    )


@pytest.fixture(scope="session")
def hopeless(tmp_path_factory) -> Kept:
    """Noise that hides everything."""
    result = subset_audit(60.0, decoder=cl.decoders.Bayes(cl.Noise(60.0)))
    return kept(tmp_path_factory.mktemp("hopeless"), result, allowed=0.9)


@pytest.fixture(scope="session")
def unknown(tmp_path_factory) -> Kept:
    """The truth is not known: the system knows it, and those who audit it do not."""
    census = cl.generated_census(24, seed=3)
    pool = cl.random_subsets(census.ids, 120, np.random.default_rng(5))
    system = cl.Simulated(census, cl.Bit("sex = 1"), cl.Gaussian(1.5))
    strangers = cl.people_of(pd.DataFrame({"uid": census.ids}), "uid")
    result = cl.audit(
        strangers,
        secret="sex = 1",
        target=system,
        queries=pool,
        decoder=cl.decoders.LeastSquares(),
    )
    return kept(tmp_path_factory.mktemp("unknown"), result, allowed=0.3)


@pytest.fixture(scope="session")
def valued(tmp_path_factory) -> Kept:
    """A secret of several values, two of which are not to be trusted, and so is every id."""
    rng = np.random.default_rng(11)
    names = np.array(["A", HOSTILE, 'B"&'])[rng.integers(0, 3, 12)]
    frame = pd.DataFrame({"id": [f"person {i}{HOSTILE}" for i in range(12)], "status": names})
    people = cl.people_of(frame, "id", table=HOSTILE)
    pool = cl.random_subsets(people.ids, 60, np.random.default_rng(5))
    result = cl.audit(people, secret="status", target=cl.Gaussian(1.0), queries=pool)
    return kept(tmp_path_factory.mktemp("valued"), result, system=HOSTILE, authorised_by=HOSTILE)


@pytest.fixture(scope="session")
def numbers(tmp_path_factory) -> Kept:
    """A secret that is a number."""
    people = cl.generated_bank(seed=7).between(2000, 2300)
    result = cl.audit(people, secret="sum(amount)", target=cl.Gaussian(2000.0), queries=100)
    return kept(tmp_path_factory.mktemp("numbers"), result)


@pytest.fixture(scope="session")
def crowd(leaking, tmp_path_factory) -> Path:
    """The folder of an audit of 5,000 people."""
    folder = tmp_path_factory.mktemp("crowd")
    ids = np.arange(100_000, 105_000)
    guess = bits_from(
        ids, np.random.default_rng(1).random(ids.size), FromFile(decoder="bayes", fields_of_file={})
    )
    write_guess(folder / "guess.jsonl", guess, leaking.result.secret)
    write_record(folder, replace(leaking.record, people=ids.size))
    return folder
