import json

import numpy as np
import pytest

from countleak.diffix.server.users import Users
from tests.diffix.server.conftest import PASSWORD, TOKEN, USERS, make_server, running, served_bank

PAPERS = (
    "SELECT count(DISTINCT client_id) FROM loans WHERE {} AND status = 'C' "
    "AND client_id BETWEEN 2000 and 3000"
)
BANK = ("--people", "bank:7", "--secret", "status = 'C'")
DIGITS = "floor(100 * pow((client_id * 2),0.7) + 0.5) = floor(100 * pow((client_id * 2), 0.7))"


def test_diffix_answers_one_question_alike_until_the_salt_changes(run, tmp_path):
    def asked(sql, *more):
        return run("ask", "--target", "diffix", "--people", "bank:7", "--sql", sql, *more)

    plain = asked(PAPERS.format(DIGITS), "--json").json
    turned = asked(
        "SELECT count(DISTINCT client_id) FROM loans WHERE client_id BETWEEN 2000 and 3000 AND "
        f"status = 'C' AND {DIGITS}",
        "--json",
    ).json
    assert plain == turned
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    others = {
        asked(PAPERS.format(DIGITS), "--salt-file", f"salt-{k}", "--json").json["rows"][0]["count"]
        for k in range(4)
    }
    assert others != {plain["rows"][0]["count"]}
    refused = asked("SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'")
    assert refused.code == 2
    assert refused.err == "countleak: Combining conditions with `OR` is not allowed.\n"
    unknown = asked("VACUUM loans")
    assert unknown.err == "countleak: Only SELECT statements over one table are answered.\n"
    suppressed = asked("SELECT count(*) FROM loans WHERE client_id = 2")
    assert "the count is suppressed, and 0 says so" in suppressed.err
    secret = (tmp_path / "salt").read_text().strip()
    assert secret not in asked("SELECT count(*) FROM loans").out


def test_diffix_answers_a_file_of_queries_and_a_journal_knows_its_salt(run):
    assert run("plan", "--people", "bank:7", "--between", 2000, 2999, "--primes", 1).code == 0
    words = ("ask", "queries.jsonl", *BANK, "--target", "diffix")
    assert run(*words, "--json").json["answers"] == 140
    assert "salt" in run(*words).out
    other = run(*words, "--salt-file", "other")
    assert other.code == 2
    assert "these answers came from" in other.err
    assert run("ask").code == 2
    assert run("ask", "--sql", "SELECT 1").code == 2


def test_diffix_asks_a_file_or_a_server_in_place_of_people(run, tmp_path, bank):
    bank.write_csv(tmp_path / "bank.csv")
    words = ("ask", "--target", "diffix", "--json", "--sql", "SELECT count(*) FROM loans")
    expected = run(*words, "--people", "bank:7").json
    words += ("--table", "loans", "--id", "client_id")
    assert run(*words, "--database", "bank.csv").json == expected
    url = "postgresql://127.0.0.1:1/none"
    assert "no PostgreSQL server" in run(*words, "--database", url).err
    assert "no such file" in run(*words, "--database", "absent.parquet").err
    assert "it needs --target diffix" in run("ask", "--sql", "SELECT 1").err
    assert "name the table of --database" in run(*words[:6], "--database", "bank.csv").err
    assert "there is no target" in run("ask", "--target", "oracle", "--sql", "SELECT 1").err


@pytest.fixture(scope="module")
def served(bank):
    with running(make_server([served_bank(bank)])) as found:
        yield found


@pytest.fixture
def asked(run):
    """Runs `ask` on 140 planned queries."""
    run("plan", "--people", "bank:7", "--between", 2000, 2999, "--primes", 1)
    return lambda *words: run("ask", "queries.jsonl", *BANK, *words)


def lines(path):
    header, *answers = map(json.loads, path.read_text().splitlines())
    return header, sorted(answers, key=lambda answer: answer["query"])


def test_a_live_system_is_shown_asked_and_resumed(asked, served, tmp_path):
    words = ("--target", f"postgresql://guarded:{PASSWORD}@127.0.0.1:{served.port}/bank")
    words += ("--table", "loans", "--system", "diffix")
    dry = asked(*words, "--dry-run")
    assert "140 queries to postgresql://guarded@127.0.0.1" in dry.err
    assert 'SELECT COUNT(DISTINCT "client_id") FROM "loans" WHERE FLOOR(5 * POWER' in dry.err
    assert "Nothing was sent" in dry.err
    assert not (tmp_path / "answers.jsonl").exists()
    some = asked(*words, "--limit", 30, "--rate", 10_000)
    assert "30 answers of 140; run again to resume" in some.out
    rest = asked(*words, "--connections", 2, "--json")
    assert "110 queries to" in rest.err
    assert (rest.json["answers"], rest.json["known_before"]) == (140, 30)
    assert PASSWORD not in f"{dry}{some}{rest}{(tmp_path / 'answers.jsonl').read_text()}"
    http = (
        "--target",
        served.rest,
        "--data-source",
        "bank",
        "--table",
        "loans",
        "-o",
        "http.jsonl",
    )
    assert asked(*http).code == 0
    over_wire, over_http = (lines(tmp_path / name) for name in ("answers.jsonl", "http.jsonl"))
    assert over_wire[1] == over_http[1]
    assert "authorised_by" not in over_wire[0]
    # An address says what kind of system it is, unless the user does.
    assert "An answer of 0 is a count" in asked(*words[:4], "--dry-run", "-o", "x").err
    assert "An answer of 0 means: suppressed" in asked(*http, "--dry-run").err
    assert "these answers came from" in asked(*words[:4]).err
    few = ("--secret", "status = 'none'", "-o", "few.jsonl", "--limit", 5)
    assert "5 answers are 0 and none is 1" in asked(*words[:4], *few).err


def test_a_token_comes_from_the_environment_or_a_file(asked, bank, tmp_path, monkeypatch):
    users = Users({"guarded": USERS.by_name["guarded"]})
    with running(make_server([served_bank(bank)], users=users)) as found:
        words = ("--target", found.rest, "--data-source", "bank", "--table", "loans", "--limit", 3)
        assert "token is missing or unknown" in asked(*words).err
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        assert asked(*words, "--token-file", "token", "-o", "one.jsonl").code == 0
        monkeypatch.setenv("COUNTLEAK_TOKEN", TOKEN)
        assert asked(*words, "-o", "two.jsonl").code == 0


def test_another_machine_needs_someone_who_allows_it(asked, tmp_path):
    for target in ("postgresql://me:hush@192.0.2.1:5432/bank", "https://192.0.2.1"):
        source = () if target.startswith("postgresql") else ("--data-source", "bank")
        words = ("--target", target, *source, "--table", "loans", "--dry-run")
        refused = asked(*words)
        assert refused.code == 2
        assert "say who allows it with --authorised-by NAME" in refused.err
        allowed = asked(*words, "--authorised-by", "A. Head")
        assert allowed.code == 0
        assert "hush" not in refused.err + allowed.err
        assert ", 20 per second, like" in allowed.err
        faster = asked(*words, "--authorised-by", "A. Head", "--rate", 50)
        assert ", 50 per second, like" in faster.err


def test_who_allowed_it_stands_in_the_journal(asked, served, tmp_path):
    words = ("--target", served.rest, "--data-source", "bank", "--table", "loans")
    words += ("--authorised-by", "A. Head")
    assert asked(*words, "--limit", 2).code == 0
    assert lines(tmp_path / "answers.jsonl")[0]["authorised_by"] == "A. Head"
    other = asked(*words[:-1], "B. Head")
    assert "these answers were authorised by 'A. Head', not 'B. Head'" in other.err


CLOSED = ("--target", "postgresql://127.0.0.1:1/x")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--target", "http://127.0.0.1:1", "--table", "t"), "--data-source"),
        (
            (*CLOSED, "--table", "t", "--system", "oracle"),
            "'oracle' is not one of 'diffix', 'plain'",
        ),
        ((*CLOSED, "--table", "t", "--rate", 0), "must be above 0"),
        # It is asked for its tables.
        ((*CLOSED,), "onnection refused"),
        ((*CLOSED, "--table", "t"), "onnection refused"),
        ((*CLOSED, "--table", "t", "--database", "y"), "it needs --target diffix"),
        (("--target", "mysql://me:hush@h/x"), "needs an optional part"),
        (("--dry-run",), "--dry-run does not apply to --target simulated"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_told_in_one_line(asked, tmp_path, words, complaint):
    refused = asked(*words)
    assert refused.code == 2
    assert complaint in refused.err.splitlines()[-1]
    assert "hush" not in refused.err
    assert not (tmp_path / "answers.jsonl").exists()


SMALL = ("--people", "census:30", "--family", "subsets", "-m", 400)
SECRET = ("--people", "census:30", "--secret", "sex = 1")


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


def test_asking_again_resumes_the_journal(run, tmp_path):
    run("plan", *SMALL)
    run("ask", "queries.jsonl", *SECRET, "--sigma", 2)
    path = tmp_path / "answers.jsonl"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    refused = run("solve", "queries.jsonl", "answers.jsonl")
    assert refused.code == 2
    assert "cut off in mid-line" in refused.err
    assert run("ask", "queries.jsonl", *SECRET, "--sigma", 2).code == 0
    assert path.read_text() == whole


def test_a_dry_run_leaves_a_torn_journal_byte_for_byte(asked, tmp_path):
    path = tmp_path / "answers.jsonl"
    assert asked("--target", "diffix", "--limit", 40).code == 0
    torn = path.read_bytes()[:-7]
    path.write_bytes(torn)
    before = path.stat().st_mtime_ns
    shown = asked("--target", "diffix", "--dry-run", "--json")
    assert "101 queries to" in shown.err
    assert shown.json["sent"] == 0
    assert path.read_bytes() == torn
    assert path.stat().st_mtime_ns == before


def test_a_dry_run_and_a_refused_question_leave_no_salt(asked, run, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert asked("--target", "diffix", "--dry-run").code == 0
    assert asked("--target", "diffix", "--release", "99").code == 2
    sql = ("--people", "bank:7", "--sql", "SELECT count(*) FROM loans WHERE status = 'A' OR 1 = 1")
    assert run("ask", "--target", "diffix", *sql).code == 2
    assert sorted(tmp_path.iterdir()) == before


def test_a_system_that_fails_leaves_no_journal(asked, tmp_path):
    assert asked("--target", "postgresql://127.0.0.1:1/x", "--table", "loans").code == 2
    assert not (tmp_path / "answers.jsonl").exists()
