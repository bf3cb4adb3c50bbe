import pytest

from countleak.experiments import Settings
from countleak.experiments.presence import run


@pytest.mark.parametrize("source", ["generated", "authors"])
def test_nearly_everyone_present_is_found_and_nobody_invented(source, request):
    data = None
    if source == "authors":
        data = request.getfixturevalue("shared") / "data" / "cohen-nissim"
    trials = run(Settings(data), lambda done, total: None).records
    assert len(trials) == 10
    assert all(trial["queries"] == 3500 and trial["present"] == 12 for trial in trials)
    assert sum(trial["false_negatives"] <= 1 for trial in trials) >= 9
    assert sum(trial["false_positives"] for trial in trials) == 0
