import pytest

BANK = ("--people", "bank:7")


@pytest.fixture
def planned(run):
    options = ("--between", 2000, 3000, "--family", "subsets", "-m", 200)
    assert run("plan", *BANK, *options).code == 0


@pytest.fixture
def about_values(run, planned):
    for name in "ABCD":
        secret = ("--secret", f"status = '{name}'")
        asked = run("ask", "queries.jsonl", *BANK, *secret, "--sigma", 2, "-o", f"{name}.jsonl")
        assert asked.code == 0
    return [word for name in "ABCD" for word in ("--answers", f"{name}=./{name}.jsonl")]


def test_values_are_guessed_together_and_scored_beside_the_commonest(run, about_values):
    found = run("categories", "queries.jsonl", *about_values, "--json").json
    assert found["people"] == found["claims"] == sum(found["values"].values()) == 66
    assert found["sigma"][0] == pytest.approx(2.0, rel=0.2)
    score = run("score", "categories.jsonl", *BANK, "--column", "status", "--json").json
    assert score["accuracy"] > 0.9 > score["baseline"]
    assert sum(row["people"] for row in score["by_value"]) == 66
    assert "naming everyone the commonest" in run("score", "categories.jsonl", *BANK).out


def test_values_with_claims_known_people_and_the_rest(run, tmp_path, about_values):
    first = run("plan", *BANK, "--between", 2000, 3000, "--json").json["people"]
    assert first == 66
    (tmp_path / "known.csv").write_text("id,status\n2041,C\n2049,A\n")
    run("plan", *BANK, "--between", 2000, 3000, "--family", "subsets", "-m", 200)
    some = about_values[:2] + about_values[4:6]
    options = ("--other", "rest", "--precision", 0.9, "--known", "known.csv", "--threshold", 4)
    shown = run("categories", "queries.jsonl", *some, *options)
    assert shown.code == 0
    assert "rest" in shown.out
    found = run("categories", "queries.jsonl", *some, *options, "--json").json
    assert found["known"] == 2
    assert found["claims"] <= 66


def test_a_value_may_have_questions_of_its_own(run, about_values):
    options = ("--between", 2000, 3000, "--family", "subsets", "-m", 150, "--seed", 5)
    run("plan", *BANK, *options, "-o", "others.jsonl")
    secret = ("--secret", "status = 'A'")
    run("ask", "others.jsonl", *BANK, *secret, "--sigma", 2, "-o", "A2.jsonl")
    words = ["--answers", "A=A2.jsonl", *about_values[2:], "--queries-of", "A=others.jsonl"]
    found = run("categories", "queries.jsonl", *words, "--json").json
    assert found["answers"] == {"A": 150, "B": 200, "C": 200, "D": 200}


def test_sums_are_asked_solved_and_scored_beside_the_mean(run, planned):
    asked = ("ask", "queries.jsonl", *BANK, "--sum", "amount", "--mechanism", "gaussian")
    assert run(*asked, "--sigma", 50000, "-o", "sums.jsonl").code == 0
    found = run("sums", "queries.jsonl", "sums.jsonl", "--low", 0, "--json").json
    assert found["people"] == 66
    assert found["sigma"] == pytest.approx(50000, rel=0.2)
    score = run("score", "amounts.jsonl", *BANK, "--column", "amount", "--json").json
    assert score["r_squared"] > 0.95
    assert score["accuracy"] > score["baseline"]
    assert score["interval"][0] < score["accuracy"]
    assert "R squared" in run("score", "amounts.jsonl", *BANK).out
    assert "numbers guessed" in run("sums", "queries.jsonl", "sums.jsonl").out


CASES = [
    (("categories", "queries.jsonl", "--answers", "A"), "like A=a.jsonl"),
    (("categories", "queries.jsonl", "--answers", "A=A.jsonl"), "two or more, or name the other"),
    (("categories", "queries.jsonl", *["--answers", "A=A.jsonl"] * 2), "A was given already"),
    (("categories", "queries.jsonl", "--answers", "A=absent.jsonl"), "absent.jsonl: no such file"),
    (
        ("categories", "queries.jsonl", "--answers", "A=A.jsonl", "--queries-of", "Z=q.jsonl"),
        "no --answers of that value",
    ),
    (("ask", "queries.jsonl", *BANK, "--sum", "amount"), "--mechanism gaussian or laplace"),
    (
        ("ask", "queries.jsonl", *BANK, "--sum", "status", "--mechanism", "gaussian"),
        "status holds words",
    ),
    (
        ("ask", "queries.jsonl", *BANK, "--sum", "income", "--mechanism", "gaussian"),
        "no column 'income'",
    ),
    (("sums", "queries.jsonl", "A.jsonl", "--low", 9, "--high", 1), "the first must be below"),
    (
        ("sums", "queries.jsonl", "A.jsonl", "-o", "queries.jsonl"),
        "holds a countleak queries file, not",
    ),
]


@pytest.mark.parametrize(("words", "complaint"), CASES, ids=str)
def test_bad_input_is_one_line(run, planned, words, complaint):
    secret = ("--secret", "status = 'A'", "--mechanism", "gaussian")
    assert run("ask", "queries.jsonl", *BANK, *secret, "-o", "A.jsonl").code == 0
    result = run(*words)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert complaint in result.err


def test_bench_categories(run, tmp_path):
    options = ("--queries", "40,80", "--people", 12, "--trials", 2, "--picture", "values.svg")
    rows = run("lab", "bench", "categories", *options, "--json").json["rows"]
    assert [row["queries"] for row in rows] == [40, 40, 40, 80, 80, 80]
    assert all(0 < row["baseline"] < 1 for row in rows)
    assert rows[0]["gain"] == 0
    assert "queries a value" in (tmp_path / "values.svg").read_text()
