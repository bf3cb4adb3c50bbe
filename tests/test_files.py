import os

import pytest

from countleak import InputError
from countleak.files import (
    append_records,
    mend_journal,
    read_records,
    replacing,
    start_journal,
    write_records,
)


def test_a_file_reads_back_with_its_line_numbers(tmp_path):
    path = tmp_path / "new" / "file.jsonl"
    write_records(path, "queries", {"family": "digits"}, [{"a": 1}, {"a": 2}])
    records = read_records(path, "queries")
    assert records.header == {"countleak": "queries", "version": 1, "family": "digits"}
    assert records.lines == ((2, {"a": 1}), (3, {"a": 2}))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "the file is empty"),
        ('{"countleak":"guess","version":1}\n', "line 1: not a countleak queries file"),
        ('{"countleak":"queries","version":9}\n', "line 1: format version 9"),
        ('{"countleak":"queries","version":1}\n{"a":\n', "line 2: not JSON"),
        ('{"countleak":"queries","version":1}\n' + "[" * 99_999 + "\n", "line 2: not JSON"),
        ('{"countleak":"queries","version":1}\n[1]\n', "line 2: expected a JSON object"),
        ('{"countleak":"queries","version":1}\n{"a":1}\n{"a"', "line 3: cut off in mid-line"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, content, complaint):
    path = tmp_path / "file.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_records(path, "queries")
    assert str(path) in str(caught.value)


def test_binary_files_and_missing_ones_are_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_records(tmp_path / "binary", "queries")
    with pytest.raises(InputError, match="no such file"):
        read_records(tmp_path / "absent", "queries")


def test_what_stood_there_stays_when_writing_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_new_file_is_as_private_as_the_umask_says_and_an_old_one_as_it_was(tmp_path):
    before = os.umask(0o077)
    try:
        with replacing(tmp_path / "new") as file:
            file.write("x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    (tmp_path / "new").chmod(0o640)
    with replacing(tmp_path / "new") as file:
        file.write("y")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_links_are_followed_and_what_is_no_file_is_not_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(InputError, match="not a file that can be replaced"),
        replacing(tmp_path / "pipe"),
    ):
        pass


def test_a_file_of_another_kind_is_not_replaced(tmp_path):
    path = tmp_path / "answers.jsonl"
    start_journal(path, "answers", {})
    with pytest.raises(InputError, match="holds answers, not guess"):
        write_records(path, "guess", {}, [])


def test_a_torn_journal_is_mended_and_goes_on(tmp_path):
    path = tmp_path / "journal"
    start_journal(path, "answers", {})
    append_records(path, [{"query": 0}])
    with path.open("a") as file:
        file.write('{"quer')
    assert len(read_records(path, "answers", drop_torn=True).lines) == 1
    mend_journal(path)
    append_records(path, [{"query": 1}])
    assert [r["query"] for _, r in read_records(path, "answers").lines] == [0, 1]
