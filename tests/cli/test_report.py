import json
import sys

import pytest

from tests.cli.conftest import run_once

PAGE = ("report.html", "report.json", "report.sarif", "report.xml")
AUDIT = (
    "audit", "simulated", "--people", "census:12", "--secret", "sex = 1", "--family", "subsets",
    "-m", 60, "--sigma", 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A folder in which an audit and its report are."""
    folder = tmp_path_factory.mktemp("audited")
    run_once(folder, *AUDIT)
    return folder / "audit"


def copied(folder, into):
    into.mkdir()
    for path in folder.iterdir():
        (into / path.name).write_bytes(path.read_bytes())
    return into


def test_an_audit_leaves_its_report(audited):
    names = {path.name for path in audited.iterdir()}
    assert names == {"queries.jsonl", "answers.jsonl", "guess.jsonl", "audit.json", *PAGE}


def test_a_report_is_written_again_from_the_folder_alone(run, audited, tmp_path):
    folder = copied(audited, tmp_path / "moved")
    before = {name: (folder / name).read_bytes() for name in PAGE}
    for name in PAGE:
        (folder / name).unlink()
    said = run("report", folder)
    assert said.code == 0
    assert said.out.splitlines()[0].startswith("The answers give away")
    assert f"Report: {folder}/report.html" in said.out
    assert {name: (folder / name).read_bytes() for name in PAGE} == before


def test_people_are_named_only_if_wanted_and_elsewhere_if_wanted(run, audited, tmp_path):
    hidden = run("report", audited, "--out", tmp_path / "out", "--json").json
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(PAGE)
    assert hidden == json.loads((tmp_path / "out" / "report.json").read_text())
    assert {person["id"] for person in hidden["people"]["listed"]} == {None}
    shown = run("report", audited, "--out", tmp_path / "out", "--show-ids", "--json").json
    assert len({person["id"] for person in shown["people"]["listed"]}) == 12


def test_nothing_of_others_is_replaced(run, audited, tmp_path):
    for name in PAGE:
        folder = copied(audited, tmp_path / name)
        (folder / name).write_text("my own notes\n")
        refused = run("report", folder)
        assert refused.code == 2
        assert "holds something else" in refused.err
        assert (folder / name).read_text() == "my own notes\n"
    other = copied(audited, tmp_path / "other")
    assert "holds another audit" in run("report", audited, "--out", other).err


def test_a_folder_without_a_record_says_what_to_do(run, audited, tmp_path):
    folder = copied(audited, tmp_path / "old")
    (folder / "audit.json").unlink()
    refused = run("report", folder)
    assert refused.code == 2
    assert "run `countleak audit` with this folder again" in refused.err
    assert refused.err.count("\n") == 1
    # That is enough: nothing is asked again.
    answers = (folder / "answers.jsonl").read_bytes()
    assert run(*AUDIT, "--folder", folder).code == 0
    assert (folder / "answers.jsonl").read_bytes() == answers
    assert run("report", folder).code == 0


def test_without_the_extra_the_audit_is_complete_and_says_how_to_get_the_page(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = run(*AUDIT)
    assert said.code == 0
    assert "No page: " in said.err
    assert "pip install '.[report]'; then run countleak report audit" in said.err
    refused = run("report", "audit")
    assert refused.code == 2
    assert "pip install" in refused.err
    monkeypatch.undo()


def test_an_audit_that_shows_nothing_says_so_in_its_report_too(run):
    # So few people have counts so low that none is answered.
    words = ("audit", "simulated", "--people", "census:4", "--secret", "sex = 1")
    refused = run(*words, "--family", "subsets", "-m", 20)
    assert refused.code == 2
    assert "every answer was suppressed" in refused.err
    report = run("report", "audit", "--json").json
    assert report["verdict"]["outcome"] == "could not attack"
    assert "not passed" in report["verdict"]["caution"]


def test_the_report_knows_the_threshold_and_the_control(run):
    assert run(*AUDIT, "--fail-above", 0.2, "--control").code == 1
    report = run("report", "audit", "--json").json["audit"]
    assert report["judged"]["failed"] is True
    assert report["judged"]["allowed"] == 0.2
    assert report["control"]["right"] == report["score"]["right"]
    assert report["remedy"]["allowed"] == 0.2
