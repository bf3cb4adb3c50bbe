import pytest

from countleak.lab.experiments import Settings
from countleak.lab.experiments.table_1 import run


@pytest.fixture(scope="module")
def outcome(shared):
    return run(Settings(shared / "data" / "cohen-nissim"), lambda done, total: None)


def test_every_claim_of_the_table_agrees(outcome):
    assert len(outcome.claims) >= 5
    assert all(claim.agrees for claim in outcome.claims)


@pytest.fixture(scope="module")
def rows(outcome):
    return {(row["range"], row["max_exponent"]): row for row in outcome.records}


def test_dmt_rebuilds_every_full_range(rows):
    full = [row for (_, exponent), row in rows.items() if exponent == 1.9]
    assert len(full) >= 2
    assert all(row["accuracy_dmt"] == 1.0 and row["kappa"] == pytest.approx(100) for row in full)


def test_the_bounded_program_fails_on_the_last_range_with_all_exponents_only(rows):
    assert 0.74 <= rows["10000-12000", 1.9]["accuracy_bounded"] <= 0.79
    assert rows["10000-12000", 1.4]["accuracy_bounded"] == 1.0
    assert rows["10000-12000", 0.8]["accuracy_bounded"] == pytest.approx(141 / 142)
    assert rows["2000-3000", 1.9]["accuracy_bounded"] == 1.0


def test_residuals_at_the_truth_are_those_measured_before(rows):
    for key, mean, sd in (
        (("2000-3000", 1.9), -0.36, 3.57),
        (("10000-12000", 1.9), 0.96, 3.94),
        (("10000-12000", 1.4), 0.98, 3.53),
        (("10000-12000", 0.8), 1.07, 3.50),
    ):
        assert rows[key]["residual_mean"] == pytest.approx(mean, abs=0.006)
        assert rows[key]["residual_sd"] == pytest.approx(sd, abs=0.006)


@pytest.mark.slow
def test_numeric_membership_saves_the_bounded_program(shared, postgres):
    settings = Settings(shared / "data" / "cohen-nissim", arithmetic=postgres)
    rows = run(settings, lambda done, total: None).records
    (last,) = [r for r in rows if (r["range"], r["max_exponent"]) == ("10000-12000", 1.9)]
    assert last["accuracy_bounded"] == 1.0
