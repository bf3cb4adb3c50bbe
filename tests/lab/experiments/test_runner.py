import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from countleak.errors import InputError
from countleak.lab.experiments.runner import Runner
from countleak.lab.experiments.trials import Setting, grid
from tests.lab.experiments.test_trials import outcome

TRIALS = grid(n=(10, 15), queries=(60, 90), sigma=(1.0, 4.0), family=("digits", "subsets"),
              number=range(10))  # fmt: skip


def test_a_run_stores_every_trial_and_does_none_twice(tmp_path):
    heard = []
    first = Runner(tmp_path, jobs=2).run(TRIALS, Setting(), lambda *at: heard.append(at))
    assert heard[0] == (0, 160)
    assert heard[-1] == (160, 160)
    content = (tmp_path / "trials.jsonl").read_text()
    again = Runner(tmp_path, jobs=1).run(TRIALS, Setting())
    assert (tmp_path / "trials.jsonl").read_text() == content
    assert first == again
    assert [record["trial"]["number"] for record in again] == [t.number for t in TRIALS]


def test_2000_trials_on_loky_and_on_a_dask_cluster_give_the_same_bits(tmp_path):
    trials = grid(n=(10, 15), queries=(60, 90), sigma=(1.0, 4.0), number=range(250))
    assert len(trials) == 2000
    here = Runner(tmp_path / "loky", jobs=2).run(trials, Setting())
    there = Runner(tmp_path / "dask", cluster="local:2").run(trials, Setting())
    assert [outcome(record) for record in here] == [outcome(record) for record in there]


def test_a_killed_dask_worker_loses_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    trials = grid(n=60, queries=(500, 650, 750, 850), sigma=4.0, decoder="dini-vertex",
                  multiplier=(3.0, 4.0), number=range(60))  # fmt: skip
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed = []

        def progress(done, total):
            if 0 < done < total and not killed:
                killed.append(pids[0])
                threading.Thread(target=os.kill, args=(pids[0], signal.SIGKILL)).start()

        runner = Runner(tmp_path / "dask", cluster=cluster.scheduler_address)
        found = runner.run(trials, Setting(), progress)
    assert killed
    assert len(found) == len(trials) == 480
    here = Runner(tmp_path / "here", jobs=2).run(trials, Setting())
    assert [outcome(record) for record in found] == [outcome(record) for record in here]


def test_a_run_killed_at_any_moment_is_resumed_and_ends_the_same(tmp_path):
    options = ["--n", "40,60", "--queries", "300,400,500", "--sigma", "2,4,8", "--trials", "40"]
    words = ["lab", "sweep", *options, "--jobs", "2", "--json"]
    command = [sys.executable, "-m", "countleak.cli", *words]
    whole = subprocess.run([*command, "--out", tmp_path / "whole"], capture_output=True, check=True)
    killed = subprocess.Popen(
        [*command, "--out", tmp_path / "cut"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    path = tmp_path / "cut" / "trials.jsonl"
    while killed.poll() is None and not (path.exists() and path.stat().st_size > 20_000):
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = path.read_bytes()
    again = subprocess.run([*command, "--out", tmp_path / "cut"], capture_output=True, check=True)
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    keys = [line.split('"key":"')[1][:16] for line in path.read_text().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == 720
    numbers = [
        {k: v for k, v in row.items() if k != "ms_per_program"}
        for text in (whole.stdout, again.stdout)
        for row in json.loads(text)["rows"]
    ]
    assert numbers[:18] == numbers[18:]


@pytest.mark.parametrize(
    ("address", "complaint"),
    [("local:x", "write local:2"), ("host", "write tcp://"), ("ray://x:1", "write tcp://")],
)
def test_clusters_that_are_none_are_refused(tmp_path, address, complaint):
    with pytest.raises(InputError, match=complaint):
        Runner(tmp_path / "runs", cluster=address).run(TRIALS[:2], Setting())
    assert not list(tmp_path.iterdir())


def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path):
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        Runner(tmp_path, cluster="tcp://127.0.0.1:1").run(TRIALS[:2], Setting())
