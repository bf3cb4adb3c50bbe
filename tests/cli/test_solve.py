import json

import pytest

from countleak.attack.guess_file import read_guess

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
    assert "of the guesses should be right" in said
    assert "Inferred from the answers: noise is normal of SD" in said
    assert "Stated" not in said


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


def test_a_bound_that_is_stated_proves_and_one_that_is_not_implies(run, answered):
    run("ask", "queries.jsonl", *SECRET, "--mechanism", "uniform", "--bound", 2, "-o", "u.jsonl")
    solve = ("solve", "queries.jsonl", "u.jsonl")
    for words in (("--decoder", "bounded"), ()):
        said = run(*solve, *words, "--noise-within", 2).out
        assert "40 people's values are proven: under the rules stated no other fits" in said
        assert "Stated: noise lies within ± 2" in said
        assert read_guess("guess.jsonl")[0].proven.all()
    within = "no answer is further than 2 from its count"
    assert f"40 people's values are implied, if {within}" in run(*solve).out
    assert read_guess("guess.jsonl")[0].implied.all()
    picked = run(*solve, "--json").json
    assert (picked["decoder"], picked["bound"], picked["forced"]) == ("bounded", 2.0, 40)
    assert (picked["proven"], picked["implied"]) == (0, 40)
    assert picked["inferred"] == ["noise lies within ± 2"] and "stated" not in picked
    assert picked["assuming"] == within
    hurried = run(*solve, "--time-limit", 0, "--json").json
    assert (hurried["claims"], hurried["forced"]) == (40, 0)


def test_rules_that_no_values_keep_to_are_said_to_be_wrong(run, answered):
    said = run(*SOLVE, "--exact").out
    assert "0 of 40 people guessed" in said
    assert "No values fit the answers if no noise is added, as stated; check that" in said


def test_what_is_stated_of_the_noise_reaches_every_decoder(run, answered):
    for decoder in ("auto", "bayes", "ls"):
        solved = run(*SOLVE, "--decoder", decoder, "--noise-sd", 3, "--json").json
        assert solved["stated"] == ["noise is normal of SD 3"]
        sigma = solved["sigma"]
        assert (sigma if decoder == "ls" else sigma[0]) == 3.0
    laplace = run(*SOLVE, "--noise", "laplace", "--lowest", 0, "--json").json
    assert "laplace noise" in laplace["picked_because"]
    assert laplace["stated"] == ["noise is Laplace", "no answer is below 0"]
    robust = ("--decoder", "robust", "--suppressed", "below about 4", "--json")
    assert run(*SOLVE, *robust).json["stated"] == ["counts below about 4 are suppressed"]


def test_known_people_and_polishing(run, answered, tmp_path):
    (tmp_path / "known.csv").write_text("id,bit\n1000,1\n1001,0\n")
    solved = run(*SOLVE, "--decoder", "ls", "--known", "known.csv", "--json").json
    assert solved["known"] == 2
    polished = run(*SOLVE, "--decoder", "ls", "--polish", "--json").json
    assert polished["optimal"] == "proven"
    lines = (tmp_path / "guess.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["id"] == 1000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--decoder", "magic"), "'magic' is not one of 'auto', 'lp', 'ls', 'bayes'"),
        (("--decoder", "bounded"), "--decoder bounded needs a bound: state --exact, --noise-with"),
        (("--decoder", "bounded", "--noise-within", -1), "the bound is -1; it must lie above 0"),
        (("--suppressed", "3"), "cannot be read; write the lowest and the highest count"),
        (("--suppressed", "4..2"), "write the lower one first"),
        (("--noise", "uniform"), "--noise uniform needs its bound; write --noise-within 2"),
        (("--noise-sd", 2, "--noise-within", 2), "does not apply with --noise-sd"),
        (("--exact", "--noise", "laplace"), "--noise does not apply with --exact"),
        (("--rounded-by-chance",), "--rounded-by-chance does not apply without --rounded-to"),
        (("--rounded-to", 0), "answers are multiples of 0; write a number from 1"),
        (("--rounded-to", 5), "rounded to multiples of 5, as stated, but one is"),
        (("--lowest", 9), "no answer is below 9, as stated, but one is"),
        (("--decoder", "lp", "--exact"), "--exact does not apply to --decoder lp"),
        (("--decoder", "robust", "--noise-sd", 3), "--noise-sd does not apply to --decoder robust"),
        (("--decoder", "ls", "--time-limit", 3), "--time-limit does not apply to --decoder ls"),
        (("--decoder", "robust", "--by", "weekday"), "no parameter 'weekday'; they have none"),
        (("--decoder", "bayes", "--prior", 1.5), "the prior rate is 1.5"),
        (("--decoder", "bayes", "--precision", 2), "choose one from 0.5"),
        (("--decoder", "lp", "--precision", 0.9), "--precision does not apply to --decoder lp"),
        (("--decoder", "bounded", "--noise-within", 9, "--precision", 0.9), "does not apply"),
        (("--decoder", "bayes", "--program", "dmt"), "--program does not apply to --decoder bayes"),
        (("--decoder", "lp", "--prior", 0.5), "--prior does not apply to --decoder lp"),
        (("--program", "dini", "-B", "nan"), "--multiplier is nan; give a finite number"),
        (("--multiplier", 3), "--multiplier does not apply to --program dmt"),
        (("--decoder", "lp", "--time-limit", 3), "--time-limit does not apply without --integer"),
        (("--low", 3), "--low does not apply to a bit; it needs a number"),
        (("--decoder", "bayes", "--noise-sd", 1e-300), "sigma is 1e-300"),
        (("--decoder", "bayes", "--noise-sd", 1e300), "sigma is 1e+300"),
        (("--decoder", "bayes", "--noise-sd", "nan"), "--noise-sd is nan"),
        (("--sigma", 3), "--sigma"),
        (("--known", "absent.csv"), "absent.csv: no such file"),
        (("--known", "odd.csv"), "the bits must be 0 or 1"),
        (("--known", "wide.csv"), "3 columns, expected an id and a value"),
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


@pytest.fixture
def small(run):
    assert run("plan", "--people", "census:30", "--family", "subsets", "-m", 400).code == 0
    secret = ("--people", "census:30", "--secret", "sex = 1")
    assert run("ask", "queries.jsonl", *secret, "--sigma", 2).code == 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--program", "bounded", "--noise-sd", 2), "optimal"),
        (("--program", "dini", "--noise-sd", 2, "-B", 4), "feasible"),
        (("--program", "dini", "--noise-sd", 2, "-B", 4, "--point", "centre"), "feasible"),
        (("--program", "dini", "--noise-sd", 2, "-B", 0.5), "infeasible"),
        (("--integer", "--time-limit", 20), "optimal"),
    ],
    ids=str,
)
def test_every_program_has_its_status(run, small, options, status):
    solved = run(*SOLVE, *options, "--json").json
    assert solved["status"] == status
    assert solved["claims"] == (0 if status == "infeasible" else 30)
    if "--point" in options:
        assert solved["point"] == "centre"


def test_partial_answers_on_demand(run, tmp_path, small):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:200]))
    assert "199 answers to 400 questions" in run(*SOLVE).err
    assert run(*SOLVE, "--partial").code == 0


BANK = ("--people", "bank:7", "--between", 2000, 3000)


@pytest.fixture
def planned(run):
    assert run("plan", *BANK, "--family", "subsets", "-m", 200).code == 0


@pytest.fixture
def about_values(run, planned):
    asked = ("ask", "queries.jsonl", *BANK, "--secret", "status", "--sigma", 2, "--json")
    assert run(*asked).json["answers"] == 800


def test_values_are_guessed_together_and_scored_beside_the_commonest(run, about_values):
    found = run(*SOLVE, "--json").json
    assert found["people"] == found["claims"] == sum(found["values"].values()) == 66
    assert found["sigma"][0] == pytest.approx(2.0, rel=0.2)
    score = run("score", "guess.jsonl", *BANK, "--secret", "status", "--json").json
    assert score["accuracy"] > 0.9 > score["baseline"]
    assert sum(row["people"] for row in score["by_value"]) == 66
    assert "guessing without any answer gets" in run("score", "guess.jsonl", *BANK).out


def test_values_with_claims_known_people_and_the_rest(run, tmp_path, planned):
    (tmp_path / "known.csv").write_text("id,status\n2041,C\n2049,A\n")
    secret = ("--secret", "status in ('A', 'C', ...)")
    asked = ("ask", "queries.jsonl", *BANK, *secret, "--sigma", 2, "--json")
    assert run(*asked).json["answers"] == 400
    options = ("--precision", 0.9, "--known", "known.csv", "--suppressed", "below about 4")
    shown = run(*SOLVE, *options)
    assert shown.code == 0
    assert "other" in shown.out
    found = run(*SOLVE, *options, "--json").json
    assert found["known"] == 2
    assert found["claims"] <= 66
    assert set(found["values"]) == {"A", "C", "other"}
    assert run("score", "guess.jsonl", *BANK, "--json").json["accuracy"] > 0.9


def test_a_value_may_have_answers_of_its_own_to_some_queries_only(run, tmp_path, about_values):
    path = tmp_path / "answers.jsonl"
    header, *lines = path.read_text().splitlines(keepends=True)
    others = [line for line in lines if json.loads(line)["value"] != "A"]
    some = [line for line in lines if json.loads(line)["value"] == "A"][:150]
    path.write_text("".join([header, *some, *others]))
    assert "750 answers to 800 questions" in run(*SOLVE).err
    found = run(*SOLVE, "--partial", "--json").json
    assert found["answers"] == {"A": 150, "B": 200, "C": 200, "D": 200}


def test_what_is_stated_of_the_noise_proves_values_of_several(run, planned):
    asked = ("ask", "queries.jsonl", *BANK, "--secret", "status", "--mechanism", "round")
    assert run(*asked, "--base", 3).code == 0
    found = run(*SOLVE, "--exact", "--rounded-to", 3, "--json").json
    assert found["proven"] == 66 and found["implied"] == 0
    assert found["stated"] == ["no noise is added", "answers are rounded to multiples of 3"]
    assert run("score", "guess.jsonl", *BANK, "--json").json["accuracy"] == 1.0
    hurried = run(*SOLVE, "--time-limit", 0, "--json").json
    assert (hurried["claims"], hurried["forced"], hurried["proofs"]) == (66, 0, "not looked for")


def test_sums_are_asked_solved_and_scored_beside_the_mean(run, planned):
    secret = ("--secret", "sum(amount)")
    asked = ("ask", "queries.jsonl", *BANK, *secret, "--mechanism", "gaussian", "--sigma", 50000)
    assert run(*asked).code == 0
    found = run(*SOLVE, "--low", 0, "--json").json
    assert found["people"] == 66
    assert found["sigma"] == pytest.approx(50000, rel=0.2)
    score = run("score", "guess.jsonl", *BANK, *secret, "--json").json
    assert score["r_squared"] > 0.95
    assert score["accuracy"] > score["baseline"]
    assert score["interval"][0] < score["accuracy"]
    assert "r squared" in run("score", "guess.jsonl", *BANK).out
    assert "66 of 66 people guessed" in run(*SOLVE).out


KINDS = {
    "status": ("--sigma", 2),
    "sum(amount)": ("--mechanism", "gaussian", "--sigma", 50000),
}


@pytest.mark.parametrize(
    ("secret", "words", "complaint"),
    [
        ("sum(amount)", ("--low", 9, "--high", 1), "the first must be below"),
        ("sum(amount)", ("-o", "queries.jsonl"), "holds a countleak queries file, not"),
        ("sum(amount)", ("--precision", 0.9), "--precision does not apply to a number"),
        ("sum(amount)", ("--decoder", "bayes"), "--decoder does not apply to a number"),
        ("sum(amount)", ("--known", "words.csv"), "the known number of 2041 is 'C'"),
        ("status", ("--prior", 0.5), "--prior does not apply to a category; it needs a bit"),
        ("sum(amount)", ("--exact",), "--exact does not apply to a number"),
        ("sum(amount)", ("--time-limit", 3), "--time-limit does not apply to a number"),
        ("sum(amount)", ("--suppressed", "1..2"), "--suppressed does not apply to a number"),
        ("status", ("--low", 0), "--low does not apply to a category; it needs a number"),
        ("status", ("--known", "stranger.csv"), "no query is about that id"),
        ("status", ("--known", "numbers.csv"), "2041"),
    ],
    ids=str,
)
def test_bad_options_of_other_kinds_are_one_line(run, planned, tmp_path, secret, words, complaint):
    (tmp_path / "words.csv").write_text("id,value\n2041,C\n")
    (tmp_path / "numbers.csv").write_text("id,value\n2041,7\n")
    (tmp_path / "stranger.csv").write_text("id,value\n1,C\n")
    assert run("ask", "queries.jsonl", *BANK, "--secret", secret, *KINDS[secret]).code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(*SOLVE, *words)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert complaint in result.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_one_known_person_is_enough(run, answered, tmp_path):
    (tmp_path / "known.csv").write_text("id,bit\n1000,1\n")
    for words in (
        ("--decoder", "ls"),
        ("--program", "bounded", "--noise-sd", 3),
        ("--decoder", "bayes"),
    ):
        assert run(*SOLVE, *words, "--known", "known.csv", "--json").json["known"] == 1
        line = json.loads((tmp_path / "guess.jsonl").read_text().splitlines()[1])
        assert (line["id"], line["value"]) == (1000, 1)


def test_quotes_make_a_text_of_a_number(run, tmp_path):
    rows = "".join(f"{i},{'1' if i % 3 else '01'}\n" for i in range(1, 25))
    (tmp_path / "people.csv").write_text(f"id,grade\n{rows}")
    people = ("--people", "people.csv", "--secret", "grade = '1'")
    assert run("plan", *people[:2], "--family", "subsets", "-m", 9).code == 0
    assert run("ask", "queries.jsonl", *people, "--sigma", 1).code == 0
    header = json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[0])
    assert header["secret"] == "grade = '1'"
    live = (
        "--target",
        "postgresql://127.0.0.1:1/x",
        "--table",
        "t",
        "--dry-run",
        "-o",
        "new.jsonl",
    )
    assert "\"grade\" = '1'" in run("ask", "queries.jsonl", *people, *live).err
