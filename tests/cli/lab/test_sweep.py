import sys
from functools import partial

import pytest

from countleak.lab.experiments.trials import Setting, Trial, _own_digest, record_key

GRID = ("--n", 10, "--queries", "40,80", "--trials", 3)
SMALL = (*GRID, "--jobs", 1)
MINE = """
import numpy as np

from countleak.attack.guess import Basis, Guess
from countleak.attack.transcript import Answers


class Halves:
    def __init__(self, sigma):
        self.sigma = sigma

    def release(self, counts, seed):
        return Answers.to_all(np.random.default_rng(seed).normal(counts, self.sigma / 2))


class Everyone:
    def decode(self, transcript):
        n = len(transcript.ids)
        return Guess(transcript.ids, np.ones(n, int), np.ones(n, bool), Basis(decoder="everyone"))


class Boasts:
    def decode(self, transcript):
        return "all of them"


class Fails:
    def decode(self, transcript):
        return {}["why"]


class Greedy:
    def __init__(self, sigma, more):
        pass

    def release(self, counts, seed):
        pass
"""


@pytest.fixture(autouse=True)
def own_modules():
    """A module of another test's folder is another module."""
    before, folders = set(sys.modules), list(sys.path)
    yield
    for name in {"mine", "broken"} & set(sys.modules) - before:
        del sys.modules[name]
    sys.path[:] = folders
    _own_digest.cache_clear()


@pytest.fixture
def sweep(run):
    return partial(run, "lab", "sweep")


def test_a_newcomers_sweep_draws_a_map(sweep, tmp_path):
    found = sweep(*SMALL, "--sigma", "1,2,4", "--json").json
    assert len(found["rows"]) == 6
    assert {"queries", "sigma", "accuracy", "interval", "baseline"} <= set(found["rows"][0])
    for suffix in ("svg", "png", "html"):
        assert (tmp_path / "runs" / "figures" / f"sweep.{suffix}").stat().st_size
    shown = sweep(*SMALL, "--sigma", "1,2,4")
    assert "Picture: runs/figures/sweep.svg" in shown.out
    drawn = (tmp_path / "runs" / "figures" / "sweep.svg").read_text()
    assert "noise (SD, in people)" in drawn
    assert "sweep: 10 people, digits, diffix, dmt" in drawn


@pytest.mark.parametrize(
    ("mechanism", "title"),
    [
        ("uniform", "noise (within ±, in people)"),
        ("round", "rounded to multiples of"),
        ("gaussian,round", "size of the noise, as each mechanism takes it"),
    ],
)
def test_an_axis_says_what_sigma_is(sweep, tmp_path, mechanism, title):
    sweep(*SMALL[:2], "--queries", 40, "--sigma", "2,3", "--mechanism", mechanism, "--trials", 1)
    assert title in (tmp_path / "runs" / "figures" / "sweep.svg").read_text()


def test_a_file_with_flags_over_it_and_curves_for_words(sweep, tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\nn = 10\nqueries = [40, 80]\ntrials = 2\n')
    found = sweep("mine.toml", "--family", "digits,subsets", "--jobs", 1, "--json").json
    assert {row["family"] for row in found["rows"]} == {"digits", "subsets"}
    assert found["figure"] == "runs/figures/mine.svg"


def test_every_decoder_sweeps(sweep):
    words = ("--n", 10, "--queries", 100, "--sigma", 1, "--trials", 2, "--jobs", 1, "--json")
    names = ["auto", "lp", "ls", "bayes", "robust"]
    plain = (*words, "--mechanism", "gaussian", "--decoder", ",".join(names))
    rows = sweep(*plain).json["rows"]
    assert [row["decoder"] for row in rows] == names
    assert all(row["accuracy"] > row["baseline"] for row in rows)
    bounded = sweep(*words, "--decoder", "bounded,dmt", "--mechanism", "uniform").json["rows"]
    assert all(row["accuracy"] > row["baseline"] for row in bounded)
    again = sweep(*plain, "--out", "other").json["rows"]
    timed = ("ms_per_program",)
    assert [{k: v for k, v in row.items() if k not in timed} for row in again] == [
        {k: v for k, v in row.items() if k not in timed} for row in rows
    ]


def test_a_mechanism_and_a_decoder_of_ones_own(sweep, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    words = (*SMALL, "--family", "subsets", "--json")
    noises = ("--sigma", 8, "--queries", 200, "--mechanism", "gaussian,mine:Halves")
    rows = sweep(*words, *noises).json["rows"]
    assert rows[1]["mechanism"] == "mine:Halves"
    assert rows[1]["accuracy"] > rows[0]["accuracy"]
    half = sweep(*words, "--sigma", "4,8", "--queries", 200, "--mechanism", "gaussian").json["rows"]
    assert rows[0]["accuracy"] == half[1]["accuracy"]
    everyone = sweep(*words, "--decoder", "mine:Everyone").json["rows"]
    assert all(row["accuracy"] in (row["baseline"], 1 - row["baseline"]) for row in everyone)


def test_a_change_of_ones_own_class_runs_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = []
    for text in (MINE, MINE + "# changed"):
        (tmp_path / "mine.py").write_text(text)
        keys.append(record_key(Trial(decoder="mine:Everyone"), Setting()))
        _own_digest.cache_clear()
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--n", "x"), "--n 'x': write a list"),
        (("--n", "10"), "the grid is a single point"),
        (("--queries", "0,5"), "queries 0"),
        (("--family", "dice,digits"), "no family 'dice'"),
        (("absent.toml",), "no such file"),
        ((*SMALL, "--decoder", "dini-centre"), "DiNi needs its bound"),
        ((*SMALL, "--decoder", "dini-centre", "--multiplier", "inf"), "B inf not below"),
        ((*GRID, "--cluster", "local:²"), "write local:2"),
        ((*GRID, "--cluster", "tcp://127.0.0.1:notaport"), "no Dask scheduler answers"),
        ((*SMALL, "--cluster", "local:2"), "--jobs does not apply with --cluster"),
        ((*SMALL, "--multiplier", "3"), "--multiplier does not apply to --decoder dmt; it needs"),
        ((*SMALL, "--sigma", "1,nan"), "sigma nan must be above 0"),
        ((*SMALL, "--sigma", "1,1e308"), "sigma 1e+308"),
        (("--queries", "99999999999999999999,5"), "queries"),
        (("--n", "10", "--queries", "5,", "--sigma", "1,2"), "--queries '5,': write a list"),
        ((*SMALL, "--jobs", 0), "jobs is 0; give a number of cores"),
        ((*SMALL, "--decoder", "magic"), "there is no decoder 'magic'; choose dmt, lp,"),
        ((*SMALL, "--decoder", "bounded"), "bounded needs one answer whose noise has a bound"),
        ((*SMALL, "--decoder", "absent:Mine"), "there is no module 'absent' in this folder"),
        ((*SMALL, "--decoder", "mine:Absent"), "mine.py has no class of that name; it has Halves"),
        ((*SMALL, "--decoder", "mine:Halves"), "mine:Halves is no decoder: it has no method"),
        ((*SMALL, "--decoder", "mine:Boasts"), "mine:Boasts must return a Guess about"),
        ((*SMALL, "--decoder", "mine:Fails"), "mine:Fails failed with KeyError: 'why'"),
        ((*SMALL, "--mechanism", "mine:Greedy"), "mine:Greedy cannot be made from sigma alone"),
        ((*SMALL, "--mechanism", "broken:Noise"), "broken.py cannot be imported (NameError"),
        ((*GRID, "--cluster", "host"), "write tcp://host:8786"),
    ],
)
def test_bad_sweeps_are_one_line(sweep, tmp_path, words, complaint):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("unknown()\n")
    result = sweep(*words)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1
