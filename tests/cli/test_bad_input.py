"""Bad input: one line that says what, where and what to do, exit code 2, files left intact."""

import shutil

import pytest

from tests.cli.conftest import contents, run_once

CSV = "id,status\n1,A\n2,C\n3,C\n"


SOLVE, PLAN = ("solve", "queries.jsonl"), ("plan", "--people")
WHO = ("--people", "people.csv", "--secret", "status = 'C'")
ASK = ("ask", "queries.jsonl", *WHO)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "people.csv").write_text(CSV)
    (folder / "empty.csv").write_text("id,status\n")
    (folder / "one.csv").write_text("id,status\n1,A\n")
    (folder / "twice.csv").write_text("id,status\n1,A\n1,C\n")
    (folder / "cut.csv").write_text("id,status\n1,A\n2")
    options = ("plan", "--people", "people.csv", "--family", "subsets", "-m", 20)
    run_once(folder, *options)
    run_once(folder, *options, "--seed", 5, "-o", "others.jsonl")
    run_once(folder, *ASK, "--no-suppression")
    run_once(folder, *SOLVE, "answers.jsonl")
    text = (folder / "answers.jsonl").read_text()
    lines = text.splitlines(keepends=True)
    (folder / "torn.jsonl").write_text(text[:-9])
    (folder / "short.jsonl").write_text("".join(lines[:-3]))
    (folder / "nan.jsonl").write_text("".join([*lines[:-1], '{"query":19,"answer":NaN}\n']))
    (folder / "text.jsonl").write_text("".join([*lines[:-1], '{"query":19,"answer":"n/a"}\n']))
    return folder


@pytest.fixture
def files(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)


CASES = [
    ((*PLAN, "empty.csv"), "empty.csv: 0 people, but a reconstruction needs at least 2"),
    ((*PLAN, "one.csv"), "one.csv: 1 people"),
    ((*PLAN, "twice.csv"), "twice.csv line 3: id 1 is a duplicate of line 2; keep one row"),
    ((*PLAN, "cut.csv"), "cut.csv line 3: 1 fields where the header has 2"),
    ((*PLAN, "absent.csv"), "absent.csv: no such file"),
    ((*PLAN, "bank:x"), "people 'bank:x' cannot be read; write bank"),
    ((*PLAN, "people.csv", "--id", "uid"), "no column 'uid'; the columns are id, status"),
    ((*PLAN, "people.csv", "--between", "8", "9"), "0 people with ids from 8 to 9"),
    (
        (*PLAN, "people.csv", "--family", "dice"),
        "'dice' is not one of 'digits', 'subsets', 'modular', 'hashed', 'signs'",
    ),
    ((*PLAN, "people.csv", "-m", "0"), "'--queries'"),
    ((*PLAN, "people.csv", "-m", "9999"), "raise --primes"),
    ((*PLAN, "people.csv", "--primes", "0"), "'--primes'"),
    ((*PLAN, "people.csv", "--exponents", "1.0"), "with a whole one the query is everyone"),
    ((*PLAN, "people.csv", "--exponents", "x"), "a list like 0.5,0.7"),
    ((*PLAN, "people.csv", "--exponents", "nan"), "at most 3 decimals"),
    ((*PLAN, "people.csv", "--exponents", "500.5"), "it must lie in (0, 5]"),
    (
        (*PLAN, "people.csv", "--family", "signs", "--list-fragile"),
        "--list-fragile does not apply to --family signs",
    ),
    ((*PLAN, "census:999999999"), "it can have from 2 to 10 million"),
    ((*PLAN, "bank:²"), "people 'bank:²' cannot be read"),
    ((*PLAN, "people.csv", "-m", "many"), "valid integer"),
    ((*PLAN, "people.csv", "--family", "signs", "--list-fragile", "--seed", "-1"), "--seed"),
    ((*ASK, "--secret", "status = 'Z'"), "holds for nobody"),
    ((*ASK, "--secret", "income = 1"), "no column 'income'"),
    ((*ASK, "--secret", "status C"), "write it like status = 'C'"),
    ((*ASK, "--sigma", "0", "-o", "new"), "sigma is 0; it must lie above 0"),
    ((*ASK, "--sigma", "-2", "-o", "new"), "sigma is -2"),
    ((*ASK, "--mechanism", "magic"), "'magic' is not one of 'diffix', 'gaussian'"),
    (("ask", "others.jsonl", *WHO), "answers to other queries"),
    ((*ASK, "--sigma", "9"), "name a new file"),
    ((*ASK, "--secret", "status = A"), "name a new file"),
    ((*ASK, "--seed", "9"), "name a new file"),
    ((*ASK, "--people", "bank:7"), "are not among --people (id 1); check it"),
    ((*ASK, "-o", "guess.jsonl"), "not a countleak answers file"),
    (
        (*SOLVE, "answers.jsonl", "-o", "answers.jsonl"),
        "holds a countleak answers file, not",
    ),
    ((*PLAN, "people.csv", "-o", "people.csv"), "holds something else (it begins 'id,status')"),
    ((*SOLVE, "answers.jsonl", "-o", "people.csv"), "holds something else (it begins 'id,status')"),
    ((*ASK, "-o", "people.csv"), "people.csv line 1: not JSON"),
    ((*ASK, "-o", "/dev/full"), "/dev/full: cannot be written"),
    ((*PLAN, "people.csv", "-o", "/dev/full"), "/dev/full: cannot be written"),
    ((*SOLVE, "answers.jsonl", "-o", "/dev/full"), "/dev/full: cannot be written"),
    ((*SOLVE, "/dev/zero"), "/dev/zero: a device, not a file"),
    ((*SOLVE, "answers.jsonl", "--integer", "--time-limit", "-1"), "greater than or equal to 0"),
    (("demo", "--folder", "."), "holds another run (people.csv); name another"),
    (("ask", "guess.jsonl", *WHO), "not a countleak queries file"),
    ((*SOLVE, "short.jsonl"), "17 answers to 20 questions; run `countleak ask` again"),
    ((*SOLVE, "torn.jsonl"), "torn.jsonl line 21: cut off in mid-line"),
    ((*SOLVE, "nan.jsonl"), "nan.jsonl line 21: answer is nan, expected a number"),
    ((*SOLVE, "text.jsonl"), "text.jsonl line 21: answer is 'n/a', expected a number; remove"),
    ((*SOLVE, "absent.jsonl"), "absent.jsonl: no such file"),
    (("solve", "others.jsonl", "answers.jsonl"), "answers to other queries"),
    ((*SOLVE, "answers.jsonl", "--program", "dini", "-B", "-1"), "B is -1"),
    ((*SOLVE, "answers.jsonl", "--program", "bounded", "-B", "-1"), "cannot be negative"),
    ((*SOLVE, "answers.jsonl", "--program", "dini", "--noise-sd", "0"), "sigma is 0"),
    (
        (*SOLVE, "answers.jsonl", "--program", "lasso"),
        "'lasso' is not one of 'dmt', 'bounded', 'dini'",
    ),
    (("score", "guess.jsonl", "--people", "bank:7"), "people who are not among --people"),
    (("score", "answers.jsonl", "--people", "people.csv"), "not a countleak guess file"),
    (("lab", "reproduce", "table-9"), "no experiment 'table-9'; choose all, table-1"),
    (("lab", "reproduce", "table-1"), "table-1 reads recorded answers; give the folder"),
    (("lab", "reproduce", "table-1", "--data", "absent"), "--data absent: no such folder"),
    (("lab", "reproduce", "table-1", "--data", "."), "no file aircloak_output_cleaned"),
    (
        ("lab", "reproduce", "presence", "--solver", "highs"),
        "--solver does not apply to presence",
    ),
    (("frobnicate",), "No such command 'frobnicate'"),
]


@pytest.mark.parametrize(("words", "complaint"), CASES, ids=str)
def test_bad_input_is_one_line(run, files, tmp_path, words, complaint):
    before = contents(tmp_path)
    result = run(*words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert complaint in result.err
    assert contents(tmp_path) == before
