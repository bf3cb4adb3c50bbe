import json

import numpy as np
import pytest

from countleak import DiNi, InputError, Rounding
from countleak.decoders.files import read_guess, write_guess
from tests.decoders.test_rounding import ANSWERS, QUERIES


@pytest.mark.parametrize("program", [DiNi(4.0, 1.0), DiNi(0.5, 1.0)])
def test_a_guess_reads_back_with_what_it_rests_on(tmp_path, program):
    guess = Rounding(program).decode(QUERIES, ANSWERS)
    path = tmp_path / "guess.jsonl"
    write_guess(path, guess)
    again = read_guess(path)
    assert np.array_equal(again.ids, guess.ids)
    assert np.array_equal(again.claimed, guess.claimed)
    assert np.array_equal(again.values[again.claimed], guess.values[guess.claimed])
    header = json.loads(path.read_text().splitlines()[0])
    assert header["rests_on"]["certificate"]["kind"] == type(guess.certificate).__name__


def test_a_damaged_guess_is_reported_by_line(tmp_path):
    path = tmp_path / "guess.jsonl"
    path.write_text('{"countleak":"guess","version":1}\n{"id":1,"value":7}\n')
    with pytest.raises(InputError, match="line 2: expected"):
        read_guess(path)
    path.write_text('{"countleak":"guess","version":1}\n')
    with pytest.raises(InputError, match="no guess in this file"):
        read_guess(path)
