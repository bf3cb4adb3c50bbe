import pytest

SECRET = ("--people", "census:40:3", "--secret", "sex = 1")


@pytest.fixture
def planned(run):
    options = ("--people", "census:40:3", "--family", "subsets", "-m", 600, "--repeat", 10)
    assert run("plan", *options, "--json").json["queries"] == 610


def test_a_diagnosis_in_words_in_json_and_as_a_picture(run, planned, tmp_path):
    run("ask", "queries.jsonl", *SECRET, "--sigma", 3, "--no-suppression")
    said = run("diagnose", "answers.jsonl", "--picture", "noise.svg").out
    assert "Noise: gaussian, SD" in said
    assert "a question asked again got fresh noise" in said
    assert "answer less fitted count" in (tmp_path / "noise.svg").read_text()
    found = run("diagnose", "answers.jsonl", "--json").json
    assert found["shape"] == "gaussian"
    assert found["sigma"] == pytest.approx(3.0, abs=0.5)
    assert found["sticky"] is False
    assert found["groups"] == []
    assert "Inferred from the answers: noise is normal of SD" in said and "Stated" not in said
    assert found["stated"] == [] and found["inferred"][0].startswith("noise is normal of SD")
    stated = ("--noise", "laplace", "--lowest", 0, "--fresh")
    told = run("diagnose", "answers.jsonl", *stated, "--json").json
    assert (told["shape"], told["floor"]) == ("laplace", 0)
    assert told["stated"] == [
        "noise is Laplace",
        "no answer is below 0",
        "a question asked again gets fresh noise",
    ]
    assert len(told["inferred"]) == 1 and "the noise has SD" in told["inferred"][0]
    assert "Stated: noise is Laplace; no answer is below 0;" in run(
        "diagnose", "answers.jsonl", *stated
    ).out  # fmt: skip


def test_rounding_is_seen(run, planned):
    run("ask", "queries.jsonl", *SECRET, "--mechanism", "round", "--base", 5)
    assert "rounding to multiples of 5, within 2" in run("diagnose", "answers.jsonl").out


@pytest.mark.slow
def test_recorded_answers_are_diagnosed_range_by_range(run, shared):
    found = run("diagnose", shared / "data" / "cohen-nissim", "--json").json
    odd = {g["value"] for g in found["10000-12000"]["groups"] if g["odd"]}
    assert odd == {1.8, 1.9}
    said = run("diagnose", shared / "data" / "cohen-nissim").out
    assert "odd ones out: 1.8, 1.9" in said


def test_bad_input_is_one_line(run, planned):
    run("ask", "queries.jsonl", *SECRET)
    for words, complaint in (
        (("absent.jsonl",), "absent.jsonl: no such file"),
        (("answers.jsonl", "--queries", "absent.jsonl"), "absent.jsonl: no such file"),
        (("answers.jsonl", "--picture", "x.bmp"), "cannot draw '.bmp'"),
    ):
        result = run("diagnose", *words)
        assert result.code == 2
        assert complaint in result.err
    run("plan", "--people", "census:40:3", "--family", "subsets", "-m", 30, "-o", "few.jsonl")
    run("ask", "few.jsonl", *SECRET, "-o", "few-answers.jsonl", "--no-suppression")
    result = run("diagnose", "few-answers.jsonl", "--queries", "few.jsonl")
    assert "30 released answers about 40 people leave nothing over" in result.err


def test_more_repeats_than_queries_are_refused(run):
    options = ("--people", "census:40:3", "--family", "subsets", "-m", 5, "--repeat", 6)
    assert "--repeat is 6, but there are 5" in run("plan", *options).err
