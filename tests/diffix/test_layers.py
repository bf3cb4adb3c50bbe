from hypothesis import given
from hypothesis import strategies as st

from countleak.diffix.layers import (
    Bucket,
    hidden_by_ranges,
    one_a_condition,
    one_pair,
    seeds,
    static_and_uid,
)
from countleak.diffix.salt import Salt
from countleak.diffix.sql.parse import parse
from countleak.diffix.sql.statement import Column, Kind, Table

LOANS = Table("loans", "uid", {"uid": Kind.WHOLE, "status": Kind.TEXT, "age": Kind.WHOLE})
SALT = Salt(b"a salt for tests")
HASHES = st.integers(1, 2**64 - 1)


def made(where, layering=static_and_uid, users=7, values=11, salt=SALT, group=""):
    select = f"SELECT count(*) FROM loans WHERE {where} {group}"
    bucket = Bucket(("C",) if group else (), 5, users, dict.fromkeys(LOANS.columns, values))
    return seeds(layering, parse(select, LOANS), salt, bucket)


def test_a_clear_conditions_seeds_by_hand():
    column = SALT.element("column", "loans", "status")
    value = SALT.value(LOANS, Column("status", Kind.TEXT), "C")
    assert set(made("status = 'C'")) == {column ^ value, column ^ value ^ 7}


def test_a_ranges_seeds_by_hand():
    about = SALT.element("column", "loans", "age") ^ SALT.element("range", "0", "10") ^ 11
    assert set(made("age BETWEEN 0 AND 10")) == {about, about ^ 7}


@given(HASHES, HASHES)
def test_a_static_layer_knows_no_users_and_a_uid_layer_does(one, other):
    shared = set(made("status = 'C'", users=one)) & set(made("status = 'C'", users=other))
    assert len(shared) == (2 if one == other else 1)


def test_equal_numbers_in_different_roles_do_not_cancel():
    assert len({SALT.element(role, "5") for role in ("value", "range", "<>", "in", "column")}) == 5
    assert set(made("uid = 5")).isdisjoint(made("age = 5"))
    assert set(made("age = 5")).isdisjoint(made("age <> 5"))


def test_equal_layers_count_once():
    assert len(made("status = 'C' AND status = 'C'")) == 2
    grouped = made("status = 'C'", group="GROUP BY status")
    assert grouped == made("status = 'C'")


def test_releases_layer_differently():
    where = "age BETWEEN 0 AND 10 AND floor(age / 2) = 3 AND status = 'C'"
    assert len(made(where, hidden_by_ranges)) == 4
    assert len(made(where, static_and_uid)) == 6
    assert len(made(where, one_a_condition)) == 3
    assert len(made(where, one_pair)) == 2


def test_another_salt_another_seed():
    assert set(made("status = 'C'")).isdisjoint(made("status = 'C'", salt=Salt(b"another salt")))
