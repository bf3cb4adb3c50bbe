import json
import subprocess
import sys
from pathlib import Path

import pytest

import countleak


def test_the_demo_serves_asks_solves_and_scores(run, tmp_path):
    shown = run("demo")
    assert shown.code == 0
    assert "Asked 3500 counts over PostgreSQL's protocol" in shown.out
    assert "secrets recovered" in shown.out
    assert "guessing without any answer gets" in shown.out
    for name in ("people.csv", "queries.jsonl", "answers.jsonl", "guess.jsonl", "score.json"):
        assert name in shown.out
        assert (tmp_path / "demo" / name).stat().st_size
    assert (tmp_path / "demo" / "leak.svg").read_text().startswith("<svg")
    assert "countleak: stopping" in (tmp_path / "demo" / "server.log").read_text()
    first = json.loads((tmp_path / "demo" / "score.json").read_text())
    assert first["accuracy"] > 0.95
    people = ("--people", "demo/people.csv", "--secret", "status = 'C'")
    assert run("score", "demo/guess.jsonl", *people, "--json").json["right"] == first["right"]


@pytest.mark.slow
def test_the_demo_is_the_same_twice(run, tmp_path):
    first = run("demo", "--json").json
    answers = sorted((tmp_path / "demo" / "answers.jsonl").read_text().splitlines())
    assert run("demo", "--json").json["right"] == first["right"]
    assert sorted((tmp_path / "demo" / "answers.jsonl").read_text().splitlines()) == answers


def test_the_demo_replaces_only_its_own_files(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "people.csv").write_text("id\n1\n")
    result = run("demo", "--folder", "mine")
    assert result.code == 2
    assert "mine: holds another run (people.csv); name another folder" in result.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["people.csv"]


def test_the_console_script_is_installed():
    script = Path(sys.executable).parent / "countleak"
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == f"countleak {countleak.__version__}"
