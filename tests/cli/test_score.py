import pytest

CENSUS = ("--people", "census:30")
SECRET = (*CENSUS, "--secret", "sex = 1")


@pytest.fixture
def answered(run):
    assert run("plan", *CENSUS, "--family", "subsets", "-m", 400).code == 0
    assert run("ask", "queries.jsonl", *SECRET, "--sigma", 2).code == 0


def test_the_stages_hand_files_on_and_the_score_has_its_baseline(run, answered):
    solved = run("solve", "queries.jsonl", "answers.jsonl", "--decoder", "lp", "--json")
    assert solved.json["status"] == "optimal"
    assert solved.json["certificate"]["kind"] == "Bracket"
    found = run("score", "guess.jsonl", *SECRET, "--json").json
    assert found["accuracy"] > 0.9 > found["baseline"]
    assert found["interval"][0] < found["accuracy"]
    said = run("score", "guess.jsonl", *SECRET).out
    assert "guessing without any answer gets" in said
    # The guess says which secret it is about.
    assert run("score", "guess.jsonl", *CENSUS, "--json").json == found


def test_an_infeasible_guess_is_no_accuracy_of_zero(run, answered):
    run("solve", "queries.jsonl", "answers.jsonl", "--program", "dini", "-B", 0.1)
    assert run("score", "guess.jsonl", *SECRET, "--json").json["accuracy"] is None
    assert "The program has no solution" in run("score", "guess.jsonl", *SECRET).out


def test_the_score_draws_how_honest_the_probabilities_are(run, answered, tmp_path):
    run("solve", "queries.jsonl", "answers.jsonl", "--decoder", "bayes")
    assert run("score", "guess.jsonl", *SECRET, "--picture", "calibration.svg").code == 0
    assert "confidence claimed" in (tmp_path / "calibration.svg").read_text()
    run("solve", "queries.jsonl", "answers.jsonl", "--decoder", "lp")
    refused = run("score", "guess.jsonl", *SECRET, "--picture", "calibration.svg")
    assert refused.code == 2
    assert "there are no probabilities of bits to draw" in refused.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "say who is asked about"),
        (("--people", "bank:7"), "people who are not among --people"),
        ((*CENSUS, "--secret", "sex"), "the guess is about sex = 1, not about sex"),
        ((*CENSUS, "--secret", "sum(sex)"), "the guess is about sex = 1, not about sum(sex)"),
        ((*CENSUS, "--secret", "zz = 1"), "there is no column 'zz'; the columns are sex"),
        ((*CENSUS, "--tolerance", 0.1), "--tolerance is for numbers"),
        ((*CENSUS, "--column", "zz"), "No such option: --column"),
        ((*CENSUS, "--picture", "x.gif"), "cannot draw '.gif'"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(run, answered, tmp_path, words, complaint):
    run("solve", "queries.jsonl", "answers.jsonl", "--decoder", "ls")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run("score", "guess.jsonl", *words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert complaint in result.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
