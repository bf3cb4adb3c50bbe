import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from countleak.errors import InputError
from countleak.files import (
    read_records,
    read_text,
    replacing,
    require_own,
    write_records,
)
from countleak.journals import JournalFile, drop_torn_line


def test_a_file_reads_back_with_its_line_numbers(tmp_path):
    path = tmp_path / "new" / "file.jsonl"
    write_records(path, "queries", {"family": "digits"}, [{"a": 1}, {"a": 2}])
    records = read_records(path, "queries")
    assert records.header == {"countleak": "queries", "version": 2, "family": "digits"}
    assert records.lines == ((2, {"a": 1}), (3, {"a": 2}))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "the file is empty"),
        ('{"countleak":"guess","version":2}\n', "line 1: not a countleak queries file"),
        ('{"countleak":"queries","version":9}\n', "line 1: format version 9"),
        ('{"countleak":"queries","version":2}\n{"a":\n', "line 2: not JSON"),
        ('{"countleak":"queries","version":2}\n' + "[" * 99_999 + "\n", "line 2: not JSON"),
        ('{"countleak":"queries","version":2}\n[1]\n', "line 2: expected a JSON object"),
        ('{"countleak":"queries","version":2}\n{"a":1}\n{"a"', "line 3: cut off in mid-line"),
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


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_stood_there_stays_when_writing_fails(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(error), replacing(path) as file:
        file.write("half")
        raise error
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
    with pytest.raises(InputError, match="a folder; name another"), replacing(tmp_path):
        pass


def test_only_an_empty_file_or_one_of_the_same_kind_is_replaced(tmp_path):
    path = tmp_path / "answers.jsonl"
    write_records(path, "answers", {}, [])
    with pytest.raises(InputError, match="holds a countleak answers file, not a countleak guess"):
        write_records(path, "guess", {}, [])
    write_records(path, "answers", {"new": True}, [])
    assert read_records(path, "answers").header["new"]
    (tmp_path / "empty").touch()
    write_records(tmp_path / "empty", "guess", {}, [])
    assert read_records(tmp_path / "empty", "guess").header["countleak"] == "guess"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id,status\n1,A\n", "something else (it begins 'id,status')"),
        (b"\xef\xbb\xbfid\n", "something else (it begins 'id')"),
        (b"\x89PNG\r\n", "something else (binary data)"),
        (b"[" * 99_999, "something else (it begins '[["),
        (b'{"a": 1}\n', "something else (it begins"),
    ],
)
def test_a_file_that_is_not_ours_stays(tmp_path, content, said):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        write_records(path, "queries", {}, [{"a": 1}])
    assert said in str(caught.value)
    assert "name another file to write to" in str(caught.value)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_recognised_may_be_replaced(tmp_path):
    path = tmp_path / "x.svg"
    require_own(path, "a picture", lambda line: line.startswith(b"<svg"))
    path.write_text("<svg>\n</svg>")
    require_own(path, "a picture", lambda line: line.startswith(b"<svg"))
    path.write_text("notes")
    with pytest.raises(InputError, match="not a picture"):
        require_own(path, "a picture", lambda line: line.startswith(b"<svg"))


def test_names_may_be_text(tmp_path):
    name = str(tmp_path / "file.jsonl")
    write_records(name, "queries", {}, [{"a": 1}])
    assert read_records(name, "queries").lines == ((2, {"a": 1}),)
    assert read_records(name, "queries").header["countleak"] == "queries"
    JournalFile(name, "queries", {}).append([{"a": 2}])
    drop_torn_line(name)
    with replacing(name) as file:
        file.write("x")
    assert read_text(name) == "x"


def drain(path, received):
    reader = threading.Thread(target=lambda: received.append(path.read_text()))
    reader.start()
    return reader


def test_a_pipe_is_written_straight_through(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = drain(pipe, received)
    write_records(pipe, "queries", {}, [{"a": 1}])
    reader.join()
    reader = drain(pipe, received)
    with closing(JournalFile(pipe, "answers", {})) as journal:
        journal.append([{"query": 0}])
        journal.append([{"query": 1}])
    reader.join()
    assert received == [
        '{"countleak":"queries","version":2}\n{"a":1}\n',
        '{"countleak":"answers","version":2}\n{"query":0}\n{"query":1}\n',
    ]


def test_standard_output_takes_records_in_a_pipe():
    program = "from countleak.files import write_records as w; w('/dev/stdout', 'queries', {}, [])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == '{"countleak":"queries","version":2}\n'


def test_a_full_disk_is_an_input_error():
    with pytest.raises(InputError, match="/dev/full: cannot be written"):
        write_records("/dev/full", "queries", {}, [{"a": 1}])
    with (
        pytest.raises(InputError, match="/dev/full: cannot be written"),
        closing(JournalFile("/dev/full", "answers", {})) as journal,
    ):
        journal.append([{"query": 0}])


def test_devices_are_not_read():
    with pytest.raises(InputError, match="/dev/zero: a device"):
        read_records("/dev/zero", "queries")


def test_a_journal_is_there_from_its_first_records_on(tmp_path):
    path = tmp_path / "new" / "journal"
    journal = JournalFile(path, "answers", {"plan": "x"})
    assert journal.earlier is None
    assert not path.parent.exists()
    journal.append([{"query": 0}])
    assert read_records(path, "answers").header["plan"] == "x"
    with pytest.raises(InputError, match="a folder"):
        JournalFile(tmp_path, "answers", {})


def test_a_torn_journal_is_repaired_by_the_next_records_and_not_before(tmp_path):
    path = tmp_path / "journal"
    JournalFile(path, "answers", {}).append([{"query": 0}])
    with path.open("a") as file:
        file.write('{"quer')
    torn = path.read_bytes()
    journal = JournalFile(path, "answers", {})
    assert [record for _, record in journal.earlier.lines] == [{"query": 0}]
    assert path.read_bytes() == torn
    journal.append([{"query": 1}])
    assert [r["query"] for _, r in read_records(path, "answers").lines] == [0, 1]
