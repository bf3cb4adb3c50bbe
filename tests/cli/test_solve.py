import json

import pytest

SECRET = ("--people", "census:40:3", "--secret", "sex = 1")
SOLVE = ("solve", "queries.jsonl", "answers.jsonl")


@pytest.fixture
def answered(run):
    assert run("plan", "--people", "census:40:3", "--family", "subsets", "-m", 600).code == 0
    assert run("ask", "queries.jsonl", *SECRET, "--sigma", 3, "--no-suppression").code == 0


@pytest.mark.parametrize("decoder", ["auto", "lp", "ls", "bayes", "robust"])
def test_every_decoder_writes_a_guess_that_scores(run, answered, decoder):
    solved = run(*SOLVE, "--decoder", decoder, "--json").json
    assert solved["claims"] == 40
    found = run("score", "guess.jsonl", *SECRET, "--json").json
    assert found["accuracy"] > 0.9 > found["baseline"]
    assert ("calibration_error" in found) == (decoder != "lp")


def test_auto_is_the_default_and_says_what_it_picked_and_what_to_expect(run, answered):
    said = run(*SOLVE).out
    assert "Picked bayes: gaussian noise of SD" in said
    assert "Expected to be right about" in said


def test_claims_at_a_precision_are_fewer_and_people_without_one_keep_their_probability(
    run, answered, tmp_path
):
    run("plan", "--people", "census:40:3", "--family", "subsets", "-m", 80, "-o", "few.jsonl")
    run("ask", "few.jsonl", *SECRET, "--sigma", 4, "--no-suppression", "-o", "answered.jsonl")
    options = ("--decoder", "bayes", "--precision", 0.95, "--json")
    assert 0 < run("solve", "few.jsonl", "answered.jsonl", *options).json["claims"] < 40
    lines = [json.loads(line) for line in (tmp_path / "guess.jsonl").read_text().splitlines()[1:]]
    assert all(0 <= line["probability"] <= 1 for line in lines)
    assert any("value" not in line for line in lines)
    assert run("score", "guess.jsonl", *SECRET, "--json").json["claims"] < 40


def test_a_bound_proves_what_it_finds(run, answered):
    run("ask", "queries.jsonl", *SECRET, "--mechanism", "uniform", "--bound", 2, "-o", "u.jsonl")
    solved = run("solve", "queries.jsonl", "u.jsonl", "--decoder", "bounded", "--bound", 2)
    assert "40 are proven: no other value fits the answers" in solved.out
    picked = run("solve", "queries.jsonl", "u.jsonl", "--json").json
    assert (picked["decoder"], picked["bound"], picked["forced"]) == ("bounded", 2.0, 40)


def test_known_people_and_polishing(run, answered, tmp_path):
    (tmp_path / "known.csv").write_text("id,bit\n1000,1\n1001,0\n")
    solved = run(*SOLVE, "--decoder", "ls", "--known", "known.csv", "--json").json
    assert solved["known"] == 2
    polished = run(*SOLVE, "--decoder", "ls", "--polish", "--json").json
    assert polished["optimal"] == "proven"
    lines = (tmp_path / "guess.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["id"] == 1000


def test_the_score_draws_how_honest_the_probabilities_are(run, answered, tmp_path):
    run(*SOLVE, "--decoder", "bayes")
    assert run("score", "guess.jsonl", *SECRET, "--picture", "calibration.svg").code == 0
    assert "confidence claimed" in (tmp_path / "calibration.svg").read_text()
    run(*SOLVE, "--decoder", "lp")
    refused = run("score", "guess.jsonl", *SECRET, "--picture", "calibration.svg")
    assert refused.code == 2
    assert "no probabilities to draw" in refused.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--decoder", "magic"), "no decoder 'magic'; choose auto, lp, ls, bayes"),
        (("--decoder", "bounded"), "pass --bound with --decoder bounded"),
        (("--decoder", "bounded", "--bound", -1), "the bound is -1; it must be above 0"),
        (("--decoder", "robust", "--by", "weekday"), "no parameter 'weekday'; they have none"),
        (("--decoder", "bayes", "--prior", 1.5), "the prior rate is 1.5"),
        (("--decoder", "bayes", "--precision", 2), "choose one from 0.5"),
        (("--decoder", "lp", "--precision", 0.9), "gives no probabilities"),
        (("--sigma", 0), "--sigma"),
        (("--known", "absent.csv"), "absent.csv: no such file"),
        (("--known", "odd.csv"), "the bits must be 0 or 1"),
        (("--known", "wide.csv"), "2 columns beside the id, expected one"),
        (("--known", "stranger.csv"), "no query is about that id"),
    ],
    ids=str,
)
def test_bad_options_are_one_line(run, answered, tmp_path, options, complaint):
    (tmp_path / "odd.csv").write_text("id,bit\n1000,5\n1001,0\n")
    (tmp_path / "wide.csv").write_text("id,bit,name\n1000,1,x\n1001,0,y\n")
    (tmp_path / "stranger.csv").write_text("id,bit\n1,1\n2,0\n")
    result = run(*SOLVE, *options)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "guess.jsonl").exists()
