"""Hostile words: one line, exit code 2, no traceback, nothing changed on disk.

A case is a command that works, and one option replaced by each of several values that must not.
"""

import pytest

# What no option for a number takes, and what one for a whole number does not take either.
NO_NUMBERS = ("nan", "inf", "-inf", "", " ", "é", "٣x", "1e999", "--", "0x10", "1,5", "None")
NO_WHOLE = (*NO_NUMBERS, "1.5", "1e3", "99999999999999999999", "-99999999999999999999")
NO_COUNT = (*NO_WHOLE, "0", "-1")
# What is never a file with the right content.
NO_FILES = ("absent", "folder", "binary", "notes.txt", "absent/absent", "/dev/zero", "x" * 300, "é")
NO_WORDS = ("", " ", "é", "magic", "GAUSSIAN", "gaussian,laplace", "-", "../x", "nan")
NO_LISTS = ("", ",", "1,,2", "x", "nan,1", "1;2", "é", "-1,1", "0,1", "99999999999999999999,1")
NO_PICTURES = ("plan.gif", "plan", ".svg", "folder", "folder/x", "notes.svg", "notes.png")

BUDGET = ("budget", "--n", 100, "-m", 300, "--sigma", 4)
ROUND = ("budget", "--n", 100, "-m", 60, "--mechanism", "round", "--base", 5)
UNIFORM = ("budget", "--n", 100, "-m", 60, "--mechanism", "uniform", "--bound", 5)
SWEEP = ("lab", "sweep", "--n", 10, "--queries", "40,80", "--sigma", 4, "--trials", 2, "--jobs", 1)
BENCH = ("lab", "bench")

BATTERY = [
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
    ((*BENCH, "solvers"), "--sizes", (*NO_LISTS, "10x", "x10", "0x5", "10x60x3", "-1x5")),
    ((*BENCH, "solvers"), "--rows", NO_WORDS),
    ((*BENCH, "solvers"), "--repeats", NO_COUNT),
    ((*BENCH, "solvers"), "--threads", NO_LISTS),
    ((*BENCH, "solvers"), "--limit", NO_NUMBERS),
    ((*BENCH, "solvers"), "--picture", NO_PICTURES),
    ((*BENCH, "batch"), "--n", NO_COUNT),
    ((*BENCH, "batch"), "--m", NO_COUNT),
    ((*BENCH, "batch"), "--answers", NO_COUNT),
    ((*BENCH, "batch"), "--threads", NO_COUNT),
    ((*BENCH, "sweep"), "--jobs", NO_LISTS),
    ((*BENCH, "sweep"), "--trials", (*NO_COUNT, "2")),
    ((*BENCH, "diffix"), "--primes", (*NO_COUNT, "1000000")),
    ((*BENCH, "questions"), "--ranges", (*NO_LISTS, "2000", "9-1", "1-2-3", "1-2")),
    ((*BENCH, "questions"), "--salts", NO_COUNT),
    ((*BENCH, "questions"), "--jobs", (*NO_WHOLE, "0", "-2")),
    ((*BENCH, "questions"), "--primes", (*NO_COUNT, "1000000")),
    ((*BENCH, "questions"), "--picture", NO_PICTURES),
    ((*BENCH, "serve"), "--connections", NO_LISTS),
    ((*BENCH, "serve"), "--queries", NO_COUNT),
    ((*BENCH, "decoders"), "--suite", NO_WORDS),
    ((*BENCH, "decoders"), "--data", ("folder",)),
    ((*BENCH, "decoders"), "--jobs", (*NO_WHOLE, "0", "-2")),
    ((*BENCH, "decoders", "--suite", "recorded"), "--data", (*NO_FILES, "", ".")),
    ((*BENCH, "budget"), "--decoder", NO_WORDS),
    ((*BENCH, "budget"), "--trials", (*NO_COUNT, "1")),
    ((*BENCH, "budget"), "--within", NO_NUMBERS),
    ((*BENCH, "categories"), "--queries", NO_LISTS),
    ((*BENCH, "categories"), "--sigma", (*NO_NUMBERS, "0", "-1", "1e308")),
    ((*BENCH, "categories"), "--people", (*NO_COUNT, "1", "1000000000")),
    ((*BENCH, "categories"), "--picture", NO_PICTURES),
    ((), "", ("", "é", "budge", "--frobnicate", "sweep", "reproduce", "bench")),
    (("lab",), "", ("é", "budget", "--frobnicate")),
]
CASES = [
    (*command, *([option] if option else []), value)
    for command, option, values in BATTERY
    for value in dict.fromkeys(values)
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\x89PNG\xff\x00")
    (tmp_path / "empty.toml").touch()
    (tmp_path / "bad.toml").write_text("n = [\n")
    (tmp_path / "served.toml").write_text("release = '18.1'\n")
    for name in ("notes.txt", "notes.svg", "notes.png"):
        (tmp_path / name).write_text("my notes\n")


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("words", CASES, ids=lambda words: " ".join(map(str, words))[:80])
def test_hostile_words_are_one_line(run, files, tmp_path, words):
    before = contents(tmp_path)
    result = run(*words)
    assert result.code == 2, result.err
    assert result.out == ""
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("countleak: ")
    assert contents(tmp_path) == before


def test_the_battery_is_large():
    assert len(set(CASES)) >= 250
