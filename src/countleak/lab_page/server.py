"""The lab from its start to its end."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from countleak.diffix.server.http_server import Http
from countleak.diffix.server.options import Limits
from countleak.diffix.server.request_guard import RequestGuard
from countleak.diffix.server.server import (
    GRACE_SECONDS,
    LOOPBACK_NAMES,
    listener_at,
    serving_http,
)
from countleak.lab_page.app import make_app
from countleak.lab_page.attacks import Attacks
from countleak.lab_page.guard import OwnPagesOnly
from countleak.lab_page.processes import Processes

HOST = "127.0.0.1"
# A question in SQL is the longest thing that anyone sends.
LONGEST_BODY = 20_000
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Share:
    """So many processes, at most so many orders that wait for them, and seconds for each to run."""

    count: int
    waiting: int
    seconds: float

    def processes(self, job: str) -> Processes:
        """The processes of a job."""
        return Processes(job, self.count, most=self.waiting, seconds=self.seconds)


@dataclass(frozen=True)
class LabLimits:
    """How much the lab gives to its visitors: for questions and maps, and for attacks."""

    for_questions: Share = Share(1, waiting=100, seconds=10.0)
    for_attacks: Share = Share(min(max(2, os.cpu_count() or 2), 4), waiting=50, seconds=120.0)


async def serve(
    port: int,
    announce: Callable[[str, str, int], None],
    stop: asyncio.Event | None = None,
    limits: LabLimits | None = None,
) -> None:
    """Serve the lab on this machine until a signal comes, or ``stop`` is set.

    ``announce`` is called with the protocol (``Lab``), the host and the port.
    """
    stopping, limits = stop or asyncio.Event(), limits or LabLimits()
    if stop is None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    listener = listener_at(HOST, port)
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="countleak-lab-")))
        quick = limits.for_questions.processes("questions")
        attacking = limits.for_attacks.processes("attacks")
        for processes in (quick, attacking):
            stack.callback(processes.close)
            await processes.start()
        attacks = Attacks(attacking, folder)
        await stack.enter_async_context(serving_http(_http(make_app(quick, attacks)), listener))
        announce("Lab", HOST, listener.getsockname()[1])
        await stopping.wait()
        # Nobody's stream keeps the lab from ending.
        attacks.close()
        for processes in (quick, attacking):
            processes.close()


def _http(app: object) -> Http:
    limits = Limits()
    guarded = RequestGuard(app, LONGEST_BODY, limits.stall_seconds, LOOPBACK_NAMES, FORM)  # type: ignore[arg-type]
    config = uvicorn.Config(
        OwnPagesOnly(guarded),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        limit_concurrency=limits.connections + 1,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Http(config, limits, None)
