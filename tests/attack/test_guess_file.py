import json

import numpy as np
import pytest

from countleak.attack.decoders.rounding import Rounding
from countleak.attack.guess import Basis, Guess, Intervals
from countleak.attack.guess_file import read_guess, write_guess
from countleak.attack.programs import DiNi
from countleak.attack.queries.ids import id_array, id_list
from countleak.attack.secrets import Bit, Category, Number
from countleak.errors import InputError
from tests.attack.decoders.test_rounding import TRANSCRIPT

SEX = Bit("sex = 1")
VALUES = Guess(
    np.array([3, 5]),
    np.array(["A", "B"]),
    np.array([True, False]),
    Basis(decoder="categorical"),
    names=("A", "B"),
    probability=np.array([[0.9, 0.1], [0.4, 0.6]]),
)
NUMBERS = Guess(
    np.array([3, 5]),
    np.array([10.0, 20.5]),
    np.ones(2, np.bool_),
    Basis(decoder="sums"),
    intervals=Intervals(np.array([1.0, 2.0]), np.array([8.0, 17.0]), np.array([12.0, 24.0]), 0.9),
)


@pytest.mark.parametrize("program", [DiNi(4.0, 1.0), DiNi(0.5, 1.0)])
def test_a_guess_reads_back_with_what_it_rests_on(tmp_path, program):
    guess = Rounding(program).decode(TRANSCRIPT)
    path = tmp_path / "guess.jsonl"
    write_guess(path, guess, SEX)
    again, secret = read_guess(path)
    assert secret == SEX
    assert np.array_equal(again.ids, guess.ids)
    assert np.array_equal(again.claimed, guess.claimed)
    assert np.array_equal(again.values[again.claimed], guess.values[guess.claimed])
    rests_on = again.basis.record()
    assert rests_on == json.loads(json.dumps(guess.basis.record()))
    assert rests_on["certificate"]["kind"] == type(guess.basis.certificate).__name__
    assert rests_on["status"] == guess.basis.solution.status.name.lower()


def test_values_read_back(tmp_path):
    secret = Category("status", ("A", "B"))
    write_guess(tmp_path / "guess.jsonl", VALUES, secret)
    again, read_secret = read_guess(tmp_path / "guess.jsonl")
    assert read_secret == secret
    assert again.names == VALUES.names
    assert again.values[again.claimed].tolist() == ["A"]
    assert again.claimed.tolist() == [True, False]
    assert np.array_equal(again.probability, VALUES.probability)
    assert again.basis.record() == VALUES.basis.record()


def test_numbers_read_back(tmp_path):
    write_guess(tmp_path / "guess.jsonl", NUMBERS, Number("amount"))
    again, secret = read_guess(tmp_path / "guess.jsonl")
    assert secret == Number("amount")
    for name in ("ids", "values"):
        assert np.array_equal(getattr(again, name), getattr(NUMBERS, name))
    for name in ("error", "low", "high", "level"):
        assert np.array_equal(getattr(again.intervals, name), getattr(NUMBERS.intervals, name))
    assert again.basis.record() == NUMBERS.basis.record()


@pytest.mark.parametrize(
    "ids",
    [[1, 2], ["007", "7"], [2**70, 2**71], [("a", 1), ("a", 2)], ["é\n", 'q"']],
    ids=["int", "text", "big", "composite", "odd"],
)
def test_ids_of_every_kind_read_back(tmp_path, ids):
    values, everyone = np.array([1, 0], dtype=np.int8), np.ones(2, np.bool_)
    basis = Basis(decoder="by hand", stated=("no noise is added",))
    forced = np.array([True, False])
    guess = Guess(id_array(ids), values, everyone, basis, forced=forced)
    write_guess(tmp_path / "guess.jsonl", guess, SEX)
    again, _ = read_guess(tmp_path / "guess.jsonl")
    assert id_list(again.ids) == ids
    assert again.ids.dtype == guess.ids.dtype
    assert again.values.tolist() == [1, 0]
    assert again.proven.tolist() == [True, False]


@pytest.mark.parametrize(
    ("basis", "proven"),
    [
        (Basis(decoder="d", stated=("no noise is added",)), True),
        (Basis(decoder="d", inferred=("no noise is added",), assuming="every answer is so"), False),
        # Part of what it rests on was inferred.
        (
            Basis(decoder="d", stated=("no answer is below 0",), assuming="every answer is so"),
            False,
        ),
        # A file that does not say what was stated proves nothing.
        (Basis(decoder="d"), False),
    ],
)
def test_what_is_proven_and_what_is_implied_read_back_as_they_were(tmp_path, basis, proven):
    everyone = np.ones(2, np.bool_)
    guess = Guess(np.arange(2), np.array([1, 0]), everyone, basis, forced=everyone)
    assert guess.proven.all() == proven and guess.implied.all() != proven
    write_guess(tmp_path / "guess.jsonl", guess, SEX)
    again, _ = read_guess(tmp_path / "guess.jsonl")
    assert again.proven.all() == proven and again.implied.all() != proven
    for name in ("stated", "inferred", "assuming"):
        assert getattr(again.basis, name) == getattr(basis, name)


def damaged(tmp_path, header, lines):
    path = tmp_path / "guess.jsonl"
    first = {"countleak": "guess", "version": 2, "people": len(lines), **header}
    path.write_text("\n".join([json.dumps(first), *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (['{"id":1,"value":7}'], "line 2: value is 7, expected 0 or 1"),
        (['{"id":1,"value":true}'], "line 2: value is True, expected 0 or 1"),
        (['{"id":1,"value":1,"margin":"x"}'], "line 2: margin is 'x', expected 0 to 1"),
        (['{"id":1,"value":1,"probability":2}'], "line 2: probability is 2, expected 0 to 1"),
        (['{"id":1,"value":1,"probability":null}'], "line 2: probability is None"),
        (['{"id":1e99,"value":1}'], "line 2: id 1e[+]99 is neither a whole number nor text"),
        (['{"id":true,"value":1}'], "line 2: id True is neither a whole number nor text"),
        (['{"id":[1.5,2],"value":1}'], r"line 2: id \[1.5, 2\] is neither"),
        (['{"id":[[1],2],"value":1}'], r"line 2: id \[\[1\], 2\] is neither"),
        (['{"id":1,"value":1}', '{"id":"x","value":1}'], "ids are of different kinds"),
        (['{"id":1,"value":1}'] * 2, "line 3: id 1 is a duplicate of line 2"),
        ([], "no guess in this file"),
    ],
)
def test_a_damaged_guess_is_reported_by_line(tmp_path, lines, complaint):
    with pytest.raises(InputError, match=complaint):
        read_guess(damaged(tmp_path, {"secret": "sex = 1"}, lines))


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ({}, "line 1: the header names no secret"),
        ({"secret": "((("}, r"line 1: secret '\(\(\(' cannot be read"),
        ({"secret": "status IN ('A', 'B')"}, "line 1: the header names no values"),
        ({"secret": "status", "values": []}, "line 1: the header names no values"),
        ({"secret": "status", "values": ["A", "A"]}, "line 1: the header names no values"),
    ],
)
def test_a_damaged_header_is_reported(tmp_path, header, complaint):
    with pytest.raises(InputError, match=complaint):
        read_guess(damaged(tmp_path, header, ['{"id":1,"value":1}']))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (['{"id":1,"value":"C","probability":[1,0]}'], "line 2: value is 'C', expected one of A"),
        (['{"id":1,"value":"A","probability":[1]}'], "line 2: probability must be 2 numbers"),
        (['{"id":1,"value":"A","probability":[2,0]}'], "line 2: probability must be 2 numbers"),
        (['{"id":1.5,"probability":[1,0]}'], "line 2: id 1.5 is neither"),
        (['{"id":1,"probability":[1,0]}'] * 2, "line 3: id 1 is a duplicate of line 2"),
        ([], "no guess in this file"),
    ],
)
def test_damaged_values_are_reported_by_line(tmp_path, lines, complaint):
    header = {"secret": "status IN ('A', 'B')", "values": ["A", "B"]}
    with pytest.raises(InputError, match=complaint):
        read_guess(damaged(tmp_path, header, lines))


@pytest.mark.parametrize(
    ("header", "lines", "complaint"),
    [
        ({"level": 0.9}, ['{"id":1,"value":"x"}'], "line 2: value is 'x', expected a number"),
        ({"level": 0.9}, ['{"id":1,"value":1,"error":1,"low":0}'], "error, low or high is missing"),
        ({"people": 2}, ['{"id":1,"value":1,"error":1,"low":0,"high":2}'], "promises 2"),
        ({}, ['{"id":1,"value":1}'], "line 1: the header gives no level"),
    ],
)
def test_damaged_numbers_are_reported_by_line(tmp_path, header, lines, complaint):
    with pytest.raises(InputError, match=complaint):
        read_guess(damaged(tmp_path, {"secret": "sum(amount)", **header}, lines))


def test_a_guess_cut_at_a_line_is_noticed(tmp_path):
    path = tmp_path / "guess.jsonl"
    write_guess(path, Rounding().decode(TRANSCRIPT), SEX)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:12]))
    with pytest.raises(InputError, match="promises 20 people, the file holds 11"):
        read_guess(path)
