"""What a server, a file or a name holds is shown, but nothing in it is obeyed."""

import json

import pytest

from tests.audit.targets.hostile import READY, error, hostile, postgres, row

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
BANK = ("--people", "bank:7", "--secret", "status = 'C'", "--table", "loans")


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines())


@pytest.fixture
def planned(run):
    run("plan", "--people", "bank:7", "--between", 2000, 2999, "--primes", 1)
    return run


def test_the_words_of_a_server(planned):
    replies = iter([row(b"5"), error(ESCAPES.encode() + b" hush") + READY])
    with hostile(postgres(lambda _: next(replies))) as server:
        target = f"postgresql://me:hush@127.0.0.1:{server.port}/x"
        said = planned("ask", "queries.jsonl", *BANK, "--target", target)
    assert said.code == 2
    assert len(said.err.splitlines()[-1].split("\\x1b")) == 3
    assert is_harmless(said.out + said.err)
    assert "hush" not in said.out + said.err


def test_names_on_the_command_line(planned):
    names = ("--table", f"loans{ESCAPES}", "--dry-run", "--target", "postgresql://127.0.0.1:1/x")
    said = planned("ask", "queries.jsonl", *BANK[:4], *names)
    assert is_harmless(said.out + said.err)
    assert is_harmless(planned("ask", "queries.jsonl", *BANK, "--target", ESCAPES).err)


def test_a_journal_that_someone_else_wrote(planned, tmp_path):
    words = ("ask", "queries.jsonl", *BANK[:4], "--target", "diffix")
    assert planned(*words, "--limit", 3).code == 0
    path = tmp_path / "answers.jsonl"
    header, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | {"system": ESCAPES}), *rest, ""]))
    said = planned(*words)
    assert "these answers came from" in said.err
    assert is_harmless(said.err)
    path.write_text(header + '\n{"query": "' + json.dumps(ESCAPES)[1:-1] + '"}\n')
    for verb in (words, ("solve", "queries.jsonl", "answers.jsonl"), ("diagnose", "answers.jsonl")):
        assert is_harmless(planned(*verb).err)


def test_the_rows_of_a_database(run, tmp_path):
    rows = "".join(f"{k},[red]{ESCAPES}\n" for k in range(200))
    (tmp_path / "people.csv").write_text(f"id,status\n{rows}")
    said = run(
        "ask", "--target", "diffix", "--database", "people.csv", "--table", "people", "--id", "id",
        "--sql", "SELECT status, count(*) FROM people GROUP BY status",
    )  # fmt: skip
    assert r"[red]\x1b]0;owned" in said.out
    assert is_harmless(said.out + said.err)


@pytest.mark.parametrize(
    "words",
    [
        ("--database", "postgresql://me:my hush@127.0.0.1:1/x", "--table", "t", "--id", "i"),
        ("--database", "host=127.0.0.1 password=hush user=me", "--table", "t", "--id", "i"),
        ("--database", "postgresql://me:hush/x@127.0.0.1/y", "--table", "t", "--id", "i"),
    ],
    ids=str,
)
def test_a_password_of_a_database_is_not_shown(run, words):
    said = run("ask", "--target", "diffix", "--sql", "SELECT count(*) FROM t", *words)
    assert said.code == 2
    assert "hush" not in said.err + said.out
    assert "my" not in said.err.split()


@pytest.mark.parametrize(
    "target",
    [
        "host=127.0.0.1 password=hush user=me",
        "mysql://me:hush",
        "postgresql://me:my hush@h/x",
        "postgresql://me:hush/hush@127.0.0.1/x",
        "http://me:hu/hush@127.0.0.1/x",
    ],
)
def test_a_password_of_a_target_is_not_shown(planned, target):
    source = ("--data-source", "x") if target.startswith("http") else ()
    said = planned("ask", "queries.jsonl", *BANK, "--target", target, *source)
    assert said.code == 2
    assert "hush" not in said.err + said.out
