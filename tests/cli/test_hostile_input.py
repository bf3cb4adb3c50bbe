"""Hostile words: one line, exit code 2, no traceback, nothing changed on disk.

A case is a command that works, and one option replaced by each of several values that must not.
"""

import shutil

import pytest

from tests.cli.conftest import contents, run_once

# What no option for a number takes, and what one for a whole number does not take either.
NO_NUMBERS = ("nan", "inf", "-inf", "", " ", "é", "٣x", "1e999", "--", "0x10", "1,5", "None")
NO_WHOLE = (*NO_NUMBERS, "1.5", "1e3", "99999999999999999999", "-99999999999999999999")
NO_COUNT = (*NO_WHOLE, "0", "-1")
# What is never a file with the right content.
NO_FILES = ("absent", "folder", "binary", "notes.txt", "absent/absent", "/dev/zero", "x" * 300, "é")
NO_WORDS = ("", " ", "é", "magic", "GAUSSIAN", "gaussian,laplace", "-", "../x", "nan")
NO_LISTS = ("", ",", "1,,2", "x", "nan,1", "1;2", "é", "-1,1", "0,1", "99999999999999999999,1")
# What is never the name of a file to write to.
NO_OUTPUT = ("folder", "people.csv", "binary", "notes.txt/x", "/dev/full", "x" * 300, "a\0b")
NO_SECRETS = (
    "", " ", "'", '"', "status = ", "= 'C'", "status = 'C", "status ~ 'C'", "1 = 1",
    "status = 'C' OR 1 = 1", "status = 'C'; DROP TABLE people", "zz = 1", "sum(zz)", "sum()",
    "sum(status", "status in ()", "status in ('A')", "status in ('A', 'A')", "status = 'Z'",
    "status in ('A', ..., 'B')", "amount = 'x'", "amount = 1e999", "sum(status)", "count(*)",
    "zz", "id", "\0", "status = '\0'", "é = 1", "(" * 2000, "status = " + "9" * 5000,
)  # fmt: skip
NO_PEOPLE = (
    "", "bank", "bank:", "bank:x", "bank:-1", "bank:7:7", "bank:7.5", "bank:99999999999", "census",
    "census:", "census:1", "census:0", "census:99999999", "census:9:9:9", "census:٣", "a\0b",
    "empty.csv", "header.csv", "one.csv", "twice.csv", "cut.csv", "blank.csv", "quote.csv",
    "columns.csv", "queries.jsonl", *NO_FILES,
)  # fmt: skip
NO_TARGETS = (
    "", " ", "oracle", "mysql://h/x", "absent.csv", "folder", "postgresql://[::1", "http://[::1",
    "http://", "https://", "http://h:99999", "http://h:x", "http://me:hush@h/x", "http://h/?token=x",
    "postgresql://h:99999999/x", "postgresql://me:%zz@h/x", "postgresql://?nonsense=1", "a\0b",
    "postgresql://\0", "http://\0", "http://h\n.example", "x" * 5000, "postgresql://" + "h" * 5000,
)  # fmt: skip
NO_IDS = ("", " ", "zz", "id,zz", ",", "id,", "id,id", "é", "a\0b", "status", "ID")
NO_PICTURES = ("plan.gif", "plan", ".svg", "folder", "folder/x", "notes.svg", "notes.png")

BUDGET = ("budget", "--n", 100, "-m", 300, "--sigma", 4)
ROUND = ("budget", "--n", 100, "-m", 60, "--mechanism", "round", "--base", 5)
UNIFORM = ("budget", "--n", 100, "-m", 60, "--mechanism", "uniform", "--bound", 5)
SWEEP = ("lab", "sweep", "--n", 10, "--queries", "40,80", "--sigma", 4, "--trials", 2, "--jobs", 1)
WHO = ("--people", "people.csv")
SECRET = (*WHO, "--secret", "status = 'C'")
PLAN = ("plan", *WHO, "--family", "subsets", "-m", 20, "-o", "new.jsonl")
DIGITS = ("plan", *WHO, "--family", "digits", "--primes", 1, "-o", "new.jsonl")
ASK = ("ask", "queries.jsonl", *SECRET, "-o", "new.jsonl")
DIFFIX = (*ASK, "--target", "diffix")
CLOSED = (*ASK, "--target", "postgresql://127.0.0.1:1/x", "--table", "people")
REST = (*ASK, "--target", "http://127.0.0.1:1", "--data-source", "x", "--table", "people")
AUDIT = ("audit", "simulated", *SECRET, "-m", 30, "--family", "subsets", "--folder", "new")
LIVE_AUDIT = ("audit", "postgresql://127.0.0.1:1/x", *SECRET, "--table", "t", "--folder", "new")
SOLVE = ("solve", "queries.jsonl", "answers.jsonl", "-o", "new.jsonl")
BAYES, LP = (*SOLVE, "--decoder", "bayes"), (*SOLVE, "--decoder", "lp")
DINI = (*LP, "--program", "dini")
SUMS = ("solve", "queries.jsonl", "sums.jsonl", "-o", "new.jsonl")
VALUES = ("solve", "queries.jsonl", "values.jsonl", "-o", "new.jsonl")
SCORE = ("score", "guess.jsonl", *WHO)
DIAGNOSE = ("diagnose", "answers.jsonl")

BATTERY = [
    (PLAN, "--people", NO_PEOPLE),
    (PLAN, "--id", NO_IDS),
    (PLAN, "--family", NO_WORDS),
    (PLAN, "-m", (*NO_COUNT, "1000000000000")),
    (PLAN, "--repeat", (*NO_WHOLE, "-1", "21", "1000000000000")),
    (PLAN, "--seed", (*NO_WHOLE, "-1")),
    (PLAN, "--out", NO_OUTPUT),
    (PLAN, "--primes", ("1",)),
    (PLAN, "--exponents", ("0.5",)),
    (PLAN, "--arithmetic", ("exact",)),
    (PLAN, "--postgres", ("postgresql://127.0.0.1:1/x",)),
    ((*PLAN, "--between"), "1", (*NO_WHOLE, "1", "0", "-5")),
    ((*PLAN, "--between", "9"), "", ("1",)),
    (PLAN, "", ("--list-fragile", "--without-fragile")),
    (DIGITS, "--primes", (*NO_COUNT, "1000000000", "100000")),
    (DIGITS, "--exponents", (*NO_LISTS, "0.5,1", "500.5", "0.12345", "-0.5", "1e-9", "inf", "5.5")),
    (DIGITS, "--arithmetic", NO_WORDS),
    (
        (*DIGITS, "--arithmetic", "numeric"),
        "--postgres",
        ("postgresql://127.0.0.1:1/x", "x", "a\0b"),
    ),
    (("plan", "--people", "text.csv", "-o", "new.jsonl"), "--family", ("digits",)),
    (("plan", "--people", "text.csv", "-o", "new.jsonl", "--between", "1"), "", ("9",)),
    ((*ASK[:1], *ASK[2:]), "", (*NO_FILES, "people.csv", "answers.jsonl", "guess.jsonl", "a\0b")),
    (ASK, "--people", (*NO_PEOPLE, "text.csv", "bank:7", "census:30")),
    (ASK, "--secret", NO_SECRETS),
    (ASK, "--target", NO_TARGETS),
    (ASK, "--mechanism", NO_WORDS),
    (ASK, "--sigma", (*NO_NUMBERS, "0", "-1", "1e308", "1e10")),
    (ASK, "--bound", ("5",)),
    (ASK, "--base", ("5",)),
    (ASK, "--sign-noise", ("direct", "5", "x")),
    (ASK, "--release", ("18.1",)),
    (ASK, "--salt-file", ("salt",)),
    (ASK, "--table", ("people",)),
    (ASK, "--token-file", ("token",)),
    (ASK, "--data-source", ("x",)),
    (ASK, "--authorised-by", ("A. Head",)),
    (ASK, "--database", ("people.csv",)),
    (ASK, "--sql", ("SELECT 1",)),
    (ASK, "--limit", (*NO_COUNT,)),
    (ASK, "--seed", (*NO_WHOLE, "-1")),
    (ASK, "--out", (*NO_OUTPUT, "queries.jsonl", "guess.jsonl")),
    ((*ASK, "--mechanism", "uniform"), "--bound", (*NO_COUNT, "1000000001")),
    ((*ASK, "--mechanism", "uniform"), "--sigma", ("4",)),
    ((*ASK, "--mechanism", "round"), "--base", (*NO_COUNT, "1", "1000000001")),
    ((*ASK, "--mechanism", "gaussian"), "", ("--no-suppression", "--rounding")),
    (("ask", "signs.jsonl", *SECRET, "-o", "new.jsonl"), "--sign-noise", (*NO_NUMBERS, "0", "-1")),
    (("ask", "signs.jsonl", *SECRET, "-o", "new.jsonl"), "--target", ("diffix",)),
    (DIFFIX, "--release", ("", "99", "é", "18", "18.10")),
    (DIFFIX, "--salt-file", ("folder", "notes.txt", "/dev/zero", "x" * 300, "a\0b")),
    (DIFFIX, "--mechanism", ("gaussian",)),
    (DIFFIX, "--table", ("people",)),
    (DIFFIX, "--seed", ("1",)),
    (
        ("ask", "--target", "diffix", *WHO),
        "--sql",
        (
            "",
            " ",
            ";",
            "SELECT",
            "VACUUM",
            "SELECT * FROM people",
            "SELECT 1; SELECT 1",
            "\0",
            "é",
            "SELECT count(*) FROM zz",
            "SELECT count(*) FROM people WHERE zz = 1",
            "(" * 3000,
            "SELECT count(*) FROM people WHERE status = 'A' OR status = 'B'",
            "SELECT '" + "x" * 99999,
            "DROP TABLE people",
            "WITH x AS (SELECT 1) SELECT 2",
        ),
    ),
    (
        (
            "ask",
            "--target",
            "diffix",
            "--sql",
            "SELECT count(*) FROM t",
            "--table",
            "t",
            "--id",
            "id",
        ),
        "--database",
        (*NO_FILES, "people.csv/x", "postgresql://127.0.0.1:1/x", "bad.toml", "a\0b"),
    ),
    (
        ("ask", "--target", "diffix", "--sql", "SELECT count(*) FROM t"),
        "--database",
        ("people.csv",),
    ),
    (CLOSED, "--rate", (*NO_NUMBERS, "0", "-1")),
    (CLOSED, "--timeout", (*NO_NUMBERS, "0", "-1")),
    (CLOSED, "--connections", NO_COUNT),
    (CLOSED, "--system", NO_WORDS),
    (CLOSED, "--token-file", ("token",)),
    (CLOSED, "--sigma", ("4",)),
    (CLOSED, "--seed", ("4",)),
    (CLOSED, "--target", ("postgresql://192.0.2.1/x", "postgresql://me:hush@192.0.2.1/x")),
    (REST, "--token-file", ("absent", "folder", "binary", "/dev/zero", "accents", "a\0b")),
    (REST, "--target", ("http://192.0.2.1", "https://192.0.2.1", "http://127.0.0.1:1/?x=1")),
    (AUDIT, "--people", (*NO_PEOPLE, "text.csv")[:30]),
    (AUDIT, "--secret", NO_SECRETS),
    (("audit", *AUDIT[2:]), "", NO_TARGETS),
    (AUDIT, "--id", NO_IDS),
    (AUDIT, "--fail-above", (*NO_NUMBERS, "-0.1", "1.1", "1e308")),
    (AUDIT, "--family", (*NO_WORDS, "signs")),
    (AUDIT, "--primes", ("1",)),
    (AUDIT, "--queries", (*NO_COUNT, "1000000000000")),
    (AUDIT, "--pool", (*NO_COUNT, "1000000000000")),
    (AUDIT, "--until", ("0.9",)),
    (AUDIT, "--goal", ("random",)),
    (AUDIT, "--seed", (*NO_WHOLE, "-1")),
    (AUDIT, "--folder", ("people.csv", "notes.txt/x", "/dev/null/x", "x" * 300, "a\0b")),
    (AUDIT, "", ("--dry-run",)),
    (AUDIT, "--table", ("t",)),
    (AUDIT, "--sign-noise", ("direct",)),
    ((*AUDIT, "--adaptive"), "--until", (*NO_NUMBERS, "0", "0.5", "1.1")),
    ((*AUDIT, "--adaptive"), "--batch", NO_COUNT),
    ((*AUDIT, "--adaptive"), "--first", NO_COUNT),
    ((*AUDIT, "--adaptive"), "--goal", NO_WORDS),
    ((*AUDIT, "--adaptive"), "--secret", ("sum(amount)",)),
    ((*AUDIT, "--adaptive", "--secret", "status"), "--goal", ("information", "variance")),
    (LIVE_AUDIT, "--sigma", ("4",)),
    (LIVE_AUDIT, "--fail-above", ("2",)),
    (LIVE_AUDIT, "", ("--state-rules",)),
    (AUDIT, "--suppressed", ("", "few", "2..1")),
    (AUDIT, "--time-limit", (*NO_NUMBERS, "-1")),
    (LIVE_AUDIT, "--secret", ("zz", "", "1 = 1")),
    (("audit", "people.csv", "--secret", "status = 'C'"), "--people", ("people.csv",)),
    (
        ("solve", "queries.jsonl", "-o", "new.jsonl"),
        "",
        (*NO_FILES, "queries.jsonl", "guess.jsonl"),
    ),
    (("solve", *SOLVE[2:]), "", (*NO_FILES, "guess.jsonl", "people.csv", "a\0b")),
    (SOLVE, "--decoder", NO_WORDS),
    (SOLVE, "--precision", (*NO_NUMBERS, "0.4", "1.1", "-1")),
    (SOLVE, "--suppressed-as", (*NO_NUMBERS, "1e308")),
    (SOLVE, "--seed", (*NO_WHOLE, "-1")),
    (SOLVE, "--out", (*NO_OUTPUT, "queries.jsonl", "answers.jsonl")),
    (SOLVE, "--prior", (*NO_NUMBERS, "0", "1", "-1", "2")),
    # What describes a simulated system states nothing of one.
    (SOLVE, "--sigma", ("4",)),
    (SOLVE, "--bound", ("4",)),
    (SOLVE, "--noise", (*NO_WORDS, "uniform")),
    (SOLVE, "--noise-within", (*NO_NUMBERS, "0", "-1", "1e308", "2001")),
    (SOLVE, "--rounded-to", (*NO_WHOLE, "0", "-5", "2001")),
    (SOLVE, "--suppressed", ("", "few", "3", "1..", "..2", "2..1", "-1..2", "1..9999999999", "<5")),
    (SOLVE, "--suppressed", ("below 4", "below about", "below about nan", "below about 0")),
    (SOLVE, "--lowest", (*NO_NUMBERS, "1e308")),
    (SOLVE, "--time-limit", (*NO_NUMBERS, "-1")),
    ((*SOLVE, "--exact"), "--noise-sd", ("4",)),
    ((*SOLVE, "--exact"), "--noise-within", ("4",)),
    (SOLVE, "--by", ("exponent",)),
    (SOLVE, "--low", ("1",)),
    (SOLVE, "--level", ("0.9",)),
    (
        SOLVE,
        "--known",
        (
            *NO_FILES,
            "people.csv",
            "header.csv",
            "stranger.csv",
            "halves.csv",
            "mixed.csv",
            "twice.csv",
            "queries.jsonl",
            "a\0b",
            "everyone.csv",
        ),
    ),
    (BAYES, "--noise-sd", (*NO_NUMBERS, "0", "-1", "1e-300", "1e300", "1e308")),
    (BAYES, "--suppressed", ("", "below about -1")),
    (BAYES, "--program", ("dmt",)),
    (BAYES, "--solver", ("highs",)),
    (LP, "--prior", ("0.5",)),
    (LP, "--precision", ("0.9",)),
    (LP, "--program", NO_WORDS),
    (LP, "--multiplier", ("3",)),
    (LP, "--solver", NO_WORDS),
    (LP, "--noise-sd", (*NO_NUMBERS,)),
    (LP, "--time-limit", ("9",)),
    ((*LP, "--integer"), "--time-limit", (*NO_NUMBERS, "0", "-1")),
    (DINI, "--multiplier", (*NO_NUMBERS, "-1")),
    (DINI, "--noise-sd", (*NO_NUMBERS, "0", "-1")),
    (DINI, "--point", NO_WORDS),
    ((*SOLVE, "--decoder", "bounded"), "--noise-within", (*NO_NUMBERS, "0", "-1")),
    ((*SOLVE, "--decoder"), "bounded", ("--partial",)),
    ((*SOLVE, "--decoder", "robust"), "--by", ("", "weekday", "é", "members")),
    ((*SOLVE, "--decoder", "ls"), "--noise-sd", (*NO_NUMBERS, "0", "-1", "1e-300", "1e300")),
    (SUMS, "--low", (*NO_NUMBERS, "1e308")),
    (SUMS, "--level", (*NO_NUMBERS, "0", "1", "-1", "2")),
    (SUMS, "--decoder", ("bayes",)),
    (SUMS, "--noise-sd", (*NO_NUMBERS, "0", "-1", "1e-300")),
    (SUMS, "--known", ("words.csv", "stranger.csv")),
    ((*SUMS, "--low", "9"), "--high", ("1", "9")),
    (VALUES, "--decoder", ("bayes",)),
    (VALUES, "--noise-sd", (*NO_NUMBERS, "0", "-1", "1e-300", "1e300")),
    (VALUES, "--known", ("known.csv", "stranger.csv")),
    (VALUES, "--precision", (*NO_NUMBERS, "1.1")),
    ((*SCORE[:1], *WHO), "", (*NO_FILES, "queries.jsonl", "answers.jsonl", "people.csv", "a\0b")),
    (SCORE, "--people", (*NO_PEOPLE, "text.csv", "bank:7")),
    (SCORE, "--secret", ("status", "sum(amount)", "zz = 1", "", "status = 'Z'", "1 = 1")),
    (SCORE, "--tolerance", ("0.1",)),
    (SCORE, "--column", ("zz",)),
    (SCORE, "--picture", (*NO_PICTURES, "a\0b.svg")),
    (("score", "sums-guess.jsonl", *WHO), "--tolerance", (*NO_NUMBERS, "-1")),
    (("score", "sums-guess.jsonl", *WHO), "--picture", ("x.svg",)),
    (
        ("diagnose",),
        "",
        (
            *NO_FILES,
            "queries.jsonl",
            "guess.jsonl",
            "people.csv",
            "sums.jsonl",
            "values.jsonl",
            "a\0b",
        ),
    ),
    (DIAGNOSE, "--queries", (*NO_FILES, "answers.jsonl", "guess.jsonl", "signs.jsonl")),
    (DIAGNOSE, "--picture", NO_PICTURES),
    (DIAGNOSE, "--seed", (*NO_WHOLE, "-1")),
    (("demo",), "--folder", ("people.csv", "notes.txt/x", ".", "/dev/null", "x" * 300, "a\0b")),
    (("demo",), "--seed", (*NO_WHOLE, "-1")),
    (BUDGET, "--n", (*NO_COUNT, "1", "10000000000000")),
    (BUDGET, "-m", (*NO_COUNT, "10000000000000")),
    (BUDGET, "--sigma", (*NO_NUMBERS, "0", "-1", "1e308", "1e-308", "1e-300", "1e7")),
    (BUDGET, "--target", (*NO_NUMBERS, "0", "1", "0.5", "-1", "2", "1e-308", "1e308")),
    (BUDGET, "--prior", (*NO_NUMBERS, "0", "1", "-1", "1e-308", "1e308")),
    (BUDGET, "--density", (*NO_NUMBERS, "0", "1", "-1", "1e-308", "1e308")),
    (BUDGET, "--limit", (*NO_NUMBERS, "0", "1", "-1", "1e308")),
    (BUDGET, "--epsilon", (*NO_NUMBERS, "0", "-1", "1e308")),
    (BUDGET, "--delta", (*NO_NUMBERS, "0", "1", "-1", "1e308")),
    (BUDGET, "--mechanism", (*NO_WORDS, "uniform", "round")),
    (BUDGET, "--family", NO_WORDS),
    (BUDGET, "--decoder", NO_WORDS),
    (BUDGET, "--bound", ("5", *NO_COUNT)),
    (BUDGET, "--base", ("5", *NO_COUNT)),
    (BUDGET, "--picture", NO_PICTURES),
    (UNIFORM, "--bound", (*NO_COUNT, "1000000000")),
    (ROUND, "--base", (*NO_COUNT, "1000000000")),
    (ROUND, "--sigma", ("4",)),
    (ROUND, "--delta", ("1e-6",)),
    (("serve",), "", (*NO_FILES, "empty.toml", "bad.toml")),
    (("serve", "--demo"), "--port", (*NO_WHOLE, "-1", "65536")),
    (("serve", "--demo"), "--rest-port", (*NO_WHOLE, "-1", "65536")),
    (("serve", "--demo"), "--host", ("0.0.0.0", "::", "", "é", "no.such.host.invalid")),
    (("serve", "--demo"), "--salt-file", ("folder", "notes.txt", "/dev/zero")),
    (("serve", "served.toml"), "--salt-file", ("new",)),
    (("serve", "--make-verifier"), "--host", ("127.0.0.1",)),
    (("lab", "reproduce"), "", ("table-9", "", "é", "ALL")),
    (("lab", "reproduce", "table-1"), "--data", (*NO_FILES, "", ".")),
    (("lab", "reproduce", "presence"), "--paper-results", NO_FILES),
    (("lab", "reproduce", "presence"), "--arithmetic", ("magic", "", "exact")),
    (("lab", "reproduce", "presence"), "--solver", ("magic", "", "highs")),
    (("lab", "reproduce", "figure-1"), "--seed", (*NO_WHOLE, "-1")),
    (("lab", "reproduce", "figure-1"), "--jobs", (*NO_WHOLE, "0", "-2")),
    (("lab", "reproduce"), "--data", ("folder",)),
    (("lab", "sweep"), "", (*NO_FILES, "empty.toml", "bad.toml")),
    (SWEEP, "--n", (*NO_LISTS, "10,1", "10,5001")),
    (SWEEP, "--queries", (*NO_LISTS, "1,1000001")),
    (SWEEP, "--sigma", ("", ",", "1,,2", "x", "nan,1", "é", "0,1", "-1,1", "inf,1", "1,1e308")),
    (SWEEP, "--family", ("", "dice", "digits,", "digits,dice", "é")),
    (SWEEP, "--mechanism", ("", "magic", "gaussian,magic")),
    (SWEEP, "--decoder", ("", "magic", "dini-centre")),
    (SWEEP, "--multiplier", ("3", "x")),
    (SWEEP, "--trials", NO_COUNT),
    (SWEEP, "--jobs", (*NO_WHOLE, "0", "-2")),
    (SWEEP, "--seed", (*NO_WHOLE, "-1")),
    (SWEEP, "--out", ("notes.txt", "notes.txt/x", "/dev/null", "/dev/full", "x" * 300)),
    ((), "", ("", "é", "budge", "--frobnicate", "sweep", "reproduce", "bench")),
    (("lab",), "", ("é", "budget", "--frobnicate")),
]


CSV = "id,status,amount\n" + "".join(f"{i},{'ABC'[i % 3]},{i % 5}\n" for i in range(1, 13))
TEXTS = {
    "people.csv": CSV,
    "text.csv": "name,status\nann,A\nbob,C\neve,C\n",
    "empty.csv": "",
    "header.csv": "id,status\n",
    "one.csv": "id,status\n1,A\n",
    "twice.csv": "id,status\n1,0\n1,1\n",
    "cut.csv": "id,status\n1,A\n2",
    "blank.csv": "id,status\n,A\n2,C\n",
    "quote.csv": 'id,status\n1,"A\n2,C\n',
    "columns.csv": "id,id\n1,A\n2,C\n",
    "known.csv": "id,bit\n1,1\n",
    "stranger.csv": "id,bit\n99,1\n",
    "halves.csv": "id,bit\n1,0.5\n",
    "mixed.csv": "id,bit\n1,1\n2,x\n",
    "words.csv": "id,bit\n1,x\n",
    "everyone.csv": "id,bit\n" + "".join(f"{i},{i % 2}\n" for i in range(1, 13)),
    "accents": "tokén",
    "token": "token",
    "empty.toml": "",
    "bad.toml": "n = [\n",
    "served.toml": "release = '18.1'\n",
    "notes.txt": "my notes\n",
    "notes.svg": "my notes\n",
    "notes.png": "my notes\n",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a file of every kind, and files of none."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "folder").mkdir()
    (folder / "binary").write_bytes(b"\x89PNG\xff\x00")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    plan = ("plan", *WHO, "--family")
    run_once(folder, *plan, "subsets", "-m", 60)
    run_once(folder, *plan, "signs", "-m", 20, "-o", "signs.jsonl")
    ask = ("ask", "queries.jsonl", *WHO, "--mechanism", "gaussian", "--sigma", 1, "--secret")
    run_once(folder, *ask, "status = 'C'")
    run_once(folder, *ask, "status", "-o", "values.jsonl")
    run_once(folder, *ask, "sum(amount)", "-o", "sums.jsonl")
    solve = ("solve", "queries.jsonl")
    run_once(folder, *solve, "answers.jsonl", "--decoder", "ls")
    run_once(folder, *solve, "sums.jsonl", "-o", "sums-guess.jsonl")
    return folder


@pytest.fixture(scope="module")
def original(made):
    return contents(made)


def named(part):
    return " ".join(map(str, part))[:60] if isinstance(part, tuple) else part


@pytest.mark.parametrize(("command", "option", "values"), BATTERY, ids=named)
def test_hostile_words_are_one_line(run, made, original, monkeypatch, command, option, values):
    # One folder serves all rows, for none may change it; the next row gets it back as it was.
    monkeypatch.chdir(made)
    for value in dict.fromkeys(values):
        words = (*command, *([option] if option else []), value)
        result = run(*words)
        assert result.code == 2, (words, result.err)
        assert result.out == "", words
        assert result.err.count("\n") == 1, (words, result.err)
        assert result.err.startswith("countleak: "), words
    if (changed := contents(made)) != original:
        restore(made, original)
    assert changed == original


def restore(folder, original):
    shutil.rmtree(folder)
    folder.mkdir()
    for path, content in original.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def test_the_battery_is_large():
    cases = {(*command, option, value) for command, option, values in BATTERY for value in values}
    assert len(cases) >= 1900
