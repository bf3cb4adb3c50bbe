import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.attack.queries.ids import are_integers, as_id, id_array, id_list, positions_of
from countleak.errors import InputError

# NumPy's text arrays drop trailing NULs, which no database takes in a text either.
TEXT = st.text(alphabet=st.characters(exclude_characters="\0"))
SIMPLE = st.integers() | TEXT


@given(
    st.lists(st.integers(), min_size=1)
    | st.lists(TEXT, min_size=1)
    | st.lists(st.tuples(TEXT, st.integers()), min_size=1)
)
def test_ids_come_back_as_they_were(ids):
    array = id_array(ids)
    assert array.shape == (len(ids),)
    assert id_list(array) == ids
    assert [type(value) for value in id_list(array)] == [type(value) for value in ids]


@pytest.mark.parametrize(
    ("ids", "kind", "whole"),
    [
        ([1, -2], "i", True),
        ([2**63 - 1, 0], "i", True),
        ([2**63, 0], "O", False),
        (["a", "007"], "U", False),
        ([("a", 1)], "O", False),
    ],
)
def test_the_array_is_the_narrowest_that_holds_them(ids, kind, whole):
    assert id_array(ids).dtype.kind == kind
    assert are_integers(id_array(ids)) is whole


@pytest.mark.parametrize("value", [1.5, None, True, b"x", (), (1, 2.5), ((1,), 2), {"a": 1}])
def test_what_is_no_id_is_refused(value):
    with pytest.raises(InputError, match="neither a whole number nor text; convert it first"):
        as_id(value)
    with pytest.raises(InputError, match="neither a whole number nor text"):
        id_array([value])


@pytest.mark.parametrize("ids", [[1, "1"], [("a", 1), ("a", "1")], [1, (1, 2)], [2**70, "x"]])
def test_ids_of_different_kinds_are_refused(ids):
    with pytest.raises(InputError, match="of different kinds"):
        id_array(ids)


@given(st.lists(SIMPLE | st.tuples(SIMPLE, SIMPLE), unique=True), st.randoms())
def test_positions_are_those_of_the_list(ids, random):
    among = np.empty(len(ids), dtype=object)
    among[:] = ids
    wanted = random.sample(ids, len(ids) // 2)
    some = np.empty(len(wanted) + 1, dtype=object)
    some[:] = [*wanted, "nobody has this id"]
    places = positions_of(some, among).tolist()
    assert places[:-1] == [ids.index(person) for person in wanted]
    assert places[-1] == -1 or ids[places[-1]] == "nobody has this id"


def test_a_text_is_no_number():
    assert positions_of(id_array(["7", "007"]), id_array([7, 8])).tolist() == [-1, -1]
    assert positions_of(id_array(["7"]), id_array(["007", "7"])).tolist() == [1]
