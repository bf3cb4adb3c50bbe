from dataclasses import replace

import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Shape
from countleak.attack.programs import CappedDmt
from countleak.attack.queries import Queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import Subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import read_known
from countleak.errors import InputError


@pytest.mark.parametrize(
    "decoder",
    [
        Rounding(),
        LeastSquares(),
        Bayes(),
        pytest.param(AutoDecoder(), marks=pytest.mark.slow),
    ],
    ids=lambda decoder: type(decoder).__name__,
)
def test_what_is_known_beforehand_is_kept_and_helps(decoder):
    setting = Setting(60, 240, 4.0)
    alone, informed = [], []
    for number in range(4):
        world = setting.world(number)
        known = {person: int(world.secret[person]) for person in range(0, 60, 2)}
        guess = Informed(decoder, known).decode(world.transcript)
        assert (guess.values[::2] == world.secret[::2]).all()
        informed.append((guess.values == world.secret)[1::2].mean())
        plain = decoder.decode(world.transcript)
        alone.append((plain.values == world.secret)[1::2].mean())
    assert np.mean(informed) >= np.mean(alone) - 0.01


def test_what_is_known_must_be_asked_about():
    world = Setting(20, 60, 2.0).world(0)
    for known, complaint in (
        ({99: 1}, "no query is about that id"),
        ({1: 7}, "it must be 0 or 1"),
        (dict.fromkeys(range(20), 1), "nothing to find out"),
    ):
        with pytest.raises(InputError, match=complaint):
            Informed(LeastSquares(), known).decode(world.transcript)


@pytest.mark.parametrize(
    "decoder",
    [
        Rounding(),
        LeastSquares(),
        Bayes(),
        AutoDecoder(),
        Bounded(Noise(shape=Shape.UNIFORM, bound=12), time_limit=0.0),
    ],
    ids=lambda d: type(d).__name__,
)
def test_one_single_known_person_is_enough(tmp_path, decoder):
    path = tmp_path / "known.csv"
    world = Setting(30, 120, 2.0).world(1)
    path.write_text(f"id,bit\n7,{world.secret[7]}\n")
    guess = Informed(decoder, read_known(path)).decode(world.transcript)
    assert guess.values[7] == world.secret[7]
    assert guess.claimed[7]
    assert guess.basis.known == 1
    assert guess.ids.size == 30


@pytest.mark.parametrize(
    "ids",
    [
        [f"p{i:02}" for i in range(20)],
        [("a", i) for i in range(20)],
        [2**70 + i for i in range(20)],
    ],
)
def test_people_of_any_ids_are_known_by_them(ids):
    world = Setting(20, 100, 1.0).world(0)
    transcript = world.transcript
    renamed = replace(transcript, queries=replace(transcript.queries, ids=id_array(ids)))
    known = {ids[4]: 1 - int(world.secret[4])}
    guess = Informed(LeastSquares(), known).decode(renamed)
    assert guess.values[4] != world.secret[4]
    assert guess.ids.tolist() == ids
    with pytest.raises(InputError, match="no query is about that id"):
        Informed(LeastSquares(), {4: 1}).decode(renamed)


class Selecting:
    """A decoder that only remembers which answers a program took."""

    def __init__(self, program):
        self.program = program

    def decode(self, transcript):
        problem = self.program.problem(transcript)
        self.rows = [row.tobytes() for row in problem.A]
        self.b = problem.b
        return LeastSquares().decode(transcript)


def test_answers_are_selected_by_what_was_answered_not_by_what_known_people_leave():
    """In the paper's program only positive answers count, also where some people are known."""
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 2, (80, 8), dtype=np.int8)
    # Person 0 is in every row, so that rows tell the answers apart without that person too.
    matrix[:, 0] = 1
    answers = Answers.to_all(rng.integers(-3, 4, 80).astype(np.float64))
    transcript = Transcript.of(Queries(np.arange(8), matrix, Subsets()), answers)
    everyone, rest = Selecting(CappedDmt(50.0)), Selecting(CappedDmt(50.0))
    everyone.decode(transcript)
    Informed(rest, {0: 1}).decode(transcript)
    assert len(everyone.rows) == (answers.values > 0).sum() < 80
    assert [row[1:] for row in everyone.rows] == rest.rows
    assert np.array_equal(rest.b, everyone.b - 1)
    assert (rest.b == 0).any()
