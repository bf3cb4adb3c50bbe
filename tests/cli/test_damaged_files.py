"""Damaged files of every kind: one line, exit code 2, no traceback, nothing changed on disk.

A case is a file that a verb reads, with one thing about it changed so that it cannot be right.
"""

import json

import pytest

from tests.cli.conftest import contents, run_once

CSV = "id,status,amount\n" + "".join(f"{i},{'ABC'[i % 3]},{i % 5}\n" for i in range(1, 13))
WHO = ("--people", "people.csv")

# Text that is no record file at all, whatever the kind.
TEXTS = {
    "empty": b"",
    "spaces": b" \n\n \n",
    "binary": bytes(range(256)),
    "nul": b"\0" * 99,
    "latin-1": '{"countleak":"é"}\n'.encode("latin-1"),
    "utf-16": '{"countleak":"queries"}\n'.encode("utf-16"),
    "a number": b"7\n",
    "a list": b"[1,2]\n",
    "null": b"null\n",
    "not JSON": b"{'countleak': 1}\n",
    "nested lists": b"[" * 100_000 + b"\n",
    "nested objects": b'{"a":' * 100_000 + b"\n",
    "a long number": b'{"countleak":' + b"9" * 5000 + b"}\n",
    "no header": b'{"query":0,"answer":1}\n',
    "another kind": b'{"countleak":"trials","version":2}\n',
    "no kind": b'{"version":2}\n',
    "a kind that is no text": b'{"countleak":["queries"],"version":2}\n',
}

# What makes no sense in place of a value, whatever the value.
NONSENSE = (None, True, -1, 1e300, "", "é\0", [], [[]], {}, {"a": 1}, 10**30)


def edited(**changes):
    """Change the header; `Ellipsis` removes a key."""

    def change(lines):
        header = {**json.loads(lines[0]), **changes}
        kept = {name: value for name, value in header.items() if value is not ...}
        return [json.dumps(kept), *lines[1:]]

    return change


def line(number, **changes):
    """Change one line; `Ellipsis` removes a key."""

    def change(lines):
        record = {**json.loads(lines[number]), **changes}
        kept = {name: value for name, value in record.items() if value is not ...}
        return [*lines[:number], json.dumps(kept), *lines[number + 1 :]]

    return change


def added(text):
    return lambda lines: [*lines, text]


IDS = list(range(1, 13))
COMMON = {
    "torn": lambda lines: [*lines[:-1], lines[-1][:-3]],
    "a line missing": lambda lines: lines[:-1],
    "a line twice": lambda lines: [*lines, lines[-1]],
    "only the header": lambda lines: lines[:1],
    "the header twice": lambda lines: [lines[0], *lines],
    "version 1": edited(version=1),
    "a version in words": edited(version="2"),
    "no version": edited(version=...),
    "junk": added("junk"),
    "a list at the end": added("[1]"),
    "deep at the end": added("[" * 100_000),
    "nothing in a line": added("{}"),
}
DAMAGES = {
    "queries": {
        **COMMON,
        "no family": edited(family=...),
        "unknown family": edited(family="dice"),
        "family is a list": edited(family=["subsets"]),
        "digits without parameters": edited(family="digits"),
        "tables without parameters": edited(family="tables"),
        "no sign": edited(signed=...),
        "a sign that is a number": edited(signed=1),
        "no ids": edited(ids=...),
        "few ids": edited(ids=IDS[:-5]),
        "many ids": edited(ids=[*IDS, *range(100, 120)]),
        "no ids at all": edited(ids=[]),
        "ids are a text": edited(ids="1,2,3"),
        "an id twice": edited(ids=[1, *IDS[:-1]]),
        "ids of two kinds": edited(ids=["1", *IDS[1:]]),
        "an id that is a float": edited(ids=[1.5, *IDS[1:]]),
        "an id that is NaN": edited(ids=[float("nan"), *IDS[1:]]),
        "an id that is true": edited(ids=[True, *IDS[1:]]),
        "an id that is null": edited(ids=[None, *IDS[1:]]),
        "an empty composite id": edited(ids=[[], *IDS[1:]]),
        "composite ids of two shapes": edited(ids=[[1, "a"], *([i] for i in IDS[1:])]),
        "a nested id": edited(ids=[[[1]], *IDS[1:]]),
        "fewer promised": edited(queries=3),
        "a promise that is a text": edited(queries="60"),
        "an unknown key": line(1, colour="red"),
        "a parameter once": line(5, prime=3),
        "a parameter that is a list": lambda lines: [
            lines[0],
            *(json.dumps({**json.loads(each), "prime": [1, 2]}) for each in lines[1:]),
        ],
        "parameters of differing shape": lambda lines: [
            lines[0],
            *(
                json.dumps({**json.loads(each), "prime": [1] * (1 + at % 2)})
                for at, each in enumerate(lines[1:])
            ),
        ],
        "no members": line(3, members=...),
        "members too short": line(3, members="ff"),
        "members too long": line(3, members="fffff0ff"),
        "members with bits too many": line(3, members="ffff"),
        "members not hexadecimal": line(3, members="zzzz"),
        "members of an odd length": line(3, members="fff"),
        **{f"members {value!r}": line(3, members=value) for value in NONSENSE},
    },
    "answers": {
        **COMMON,
        "no plan": edited(plan=...),
        "another plan": edited(plan="0" * 16),
        "no secret": edited(secret=...),
        "an unreadable secret": edited(secret="1 = 1"),
        "a secret without values": edited(secret="status"),
        "a secret of other values": edited(secret="status IN ('A', 'B')"),
        "a long secret": edited(secret="a = " + "9" * 5000),
        "a deep secret": edited(secret="(" * 9999),
        **{f"secret {value!r}": edited(secret=value) for value in NONSENSE},
        "no query": line(2, query=...),
        "a query too far": line(2, query=60),
        "a query of 1.0": line(2, query=1.0),
        "a query that is text": line(2, query="1"),
        **{f"query {value!r}": line(2, query=value) for value in NONSENSE},
        "no answer": line(2, answer=...),
        "NaN": line(2, answer=float("nan")),
        "infinity": line(2, answer=float("inf")),
        "a huge answer": line(2, answer=1e11),
        "an answer that is text": line(2, answer="7"),
        "suppressed as text": line(2, answer=..., suppressed="yes"),
        **{
            f"answer {value!r}": line(2, answer=value)
            for value in NONSENSE
            if type(value) is not int or value > 10**9
        },
    },
    "guess": {
        **COMMON,
        "no people": edited(people=...),
        "fewer promised": edited(people=3),
        "no secret": edited(secret=...),
        "an unreadable secret": edited(secret="1 = 1"),
        "a category without values": edited(secret="status"),
        "a number without level": edited(secret="sum(amount)"),
        **{f"secret {value!r}": edited(secret=value) for value in NONSENSE},
        "no id": line(2, id=...),
        "an id twice": line(2, id=1),
        "an id that is a float": line(2, id=2.0),
        "an id of another kind": line(2, id="2"),
        **{
            f"id {value!r}": line(2, id=value)
            for value in NONSENSE
            if type(value) is not int or value > 10**9
        },
        "a value of 2": line(2, value=2),
        "a value of 1.0": line(2, value=1.0),
        "a value that is text": line(2, value="1"),
        **{f"value {value!r}": line(2, value=value) for value in NONSENSE},
        "a probability of 1.5": line(2, probability=1.5),
        "a probability of NaN": line(2, probability=float("nan")),
        **{f"probability {value!r}": line(2, probability=value) for value in NONSENSE},
        **{f"margin {value!r}": line(2, margin=value) for value in NONSENSE},
    },
    "values-guess": {
        "no values": edited(values=...),
        "a value twice": edited(values=["A", "A", "C"]),
        "fewer values": edited(values=["A", "B"]),
        "an unknown value": line(2, value="Z"),
        **{f"values {value!r}": edited(values=value) for value in NONSENSE},
        "too few probabilities": line(2, probability=[1.0]),
        "a probability that is text": line(2, probability=["1", 0, 0]),
        "a probability above 1": line(2, probability=[9, 0, 0]),
        **{f"probability {value!r}": line(2, probability=value) for value in NONSENSE},
        **{f"value {value!r}": line(2, value=value) for value in NONSENSE},
    },
    "sums-guess": {
        "no level": edited(level=...),
        "a level of 1": edited(level=1.0),
        "a level that is text": edited(level="0.95"),
        "no error": line(2, error=...),
        "NaN": line(2, value=float("nan")),
        "an infinite bound": line(2, high=float("inf")),
        **{
            f"low {value!r}": line(2, low=value)
            for value in NONSENSE
            if type(value) not in (int, float)
        },
        **{
            f"value {value!r}": line(2, value=value)
            for value in NONSENSE
            if type(value) not in (int, float)
        },
    },
}
READERS = {
    "queries": [
        ("ask", "damaged", *WHO, "--secret", "status = 'C'", "-o", "new.jsonl"),
        ("solve", "damaged", "answers.jsonl", "-o", "new.jsonl", "--decoder", "ls"),
        ("diagnose", "answers.jsonl", "--queries", "damaged"),
    ],
    "answers": [
        ("solve", "queries.jsonl", "damaged", "-o", "new.jsonl", "--decoder", "ls"),
        ("diagnose", "damaged"),
    ],
    "guess": [("score", "damaged", *WHO)],
    "values-guess": [("score", "damaged", *WHO)],
    "sums-guess": [("score", "damaged", *WHO)],
}
CASES = [
    pytest.param(kind, damage, words, id=f"{words[0]} {kind}: {name}")
    for kind, damages in DAMAGES.items()
    for name, damage in damages.items()
    for words in READERS[kind]
]
NO_FILE = [
    pytest.param(text, words, id=f"{words[0]} {kind}: {name}")
    for kind in ("queries", "answers", "guess")
    for name, text in TEXTS.items()
    for words in READERS[kind]
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text(CSV)
    run_once(folder, "plan", *WHO, "--family", "subsets", "-m", 60)
    ask = ("ask", "queries.jsonl", *WHO, "--mechanism", "gaussian", "--sigma", 1, "--secret")
    run_once(folder, *ask, "status = 'C'")
    run_once(folder, *ask, "status", "-o", "values.jsonl")
    run_once(folder, *ask, "sum(amount)", "-o", "sums.jsonl")
    solve = ("solve", "queries.jsonl")
    run_once(folder, *solve, "answers.jsonl", "--decoder", "ls")
    run_once(folder, *solve, "values.jsonl", "-o", "values-guess.jsonl")
    run_once(folder, *solve, "sums.jsonl", "-o", "sums-guess.jsonl")
    return folder


@pytest.fixture
def refused(run, made, monkeypatch):
    """Runs words over damaged content, and checks that the complaint is one line."""
    monkeypatch.chdir(made)

    def refused(content, words):
        (made / "damaged").write_bytes(content)
        before = contents(made)
        result = run(*words)
        assert result.code == 2, result.err
        assert result.out == ""
        assert result.err.count("\n") == 1, result.err
        assert result.err.startswith("countleak: ")
        assert contents(made) == before
        return result.err

    return refused


@pytest.mark.parametrize(("kind", "damage", "words"), CASES)
def test_a_damaged_file_is_one_line(refused, made, kind, damage, words):
    lines = (made / f"{kind}.jsonl").read_text().splitlines()
    text = "\n".join(damage(lines))
    end = "" if damage is COMMON["torn"] else "\n"
    assert "damaged" in refused((text + end).encode(), words)


@pytest.mark.parametrize(("text", "words"), NO_FILE)
def test_a_file_of_no_kind_is_one_line(refused, text, words):
    assert "damaged" in refused(text, words)


@pytest.mark.parametrize(
    "text",
    [
        "\n\n",
        "id,status\n",
        "id,status\n1,A\n",
        "id,status\n1,A\n1,C\n",
        "id,status\n1,A\n01,C\n 1,A\n",
        "id,status\n1,A\n2\n",
        "id,status\n1,A,9\n2,C\n",
        "id,status\n,A\n2,C\n",
        "id,id\n1,A\n2,C\n",
        ",\n1,A\n2,C\n",
        'id,status\n1,"A\n2,C\n',
        'id,status\n1,"A"x\n2,C\n',
        "id\n1\n2\n3\n",
        "status\nA\nC\n",
        "id,status\n1,A\n2,B\n",
        "id,status\n1," + "x" * 200_000 + "\n2,C\n",
        "id,Status\n1,A\n2,C\n",
        '{"countleak":"queries","version":2}\n',
        "id,status\n1,A\n2,C\n\0",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_file_of_people_that_cannot_be_audited_is_one_line(refused, text):
    words = ("audit", "damaged", "--secret", "status = 'C'", "-m", "60", "--folder", "new")
    refused(text.encode(), words)
