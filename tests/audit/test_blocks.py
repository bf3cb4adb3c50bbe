"""Audits in blocks: each block by itself, one score of all, and no pass where any shows nothing."""

from dataclasses import dataclass

import numpy as np
import pytest

from countleak.attack.guess_file import read_guess
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.queries.tables import table_queries
from countleak.attack.secrets import parse_secret
from countleak.audit.blocks import Cut, audit_in_blocks, check_within
from countleak.audit.people import generated_census
from countleak.audit.run import Keeping
from countleak.audit.scores import score
from countleak.audit.targets.simulated import Exactly, Simulated
from countleak.errors import InputError, NoResult, Refused

PEOPLE = generated_census(65, 7)
SECRET = "sex = 1"


def plan(people, seed):
    return random_subsets(people.ids, 60, np.random.default_rng([seed, 1]))


def attack(folder, target, **options):
    return audit_in_blocks(
        PEOPLE,
        secret=SECRET,
        target=target,
        cut=Cut(20, 1),
        keeping=Keeping(folder, "a system"),
        plan=plan,
        time_limit=0,
        **options,
    )


@dataclass
class Refusing:
    """A system that answers about the whole table but no more after so many blocks."""

    blocks: int

    def answer(self, queries, positions):
        self.blocks -= 1
        if self.blocks < 0:
            raise Refused("the budget is spent")
        yield from Simulated(PEOPLE, parse_secret(SECRET), Exactly()).answer(queries, positions)


def test_blocks_are_cut_evenly_and_hold_everyone_once():
    parts = list(Cut(20).parts(65))
    assert [part.stop - part.start for part in parts] == [16, 16, 16, 17]
    assert np.concatenate([np.arange(65)[part] for part in parts]).tolist() == list(range(65))
    with pytest.raises(InputError, match="at least 10"):
        Cut(9)


def test_the_score_is_that_of_one_guess_about_all_and_a_finished_block_is_not_done_again(tmp_path):
    result = attack(tmp_path, Exactly())
    guess, _ = read_guess(tmp_path / "guess.jsonl")
    assert guess.ids.tolist() == PEOPLE.ids.tolist()
    assert result.score.record() == score(guess, PEOPLE.truth(SECRET)).record()
    assert sum(block.right for block in result.blocks) == result.score.right == 65
    assert result.answered == 4 * 60
    assert result.leaks_more_than(0.5)
    # A finished block is taken as it is, and one that is not is attacked from its journal.
    kept = tmp_path / "blocks" / "00001" / "guess.jsonl"
    before, answers = kept.stat().st_mtime_ns, tmp_path / "blocks" / "00002" / "answers.jsonl"
    held = answers.read_bytes()
    (tmp_path / "blocks" / "00002" / "block.json").unlink()
    again = attack(tmp_path, Exactly())
    assert again.score.record() == result.score.record()
    assert kept.stat().st_mtime_ns == before
    assert answers.read_bytes() == held


def test_a_block_that_could_not_be_attacked_is_no_pass_for_the_whole(tmp_path):
    result = attack(tmp_path, Refusing(2))
    assert [bool(block.nothing) for block in result.blocks] == [False, False, True, True]
    assert result.guess.claimed.sum() == 32
    assert "block 3: the budget is spent; block 4" in result.nothing
    with pytest.raises(NoResult, match="block 3: the budget is spent"):
        result.leaks_more_than(1.0)
    assert result.leaks_more_than(0.5)
    # Later the system answers again, and what was missing is made up for.
    assert attack(tmp_path, Refusing(2)).nothing is None


@dataclass
class Spending:
    """A system that answers so many questions exactly and no more."""

    left: int

    def answer(self, queries, positions):
        exact = Simulated(PEOPLE, parse_secret(SECRET), Exactly())
        for at in positions:
            if not self.left:
                raise Refused("the budget is spent")
            self.left -= 1
            yield from exact.answer(queries, np.array([at]))


def test_a_block_that_was_not_answered_to_its_end_is_no_pass_and_is_asked_for_the_rest(tmp_path):
    result = attack(tmp_path, Spending(3 * 60 + 30))
    assert (result.nothing, result.refused) == (None, "the budget is spent")
    with pytest.raises(NoResult, match="would not answer all"):
        result.leaks_more_than(1.0)
    again = attack(tmp_path, Spending(30))
    assert (again.answered, again.refused) == (4 * 60, None)
    assert again.leaks_more_than(1.0) is False


def test_questions_about_everyone_are_refused():
    columns = {"sex": PEOPLE.column("sex")}
    with pytest.raises(InputError, match="count everyone"):
        check_within(table_queries(PEOPLE.ids, columns, [("sex",)]), PEOPLE)
    with pytest.raises(InputError, match="not for sums"):
        audit_in_blocks(
            PEOPLE, secret="sum(sex)", target=Exactly(), cut=Cut(20), keeping=Keeping("x", "y")
        )
