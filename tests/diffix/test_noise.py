import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from countleak.diffix.noise import (
    HIDDEN_BY_RANGES,
    ONE_PAIR,
    ONE_PER_CONDITION,
    STATIC_AND_UID,
    Bucket,
    Layers,
    Threshold,
    gaussian,
    total,
)
from countleak.diffix.salt import Salt
from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.parser import parse
from countleak.diffix.sql.statement import Column, Kind, Table

LOANS = Table("loans", "uid", {"uid": Kind.WHOLE, "status": Kind.TEXT, "age": Kind.WHOLE})
SALT = Salt(b"a salt for tests")
HASHES = st.integers(1, 2**64 - 1)


def made(where, layering=STATIC_AND_UID, users=7, values=11, salt=SALT, group=""):
    select = f"SELECT count(*) FROM loans WHERE {where} {group}"
    bucket = Bucket(("C",) if group else (), 5, users, dict.fromkeys(LOANS.columns, values))
    return Layers(layering, parse(select, Reader(LOANS)), salt).seeds(bucket)


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
    assert len(made(where, HIDDEN_BY_RANGES)) == 4
    assert len(made(where, STATIC_AND_UID)) == 6
    assert len(made(where, ONE_PER_CONDITION)) == 3
    assert len(made(where, ONE_PAIR)) == 2


def test_another_salt_another_seed():
    assert set(made("status = 'C'")).isdisjoint(made("status = 'C'", salt=Salt(b"another salt")))


def test_seeds_draw_a_standard_normal():
    drawn = np.array([gaussian(seed, "count") for seed in range(20_000)])
    # 20,000 draws pass a Kolmogorov-Smirnov test of N(0, 1) at any usual level.
    assert kstest(drawn, "norm").pvalue > 0.01
    assert abs(drawn.std() - 1) < 5 / np.sqrt(2 * drawn.size)


def test_a_seed_draws_the_same_number_everywhere_and_another_for_another_purpose():
    # The number is part of the contract: an upgrade that changed it would let noise be averaged.
    assert f"{gaussian(1, 'count'):.12f}" == "-0.386046082457"
    pairs = np.array([(gaussian(s, "count"), gaussian(s, "threshold")) for s in range(5000)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5 / np.sqrt(5000)


def test_layers_add_up():
    sums = [total(range(4 * k, 4 * k + 4), "count", 2.0) for k in range(5000)]
    assert abs(np.std(sums) / 4 - 1) < 5 / np.sqrt(2 * 5000)


def test_thresholds_are_rounded_normals_of_mean_4_and_half_an_sd_a_layer():
    drawn = np.array([Threshold().draw(range(4 * k, 4 * k + 4)) for k in range(8000)])
    # Four layers: round(N(4, 1)), no less than 2. By the normal law P(2) = .0668 (all below 2.5),
    # P(3) = .2417, P(4) = .3829, P(5) = .2417, P(6) = .0606; five standard errors are .027.
    shares = [(drawn == k).mean() for k in (2, 3, 4, 5, 6)]
    assert np.allclose(shares, [0.0668, 0.2417, 0.3829, 0.2417, 0.0606], atol=0.027)
    assert drawn.min() == 2
