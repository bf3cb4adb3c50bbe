from functools import partial

import pytest

from countleak.lab.bench.tables import safety


@pytest.fixture
def bench(run):
    return partial(run, "lab", "bench")


def test_bench_solvers_as_json_and_as_a_table(bench, tmp_path):
    options = ("--sizes", "10x60,20x90", "--repeats", 1)
    found = bench("solvers", *options, "--picture", "time.svg", "--json").json
    assert {"n", "m", "solver", "median_seconds", "gap"} <= set(found["rows"][0])
    assert {"n", "m", "best_library", "ratio"} <= set(found["ratios"][0])
    assert "people n" in (tmp_path / "time.svg").read_text()
    shown = bench("solvers", "--sizes", "10x60", "--repeats", 1, "--rows", "digits").out
    assert "times as fast" in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--sizes", "ten"), "write `paper` or a list like"),
        (("--sizes", "0x5"), "not a whole number above 0"),
        (("--rows", "dice"), "choose random or digits"),
        (("--threads", "x"), "not a whole number above 0"),
        (("--picture", "time.xyz"), "cannot draw '.xyz'"),
    ],
)
def test_bad_options_are_one_line(bench, words, complaint):
    result = bench("solvers", *words)
    assert result.code == 2
    assert complaint in result.err


def test_bench_sweep(bench):
    (row,) = bench("sweep", "--jobs", 1, "--trials", 6, "--json").json["rows"]
    assert row["trials"] == 6
    assert row["core_hours_for_100_million"] > 0


def test_bench_batch_and_first_call(bench):
    assert bench("batch", "--n", 10, "--m", 60, "--answers", 3, "--json").json["n"] == 10
    assert "ms in one call" in bench("batch", "--n", 10, "--m", 60, "--answers", 3).out
    assert bench("first-call", "--json").json["seconds"] > 0


def test_bench_diffix(bench):
    found = bench("diffix", "--primes", 1, "--rows", 5000, "--json").json["rows"]
    assert [row["times"] for row in found] == [140, 1, 3, 3, 3, 3]
    assert "digit queries" in bench("diffix", "--primes", 1, "--rows", 0).out


def test_bench_questions(bench, tmp_path):
    small = ("questions", "--salts", 2, "--primes", 1, "--most", 130, "--batch", 30)
    assert bench(*small, "--picture", "orders.svg", "--json").json.keys() == {"rows"}
    assert (tmp_path / "orders.svg").exists()
    assert bench(*small).code == 0
    assert bench("questions", "--ranges", "2000").code == 2


def test_bench_ask(bench):
    found = bench("ask", "--family", "modular", "--queries", 30, "--turns", 1, "--json").json
    assert found["questions"] == 30
    loop, whole, *parts = found["costs"]
    assert sum(part["own_seconds"] for part in parts) > 0
    beyond = whole["seconds"] - loop["seconds"]
    assert found["share_by_clock"] == pytest.approx(beyond / loop["seconds"])


def test_bench_serve(bench):
    words = ("serve", "--queries", 20, "--connections", "1,2")
    rows = bench(*words, "--json").json["rows"]
    assert [(row["system"], row["connections"]) for row in rows] == [
        ("Diffix in process", 1),
        ("Diffix over PostgreSQL's protocol", 1),
        ("Diffix over PostgreSQL's protocol", 2),
        ("Diffix over REST", 1),
        ("Diffix over REST", 2),
        ("plain PostgreSQL", 1),
        ("plain PostgreSQL", 2),
    ]
    assert all(0 < row["p50"] <= row["p99"] and row["queries"] == 20 for row in rows)
    assert "queries per second" in bench(*words).out


def test_bench_budget(bench):
    found = bench("budget", "--trials", 2, "--json").json
    assert {"predicted", "simulated", "standard_error", "difference"} <= set(found["rows"][0])
    assert {row["decoder"] for row in found["summaries"]} == {"lp", "ls"}
    assert len(found["rows"]) == 2 * 42


def test_bench_budget_with_the_decoders_named(bench):
    words = ("budget", "--suite", "named", "--trials", 2, "--decoder", "ls")
    found = bench(*words, "--json")
    assert {row["decoder"] for row in found.json["rows"]} == {"ls"}
    # Whatever the verdict, the exit code says it.
    assert found.code == (found.json["failed"] > 0)
    assert "no decoder 'x'; choose lp" in bench(*words[:-1], "x").err
    assert "--within does not" in bench(*words, "--within", 0.1).err


def test_bench_decoders(bench):
    found = bench("decoders", "--suite", "large", "--trials", 2, "--jobs", 1, "--json").json
    best = {row["decoder"]: row["accuracy"] for row in found["rows"] if row["m"] == 700}
    assert best["bayes"] >= 0.99 > best["lp"]
    assert "no suite 'x'; choose queries" in bench("decoders", "--suite", "x").err
    assert "pass --data" in bench("decoders", "--suite", "recorded").err


def test_bench_honesty(bench):
    words = ("honesty", "--only", "two-rates", "--trials", 2, "--jobs", 1)
    found = bench(*words, "--json")
    (row,) = found.json["rows"]
    assert row["system"] == "two-rates" and row["worlds"] == 2
    assert found.json["verdict"]["rows"] == 1
    # Whatever the verdict, the exit code says it.
    assert found.code == (1 if found.json["verdict"]["failures"] else 0)
    shown = bench(*words, "--only", "households").out
    assert "two-rates" in shown and "households" in shown
    assert max(len(line) for line in shown.splitlines() if "households" in line) <= 120
    assert "there is no system 'x'" in bench("honesty", "--only", "x").err
    for bad in (("--only", ""), ("--trials", 1), ("--trials", "x"), ("--jobs", 0)):
        assert bench("honesty", *bad).code == 2


def test_bench_categories(run, tmp_path):
    options = ("--queries", "40,80", "--people", 12, "--trials", 2, "--picture", "values.svg")
    rows = run("lab", "bench", "categories", *options, "--json").json["rows"]
    assert [row["queries"] for row in rows] == [40, 40, 40, 80, 80, 80]
    assert all(0 < row["baseline"] < 1 for row in rows)
    assert rows[0]["gain"] == 0
    assert "queries per value" in (tmp_path / "values.svg").read_text()


def test_bench_exact(bench, tmp_path):
    words = ("exact", "--people", "14", "--trials", 2, "--jobs", 1, "--limit", 5)
    found = bench(*words, "--picture", "exact.svg", "--json").json
    assert found["time_limit"] == 5
    assert found["rows"][0].keys() >= {"n", "m", "solved", "interval", "proven", "engines"}
    assert [row["n"] for row in found["crossings"]] == [14]
    assert "14 people" in (tmp_path / "exact.svg").read_text()
    assert "wrong proofs" in bench(*words).out
    assert "not a whole number" in bench("exact", "--people", "x").err


def test_bench_tables(bench):
    pytest.importorskip("pytauargus")
    found = bench("tables", "--worlds", 1, "--people", 300, "--json").json
    assert found["suite"] == "trial"
    assert [share["held"] for share in found["shares"]] == 2 * ["first", "second", "both"]
    shown = bench("tables", "--suite", "single", "--worlds", 1).out
    assert "its README" in shown and "5 x 5 x 5" in shown
    assert "no suite 'x'; choose trial" in bench("tables", "--suite", "x").err
    assert "--people does not" in bench("tables", "--suite", "single", "--people", 300).err


def test_bench_tables_at_scale(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(safety, "VARIABLES", (3,))
    monkeypatch.setattr(safety, "VARIABLES_OF_THREE", ())
    monkeypatch.setattr(safety, "PEOPLE", (40,))
    found = bench("tables", "--suite", "scale", "--cells", 300, "--jobs", 1, "--json").json
    assert found["wrong"] == found["open"] == 0
    shown = bench("tables", "--suite", "scale", "--cells", 300, "--jobs", 1).out
    assert f"The other {found['cells']} hang together" in shown
    words = ("tables", "--suite", "map", "--worlds", 2, "--jobs", 1, "--picture", "map.svg")
    assert "Rounded to the nearest 5, 3 variables of 2" in bench(*words).out
    assert (tmp_path / "map.svg").exists()
    assert (
        "blocks per" in bench("tables", "--suite", "census", "--blocks", 2, "--jobs", 1).out.lower()
    )
    assert "no such Python" in bench("tables", "--suite", "cell-keys", "--engine", "x").err
    assert "--cells does not" in bench("tables", "--cells", 10).err
