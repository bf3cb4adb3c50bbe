import pytest

from tests.diffix.server.conftest import make_server, running, served_bank

SMALL = ("audit", "--people", "census:16", "--secret", "sex = 1", "--family", "subsets")
QUIET = ("--sigma", 1, "--adaptive", "--first", 30, "--batch", 30)


def test_an_audit_leaves_every_file_and_tells_accuracy_with_interval_and_baseline(run, tmp_path):
    said = run(*SMALL, "--sigma", 2, "-m", 200)
    assert said.code == 0
    assert "200 answers" in said.out
    assert "95% interval" in said.out
    assert "guessing without any answer gets" in said.out
    names = {path.name for path in (tmp_path / "audit").iterdir()}
    assert names == {"queries.jsonl", "answers.jsonl", "guess.jsonl"}
    assert run("score", "audit/guess.jsonl", "--people", "census:16", "--secret", "sex = 1").out
    files = ("audit/queries.jsonl", "audit/answers.jsonl")
    assert run("solve", *files, "--partial").code == 0


def test_an_adaptive_audit_stops_early_and_is_not_asked_again(run, tmp_path):
    found = run(*SMALL, *QUIET, "--until", 0.9, "--json").json
    assert found["reached"]
    assert found["queries"] == found["steps"][-1]["queries"] < 1000
    assert found["confidence"] >= 0.9
    assert found["accuracy"] > found["baseline"]
    written = (tmp_path / "audit" / "answers.jsonl").read_text()
    again = run(*SMALL, *QUIET, "--until", 0.9, "--json").json
    assert again["steps"] == found["steps"][-1:]
    assert (tmp_path / "audit" / "answers.jsonl").read_text() == written
    assert "Stopped after" in run(*SMALL, *QUIET, "--until", 0.9).out


@pytest.mark.parametrize("goal", ["variance", "random"])
def test_other_goals(run, goal):
    found = run(*SMALL, *QUIET, "--until", 0.999, "-m", 60, "--goal", goal, "--json").json
    assert [step["queries"] for step in found["steps"]] == [30, 60]


def test_the_exit_code_says_whether_too_much_leaks(run):
    leaking = run(*SMALL, *QUIET, "--fail-above", 0.2)
    assert leaking.code == 1
    assert "FAILED: of what guessing leaves open" in leaking.out
    noisy = (*SMALL, "--sigma", 200, "-m", 40, "--folder", "noisy", "--fail-above", 0.9)
    assert run(*noisy).code == 0
    assert run(*noisy, "--json").json["failed"] is False


def test_an_audit_of_diffix(run):
    words = ("audit", "--people", "bank:7", "--between", 2000, 2999, "--target", "diffix")
    found = run(*words, "--primes", 1, "-m", 60, "--json").json
    assert found["queries"] == 60
    assert found["people"] == 66
    assert found["system"].startswith("Diffix 18.1")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--until", 0.2, "--adaptive"), "choose a confidence above 0.5"),
        (("--batch", 0, "--adaptive"), "batch is 0"),
        (("--goal", "luck", "--adaptive"), "no goal 'luck'; choose information, variance"),
        (("--fail-above", 7), "choose a share from 0 to 1"),
        (("--family", "signs"), "choose digits or subsets"),
        (("--target", "oracle"), "no target 'oracle'; choose simulated, diffix, or"),
        (("--secret", "sex = 7"), "holds for nobody"),
        (("-m", 0), "--queries"),
        (("--pool", 0), "--pool"),
        (("--family", "digits", "--pool", 9), "--pool is for subsets"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_leaves_no_file(run, tmp_path, words, complaint):
    result = run(*SMALL, *words)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_another_audit_does_not_go_on_in_the_same_folder(run, tmp_path):
    assert run(*SMALL, "-m", 60).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "audit").iterdir()}
    assert "name a new file" in run(*SMALL, "-m", 60, "--sigma", 9).err
    assert "answers to other queries" in run(*SMALL, "-m", 60, "--pool", 70).err
    assert {path.name: path.read_bytes() for path in (tmp_path / "audit").iterdir()} == before


@pytest.fixture(scope="module")
def served(bank):
    with running(make_server([served_bank(bank)])) as found:
        yield found


def test_an_audit_of_a_live_system_with_and_without_the_truth(run, served, bank, tmp_path):
    live = ("--target", f"postgresql://analyst@127.0.0.1:{served.port}/bank", "--system", "diffix")
    words = ("audit", "--between", 2000, 2999, "--primes", 1, "-m", 40, *live)
    scored = run(*words, "--people", "bank:7", "--json")
    assert scored.json["queries"] == 40
    assert scored.json["baseline"] == pytest.approx(40 / 66)
    assert "40 queries to postgresql://analyst@127.0.0.1" in scored.err
    ids = "\n".join(str(i) for i in bank.ids)
    (tmp_path / "ids.csv").write_text(f"client_id\n{ids}\n")
    unscored = run(*words, "--people", "ids.csv", "--folder", "other")
    assert unscored.code == 0
    assert "of the guesses are expected to be right" in unscored.out
    assert "secrets recovered" not in unscored.out
    judged = run(*words, "--people", "ids.csv", "--fail-above", 0.5)
    assert judged.code == 2
    assert "has no column 'status'" in judged.err
    stranger = ("--target", "postgresql://me:hush@192.0.2.1:5432/bank")
    refused = run("audit", "--people", "bank:7", *stranger)
    assert "--authorised-by" in refused.err
    assert "hush" not in refused.err
