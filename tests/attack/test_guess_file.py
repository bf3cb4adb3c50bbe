import numpy as np
import pytest
from countleak.attack.decoders.files import read_guess, write_guess

from countleak.attack.decoders.rounding import Rounding
from countleak.attack.programs import DiNi
from countleak.errors import InputError


@pytest.mark.parametrize("program", [DiNi(4.0, 1.0), DiNi(0.5, 1.0)])
def test_a_guess_reads_back_with_what_it_rests_on(tmp_path, program):
    guess = Rounding(program).decode(TRANSCRIPT)
    path = tmp_path / "guess.jsonl"
    write_guess(path, guess)
    again, rests_on = read_guess(path)
    assert np.array_equal(again.ids, guess.ids)
    assert np.array_equal(again.claimed, guess.claimed)
    assert np.array_equal(again.values[again.claimed], guess.values[guess.claimed])
    assert rests_on["certificate"]["kind"] == type(guess.basis.certificate).__name__
    assert rests_on["status"] == guess.basis.solution.status.name.lower()


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (['{"id":1,"value":7}'], "line 2: expected"),
        (['{"id":1,"value":1,"margin":"x"}'], "line 2: expected"),
        (['{"id":1e99,"value":1}'], "line 2: expected"),
        (['{"id":1,"value":1}'] * 2, "line 3: id 1 stood on line 2 already"),
        ([], "no guess in this file"),
    ],
)
def test_a_damaged_guess_is_reported_by_line(tmp_path, lines, complaint):
    path = tmp_path / "guess.jsonl"
    header = f'{{"countleak":"guess","version":1,"people":{len(lines)}}}'
    path.write_text("\n".join([header, *lines]) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_guess(path)


def test_a_guess_cut_at_a_line_is_noticed(tmp_path):
    path = tmp_path / "guess.jsonl"
    write_guess(path, Rounding().decode(TRANSCRIPT))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:12]))
    with pytest.raises(InputError, match="promises 20 people, the file holds 11"):
        read_guess(path)
