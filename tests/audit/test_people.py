import duckdb
import numpy as np
import pytest

from countleak.attack.queries.ids import id_list
from countleak.attack.secrets import Bit, Category, Number
from countleak.audit.people import (
    STATUS_SHARES,
    People,
    generated_bank,
    generated_census,
    people_of,
    read_known,
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
        ("id,s\n1,A\n1,B\n", "line 3: id 1 is a duplicate of line 2"),
        ("id,s\nx,A\nx,B\n", "line 3: id x is a duplicate of line 2"),
        ("id,s\n1,A\n,B\n", "line 3: the id is empty"),
        ("id,s\n1,A\n2\n", "line 3: 1 fields where the header has 2"),
        ("id,s\n\n\n1,A\n2\n", "line 5: 1 fields where the header has 2"),
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
    assert people.truth(text).tolist() == bits


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


def test_ids_written_with_zeros_in_front_stay_text(tmp_path):
    people = read_people(write(tmp_path, "id,s\n007,A\n7,B\n10,C\n"))
    assert people.ids.tolist() == ["007", "10", "7"]
    assert people.columns["s"].tolist() == ["A", "C", "B"]
    people.write_csv(tmp_path / "again.csv")
    assert read_people(tmp_path / "again.csv").ids.tolist() == ["007", "10", "7"]


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["x", "1"], ["1", "x"]),
        (["99999999999999999999", "1"], [1, 99999999999999999999]),
        (["-5", "0"], [-5, 0]),
        (["-0", "0"], ["-0", "0"]),
        (["1.0", "1"], ["1", "1.0"]),
        (["b7-2", "B7-1"], ["B7-1", "b7-2"]),
    ],
)
def test_ids_are_whole_numbers_only_where_all_are_written_so(tmp_path, written, ids):
    path = write(tmp_path, "id,s\n" + "".join(f"{i},A\n" for i in written))
    people = read_people(path)
    assert id_list(people.ids) == ids
    people.write_csv(tmp_path / "again.csv")
    assert id_list(read_people(tmp_path / "again.csv").ids) == ids


def test_a_composite_key_is_named_with_commas(tmp_path):
    text = "branch,s,account\nb,A,2\na,B,2\na,C,1\n"
    people = read_people(write(tmp_path, text), "branch, account")
    assert people.id_column == people.key == ("branch", "account")
    assert id_list(people.ids) == [("a", 1), ("a", 2), ("b", 2)]
    assert list(people.columns) == ["s"]
    assert people.truth("s = 'C'").tolist() == [1, 0, 0]
    assert {name: v.tolist() for name, v in people.all_columns.items()} == {
        "branch": ["a", "a", "b"],
        "account": [1, 2, 2],
        "s": ["C", "B", "A"],
    }
    people.write_csv(tmp_path / "again.csv")
    assert id_list(read_people(tmp_path / "again.csv", "branch,account").ids) == id_list(people.ids)
    with pytest.raises(InputError, match="line 4: id a, 2 is a duplicate of line 3"):
        read_people(write(tmp_path, "a,b\nx,1\na,2\na,2\n"), "a,b")
    with pytest.raises(InputError, match="no column 'nobody'; the columns are branch, s, account"):
        read_people(write(tmp_path, text), "branch,nobody")
    # A column whose name has a comma is one column.
    assert read_people(write(tmp_path, '"a,b",s\n2,x\n1,y\n'), "a,b").ids.tolist() == [1, 2]


def test_the_table_is_called_as_the_file(tmp_path):
    (tmp_path / "my loans.csv").write_text("id,s\n1,A\n2,B\n")
    assert read_people(tmp_path / "my loans.csv").table == "my loans"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("id,bit\n7,1\n", {7: 1}),
        ("id,bit\n007,1\n7,0\n", {"007": 1, "7": 0}),
        ("id,status\n7,A\n8,B\n", {7: "A", 8: "B"}),
        ("id,amount\n7,2.5\n8,3\n", {7: 2.5, 8: 3.0}),
    ],
)
def test_known_people_are_an_id_and_a_value_each_be_it_one(tmp_path, text, known):
    assert read_known(write(tmp_path, text)) == known


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id,bit,more\n1,1,1\n", "3 columns, expected an id and a value"),
        ("id,bit\n1,1\n1,0\n", "an id is a duplicate"),
        ("", "the file is empty"),
        ("id,bit\n1,1\n,0\n", "line 3: the id or the value is empty"),
        ("id,bit\n1,\n", "line 2: the id or the value is empty"),
    ],
)
def test_bad_files_of_known_people_are_refused(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint):
        read_known(write(tmp_path, text))


def frames():
    import pandas as pd
    import polars as pl

    return [pd.DataFrame, pl.DataFrame]


@pytest.mark.parametrize("frame", frames(), ids=lambda kind: kind.__module__.split(".")[0])
class TestFrames:
    def test_columns_come_typed_and_people_in_order(self, frame):
        data = {"uid": ["b", "a", "c"], "n": [1, 2, 3], "x": [0.5, 1.5, 2.5], "s": ["u", "v", "w"]}
        people = people_of(frame(data), "uid")
        assert people.ids.tolist() == ["a", "b", "c"]
        assert people.columns["n"].tolist() == [2, 1, 3]
        assert people.columns["x"].dtype == np.float64
        assert people.truth("s = 'u'").tolist() == [0, 1, 0]
        assert people.truth("sum(x)").tolist() == [1.5, 0.5, 2.5]
        assert people.table == "people"

    def test_composite_keys(self, frame):
        data = {"a": [2, 1, 1], "b": ["x", "y", "x"], "s": [0, 1, 0]}
        people = people_of(frame(data), ("a", "b"))
        assert id_list(people.ids) == [(1, "x"), (1, "y"), (2, "x")]
        assert people.truth("s = 1").tolist() == [0, 1, 0]

    def test_missing_values_satisfy_no_condition(self, frame):
        data = {"uid": [1, 2, 3], "s": ["A", None, "B"], "n": [1.0, None, 3.0]}
        people = people_of(frame(data), "uid")
        assert people.truth("s = 'A'").tolist() == [1, 0, 0]
        assert people.truth("s <> 'A'").tolist() == [0, 0, 1]
        assert people.truth("n >= 2").tolist() == [0, 0, 1]
        assert people.truth("n <> 1").tolist() == [0, 0, 1]
        # Numbers compare as numbers also where some are missing.
        tens = people_of(frame({"uid": [1, 2, 3], "n": [9.0, None, 10.0]}), "uid")
        assert tens.truth("n >= 10").tolist() == [0, 0, 1]
        assert people.named("s").values == ("A", "B")
        with pytest.raises(InputError, match="n is missing for somebody"):
            people.truth("sum(n)")
        with pytest.raises(InputError, match=r"somebody has None; .* end the list with"):
            people.truth("s")
        assert people.truth("s IN ('A', 'B', ...)").tolist() == ["A", "other", "B"]

    def test_what_is_no_key_is_refused(self, frame):
        with pytest.raises(InputError, match="there is no column 'id'; the columns are uid"):
            people_of(frame({"uid": [1, 2]}), "id")
        with pytest.raises(InputError, match="more than once"):
            people_of(frame({"uid": [1, 1]}), "uid")
        with pytest.raises(InputError, match=r"id 1\.5 is neither a whole number nor text"):
            people_of(frame({"uid": [1.5, 2.5]}), "uid")
        with pytest.raises(InputError, match="id None is neither"):
            people_of(frame({"uid": ["a", None]}), "uid")


def test_what_is_no_frame_is_refused():
    with pytest.raises(InputError, match="a pandas or polars frame"):
        people_of([1, 2, 3], "uid")


def test_a_category_takes_the_values_of_its_column(bank):
    named = bank.named("status")
    assert named == Category("status", ("A", "B", "C", "D"))
    assert np.array_equal(bank.truth("status"), bank.columns["status"])
    assert bank.named("status IN ('A', ...)") == Category("status", ("A",), open=True)
    other = bank.truth("status IN ('A', ...)")
    assert set(other.tolist()) == {"A", "other"}
    assert np.array_equal(other == "A", bank.columns["status"] == "A")
    with pytest.raises(InputError, match=r"too many to ask about each; .* sum\(amount\)"):
        bank.named("amount")
    with pytest.raises(InputError, match="somebody has 'C'; name it too, or end the list with"):
        bank.truth("status IN ('A', 'B')")


def test_a_name_that_is_longer_than_all_values_is_not_cut():
    people = People(np.array([1, 2]), {"s": np.array(["a", "b"])})
    assert people.truth("s IN ('a', ...)").tolist() == ["a", "other"]


def test_numbers_add_up_only_where_they_are(bank):
    assert np.array_equal(bank.truth("sum(amount)"), bank.columns["amount"])
    with pytest.raises(InputError, match="status holds text, like"):
        bank.truth(Number("status"))


def test_an_empty_field_among_numbers_is_missing(tmp_path):
    people = read_people(write(tmp_path, "id,n,s\n1,9,a\n2,,\n3,10,b\n"))
    assert people.columns["n"].tolist() == [9, None, 10]
    assert people.columns["s"].tolist() == ["a", "", "b"]
    assert people.truth("n >= 10").tolist() == [0, 0, 1]
    assert people.truth("n <> 10").tolist() == [1, 0, 0]
    people.write_csv(tmp_path / "again.csv")
    assert read_people(tmp_path / "again.csv").columns["n"].tolist() == [9, None, 10]


@pytest.mark.parametrize("grades", [[1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1"]], ids=str)
@pytest.mark.parametrize("secret", ["grade IN (1, 2)", "grade IN ('1', '2')"])
def test_values_are_those_of_the_column_however_they_are_written(grades, secret):
    people = People(np.array([1, 2, 3]), {"grade": np.array(grades)})
    named = people.named(secret)
    assert people.truth(named).tolist() == ["1", "2", "1"]
    assert [people.truth(bit).tolist() for bit in named.conditions] == [[1, 0, 1], [0, 1, 0]]


def test_columns_that_pandas_calls_nullable():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "uid": pd.array([3, 1, 2], dtype="Int64"),
            "n": pd.array([1, None, 12], dtype="Int64"),
            "s": pd.array(["x", None, "y"], dtype="string"),
            "b": pd.array([True, None, False], dtype="boolean"),
        }
    )
    people = people_of(frame, "uid")
    assert people.ids.tolist() == [1, 2, 3]
    assert people.truth("n > 2").tolist() == [0, 1, 0]
    assert people.truth("s = 'x'").tolist() == [0, 0, 1]
    assert people.truth("b = false").tolist() == [0, 1, 0]


ZIPS = ["02134", "1"]


def test_conditions_of_several_parts_hold_as_in_sql(tmp_path):
    rng = np.random.default_rng(4)
    lines = [
        ";".join([str(k), *(rng.choice(each) for each in (["A", "B", ""], ["1", "2", ""], ZIPS))])
        for k in range(60)
    ]
    path = tmp_path / "clinic.csv"
    path.write_text("\n".join(["id;grade;score;zip", *lines]) + "\n")
    people = read_people(path)
    assert list(people.columns) == ["grade", "score", "zip"]
    for condition in (
        "grade = 'A' AND score > 1",
        "grade IS NULL",
        "grade IS NOT NULL AND score IS NULL",
        "score NOT IN (1)",
        "grade NOT IN ('A', 'C') AND score IN (1, 2)",
        "grade = 'A' AND zip = '02134'",
        "(score IN (2, 3))",
        "grade <> 'A' AND score <= 2",
    ):
        secret = Bit(condition)
        where = secret.expression().sql("duckdb")
        counted = duckdb.sql(f"SELECT id FROM read_csv('{path}') WHERE {where} ORDER BY id")
        held = people.holds(secret).astype(bool)
        # DuckDB reads an empty text as missing, which only IS NULL sees as we do.
        blank = people.columns["grade"] == ""
        named = {row[0] for row in counted.fetchall()}
        found = set(
            people.ids[held & ~(blank & ("grade <>" in condition or "grade NOT" in condition))]
        )
        assert found == named, condition


def test_a_parquet_file_is_people_too(tmp_path):
    path = tmp_path / "clinic.parquet"
    duckdb.sql(
        "SELECT uuid() AS id, i AS score, DATE '2024-01-01' + i::INT AS born, "
        "CASE WHEN i % 3 > 0 THEN 'x' END AS grade, i / 4 :: DECIMAL(9, 2) AS paid "
        "FROM range(9) t(i)"
    ).write_parquet(str(path))
    people = read_people(path)
    assert (people.table, len(people), people.ids.dtype.kind) == ("clinic", 9, "U")
    assert people.truth("grade IS NULL").sum() == 3
    assert people.truth("born >= '2024-01-05'").sum() == 5
    with pytest.raises(InputError, match="there is no column 'no'"):
        read_people(path, "no")
    with pytest.raises(InputError, match="grade is missing in 3 rows"):
        read_people(path, "grade")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"bad\.parquet"):
        read_people(tmp_path / "bad.parquet")
