"""The attacks of all visitors: started, watched, stopped, resumed, and forgotten in time."""

import asyncio
import json
import secrets
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

from numpy.typing import NDArray

from countleak.errors import CountleakError, InputError
from countleak.lab_page.attack import Decoding, Finished, Look
from countleak.lab_page.processes import GivenUp, Job, NoRoom, Processes
from countleak.lab_page.settings import SECRET, AttackSettings, people_of
from countleak.lab_page.worker import RunAttack, WriteReport

# How many attacks are kept, and for how many seconds after anyone looked last.
MOST_KEPT, SECONDS_KEPT = 200, 3600.0
# The least between two looks that are sent, in seconds: no screen shows more.
BETWEEN_LOOKS = 0.03
# The most between two, so that whoever has left is noticed.
AT_LEAST_EVERY = 1.0
# What can be downloaded of an attack, as an audit keeps it, and what it is.
REPORT = "report.html"
DOWNLOADS = {
    REPORT: "the report",
    "answers.jsonl": "all answers",
    "queries.jsonl": "all questions",
    "guess.jsonl": "the guesses",
}


class State(StrEnum):
    """How an attack stands."""

    WAITING = "waiting"
    ASKING = "asking"
    DECODING = "decoding"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


# In which nothing more happens by itself.
AT_REST = (State.STOPPED, State.DONE, State.FAILED)


@dataclass(frozen=True, eq=False)
class Picture:
    """What there is to see of an attack at a moment.

    ``curve`` is how many guesses were right after how many answers; ``place`` is that in the queue.
    """

    state: State
    look: Look | None = None
    curve: tuple[tuple[int, int], ...] = ()
    place: int = 0
    decoded: float = 0.0
    finished: Finished | None = None
    problem: str = ""


@dataclass(eq=False)
class KeptAttack:
    """An attack and its latest picture; ``changed`` wakes whoever watches."""

    id: str
    settings: AttackSettings
    folder: Path
    picture: Picture
    job: Job | None = None
    reporting: Job | None = None
    seen: float = field(default_factory=monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def truth(self) -> NDArray[Any]:
        """What is true of everyone (n,): known, for they are generated."""
        return people_of(self.settings.people).truth(SECRET)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.picture.state in AT_REST

    @property
    def downloads(self) -> dict[str, str]:
        """The files there are for a visitor to keep, and what each is."""
        if not self.is_at_rest:
            return {}
        return {name: words for name, words in DOWNLOADS.items() if (self.folder / name).exists()}

    def result(self) -> str:
        """The settings and the result, as JSON."""
        finished = self.picture.finished
        record = {} if finished is None else finished.record
        # How fast it was asked is no part of it.
        chosen = {name: v for name, v in asdict(self.settings).items() if name != "slowly"}
        return json.dumps({"settings": chosen, **record}, indent=2)

    def wake(self) -> None:
        """Wake whoever watches."""
        self.changed.set()
        self.changed = asyncio.Event()

    def see(self, look: Look) -> None:
        """Take a look into the picture."""
        right = int((look.values == (self.truth == 1)).sum())
        earlier = self.picture.curve
        if earlier and earlier[-1][0] == look.answered:
            earlier = earlier[:-1]
        curve = (*earlier, (look.answered, right))
        self.picture = replace(self.picture, look=look, curve=curve)


class Attacks:
    """The attacks that are kept, each in a folder of its own under ``folder``."""

    def __init__(self, processes: Processes, folder: Path):
        """Keep none yet."""
        self._processes, self._folder = processes, folder
        self._kept: OrderedDict[str, KeptAttack] = OrderedDict()
        self._is_closed = False

    def start(self, settings: AttackSettings) -> KeptAttack:
        """Start an attack."""
        self._make_room()
        attack_id = secrets.token_urlsafe(16)
        folder = self._folder / attack_id
        folder.mkdir()
        attack = KeptAttack(attack_id, settings, folder, Picture(State.WAITING))
        try:
            self._submit(attack)
        except NoRoom:
            folder.rmdir()
            raise
        self._kept[attack_id] = attack
        return attack

    def find(self, attack_id: str) -> KeptAttack:
        """An attack; raises ``InputError`` where it is not kept."""
        attack = self._kept.get(attack_id)
        if attack is None:
            raise InputError("there is no such attack; it was forgotten, so start it again")
        attack.seen = monotonic()
        return attack

    def stop(self, attack: KeptAttack) -> None:
        """Stop an attack; it says itself when it has."""
        if attack.job is not None and not attack.is_at_rest:
            self._processes.give_up(attack.job)

    def resume(self, attack: KeptAttack) -> None:
        """Resume an attack that was stopped."""
        if attack.picture.state is State.STOPPED:
            self._submit(attack)

    async def pictures(self, attack: KeptAttack) -> AsyncIterator[Picture]:
        """The pictures of an attack as they change, until it rests."""
        while True:
            changed, picture = attack.changed, attack.picture
            if picture.state is State.WAITING and attack.job is not None:
                picture = replace(picture, place=self._processes.place(attack.job))
            attack.seen = monotonic()
            yield picture
            if picture.state in AT_REST or self._is_closed:
                return
            await asyncio.sleep(BETWEEN_LOOKS)
            # A place in the queue changes without a word.
            with suppress(TimeoutError):
                async with asyncio.timeout(AT_LEAST_EVERY):
                    await changed.wait()

    async def report(self, attack: KeptAttack) -> None:
        """Have the report of an attack written, unless it is there; it takes some seconds."""
        if attack.picture.state is not State.DONE:
            raise InputError("there is no report before the end of an attack; wait for it")
        if REPORT not in attack.downloads:
            if attack.reporting is None:
                order = WriteReport(attack.settings, attack.folder)
                attack.reporting = self._processes.submit(order)
            try:
                # Whoever asks twice, or leaves, does not end it for others.
                await asyncio.shield(attack.reporting.end)
            finally:
                attack.reporting = None

    def close(self) -> None:
        """Let everybody go."""
        self._is_closed = True

    def _submit(self, attack: KeptAttack) -> None:
        order = RunAttack(attack.settings, attack.folder)
        attack.job = self._processes.submit(order, lambda value: self._heard(attack, value))
        attack.picture = replace(attack.picture, state=State.WAITING, problem="", decoded=0.0)
        attack.job.end.add_done_callback(lambda end: self._ended(attack, end))

    def _heard(self, attack: KeptAttack, value: Look | Decoding) -> None:
        match value:
            case Look():
                attack.see(value)
                attack.picture = replace(attack.picture, state=State.ASKING)
            case Decoding(done, total):
                share = done / total if total else 0.0
                attack.picture = replace(attack.picture, state=State.DECODING, decoded=share)
        attack.wake()

    def _ended(self, attack: KeptAttack, end: "asyncio.Future[Any]") -> None:
        error = None if end.cancelled() else end.exception()
        if isinstance(error, GivenUp) or end.cancelled():
            attack.picture = replace(attack.picture, state=State.STOPPED)
        elif isinstance(error, CountleakError):
            attack.picture = replace(attack.picture, state=State.FAILED, problem=str(error))
        else:
            finished: Finished = end.result()
            attack.see(finished.look)
            attack.picture = replace(attack.picture, state=State.DONE, finished=finished)
        attack.job = None
        attack.wake()

    def _make_room(self) -> None:
        """Forget the attacks that nobody has looked at for long, and the oldest of too many."""
        now = monotonic()
        at_rest = [attack for attack in self._kept.values() if attack.is_at_rest]
        at_rest.sort(key=lambda attack: attack.seen)
        too_many = len(self._kept) - MOST_KEPT + 1
        for place, attack in enumerate(at_rest):
            if place < too_many or now - attack.seen > SECONDS_KEPT:
                del self._kept[attack.id]
                shutil.rmtree(attack.folder, ignore_errors=True)
        if len(self._kept) >= MOST_KEPT:
            raise NoRoom("the lab is full at the moment; try again in a minute")
