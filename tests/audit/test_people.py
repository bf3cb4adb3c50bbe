import numpy as np
import pytest

from countleak.attack.secrets import Bit
from countleak.audit.people import (
    STATUS_SHARES,
    People,
    generated_bank,
    generated_census,
    read_people,
)
from countleak.errors import InputError, ShapeError


def write(tmp_path, text):
    path = tmp_path / "people.csv"
    path.write_text(text)
    return path


def test_csv_reads_back_as_written(tmp_path, bank):
    bank.write_csv(tmp_path / "bank.csv")
    again = read_people(tmp_path / "bank.csv")
    assert again.id_column == "client_id"
    assert np.array_equal(again.ids, bank.ids)
    for name, values in bank.columns.items():
        assert np.array_equal(again.columns[name], values)


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xef\xbb\xbfid,s\n1,A\n2,B\n")
    assert read_people(path, "id").ids.tolist() == [1, 2]


def test_ids_are_sorted_and_columns_typed(tmp_path):
    people = read_people(write(tmp_path, "name,uid,debt\nb,7,1.5\na,3,2\n"), "uid")
    assert people.ids.tolist() == [3, 7]
    assert people.columns["name"].tolist() == ["a", "b"]
    assert people.columns["debt"].tolist() == [2.0, 1.5]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("id,s\n", "0 people"),
        ("id,s\n1,A\n", "1 people, but a reconstruction needs at least 2"),
        ("id,s\n1,A\n1,B\n", "line 3: id 1 stood on line 2 already"),
        ("id,s\nx,A\n1,B\n", "line 2: id is 'x'"),
        ("id,s\n1,A\n2\n", "line 3: 1 fields where the header has 2"),
        ("id,s\n\n\n1,A\n2\n", "line 5: 1 fields where the header has 2"),
        ("id,s\n1,A\n99999999999999999999,B\n", "line 3: id is '99999999999999999999'"),
        ('id,s\n1,A\n2,"B\n', "not CSV"),
        ("id,s,s\n1,A,B\n2,B,C\n", "two columns have the same name"),
    ],
)
def test_bad_csv_is_refused_with_the_line(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint):
        read_people(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("status = 'C'", [0, 1, 1]),
        ("status=C", [0, 1, 1]),
        ("status <> C", [1, 0, 0]),
        ("amount >= 20", [0, 1, 1]),
        ("amount < 20", [1, 0, 0]),
        ("amount > 20.5", [0, 0, 1]),
    ],
)
def test_secret_bits_of_a_condition(text, bits):
    people = People(
        np.array([1, 2, 3]),
        {"status": np.array(["A", "C", "C"]), "amount": np.array([10, 20, 30])},
    )
    assert people.truth(Bit(text)).tolist() == bits


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status", "cannot be read"),
        ("nothing = 1", "no column 'nothing'; the columns are status, amount, duration"),
        ("status = 'Z'", "holds for nobody; status takes A, B, C, D"),
        ("amount = much", "are numbers"),
    ],
)
def test_a_secret_that_is_not_what_the_flag_says(bank, text, complaint):
    with pytest.raises(InputError, match=complaint):
        bank.truth(Bit(text))


def test_people_must_be_two_unique_and_complete():
    with pytest.raises(InputError, match="at least 2"):
        People(np.array([1]), {})
    with pytest.raises(InputError, match="more than once"):
        People(np.array([1, 1]), {})
    with pytest.raises(InputError, match="ascending"):
        People(np.array([2, 1]), {})
    with pytest.raises(InputError, match="cannot stand in SQL"):
        People(np.array([1, 2]), {}, "id; DROP TABLE loans")
    with pytest.raises(ShapeError, match="2 ids but 3 values of a"):
        People(np.array([1, 2]), {"a": np.array([1, 2, 3])})


def test_between_keeps_both_ends_and_refuses_an_empty_range(bank):
    assert bank.between(2, 13971).ids.size == 827
    with pytest.raises(InputError, match="ids run from 2 to 13971"):
        bank.between(20000, 30000)


def test_the_generated_bank_has_the_size_range_and_shares_of_the_paper(bank):
    assert len(bank) == 827
    assert (bank.ids.min(), bank.ids.max()) == (2, 13971)
    for status, share in STATUS_SHARES.items():
        # Four standard errors of a share among 827.
        tolerance = 4 * np.sqrt(share * (1 - share) / 827)
        assert abs((bank.columns["status"] == status).mean() - share) < tolerance
    assert np.array_equal(generated_bank(7).columns["amount"], bank.columns["amount"])
    assert not np.array_equal(generated_bank(8).ids, bank.ids)


def test_the_generated_census_starts_at_1000():
    census = generated_census(100, seed=3)
    assert census.ids.tolist() == list(range(1000, 1100))
    assert set(census.columns["sex"].tolist()) == {0, 1}
    with pytest.raises(InputError, match="from 2 to 10 million"):
        generated_census(1)
