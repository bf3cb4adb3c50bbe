import pytest

from countleak.lab.experiments import Settings
from countleak.lab.experiments.presence import run
from countleak.lab.experiments.runner import Runner


@pytest.mark.parametrize("source", ["generated", "authors"])
def test_nearly_everyone_present_is_found_and_nobody_invented(source, request, tmp_path):
    data = None
    if source == "authors":
        data = request.getfixturevalue("shared") / "data" / "cohen-nissim"
    settings = Settings(data, runner=Runner(tmp_path, jobs=1))
    outcome = run(settings, lambda done, total: None)
    trials = outcome.records
    assert len(trials) == 10
    assert all(trial["queries"] == 3500 and trial["present"] == 12 for trial in trials)
    assert sum(trial["false_negatives"] <= 1 for trial in trials) >= 9
    assert sum(trial["false_positives"] for trial in trials) == 0
    assert outcome.claims[0].agrees
