import json

import numpy as np
import pytest

from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.ids import id_array, id_list
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.queries.tables import table_queries
from countleak.errors import InputError

IDS = np.arange(1000, 1021)
COLUMNS = {
    "sex": np.tile(["f", "m", "it's"], 7),
    "members of": np.arange(21) % 2,
    "size": np.linspace(0.5, 2.0, 21).round(1),
}


@pytest.mark.parametrize(
    "queries",
    [
        random_subsets(IDS, 9, np.random.default_rng(0)),
        random_signs(IDS, 9, np.random.default_rng(0)),
        digit_queries(IDS, primes=2, exponents=(0.5, 0.7)),
        table_queries(IDS, COLUMNS, [("sex",), ("members of", "size"), ("size",)]),
    ],
    ids=lambda q: q.family.name,
)
def test_a_file_holds_all_of_the_queries(tmp_path, queries):
    path = tmp_path / "queries.jsonl"
    write_queries(path, queries)
    again = read_queries(path)
    assert again.digest == queries.digest
    assert np.array_equal(again.matrix, queries.matrix)
    assert again.family == queries.family
    assert list(again.parameters) == list(queries.parameters)
    for name, values in queries.parameters.items():
        assert again.parameters[name].tolist() == values.tolist()
    if queries.family.name != "signs":
        for at in range(len(queries)):
            assert again.predicate(at, ("uid",)) == queries.predicate(at, ("uid",))


@pytest.mark.parametrize(
    "ids",
    [["a", "b'", 'c"'], ["007", "07", "7"], [2**70, 2**71, -5], [("a", 1), ("a", 2), ("b", 1)]],
    ids=["text", "digits", "big", "composite"],
)
def test_ids_of_every_kind_read_back(tmp_path, ids):
    queries = random_subsets(id_array(ids), 5, np.random.default_rng(0))
    write_queries(tmp_path / "queries.jsonl", queries)
    again = read_queries(tmp_path / "queries.jsonl")
    assert id_list(again.ids) == ids
    assert again.ids.dtype == queries.ids.dtype
    assert again.digest == queries.digest
    other = Queries(id_array([str(i) for i in ids]), queries.matrix, Subsets())
    assert (other.digest == queries.digest) is (ids == id_list(other.ids))


@pytest.mark.parametrize("members", ["zz", "", "ffff", "ffffffff", "ffffff"])
def test_damaged_members_are_reported_by_line(tmp_path, members):
    path = tmp_path / "queries.jsonl"
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({"members": members})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="line 3: members must be 21 bits"):
        read_queries(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ids": [1, 1]}, "line 1: an id is missing or occurs twice"),
        ({"ids": []}, "line 1: an id is missing or occurs twice"),
        ({"ids": [1, 2.5]}, "line 1: id 2.5 is neither a whole number nor text"),
        ({"ids": [1, "x"]}, "line 1: the ids are of different kinds"),
        ({"ids": [[1], [[2]]]}, r"line 1: id \[\[2\]\] is neither"),
        ({"ids": None}, "the header is damaged"),
        ({"family": "others"}, "the header is damaged"),
        ({"family": ["subsets"]}, "the header is damaged"),
        ({"family": "digits"}, "prime is missing or not a number"),
        ({"signed": None}, "the header is damaged"),
        ({"queries": 9}, "the header promises 9 queries, the file holds 3"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path, change, complaint):
    path = tmp_path / "queries.jsonl"
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | change), *lines]) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_queries(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"prime": 2, "constant": 5}, "line 3: exponent is missing"),
        ({"prime": "2", "constant": 5, "exponent": 0.5}, "prime is missing or not a number"),
        ({"prime": None, "constant": 5, "exponent": 0.5}, "prime is missing or not a number"),
        ({"prime": [2], "constant": 5, "exponent": 0.5}, "line 3: prime must be a number or a"),
        ({"prime": True, "constant": 5, "exponent": 0.5}, "prime is missing or not a number"),
        ({"prime": 2, "constant": 5, "exponent": 0.5, "x": 1}, "line 3: unknown key 'x'"),
        ({"prime": float("nan"), "constant": 5, "exponent": 0.5}, "not a number"),
    ],
)
def test_damaged_parameters_are_refused(tmp_path, line, complaint):
    path = tmp_path / "queries.jsonl"
    write_queries(path, digit_queries(IDS, primes=1, exponents=(0.5,), constants=(5, 10, 50)))
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({**line, "members": json.loads(lines[2])["members"]})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_queries(path)


def test_a_parameter_called_members_is_refused_not_lost(tmp_path):
    parameters = {"members": np.arange(3)}
    subsets = random_subsets(IDS, 3, np.random.default_rng(0))
    queries = Queries(subsets.ids, subsets.matrix, subsets.family, parameters)
    with pytest.raises(InputError, match="members"):
        write_queries(tmp_path / "queries.jsonl", queries)


HOSTILE = [
    "1 = 1; DROP TABLE loans; SELECT 1 WHERE 1 = 1",
    "pg_sleep(100) = 1",
    "client_id IN (SELECT client_id FROM loans)",
    "client_id = 1 UNION SELECT password FROM users WHERE 1 = 1",
    "nextval('s') = 1",
    "floor(client_id) = 1 FOR UPDATE --",
    "client_id = 1 /* ",
    "status = E'\\'; DELETE FROM loans; --'",
    "lo_import('/etc/passwd') = \"x\"",
    "x\\",
    "'",
    '"',
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_a_file_of_queries_cannot_smuggle_sql_in(tmp_path, text, dialect):
    """Whatever stands in the file becomes a name or a literal, as a parser of the SQL sees it."""
    from sqlglot import exp, parse

    path = tmp_path / "queries.jsonl"
    write_queries(path, table_queries(IDS, {"sex": COLUMNS["sex"]}, [("sex",)]))
    header, *lines = path.read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    changed = [{**row, "cell": json.dumps([[text, "", 0, text]])} for row in changed]
    path.write_text("\n".join([header, *map(json.dumps, changed)]) + "\n")
    queries = read_queries(path)
    for at in range(len(queries)):
        (tree,) = parse(f"SELECT {queries.predicate(at, ('uid',)).sql(dialect)}", dialect=dialect)
        (condition,) = tree.expressions
        assert isinstance(condition, exp.EQ)
        assert isinstance(condition.this, exp.Column)
        assert condition.this.name == text
        assert isinstance(condition.expression, exp.Literal)
        assert condition.expression.this == text


@pytest.mark.parametrize(
    "cell",
    ["", "[]", "1", "[[1]]", '[["sex", "pg_sleep", 5, "f"]]', '[["sex", "floor_by", "5)", "f"]]'],
)
def test_a_cell_that_is_none_is_one_line(tmp_path, cell):
    path = tmp_path / "queries.jsonl"
    write_queries(path, table_queries(IDS, {"sex": COLUMNS["sex"]}, [("sex",)]))
    header, *lines = path.read_text().splitlines()
    changed = [json.dumps({**json.loads(line), "cell": cell}) for line in lines]
    path.write_text("\n".join([header, *changed]) + "\n")
    with pytest.raises(InputError):
        read_queries(path).predicate(0, ("uid",))


def test_a_file_holds_no_sql(tmp_path):
    path = tmp_path / "queries.jsonl"
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    header, *lines = path.read_text().splitlines()
    rows = [json.dumps({**json.loads(line), "where": "1 = 1"}) for line in lines]
    path.write_text("\n".join([header, *rows]) + "\n")
    plain = random_subsets(IDS, 3, np.random.default_rng(0))
    queries = read_queries(path)
    for at in range(3):
        assert queries.predicate(at, ("uid",)) == plain.predicate(at, ("uid",))
