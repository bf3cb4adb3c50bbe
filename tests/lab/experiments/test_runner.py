import os
import signal
import subprocess
import sys
import threading

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


@pytest.mark.slow
def test_2000_trials_on_loky_and_on_a_dask_cluster_give_the_same_bits(tmp_path):
    trials = grid(n=(10, 15), queries=(60, 90), sigma=(1.0, 4.0), number=range(250))
    assert len(trials) == 2000
    here = Runner(tmp_path / "loky", jobs=2).run(trials, Setting())
    there = Runner(tmp_path / "dask", cluster="local:2").run(trials, Setting())
    assert [outcome(record) for record in here] == [outcome(record) for record in there]


@pytest.mark.slow
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


RUN = """
import sys
from pathlib import Path
from countleak.lab.experiments.runner import Runner
from countleak.lab.experiments.trials import Setting, grid
trials = grid(n=(40, 60), queries=(300, 400, 500), sigma=(2.0, 4.0, 8.0), number=range(40))
Runner(Path(sys.argv[1]), 2).run(trials, Setting(), lambda done, total: print(done, flush=True))
"""


def test_a_run_killed_at_any_moment_is_resumed_and_ends_the_same(tmp_path):
    trials = grid(n=(40, 60), queries=(300, 400, 500), sigma=(2.0, 4.0, 8.0), number=range(40))
    whole = Runner(tmp_path / "whole", jobs=2).run(trials, Setting())
    command = [sys.executable, "-c", RUN, str(tmp_path / "cut")]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert any(int(done) > 0 for done in killed.stdout)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    path = tmp_path / "cut" / "trials.jsonl"
    kept = path.read_bytes()
    again = Runner(tmp_path / "cut", jobs=2).run(trials, Setting())
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    keys = [line.split('"key":"')[1][:16] for line in path.read_text().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == 720
    assert kept.count(b"\n") < 721
    assert [outcome(record) for record in again] == [outcome(record) for record in whole]


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
