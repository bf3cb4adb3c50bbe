import subprocess
import sys
from pathlib import Path

import countleak


def test_the_demo_says_how_many_against_the_baseline_and_where_the_files_are(run, tmp_path):
    shown = run("demo")
    assert shown.code == 0
    assert "secrets recovered" in shown.out
    assert "guessing without any answer gets" in shown.out
    for name in ("people.csv", "queries.jsonl", "answers.jsonl", "guess.jsonl", "score.json"):
        assert name in shown.out
        assert (tmp_path / "demo" / name).stat().st_size
    assert (tmp_path / "demo" / "leak.svg").read_text().startswith("<svg")


def test_the_demo_twice_is_the_same_and_its_files_feed_the_stages(run):
    first, second = run("demo", "--json").json, run("demo", "--json").json
    assert first["right"] == second["right"]
    assert first["accuracy"] > 0.95
    people = ("--people", "demo/people.csv", "--secret", "status = 'C'")
    assert run("score", "demo/guess.jsonl", *people, "--json").json["right"] == first["right"]


def test_the_console_script_is_installed():
    script = Path(sys.executable).parent / "countleak"
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == f"countleak {countleak.__version__}"
