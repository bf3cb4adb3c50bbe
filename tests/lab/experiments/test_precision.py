import pytest

from countleak.lab.experiments import Settings
from countleak.lab.experiments.precision import run


@pytest.mark.slow
def test_the_large_exponents_do_the_harm_in_every_arithmetic(shared, postgres):
    settings = Settings(shared / "data" / "cohen-nissim", arithmetic=postgres)
    outcome = run(settings, lambda done, total: None)
    rows = {row["exponent"]: row for row in outcome.records}
    assert len(rows) == 14
    assert all(rows[e]["fragile"] == 0 for e in (0.5, 0.6, 0.7, 0.8, 0.9))
    worst = rows[1.9]
    assert worst["sd_float64"] == pytest.approx(6.22, abs=0.01)
    assert worst["sd_exact"] == pytest.approx(6.09, abs=0.01)
    assert worst["sd_numeric"] == pytest.approx(5.15, abs=0.01)
    assert "without the" in outcome.remarks[0]
