import json
import subprocess
import sys

import pytest

from countleak.cli import plan as verb


def test_people_from_a_file(run, tmp_path, bank):
    bank.write_csv(tmp_path / "bank.csv")
    fragile = ("--between", 2000, 3000, "--list-fragile", "--json")
    listed = run("plan", "--people", "bank.csv", *fragile).json
    assert listed == {
        "file": "queries.jsonl",
        "people": 66,
        "fragile": run("plan", "--people", "bank:7", *fragile).json["fragile"],
        "fragile_queries": listed["fragile_queries"],
        "queries": 3500,
    }
    secret = ("--people", "bank.csv", "--secret", "status = 'C'")
    assert run("ask", "queries.jsonl", *secret).code == 0
    assert run("solve", "queries.jsonl", "answers.jsonl").code == 0
    assert run("score", "guess.jsonl", *secret, "--json").json["accuracy"] > 0.95


def test_fragile_queries_can_be_listed_and_left_out(run):
    options = ("--people", "bank:7", "--between", 10000, 12000, "--primes", 3)
    found = run("plan", *options, "--list-fragile", "--json").json
    assert found["queries"] == 420
    assert len(found["fragile_queries"]) == found["fragile"] > 0
    rest = run("plan", *options, "--without-fragile", "--json").json
    assert rest["queries"] == 420 - found["fragile"]
    assert run("plan", *options).out.count("FLOOR(") == 2


def test_what_is_fragile_is_computed_only_when_asked_for(run, monkeypatch):
    monkeypatch.setattr(verb, "fragile", lambda _: pytest.fail("nobody asked for that"))
    options = ("plan", "--people", "bank:7", "--between", 2000, 2999, "--primes", 1)
    assert run(*options, "--json").json == {"file": "queries.jsonl", "people": 66, "queries": 140}
    assert run(*options).code == 0
    with pytest.raises(pytest.fail.Exception):
        run(*options, "--list-fragile")


@pytest.mark.parametrize("arithmetic", ["exact", "numeric"])
def test_other_arithmetics_plan_other_members(run, tmp_path, arithmetic):
    options = ("--people", "bank:0", "--between", 10000, 10500, "--primes", 2, "--exponents", "1.9")
    run("plan", *options, "-o", "float64.jsonl")
    assert run("plan", *options, "--arithmetic", arithmetic, "-o", "other.jsonl").code == 0
    assert (tmp_path / "float64.jsonl").read_text() != (tmp_path / "other.jsonl").read_text()


def test_more_repeats_than_queries_are_refused(run):
    options = ("--people", "census:40:3", "--family", "subsets", "-m", 5, "--repeat", 6)
    assert "--repeat is 6, but there are 5" in run("plan", *options).err


def test_the_family_follows_the_ids_unless_it_is_named(run, tmp_path):
    (tmp_path / "people.csv").write_text("name,status\nann,A\nbob,C\neve,C\n")
    said = run("plan", "--people", "people.csv", "-m", 12).out
    assert "12 queries (subsets) about 3 people" in said
    assert '"name" IN (\'' in said
    assert "12 queries (digits)" in run("plan", "--people", "census:30", "-m", 12).out


def test_nobody_is_asked_about_unless_named(run, tmp_path):
    result = run("plan")
    assert result.code == 2
    assert "say who is asked about: --people FILE" in result.err
    assert not list(tmp_path.iterdir())


def test_a_plan_loads_no_scheduler_no_solver_and_no_database(tmp_path):
    program = (
        "import sys; sys.argv = ['countleak', 'plan', '--people', 'bank:7', '-m', '9', '--json']\n"
        "from countleak.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'joblib', 'scipy', 'highspy', 'duckdb', 'numba', 'psycopg', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    told, loaded = result.stdout.splitlines()
    assert json.loads(told)["queries"] == 9
    assert loaded == "[]"
