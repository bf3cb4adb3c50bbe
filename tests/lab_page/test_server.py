"""`countleak serve --lab` in a process of its own, and many visitors at once."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from countleak.lab_page.attacks import Attacks, State
from countleak.lab_page.processes import NoRoom, Processes
from countleak.lab_page.settings import AttackSettings
from tests.lab_page.conftest import RunningLab


@contextmanager
def serving(folder, stop, *words):
    command = [Path(sys.executable).parent / "countleak", "serve", "--lab", "--lab-port", "0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, *words], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            yield process.stdout.readline()
        finally:
            process.send_signal(stop)
            code = process.wait(60)
            process.stdout.close()
    assert code == 0
    assert (folder / "log").read_text() == ""


@pytest.mark.parametrize(
    "stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_it_says_where_it_is_and_ends_at_a_signal_whoever_watches(tmp_path, stop):
    with serving(tmp_path, stop) as line:
        found = re.fullmatch(r"Lab on (http://127\.0\.0\.1:\d+)\n", line)
        lab = RunningLab(found[1])
        begun = lab.start(people=20, questions=240, noise="gaussian", slowly="yes")
        client = httpx.Client(base_url=lab.url, timeout=60)
        stream = client.stream("GET", f"{begun.headers['location']}/events")
        assert stream.__enter__().status_code == 200
    stream.__exit__(None, None, None)
    client.close()


def test_its_address_as_json(tmp_path):
    with serving(tmp_path, signal.SIGTERM, "--json") as line:
        found = json.loads(line)
        assert found.keys() == {"listener", "host", "port"}
        assert found["listener"] == "Lab"


def test_twenty_visitors_at_once_are_all_served(lab):
    async def visit(client, seed):
        form = {"people": 20, "questions": 100, "noise": "gaussian", "decoder": "lp", "seed": seed}
        begun = await client.post("/attacks", data=form, headers=lab.own)
        address = begun.headers["location"]
        streamed = (await client.get(f"{address}/events")).text
        asked = await client.get("/", params={"statement": "SELECT count(*) FROM loans"})
        return begun.status_code, "Done: " in streamed, asked.status_code

    async def visits():
        async with httpx.AsyncClient(base_url=lab.url, timeout=240) as client:
            return await asyncio.gather(*(visit(client, seed) for seed in range(20)))

    assert asyncio.run(visits()) == [(303, True, 200)] * 20


def test_there_is_room_for_so_many_and_the_oldest_at_rest_are_forgotten(tmp_path, monkeypatch):
    async def main():
        # None is started, so whatever is ordered waits.
        processes = Processes("attacks", 0, most=3, seconds=1.0)
        attacks = Attacks(processes, tmp_path)
        kept = [attacks.start(AttackSettings(people=20)) for _ in range(3)]
        with pytest.raises(NoRoom, match="try again"):
            attacks.start(AttackSettings(people=20))
        assert len(list(tmp_path.iterdir())) == 3
        attacks.stop(kept[0])
        await asyncio.sleep(0)
        assert kept[0].picture.state is State.STOPPED
        monkeypatch.setattr("countleak.lab_page.attacks.MOST_KEPT", 3)
        attacks.start(AttackSettings(people=20))
        assert not kept[0].folder.exists()
        assert kept[1].folder.exists()
        processes.close()

    asyncio.run(main())


@contextmanager
def attacking(folder, seconds=300.0):
    """Attacks on one process, which nothing has warmed."""
    processes = Processes("questions", 1, most=3, seconds=seconds)
    try:
        yield processes, Attacks(processes, folder)
    finally:
        processes.close()


SLOW = AttackSettings(people=20, questions=240, noise="gaussian", slowly=True)


def test_a_process_that_ends_is_replaced_and_its_attack_says_so(tmp_path):
    async def main():
        with attacking(tmp_path) as (processes, attacks):
            await processes.start()
            kept = attacks.start(SLOW)
            async for picture in attacks.pictures(kept):
                if picture.look is not None:
                    kept.job.process.kill()
                    break
            last = [picture async for picture in attacks.pictures(kept)][-1]
            assert last.state is State.FAILED
            assert "its process ended" in last.problem
            again = attacks.start(AttackSettings(people=20, questions=40, noise="gaussian"))
            last = [picture async for picture in attacks.pictures(again)][-1]
            assert last.state is State.DONE

    asyncio.run(main())


def test_an_attack_that_takes_too_long_is_ended(tmp_path):
    async def main():
        with attacking(tmp_path, seconds=0.5) as (processes, attacks):
            await processes.start()
            kept = attacks.start(SLOW)
            last = [picture async for picture in attacks.pictures(kept)][-1]
            assert last.state is State.FAILED
            assert last.problem == "it took longer than 0.5 seconds; ask for less"

    asyncio.run(main())
