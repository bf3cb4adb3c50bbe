import pytest

from countleak.audit.query_log.reading import read_log
from countleak.errors import InputError


def statements(tmp_path, text, name="log.sql"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return [(each.line, each.text) for each in read_log(path)]


def test_statements_end_at_semicolons_outside_quotes_and_comments(tmp_path):
    text = "SELECT 1;\n\n-- no; statement\n  SELECT 'a;''b'\n  , \"c;d\" /* ; */;\nSELECT 3"
    assert statements(tmp_path, text) == [
        (1, "SELECT 1"),
        (3, "-- no; statement\n  SELECT 'a;''b'\n  , \"c;d\" /* ; */"),
        (6, "SELECT 3"),
    ]


def test_without_semicolons_a_line_is_a_statement(tmp_path):
    assert statements(tmp_path, "SELECT 1\n\nSELECT 2\n-- nothing\n") == [
        (1, "SELECT 1"),
        (3, "SELECT 2"),
    ]


@pytest.mark.parametrize("open_", ["'", '"', "/*"])
def test_a_quote_that_nothing_closes_takes_no_other_statement_along(tmp_path, open_):
    found = statements(tmp_path, f"SELECT 1;\nSELECT {open_} 2;\nSELECT 3;\nSELECT 4;\n")
    assert found[0] == (1, "SELECT 1")
    assert found[-2:] == [(3, "SELECT 3"), (4, "SELECT 4")]
    assert len(found) == 4


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT /* 1;\n" * 20_000, 20_000),
        ("/*" * 500_000 + ";\n", 1),
        ("--\n" * 300_000 + "1;", 1),
    ],
)
def test_marks_without_end_take_no_time_to_speak_of(tmp_path, text, count):
    assert len(statements(tmp_path, text)) == count


def test_tables_and_objects_have_time_user_and_answer(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('time,user,query,answer\n9:00,ann,"SELECT 1, 2",12\n,,SELECT 3,\n')
    first, second = read_log(path)
    assert (first.text, first.time, first.user, first.answer) == (
        "SELECT 1, 2",
        "9:00",
        "ann",
        "12",
    )
    assert (second.line, second.answer, second.number) == (3, None, 2)
    path = tmp_path / "log.jsonl"
    path.write_text('{"Statement": "SELECT 1\u2028", "user_name": "bob", "count": 3}\n\n')
    (only,) = read_log(path)
    assert (only.text, only.user, only.answer) == ("SELECT 1\u2028", "bob", "3")


SERVER = """\
2024-05-01 10:00:00.123 UTC [7] ann@clinic LOG:  statement: SELECT count(*)
\tFROM people
2024-05-01 10:00:01 UTC [7] bob@clinic LOG:  execute <unnamed>: SELECT $1, $2
2024-05-01 10:00:01 UTC [7] bob@clinic DETAIL:  parameters: $1 = 'it''s', $2 = NULL
2024-05-01 10:00:02 UTC [7] LOG:  checkpoint starting: time
2024-05-01 10:00:03 UTC [7] LOG:  duration: 0.5 ms  statement: SELECT 1
"""


def test_the_log_of_a_server_has_statements_with_parameters(tmp_path):
    path = tmp_path / "postgresql.log"
    path.write_text(SERVER)
    first, second, third = read_log(path)
    assert first.text == "SELECT count(*)\n\tFROM people"
    assert (first.user, first.time, first.line) == ("ann", "2024-05-01 10:00:00.123 UTC", 1)
    assert second.parameters == ("it's", None)
    assert (third.text, third.user) == ("SELECT 1", "")


def test_csvlog_is_read_by_its_places(tmp_path):
    path = tmp_path / "postgresql.csv"
    row = [
        "2024-05-01",
        "ann",
        *[""] * 11,
        "statement: SELECT 1",
        "parameters: $1 = '4'",
        *[""] * 8,
    ]
    path.write_text(",".join(f'"{part}"' for part in row) + "\n")
    (only,) = read_log(path)
    assert (only.text, only.user, only.parameters) == ("SELECT 1", "ann", ("4",))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.sql", "\n-- nothing\n", "no statement is in this file"),
        ("a.csv", "time,user\n1,2\n", "nor is this PostgreSQL's csvlog"),
        ("a.csv", 'query\n"SELECT', "not CSV"),
        ("a.jsonl", '{"query": "SELECT 1"}\n{', "line 2: not JSON"),
        ("a.jsonl", '{"query": 1}', "line 1: no statement"),
        ("a.jsonl", '{"query": "SELECT 1"}\n[]', "line 2: expected a JSON object"),
    ],
)
def test_what_is_no_log_is_said_in_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_log(tmp_path / name)
