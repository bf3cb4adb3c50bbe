import json

import numpy as np
import pytest

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Bit, Category, Number
from countleak.attack.transcript import (
    Answers,
    Journal,
    Transcript,
    read_answers,
    read_transcript,
)
from countleak.errors import InputError, ShapeError

QUERIES = random_subsets(np.arange(10), 5, np.random.default_rng(0))
SECRET = Bit("sex = 1")
STATUS = Category("status", ("A", "B"), open=True)
FIRST = Answers(np.array([0, 3]), np.array([4.0, np.nan]), np.array([True, False]))
REST = Answers(np.array([1, 2, 4]), np.array([1.5, 2.0, -3.0]), np.ones(3, bool))
# About A: queries 0 and 2; about B: queries 1 (suppressed) and 2.
SEVERAL = Answers(
    np.array([0, 2, 6, 7]),
    np.array([4.0, 1.0, np.nan, 3.0]),
    np.array([True, True, False, True]),
)


def journal(tmp_path, *batches):
    path = tmp_path / "answers.jsonl"
    book = Journal(path, QUERIES, SECRET, "a system")
    for batch in batches:
        book.append(batch)
    return path


def test_suppressed_is_a_state_and_read_as_zero_only_on_demand():
    transcript = Transcript.of(QUERIES, FIRST)
    assert np.isnan(transcript.values[1])
    zeros = transcript.suppressed_as(0)
    assert zeros.values.tolist() == [4.0, 0.0]
    assert zeros.released.all()


def test_batches_join_in_the_order_of_the_queries():
    joined = Answers.join([REST, FIRST])
    assert joined.query.tolist() == [0, 1, 2, 3, 4]
    assert joined.released.tolist() == [True, True, True, False, True]
    with pytest.raises(InputError, match="query 0 is answered twice"):
        Answers.join([FIRST, FIRST])


def test_only_keeps_the_answers_to_some_queries():
    some = Answers.join([REST, FIRST]).only(np.array([1, 3]))
    assert some.query.tolist() == [1, 3]
    assert some.values[0] == 1.5
    assert not some.released[1]


def test_nan_and_lengths_are_refused():
    with pytest.raises(InputError, match="answer to query 0 is nan"):
        Answers.to_all(np.array([np.nan, 1.0]))
    with pytest.raises(ShapeError, match="2 positions, 1 values"):
        Answers(np.array([0, 1]), np.array([1.0]), np.array([True]))
    with pytest.raises(ShapeError, match="5 queries but 4 answers"):
        Transcript(QUERIES, np.zeros(4), np.ones(4, np.bool_))
    with pytest.raises(InputError, match="there are no answers"):
        Transcript.of(QUERIES, Answers.join([]))
    with pytest.raises(ShapeError, match="an answer to query 5, but 5 queries"):
        Transcript.of(QUERIES, Answers.to_all(np.zeros(6)))


def test_rows_stand_beside_their_queries_whichever_were_answered():
    whole = Transcript.of(QUERIES, Answers.join([REST, FIRST]))
    assert whole.queries is QUERIES
    assert len(whole) == 5
    some = Transcript.of(QUERIES, REST)
    assert np.array_equal(some.queries.matrix, QUERIES.matrix[[1, 2, 4]])
    assert some.values.tolist() == [1.5, 2.0, -3.0]
    # As many answers as queries are not yet an answer to each.
    turned = Answers(np.array([3, 0]), np.array([1.0, 2.0]), np.ones(2, np.bool_))
    two = QUERIES.take(np.array([0, 3]))
    assert np.array_equal(Transcript.of(QUERIES, turned).queries.matrix, two.matrix[::-1])


def test_A_and_b_are_the_released_rows_less_what_is_known():
    share = np.array([1.0, 0.0, 2.0, 1.0, 0.0])
    answers = Answers.join([REST, FIRST])
    transcript = Transcript(QUERIES, answers.values, answers.released, share=share)
    assert np.array_equal(transcript.A, QUERIES.matrix[[0, 1, 2, 4]])
    assert transcript.b.tolist() == [3.0, 1.5, 0.0, -3.0]
    assert Transcript.of(QUERIES, REST).A is not QUERIES.matrix


def test_take_and_where_keep_rows_together():
    transcript = Transcript.of(QUERIES, SEVERAL, STATUS.names)
    taken = transcript.take(np.array([3, 0]))
    assert taken.values.tolist() == [3.0, 4.0]
    assert taken.about.tolist() == [1, 0]
    assert np.array_equal(taken.queries.matrix, QUERIES.matrix[[2, 0]])
    assert taken.names == ("A", "B", "other")
    released = transcript.where(transcript.released)
    assert released.values.tolist() == [4.0, 1.0, 3.0]
    assert released.about.tolist() == [0, 0, 1]
    assert released.where(released.released) is released


def test_by_value_parts_the_rows_and_says_where_nothing_was_asked():
    parts = Transcript.of(QUERIES, SEVERAL, STATUS.names).by_value()
    assert list(parts) == ["A", "B", "other"]
    assert parts["other"] is None
    assert parts["A"].values.tolist() == [4.0, 1.0]
    assert np.array_equal(parts["B"].queries.matrix, QUERIES.matrix[[1, 2]])
    assert parts["B"].released.tolist() == [False, True]
    assert parts["B"].names == ()
    assert not parts["B"].about.any()


def test_the_share_of_known_people_follows_its_rows():
    answers = Answers.join([REST, FIRST])
    transcript = Transcript(QUERIES, answers.values, answers.released, share=np.arange(5.0))
    assert transcript.take(np.array([4, 1])).share.tolist() == [4.0, 1.0]
    assert transcript.where(transcript.released).b.tolist() == [4.0, 0.5, 0.0, -7.0]


def test_a_journal_reads_back(tmp_path):
    path = journal(tmp_path, FIRST, REST)
    transcript = read_transcript(path, QUERIES)
    assert transcript.values[[0, 1, 2, 4]].tolist() == [4.0, 1.5, 2.0, -3.0]
    assert not transcript.released[3]
    assert str(read_answers(path, QUERIES)[1]) == "sex = 1"


@pytest.mark.parametrize("secret", [STATUS, Number("amount")], ids=str)
def test_a_journal_of_values_or_numbers_reads_back(tmp_path, secret):
    path = tmp_path / "answers.jsonl"
    book = Journal(path, QUERIES, secret, "a system")
    count = 5 * len(secret.conditions)
    assert book.open_questions().tolist() == list(range(count))
    batch = Answers.to_all(np.arange(count) / 4, np.arange(count) % 3 > 0)
    book.append(batch)
    for transcript in (read_transcript(path, QUERIES), book.transcript()):
        assert transcript.names == secret.names
        assert transcript.about.tolist() == [at // 5 for at in range(count)]
        assert np.array_equal(transcript.values, batch.values, equal_nan=True)
    assert Journal(path, QUERIES, secret, "a system").open_questions().size == 0


def test_nothing_is_on_disk_before_the_first_answer(tmp_path):
    path = tmp_path / "folder" / "answers.jsonl"
    book = Journal(str(path), QUERIES, SECRET, "a system")
    assert book.open_questions().size == 5
    assert not path.parent.exists()
    book.append(FIRST)
    assert path.exists()


def test_a_killed_journal_resumes_where_it_stopped_and_looking_changes_nothing(tmp_path):
    path = journal(tmp_path, FIRST)
    with path.open("a") as file:
        file.write('{"query":1,"ans')
    torn = path.read_bytes()
    book = Journal(path, QUERIES, SECRET, "a system")
    assert book.open_questions().tolist() == [1, 2, 4]
    assert book.transcript().values[0] == 4.0
    assert path.read_bytes() == torn
    book.append(REST)
    assert len(read_transcript(path, QUERIES)) == 5


def test_a_partial_journal_is_refused_unless_asked_for(tmp_path):
    path = journal(tmp_path, FIRST)
    with pytest.raises(InputError, match="2 answers to 5 questions"):
        read_transcript(path, QUERIES)
    partial = read_transcript(path, QUERIES, partial=True)
    assert len(partial) == 2
    assert np.array_equal(partial.queries.matrix, QUERIES.matrix[[0, 3]])


def test_answers_to_other_queries_are_refused(tmp_path):
    path = journal(tmp_path, FIRST, REST)
    others = random_subsets(np.arange(10), 5, np.random.default_rng(1))
    with pytest.raises(InputError, match="answers to other queries"):
        read_transcript(path, others)
    with pytest.raises(InputError, match="answers to other queries"):
        Journal(path, others, SECRET, "a system")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((SECRET, "another"), "these answers came from 'a system', not 'another'"),
        ((Bit("sex = 0"), "a system"), "these answers are about 'sex = 1', not 'sex = 0'"),
        ((Bit("sex = '1'"), "a system"), "are about 'sex = 1', not \"sex = '1'\""),
        ((SECRET, "a system", "the owner"), "were authorised by None, not 'the owner'"),
    ],
)
def test_a_journal_is_not_resumed_as_another(tmp_path, given, complaint):
    path = journal(tmp_path, FIRST)
    before = path.read_bytes()
    with pytest.raises(InputError, match=complaint):
        Journal(path, QUERIES, *given)
    assert path.read_bytes() == before


def test_a_journal_says_who_allowed_it(tmp_path):
    path = tmp_path / "answers.jsonl"
    Journal(path, QUERIES, SECRET, "a system", "the owner").append(FIRST)
    assert json.loads(path.read_text().splitlines()[0])["authorised_by"] == "the owner"
    assert len(Journal(path, QUERIES, SECRET, "a system", "the owner").answers) == 2
    for other in (None, "someone else"):
        with pytest.raises(InputError, match="were authorised by 'the owner'"):
            Journal(path, QUERIES, SECRET, "a system", other)


def test_a_journal_knows_what_is_open_and_refuses_to_answer_twice(tmp_path):
    book = Journal(tmp_path / "answers.jsonl", QUERIES, SECRET, "a system")
    book.append(FIRST)
    assert book.open_questions().tolist() == [1, 2, 4]
    with pytest.raises(InputError, match="answered twice"):
        book.append(FIRST)


@pytest.mark.parametrize(
    "ids", [["a", "b"], [2**70, 1], [("x", 1), ("x", 2)]], ids=["text", "big", "composite"]
)
def test_a_journal_about_people_of_any_ids(tmp_path, ids):
    queries = random_subsets(id_array(ids), 3, np.random.default_rng(0))
    others = Queries(id_array([*ids[:1], ids[0]]), queries.matrix, Subsets())
    path = tmp_path / "answers.jsonl"
    Journal(path, queries, SECRET, "a system").append(Answers.to_all(np.arange(3.0)))
    assert read_transcript(path, queries).values.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(InputError, match="answers to other queries"):
        read_transcript(path, others)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"query":1,"answer":"n/a"}', "line 4: answer is 'n/a', expected a number"),
        ('{"query":1,"answer":NaN}', "line 4: answer is nan, expected a number"),
        ('{"query":1,"answer":true}', "line 4: answer is True"),
        ('{"query":1,"answer":false}', "line 4: answer is False"),
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
        read_transcript(path, QUERIES)


@pytest.mark.parametrize("value", ["C", "other", None, ["A"]])
def test_an_answer_about_a_value_that_was_not_asked_about_is_refused(tmp_path, value):
    path = tmp_path / "answers.jsonl"
    Journal(path, QUERIES, STATUS, "a system").append(SEVERAL)
    with path.open("a") as file:
        file.write(json.dumps({"query": 1, "value": value, "answer": 1}) + "\n")
    with pytest.raises(InputError, match=r"line 6: value is .*, expected one of A, B"):
        read_transcript(path, QUERIES, partial=True)
    with pytest.raises(InputError, match=r"line 6: value is .*, expected one of A, B"):
        Journal(path, QUERIES, STATUS, "a system")


@pytest.mark.parametrize("secret", [None, 7, "((", "status"])
def test_a_journal_whose_secret_is_damaged_is_refused(tmp_path, secret):
    path = journal(tmp_path, FIRST)
    header, *lines = path.read_text().splitlines()
    changed = json.dumps({**json.loads(header), "secret": secret})
    path.write_text("\n".join([changed, *lines]) + "\n")
    with pytest.raises(InputError, match=r"line 1: .*(names no secret|cannot be read|not known)"):
        read_transcript(path, QUERIES, partial=True)
