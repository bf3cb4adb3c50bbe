from functools import partial

import pytest

GRID = ("--n", 10, "--queries", "40,80", "--trials", 3)
SMALL = (*GRID, "--jobs", 1)


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
    assert "Map: runs/figures/sweep.svg" in shown.out


def test_a_file_with_flags_over_it_and_curves_for_words(sweep, tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\nn = 10\nqueries = [40, 80]\ntrials = 2\n')
    found = sweep("mine.toml", "--family", "digits,subsets", "--jobs", 1, "--json").json
    assert {row["family"] for row in found["rows"]} == {"digits", "subsets"}
    assert found["figure"] == "runs/figures/mine.svg"


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
        ((*GRID, "--cluster", "host"), "write tcp://host:8786"),
    ],
)
def test_bad_sweeps_are_one_line(sweep, words, complaint):
    result = sweep(*words)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1
