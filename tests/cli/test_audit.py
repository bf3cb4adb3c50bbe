import json
from urllib.parse import quote

import numpy as np
import psycopg
import pytest

from countleak.attack.guess_file import read_guess
from countleak.audit.people import People
from countleak.cli import audit as verb
from countleak.diffix.server.background import serve_columns
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load
from tests.diffix.server.conftest import make_server, running, served_bank

# A report decodes again and again; tests/cli/test_report.py and tests/audit/report look at it.
AUDIT = ("audit", "--no-report")
CENSUS = ("--people", "census:16", "--secret", "sex = 1")
SMALL = (*AUDIT, "simulated", *CENSUS, "--family", "subsets")
QUIET = ("--sigma", 1, "--adaptive", "--first", 30, "--batch", 30)
BANK = ("--people", "bank:7", "--secret", "status = 'C'")
BANK_VALUES = (
    *AUDIT, "simulated", "--people", "bank:7", "--between", 2000, 2300, "--secret", "status",
    "--family", "subsets", "-m", 100, "--sigma", 2, "--folder", "values",
)  # fmt: skip


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_an_audit_leaves_every_file_and_tells_accuracy_with_interval_and_baseline(run, tmp_path):
    said = run(*SMALL, "--sigma", 2, "-m", 200)
    assert said.code == 0
    assert "200 answers" in said.out
    assert "95% interval" in said.out
    assert "guessing without any answer gets" in said.out
    names = {path.name for path in (tmp_path / "audit").iterdir()}
    assert names == {"queries.jsonl", "answers.jsonl", "guess.jsonl"}
    assert run("score", "audit/guess.jsonl", *CENSUS).out
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
    assert "FAILED: the advantage over guessing is" in leaking.out
    noisy = (*SMALL, "--sigma", 200, "-m", 40, "--folder", "noisy", "--fail-above", 0.9)
    assert run(*noisy).code == 0
    assert run(*noisy, "--json").json["failed"] is False


def test_an_audit_of_diffix(run):
    words = (*AUDIT, "diffix", *BANK, "--between", 2000, 2999)
    found = run(*words, "--primes", 1, "-m", 80, "--json").json
    assert found["queries"] == 80
    assert found["people"] == 66
    assert found["system"].startswith("Diffix 18.1")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--until", 0.2, "--adaptive"), "choose a confidence above 0.5"),
        (("--batch", 0, "--adaptive"), "--batch"),
        (("--goal", "luck", "--adaptive"), "'luck' is not one of 'information', 'variance'"),
        (("--until", 0.9), "--until does not apply without --adaptive"),
        (("--fail-above", 7), "choose a share from 0 to 1"),
        (("--family", "signs"), "'signs' is not one of 'digits', 'subsets'"),
        (("--secret", "sex = 7"), "holds for nobody"),
        (("-m", 0), "--queries"),
        (("--pool", 0), "--pool"),
        (("--dry-run",), "--dry-run does not apply to simulated"),
        (("--table", "loans"), "--table does not apply to simulated"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_leaves_no_file(run, tmp_path, words, complaint):
    result = run(*SMALL, *words)
    assert result.code == 2
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_none_is_told_with_what_there_is(run):
    for word in ("oracle", "bank:7", "."):
        refused = run("audit", word, *CENSUS)
        assert refused.code == 2
        said = f"countleak: there is no target '{word}'; choose simulated, diffix, a CSV"
        assert refused.err.startswith(said)
    assert run("audit", "absent.csv", *CENSUS).err == "countleak: absent.csv: no such file\n"
    assert "write simulated --people bank:7" in run("audit", "bank:7", *BANK).err


def test_another_audit_is_not_resumed_in_the_same_folder(run, tmp_path):
    assert run(*SMALL, "-m", 60).code == 0
    before = contents(tmp_path / "audit")
    assert "name a new file" in run(*SMALL, "-m", 60, "--sigma", 9).err
    assert "answers to other queries" in run(*SMALL, "-m", 60, "--pool", 70).err
    assert contents(tmp_path / "audit") == before


@pytest.fixture(scope="module")
def served(bank):
    with running(make_server([served_bank(bank)])) as found:
        yield found


def test_an_audit_of_a_live_system_with_and_without_the_truth(run, served, bank, tmp_path):
    address = f"postgresql://analyst@127.0.0.1:{served.port}/bank"
    words = (*AUDIT, address, "--table", "loans", "--system", "diffix", "--between", 2000, 2999)
    words += ("--secret", "status = 'C'", "--family", "digits", "--primes", 1, "-m", 40)
    scored = run(*words, "--people", "bank:7", "--json")
    assert scored.json["queries"] == 40
    assert scored.json["baseline"] == pytest.approx(40 / 66)
    assert "40 queries to postgresql://analyst@127.0.0.1" in scored.err
    ids = "\n".join(str(i) for i in bank.ids)
    (tmp_path / "ids.csv").write_text(f"client_id\n{ids}\n")
    unscored = run(*words, "--people", "ids.csv", "--folder", "other")
    assert unscored.code == 0
    assert "of the guesses should be right" in unscored.out
    assert "secrets recovered" not in unscored.out
    judged = run(*words, "--people", "ids.csv", "--folder", "other", "--fail-above", 0.5)
    assert judged.code == 2
    assert "can neither pass nor fail; add the column of the secret" in judged.err
    assert judged.out == unscored.out
    stranger = ("postgresql://me:hush@192.0.2.1:5432/bank", "--table", "loans")
    refused = run("audit", *stranger, *BANK)
    assert refused.code == 2
    assert "--authorised-by" in refused.err
    assert "hush" not in refused.err


TABLE, KEY = "client's loans (2024)", ('client "id"', "branch-no")
STATUS, AMOUNT = "loan status; --", "amount in €"


@pytest.fixture(scope="module")
def branches():
    """60 people with a composite key; the names need quoting wherever they stand in SQL."""
    rng = np.random.default_rng(5)
    ids = np.empty(60, dtype=object)
    ids[:] = [(f"O'Neil {i // 3:02}", i % 3) for i in range(60)]
    columns = {
        STATUS: rng.choice(["A", "it's B", "C"], size=60),
        AMOUNT: rng.integers(1, 90, size=60),
    }
    return People(ids, columns, KEY, TABLE)


@pytest.fixture(scope="module")
def plain(postgres, branches):
    """The address of a database of PostgreSQL that holds them and nothing else."""
    info = postgres.connection.info
    postgres.connection.execute("DROP DATABASE IF EXISTS branches")
    postgres.connection.execute("CREATE DATABASE branches")
    with psycopg.connect(info.dsn, dbname="branches", autocommit=True) as own:
        load(own, TABLE.replace('"', '""'), _doubled(branches.all_columns))
    words = f"user={info.user}&dbname=branches&port={info.port}"
    return f"postgresql://?host={quote(info.host, safe='')}&{words}"


def _doubled(columns):
    return {name.replace('"', '""'): values for name, values in columns.items()}


@pytest.mark.parametrize(
    "secret",
    [f"\"{STATUS}\" = 'it''s B'", f'"{STATUS}"', f'sum("{AMOUNT}")'],
    ids=["a bit", "a category", "a number"],
)
def test_a_live_postgresql_whose_names_need_quoting(run, tmp_path, plain, branches, secret):
    branches.write_csv(tmp_path / "people.csv")
    words = (*AUDIT, plain, "--people", "people.csv", "--id", ",".join(KEY), "--table", TABLE)
    words += ("-m", 300)
    found = run(*words, "--secret", secret, "--json")
    assert found.code == 0, found.err
    # Exact counts of so many random subsets leave nothing open.
    assert found.json.get("right", found.json.get("within")) == 60
    assert found.json["advantage"] == 1.0
    assert run(*words, "--secret", secret, "--fail-above", 0.5).code == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name --id; there is client's loans (2024)"),
        # Nobody is proven to have a value of several.
        (
            ("--people", "ids.csv", "--fail-above", 0.5, "--secret", "status in ('A', 'C')"),
            "the people have no column 'status'",
        ),
        (("--people", "ids.csv", "--suppressed", "few"), "--suppressed 'few' cannot be read"),
        (("--people", "absent.csv"), "absent.csv: no such file"),
    ],
    ids=str,
)
def test_an_audit_that_cannot_be_one_exits_with_2_and_asks_nothing(
    run, tmp_path, plain, monkeypatch, words, complaint
):
    (tmp_path / "ids.csv").write_text("id\n1\n2\n3\n")
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: pytest.fail("something was asked"))
    result = run("audit", plain, "--table", "loans", "--secret", "status = 'C'", *words)
    assert result.code == 2
    assert complaint in result.err
    assert "passed" not in result.out
    assert not (tmp_path / "audit").exists()


@pytest.fixture
def bare(plain, branches, tmp_path):
    """An audit of a plain PostgreSQL by someone who knows no more than the ids."""
    ids = People(branches.ids, {}, KEY)
    ids.write_csv(tmp_path / "ids.csv")
    words = (*AUDIT, plain, "--people", "ids.csv", "--id", ",".join(KEY), "--table", TABLE)
    return (*words, "--secret", f"\"{STATUS}\" = 'C'", "-m", 400)


def test_a_plain_database_leaks_everything_and_it_takes_no_truth_to_see(run, bare, branches):
    """60 people, 400 random subsets."""
    said = run(*bare)
    assert said.code == 0
    assert "By its own probabilities 100.0% (98.0% to 100.0%) of the guesses should" in said.out
    assert "60 people's values are implied, if every answer is the exact count." in said.out
    assert "Inferred from the answers: no noise is added." in said.out
    found = run(*bare, "--json").json
    assert (found["confidence"], found["proven"], found["implied"]) == (1.0, 0, 60)
    assert (found["stated"], found["inferred"]) == ([], ["no noise is added"])
    guess, _ = read_guess("audit/guess.jsonl")
    assert guess.implied.all()
    assert np.array_equal(guess.values, branches.truth(f"\"{STATUS}\" = 'C'"))


def test_what_is_stated_of_a_plain_database_proves_everyone(run, bare):
    said = run(*bare, "--exact").out
    assert "60 people's values are proven: under the rules stated no other fits." in said
    assert "By its own probabilities 100.0% of the guesses should be right." in said
    assert "Stated: no noise is added." in said and "Inferred" not in said
    found = run(*bare, "--exact", "--json").json
    assert (found["proven"], found["implied"], found["stated"]) == (60, 0, ["no noise is added"])
    assert read_guess("audit/guess.jsonl")[0].proven.all()


def test_what_is_proven_or_implied_fails_an_audit_without_the_truth(run, bare):
    implied = run(*bare, "--fail-above", 0.3)
    assert implied.code == 1
    assert "FAILED: the values of 100.0% of the people are implied; 30.0% is allowed" in implied.out
    proven = run(*bare, "--exact", "--fail-above", 0.3)
    assert proven.code == 1
    assert "FAILED: the values of 100.0% of the people are proven; 30.0% is allowed" in proven.out
    # Where it is not more than is allowed there is no verdict: it never passes.
    for words in (("--fail-above", 1), ("--fail-above", 0.3, "--time-limit", 0, "--noise-sd", 2)):
        result = run(*bare, *words)
        assert result.code == 2
        assert "can neither pass nor fail" in result.err and "passed" not in result.out


def test_rules_that_the_answers_contradict_are_no_all_clear(run, bare):
    for words in (("--rounded-to", 5), ("--exact", "--suppressed", "1..2", "--lowest", 40)):
        result = run(*bare, *words, "--fail-above", 0.3)
        assert result.code == 2
        assert "as stated, but one is" in result.err
    noisy = run(*SMALL, "-m", 200, "--exact", "--folder", "noisy")
    assert noisy.code == 2
    assert "no values fit the answers if no noise is added, as stated; check that" in noisy.err


def test_a_simulated_system_states_its_own_rules_on_demand(run):
    uniform = (*SMALL, "--mechanism", "uniform", "--bound", 1, "-m", 300, "--json")
    assert run(*uniform).json["implied"] > 0
    told = run(*uniform, "--state-rules").json
    assert told["proven"] > 0 and told["implied"] == 0
    assert told["stated"][0] == "noise lies within ± 1"
    values = (*BANK_VALUES, "--state-rules", "--json")
    assert run(*values).json["stated"][0] == "noise is normal of SD 2"
    for words, complaint in (
        (("--state-rules", "--exact"), "--exact does not apply with --state-rules"),
        (("--state-rules", "--secret", "sum(sex)"), "--state-rules does not apply to a number"),
    ):
        result = run(*SMALL, *words)
        assert result.code == 2 and complaint in result.err


def test_an_attack_without_a_claim_has_not_passed(run, monkeypatch):
    """A guess that claims nothing about anybody must never read as "passed"."""
    asked = verb.run_audit

    def without_claims(*people, **settings):
        result = asked(*people, **settings)
        result.guess.claimed[:] = False
        return result

    monkeypatch.setattr(verb, "run_audit", without_claims)
    for words in ((), ("--fail-above", 0.9), ("--fail-above", 0.9, "--json")):
        result = run(*SMALL, "-m", 60, *words)
        assert result.code == 2
        assert result.out == ""
        assert "this audit shows nothing" in result.err


def test_a_secret_that_all_share_cannot_pass(run, tmp_path):
    rows = "".join(f"{i},C\n" for i in range(1, 9))
    (tmp_path / "alike.csv").write_text(f"id,status\n{rows}")
    result = run(*AUDIT, "alike.csv", "--secret", "status = 'C'", "-m", 90, "--fail-above", 0.5)
    assert result.code == 2
    assert "no advantage over guessing to measure" in result.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(("--system", "diffix"), "every answer was suppressed"), ((), "every answer is 0")],
    ids=str,
)
def test_a_table_that_does_not_hold_the_people_cannot_pass(run, tmp_path, plain, words, complaint):
    rows = "".join(f"nobody {i},{i},{'AC'[i % 2]}\n" for i in range(20))
    key = ",".join(f'"{name.replace(chr(34), 2 * chr(34))}"' for name in KEY)
    (tmp_path / "people.csv").write_text(f'{key},"{STATUS}"\n{rows}')
    audit = (*AUDIT, plain, "--people", "people.csv", "--id", ",".join(KEY), "--table", TABLE)
    secret = ("--secret", f"\"{STATUS}\" = 'C'", "-m", 60, "--fail-above", 0.5)
    result = run(*audit, *secret, *words)
    assert result.code == 2
    assert complaint in result.err
    assert "passed" not in result.out


def test_an_audit_whose_answers_were_all_suppressed_cannot_pass(run, tmp_path):
    (tmp_path / "few.csv").write_text("id,status\n1,A\n2,C\n3,C\n")
    result = run(*AUDIT, "few.csv", "--secret", "status = 'C'", "-m", 60, "--fail-above", 0.5)
    assert result.code == 2
    assert "every answer was suppressed" in result.err


PEOPLE = {
    "text ids": ("uid", [f"u-{i:02}é" for i in range(40)], ()),
    "composite keys": ("a,b", [f"x{i // 4},{i % 4}" for i in range(40)], ("--id", "a,b")),
    "big ids": ("uid", [str(10**25 + i) for i in range(40)], ()),
    "negative ids": ("uid", [str(i - 20) for i in range(40)], ()),
}


@pytest.fixture(params=PEOPLE)
def people_file(request, tmp_path):
    header, ids, words = PEOPLE[request.param]
    rng = np.random.default_rng(3)
    status, amount = rng.choice(list("ABC"), size=40), rng.integers(10, 90, size=40)
    rows = zip(ids, status, amount, strict=True)
    text = "".join(f"{person},{word},{number}\n" for person, word, number in rows)
    (tmp_path / "people.csv").write_text(f"{header},status,amount\n{text}")
    return words


@pytest.mark.parametrize(
    ("secret", "noise"),
    [
        ("status = 'C'", ("--sigma", 1)),
        ("status", ("--sigma", 0.5, "--no-suppression")),
        ("sum(amount)", ("--mechanism", "gaussian", "--sigma", 0.2)),
    ],
    ids=["a bit", "a category", "a number"],
)
def test_a_file_of_people_is_audited_whatever_its_ids(run, people_file, tmp_path, secret, noise):
    words = (*AUDIT, "people.csv", "--secret", secret, "-m", 200, *people_file, *noise)
    found = run(*words, "--json")
    assert found.code == 0, found.err
    assert found.json["people"] == 40
    assert found.json["accuracy"] > 0.9 > found.json["baseline"]
    if secret.startswith("status ="):
        assert run(*words, "--fail-above", 0.5).code == 1
    score = ("score", "audit/guess.jsonl", "--people", "people.csv", *people_file, "--json")
    assert run(*score).json["accuracy"] == found.json["accuracy"]
    header = json.loads((tmp_path / "audit" / "guess.jsonl").read_text().splitlines()[0])
    assert header["people"] == 40


def test_a_file_is_its_own_people(run, tmp_path):
    (tmp_path / "people.csv").write_text("id,status\n1,A\n2,C\n3,C\n")
    refused = run("audit", "people.csv", "--people", "bank:7", "--secret", "status = 'C'")
    assert refused.code == 2
    assert "--people does not apply to file" in refused.err


def test_a_dry_run_shows_the_questions_and_leaves_nothing(run, tmp_path):
    shown = run("audit", "diffix", *BANK, "-m", 9, "--dry-run", "--json")
    assert shown.code == 0
    assert shown.json["sent"] == 0
    assert 'SELECT COUNT(DISTINCT "client_id") FROM "loans"' in shown.err
    assert not list(tmp_path.iterdir())


def test_an_audit_asks_what_a_probe_proposes_and_counts_it(run, served, tmp_path):
    address = f"postgresql://analyst@127.0.0.1:{served.port}/bank"
    words = (*AUDIT, address, "--table", "loans", "--system", "diffix", "--people", "bank:7")
    words += ("--between", 2000, 2499, "--secret", "status = 'C'", "-m", 150)
    first = run(*words, "--json")
    assert first.json["family"] == "digits"
    assert first.json["probe"]["asked"] > 30
    assert first.json["queries"] == 150
    assert first.json["answers"] == 150 - first.json["probe"]["asked"]
    # Run again, it neither probes nor asks anything, and says the same.
    again = run(*words, "--json")
    assert again.json == first.json
    few = run(*words[:-1], 20, "--folder", "few")
    assert few.code == 2
    assert "the probe alone sent" in few.err


@pytest.mark.slow
def test_tables_are_found_and_give_most_secrets_away_over_the_wire(run, bank, tmp_path):
    with serve_columns(bank.all_columns, "client_id", tmp_path, salt_number(3), "tables") as at:
        words = (*AUDIT, at.postgres, "--table", "loans", "--system", "diffix")
        words += ("--people", "bank:7", "--known", "amount,duration", "--secret", "status = 'C'")
        found = run(*words, "--json", "--fail-above", 0.5)
    assert found.code == 1
    assert found.json["family"] == "tables"
    assert found.json["queries"] < 600
    assert found.json["accuracy"] >= 0.9
    assert found.json["interval"][0] > found.json["baseline"] + 0.2


def test_the_truth_may_be_elsewhere_and_is_read_for_scoring_only(run, bank, tmp_path):
    bank.write_csv(tmp_path / "all.csv")
    ids = "\n".join(str(i) for i in bank.between(2000, 2999).ids)
    (tmp_path / "ids.csv").write_text(f"client_id\n{ids}\n")
    words = (*AUDIT, "diffix", "--people", "bank:7", "--between", 2000, 2999, "-m", 200)
    words += ("--secret", "status = 'C'", "--json")
    own = run(*words)
    other = run(*words, "--truth", "all.csv", "--folder", "other", "--salt-file", "salt")
    assert other.json["accuracy"] == own.json["accuracy"]
    bank.between(2500, 2600).write_csv(tmp_path / "few.csv")
    strangers = run(*words, "--truth", "few.csv", "--folder", "few")
    assert strangers.code == 2
    assert "are not among those whose truth is known" in strangers.err


def test_an_audit_fails_by_its_interval_not_by_its_point(run):
    noisy = (*SMALL, "--sigma", 200, "-m", 40)
    found = run(*noisy, "--json").json
    judged = run(*noisy, "--fail-above", max(found["advantage"], 0.0) + 0.02)
    assert judged.code == 1
    assert "FAILED: the advantage over guessing is" in judged.out
