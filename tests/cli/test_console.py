"""What long work says of itself where there is no terminal."""

import pytest

from countleak.cli import console


@pytest.fixture
def clock(monkeypatch):
    """A clock in seconds that a test turns on."""
    now = [100.0]
    monkeypatch.setattr(console, "monotonic", lambda: now[0])
    return now


def test_cells_of_a_table_hold_no_escape_sequences(capsys):
    console.print_table([{"name": "\x1b[31mred", "share": 0.5}])
    assert "\x1b" not in capsys.readouterr().out


def test_short_work_says_nothing(capsys, clock):
    with console.progress("asking") as report:
        for done in range(5):
            clock[0] += 1.9
            report(done, 5)
    assert capsys.readouterr() == ("", "")


def test_long_work_says_how_far_it_is_on_the_error_stream_a_line_each_ten_seconds(capsys, clock):
    with console.progress("figure-1") as report:
        for done in range(0, 101):
            report(done, 100)
            clock[0] += 1
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 9
    assert lines[0] == "figure-1: 10 of 100 after 10 s, about 90 s left"
    assert lines[-1] == "figure-1: 90 of 100 after 90 s, about 10 s left"


def test_long_waits_are_told_in_minutes_and_without_a_guess_where_nothing_is_done(capsys, clock):
    with console.stages("asking", "decoding") as (asking, decoding):
        asking(0, 10)
        clock[0] += 3600
        asking(0, 10)
        decoding(0, 0)
        clock[0] += 60
        decoding(0, 0)
        clock[0] += 60
        decoding(1, 1000)
    said = "asking: 0 of 10 after 60 min\ndecoding: 1 of 1000 after 2 min\n"
    assert capsys.readouterr().err == said


def test_each_stage_begins_when_it_first_reports(capsys, clock):
    with console.stages("asking", "decoding") as (_, decoding):
        clock[0] += 50
        decoding(0, 4)
        clock[0] += 12
        decoding(1, 4)
    assert capsys.readouterr().err == "decoding: 1 of 4 after 12 s, about 36 s left\n"
