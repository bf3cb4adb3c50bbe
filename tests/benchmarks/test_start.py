"""Every benchmark starts from its command line, at the smallest sizes that it takes."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import budget, decoders, scale
from benchmarks.start import BENCHMARKS
from benchmarks.worlds import Setting, Suite

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "benchmarks" / "RESULTS.md", *(ROOT / "docs").rglob("*.md"))


def test_what_the_pages_name_is_there():
    text = "\n".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"python -m benchmarks\.(\w+)", text))
    assert named - {"NAME"} <= set(BENCHMARKS) <= named | {"solvers", "budget"}
    for name in re.findall(r"make (bench-\w+)", text):
        assert f"\n{name}: " in (ROOT / "Makefile").read_text()


def test_the_list_says_what_each_benchmark_says_of_itself(bench):
    shown = " ".join(bench("").out.split())
    for name, (module, line) in BENCHMARKS.items():
        assert getattr(import_module(module), name).__doc__.splitlines()[0] == line
        assert f"{name} {line}" in shown


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_option_has_help_that_is_not_cut(bench, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = bench(name, "--help").out
    assert f"python -m benchmarks.{name} [OPTIONS]" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_solvers(bench, tmp_path):
    words = ("solvers", "--sizes", "10x60,20x90", "--repeats", 1)
    found = bench(*words, "--picture", "time.svg", "--json").json
    assert {"n", "m", "solver", "median_seconds", "gap"} <= set(found["rows"][0])
    assert {"n", "m", "best_library", "ratio"} <= set(found["ratios"][0])
    assert "people n" in (tmp_path / "time.svg").read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("solvers", "--sizes", "ten"), "write `paper` or a list like"),
        (("solvers", "--sizes", "0x5"), "not a whole number above 0"),
        (("solvers", "--rows", "dice"), "choose random or digits"),
        (("solvers", "--picture", "time.xyz"), "cannot draw '.xyz'"),
        (("serve", "--connections", "x"), "not a whole number above 0"),
        (("scale", "--sizes", "x"), "not a whole number above 0"),
        (("decoders", "--suite", "x"), "no suite 'x'; choose queries"),
        (("decoders", "--suite", "recorded"), "pass --data"),
        (("decoders", "--data", "x"), "--data does not apply"),
        (("budget", "--decoder", "x"), "no decoder 'x'; choose lp, ls, bayes"),
        (("honesty", "--only", "x"), "there is no system 'x'"),
        (("honesty", "--trials", 1), "--trials"),
        (("tables", "--suite", "x"), "'trial', 'census'"),
        (("tables", "--blocks", 9), "--blocks does not apply"),
        (("query_log", "--rows", 9), "--rows"),
    ],
)
def test_bad_options_are_one_line(bench, words, complaint):
    result = bench(*words)
    assert result.code == 2
    assert result.err.startswith("countleak: ") and result.err.count("\n") == 1
    assert complaint in result.err


def test_serve(bench):
    rows = bench("serve", "--queries", 4, "--connections", 1, "--json").json["rows"]
    assert [row["system"] for row in rows] == [
        "Diffix in process",
        "Diffix over PostgreSQL's protocol",
        "Diffix over REST",
        "plain PostgreSQL",
    ]
    assert all(0 < row["p50"] <= row["p99"] and row["queries"] == 4 for row in rows)


def test_scale(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "_run", lambda name, n, limit, seed: scale.run_here(name, n, seed))
    monkeypatch.setattr(scale, "METHODS", {"scipy lsq_linear": scale.METHODS["scipy lsq_linear"]})
    words = ("scale", "--sizes", "100,150", "--picture", "time.svg")
    assert "time ~ n^" in bench(*words).out
    assert "scipy lsq_linear" in (tmp_path / "time.svg").read_text()


def test_decoders(bench, monkeypatch):
    small = Suite("?", (Setting(30, 150, 2.0),), ("lp", "bayes"))
    monkeypatch.setitem(decoders.SUITES, "queries", small)
    found = bench("decoders", "--trials", 2, "--jobs", 1, "--json").json
    assert [row["decoder"] for row in found["rows"]] == ["lp", "bayes"]
    assert found["needed"].keys() == {"lp", "bayes"}
    assert "Calibration error of bayes" in bench("decoders", "--trials", 2, "--jobs", 1).out


def test_decoders_on_recorded_answers(bench, monkeypatch, shared):
    monkeypatch.setattr(decoders.compare_recorded, "__defaults__", (1, print, (1500,), ("ls",)))
    words = ("--suite", "recorded", "--data", shared / "data" / "cohen-nissim")
    found = bench("decoders", *words, "--trials", 2, "--jobs", 1, "--json").json
    assert [row["range"] for row in found["rows"]] == ["2000-3000", "10000-12000"]
    assert all(row["accuracy"] > 0.9 > row["baseline"] for row in found["rows"])


def test_honesty(bench):
    words = ("honesty", "--only", "exact-60-400", "--trials", 2, "--jobs", 1)
    found = bench(*words, "--json")
    (row,) = found.json["rows"]
    assert row["system"] == "exact-60-400" and row["worlds"] == 2
    # Whatever the verdict, the exit code says it.
    assert found.code == (1 if found.json["verdict"]["failures"] else 0)


def test_budget(bench, monkeypatch):
    monkeypatch.setattr(budget, "FEW_PEOPLE", (50,))
    monkeypatch.setattr(budget, "FEW_QUERIES", (150,))
    monkeypatch.setattr(budget, "FEW_SIGMAS", (4.0,))
    found = bench("budget", "--trials", 4, "--json").json
    assert {"predicted", "simulated", "standard_error", "difference"} <= set(found["rows"][0])
    assert {row["decoder"] for row in found["summaries"]} == {"lp", "ls"}


def test_tables_of_a_trial(bench):
    pytest.importorskip("pytauargus")
    found = bench("tables", "--worlds", 1, "--people", 100, "--json").json
    assert found["suite"] == "trial"
    assert [share["held"] for share in found["shares"]] == 2 * ["first", "second", "both"]


def test_tables_of_a_census(bench):
    shown = bench("tables", "--suite", "census", "--blocks", 2, "--jobs", 1).out
    assert shown.startswith("2 blocks, ") and "core-hours" in shown


def test_query_log(bench):
    words = ("--rows", 20_000, "--statements", 100, "--conditions", 40, "--trackers", 4)
    found = bench("query_log", *words, "--json").json
    assert sum(row["in_time"] for row in found["caught"]) == 4
    assert found["false"] == found["not_read"] == found["unproven"] == 0
