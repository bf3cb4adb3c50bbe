"""The lab that really runs: in a thread of its own, with its own processes."""

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

from countleak.lab_page.server import LabLimits, Share, serve


@dataclass
class RunningLab:
    """Where the lab answers."""

    url: str = ""

    @property
    def own(self) -> dict[str, str]:
        """The headers that a browser sends with a form of the lab's own pages."""
        return {"origin": self.url, "sec-fetch-site": "same-origin"}

    def start(self, **form: object) -> httpx.Response:
        return httpx.post(f"{self.url}/attacks", data=form, headers=self.own, timeout=60)


@contextmanager
def running_lab(limits: LabLimits | None = None):
    found, ready, held = RunningLab(), threading.Event(), {}

    def said(protocol: str, host: str, port: int) -> None:
        assert protocol == "Lab"
        found.url = f"http://{host}:{port}"
        ready.set()

    async def main() -> None:
        held["stop"], held["loop"] = asyncio.Event(), asyncio.get_running_loop()
        await serve(0, said, held["stop"], limits)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def lab():
    attacks = Share(1, waiting=50, seconds=300.0)
    with running_lab(LabLimits(for_questions=Share(1, 100, 120.0), for_attacks=attacks)) as found:
        yield found
