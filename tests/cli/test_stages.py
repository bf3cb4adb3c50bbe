import json

import numpy as np
import pytest

SMALL = ("--people", "census:30", "--family", "subsets", "-m", 400)
SECRET = ("--people", "census:30", "--secret", "sex = 1")


@pytest.fixture
def answered(run):
    assert run("plan", *SMALL).code == 0
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


def test_people_from_a_file(run, tmp_path, bank):
    bank.write_csv(tmp_path / "bank.csv")
    assert run("plan", "--people", "bank.csv", "--between", 2000, 3000, "--json").json == {
        "file": "queries.jsonl",
        "people": 66,
        "fragile": run("plan", "--people", "bank:7", "--between", 2000, 3000, "--json").json[
            "fragile"
        ],
        "queries": 3500,
    }
    assert run("ask", "queries.jsonl", "--people", "bank.csv", "--secret", "status = 'C'").code == 0
    assert run("solve", "queries.jsonl", "answers.jsonl").code == 0
    found = run(
        "score", "guess.jsonl", "--people", "bank.csv", "--secret", "status = 'C'", "--json"
    )
    assert found.json["accuracy"] > 0.95


def test_fragile_queries_can_be_listed_and_left_out(run):
    options = ("--people", "bank", "--between", 10000, 12000, "--primes", 3)
    found = run("plan", *options, "--list-fragile", "--json").json
    assert found["queries"] == 420
    assert len(found["fragile_queries"]) == found["fragile"] > 0
    rest = run("plan", *options, "--without-fragile", "--json").json
    assert rest["queries"] == 420 - found["fragile"]
    assert run("plan", *options).out.count("floor(") == 2


@pytest.mark.parametrize("arithmetic", ["exact", "numeric"])
def test_other_arithmetics_plan_other_members(run, tmp_path, arithmetic):
    options = ("--people", "bank", "--between", 10000, 10500, "--primes", 2, "--exponents", "1.9")
    run("plan", *options, "-o", "float64.jsonl")
    assert run("plan", *options, "--arithmetic", arithmetic, "-o", "other.jsonl").code == 0
    assert (tmp_path / "float64.jsonl").read_text() != (tmp_path / "other.jsonl").read_text()


@pytest.mark.parametrize(
    "mechanism",
    [
        ("gaussian", "--sigma", 2),
        ("laplace", "--sigma", 2),
        ("uniform", "--bound", 2),
        ("round", "--base", 3),
        ("round", "--base", 3, "--random-rounding"),
        ("diffix", "--sigma", 2, "--no-suppression", "--no-clamping", "--no-rounding"),
    ],
    ids=str,
)
def test_every_mechanism_answers(run, mechanism):
    run("plan", *SMALL)
    asked = run("ask", "queries.jsonl", *SECRET, "--mechanism", *mechanism, "--json")
    assert asked.json["answers"] == 400
    assert asked.json["suppressed"] == 0


@pytest.mark.parametrize(("noise", "sd"), [("direct", 3.0), ("two-subsets", 4.24), ("6", 6.0)])
def test_sign_queries_with_each_noise(run, tmp_path, noise, sd):
    run("plan", "--people", "census:30", "--family", "signs", "-m", 4000)
    options = ("--mechanism", "gaussian", "--sigma", 3, "--sign-noise", noise)
    assert run("ask", "queries.jsonl", *SECRET, *options).code == 0
    run("solve", "queries.jsonl", "answers.jsonl", "--json")
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()[1:]
    values = np.array([json.loads(line)["answer"] for line in lines])
    # Half of 30 are ones, each adding variance 1 to the exact answers.
    spread = np.sqrt(values.var() - 15)
    assert spread == pytest.approx(sd, rel=0.12)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--program", "bounded", "--sigma", 2), "optimal"),
        (("--program", "dini", "--sigma", 2, "-B", 4), "feasible"),
        (("--program", "dini", "--sigma", 2, "-B", 4, "--point", "centre"), "feasible"),
        (("--program", "dini", "--sigma", 2, "-B", 0.5), "infeasible"),
        (("--integer", "--time-limit", 20), "optimal"),
    ],
    ids=str,
)
def test_every_program_has_its_status(run, answered, options, status):
    solved = run("solve", "queries.jsonl", "answers.jsonl", *options, "--json").json
    assert solved["status"] == status
    assert solved["claims"] == (0 if status == "infeasible" else 30)
    if "--point" in options:
        assert solved["point"] == "centre"


def test_an_infeasible_guess_is_no_accuracy_of_zero(run, answered):
    run("solve", "queries.jsonl", "answers.jsonl", "--program", "dini", "-B", 0.1)
    assert run("score", "guess.jsonl", *SECRET, "--json").json["accuracy"] is None
    assert "the program has no solution" in run("score", "guess.jsonl", *SECRET).out


def test_asking_again_goes_on_with_the_journal(run, tmp_path, answered):
    path = tmp_path / "answers.jsonl"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    refused = run("solve", "queries.jsonl", "answers.jsonl")
    assert refused.code == 2
    assert "cut off in mid-line" in refused.err
    assert run("ask", "queries.jsonl", *SECRET, "--sigma", 2).code == 0
    assert path.read_text() == whole


def test_partial_answers_on_demand(run, tmp_path, answered):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:200]))
    assert "199 answers to 400 queries" in run("solve", "queries.jsonl", "answers.jsonl").err
    assert run("solve", "queries.jsonl", "answers.jsonl", "--partial").code == 0
