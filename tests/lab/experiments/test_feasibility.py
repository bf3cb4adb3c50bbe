import pytest

from countleak.lab.experiments import Settings
from countleak.lab.experiments.feasibility import run
from countleak.lab.experiments.runner import Runner


@pytest.mark.slow
def test_shares_agree_with_the_papers_words(tmp_path):
    heard = []
    settings = Settings(runner=Runner(tmp_path, jobs=2))
    rows = run(settings, lambda done, total: heard.append((done, total))).records
    shares = {(row["multiplier"], row["queries"]): row["feasible_share"] for row in rows}
    assert 0.3 <= shares[2.5, 1850] <= 0.7
    assert shares[2.5, 2250] <= 0.4
    assert shares[2.5, 2250] < shares[2.5, 1850]
    assert shares[3.0, 2550] == 1.0
    assert heard[-1] == (120, 120)
