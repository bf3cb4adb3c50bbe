import json
from dataclasses import replace

import pytest

import countleak as cl
from countleak.audit.report.record import read_record, write_record
from countleak.audit.report.report import MOST_HIDDEN, MOST_LISTED, read_report
from countleak.audit.report.verdict import Outcome
from countleak.errors import InputError


def test_a_report_is_made_from_the_folder_alone(leaking):
    report = read_report(leaking.folder)
    score = leaking.result.score
    assert report.verdict.outcome is Outcome.LEAKS
    assert f"{score.right} of {score.claims} guesses about sex = 1 are right" in (
        report.verdict.sentence
    )
    assert report.audit.score.interval == score.interval()
    assert report.audit.judged.failed is True
    assert report.audit.authorised_by == "A. Reviewer"
    assert report.audit.control.risk > 0
    assert set(report.digests) == {"audit.json", "queries.jsonl", "answers.jsonl", "guess.jsonl"}
    assert report.article_29.linkability == "not assessed"
    assert "simulated" in report.not_tested[0]


def test_ids_and_values_are_hidden_unless_wanted(leaking, valued):
    hidden, shown = (read_report(valued.folder, show_ids=show) for show in (False, True))
    assert "person " in json.dumps(shown.record())
    assert "person " not in json.dumps(hidden.record())
    assert "IN (…)" in hidden.audit.asked.samples[0]
    assert all(person.id is person.value is None for person in hidden.people.listed)
    people = read_report(leaking.folder, show_ids=True).people
    ids = {str(person) for person in leaking.result.audited.ids.tolist()}
    assert {person.id for person in people.listed} == ids
    assert {person.value for person in people.listed} <= {"0", "1"}


def test_the_surest_come_first_and_the_list_is_capped(crowd):
    for show, most in ((False, MOST_HIDDEN), (True, MOST_LISTED)):
        people = read_report(crowd, show_ids=show).people
        assert len(people.listed) == most
        assert people.more == 5000 - most
        sure = [person.confidence for person in people.listed]
        assert sure == sorted(sure, reverse=True)
    assert sum(c.people for c in people.classes) == 5000


def longest_list(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = len(value) if isinstance(value, list) else 0
    return max([own, *map(longest_list, parts)])


def test_the_record_has_no_entry_for_each_person(leaking):
    record = json.loads((leaking.folder / "audit.json").read_text())
    bars = record["residuals"].pop("bars")
    assert len(bars) > 2
    assert longest_list(record) < len(leaking.result.audited)


def test_without_the_truth_it_is_a_confidence(unknown):
    report = read_report(unknown.folder)
    assert report.verdict.outcome is Outcome.CONFIDENCE
    assert "a confidence, not a success rate" in report.verdict.caution
    assert report.verdict.headline == "The attack expects 88.8% of its guesses to be right"
    assert report.article_29.inference.startswith("not measured")
    assert report.audit.score is None
    assert report.not_tested[0].startswith("Whether the guesses are right")


def test_what_did_not_work_is_never_an_all_clear(hopeless, leaking, tmp_path):
    report = read_report(hopeless.folder)
    assert report.verdict.outcome is Outcome.NOT_SHOWN
    assert "no proof of anonymity" in report.verdict.caution
    assert "not ruled out" in report.article_29.inference
    record = leaking.record
    nothing = replace(record, judged=replace(record.judged, nothing="every answer is 0"))
    misfit = replace(
        hopeless.record, method=replace(hopeless.record.method, misfit="residuals are odd")
    )
    for name, held, outcome in (
        ("nothing", nothing, Outcome.NOTHING),
        ("misfit", misfit, Outcome.MISFIT),
    ):
        folder = tmp_path / name
        folder.mkdir()
        write_record(folder, held)
        source = leaking if outcome is Outcome.NOTHING else hopeless
        (folder / "guess.jsonl").write_bytes((source.folder / "guess.jsonl").read_bytes())
        verdict = read_report(folder).verdict
        assert verdict.outcome is outcome
        assert "not passed" in verdict.caution


def test_a_record_comes_back_as_it_was_written(leaking, valued, numbers):
    for each in (leaking, valued, numbers):
        assert read_record(each.folder) == each.record


def test_what_is_damaged_or_missing_is_said_in_one_line(leaking, tmp_path):
    with pytest.raises(InputError, match="run `countleak audit` with this folder again"):
        read_report(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_report(tmp_path / "none")
    (tmp_path / "guess.jsonl").write_bytes((leaking.folder / "guess.jsonl").read_bytes())
    for text, complaint in (
        ("{", "not JSON"),
        ("[]", "not the record of an audit"),
        ('{"countleak": "audit", "version": 2, "format": 9}', "format 9"),
        ('{"countleak": "audit", "version": 2, "format": 1}', "system is missing"),
    ):
        (tmp_path / "audit.json").write_text(text)
        with pytest.raises(InputError, match=complaint):
            read_report(tmp_path)
    (tmp_path / "audit.json").unlink()
    write_record(tmp_path, replace(leaking.record, people=3))
    with pytest.raises(InputError, match="of different audits"):
        read_report(tmp_path)


def test_the_same_from_python(tmp_path):
    people = cl.generated_census(16, seed=3)
    result = cl.audit(people, secret="sex = 1", target=cl.Gaussian(1.0), queries=60)
    report = cl.report.write(result, tmp_path / "run", system="a twin of ours")
    assert report.audit.system == "a twin of ours"
    assert report == cl.report.read_report(tmp_path / "run")
    # Again is the same; another audit does not take its place.
    cl.report.write(result, tmp_path / "run", system="a twin of ours")
    with pytest.raises(InputError, match="name a new"):
        cl.report.write(result, tmp_path / "run", system="another")
