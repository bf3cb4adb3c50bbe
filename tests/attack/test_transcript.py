import numpy as np
import pytest

from countleak import Answers, InputError, ShapeError, random_subsets, read_answers
from countleak.attack.transcript import Journal

QUERIES = random_subsets(np.arange(10), 5, np.random.default_rng(0))


def journal(tmp_path, *batches):
    path = tmp_path / "answers.jsonl"
    book = Journal(path, QUERIES, "a system")
    for batch in batches:
        book.append(batch)
    return path


FIRST = Answers(np.array([0, 3]), np.array([4.0, np.nan]), np.array([True, False]))
REST = Answers(np.array([1, 2, 4]), np.array([1.5, 2.0, -3.0]), np.ones(3, bool))


def test_suppressed_is_a_state_and_read_as_zero_only_on_demand():
    assert np.isnan(FIRST.values[1])
    zeros = FIRST.suppressed_as(0)
    assert zeros.values.tolist() == [4.0, 0.0]
    assert zeros.released.all()


def test_batches_join_in_the_order_of_the_queries():
    joined = Answers.join([REST, FIRST])
    assert joined.query.tolist() == [0, 1, 2, 3, 4]
    assert joined.released.tolist() == [True, True, True, False, True]
    with pytest.raises(InputError, match="query 0 is answered twice"):
        Answers.join([FIRST, FIRST])


def test_to_some_renumbers_like_take():
    some = Answers.join([REST, FIRST]).to_some(np.array([1, 3]))
    assert some.query.tolist() == [0, 1]
    assert some.values[0] == 1.5
    assert not some.released[1]


def test_nan_and_lengths_are_refused():
    with pytest.raises(InputError, match="answer to query 0 is nan"):
        Answers.to_all(np.array([np.nan, 1.0]))
    with pytest.raises(ShapeError, match="2 positions, 1 values"):
        Answers(np.array([0, 1]), np.array([1.0]), np.array([True]))


def test_a_journal_reads_back(tmp_path):
    answers = read_answers(journal(tmp_path, FIRST, REST), QUERIES)
    assert answers.values[[0, 1, 2, 4]].tolist() == [4.0, 1.5, 2.0, -3.0]
    assert not answers.released[3]


def test_a_killed_journal_goes_on_where_it_stopped(tmp_path):
    path = journal(tmp_path, FIRST)
    with path.open("a") as file:
        file.write('{"query":1,"ans')
    book = Journal(path, QUERIES, "a system")
    assert book.open_queries().tolist() == [1, 2, 4]
    book.append(REST)
    assert len(read_answers(path, QUERIES)) == 5


def test_opening_a_journal_changes_nothing(tmp_path):
    book = Journal(str(tmp_path / "new.jsonl"), QUERIES, "a system")
    assert book.open_queries().size == 5
    assert not list(tmp_path.iterdir())
    path = journal(tmp_path, FIRST)
    with path.open("a") as file:
        file.write('{"query":1,"ans')
    torn = path.read_bytes()
    Journal(path, QUERIES, "a system")
    assert path.read_bytes() == torn


def test_a_partial_journal_is_refused_unless_asked_for(tmp_path):
    path = journal(tmp_path, FIRST)
    with pytest.raises(InputError, match="2 answers to 5 queries"):
        read_answers(path, QUERIES)
    assert len(read_answers(path, QUERIES, partial=True)) == 2


def test_answers_to_other_queries_are_refused(tmp_path):
    path = journal(tmp_path, FIRST, REST)
    others = random_subsets(np.arange(10), 5, np.random.default_rng(1))
    with pytest.raises(InputError, match="answers to other queries"):
        read_answers(path, others)
    with pytest.raises(InputError, match="answers to other queries"):
        Journal(path, others, "a system")


def test_a_journal_does_not_go_on_with_another_system(tmp_path):
    path = journal(tmp_path, FIRST)
    with pytest.raises(InputError, match="came from 'a system', not from 'another'"):
        Journal(path, QUERIES, "another")


def test_a_journal_knows_what_is_open_and_refuses_to_answer_twice(tmp_path):
    book = Journal(tmp_path / "answers.jsonl", QUERIES, "a system")
    book.append(FIRST)
    assert book.open_queries().tolist() == [1, 2, 4]
    with pytest.raises(InputError, match="answered twice"):
        book.append(FIRST)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"query":1,"answer":"n/a"}', "line 4: answer is 'n/a', expected a number"),
        ('{"query":1,"answer":NaN}', "line 4: answer is nan, expected a number"),
        ('{"query":1,"answer":true}', "line 4: answer is True"),
        ('{"query":1,"answer":1e300}', "line 4: answer is 1e[+]300, expected a number"),
        ('{"query":9,"answer":1}', "line 4: query is 9, expected a position from 0 to 4"),
        ('{"query":0,"answer":1}', "line 4: query 0 was answered on line 2"),
    ],
)
def test_a_malformed_answer_is_reported_by_file_and_line(tmp_path, line, complaint):
    path = journal(tmp_path, FIRST)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=complaint):
        read_answers(path, QUERIES)
