import pytest

from countleak import InputError
from countleak.experiments import Settings
from countleak.experiments.catalogue import CATALOGUE


@pytest.mark.parametrize("experiment", CATALOGUE.values(), ids=lambda e: e.name)
def test_recorded_experiments_ask_for_the_data_and_others_do_without(experiment):
    assert experiment.answers in ("recorded", "simulated")
    if experiment.answers == "recorded":
        with pytest.raises(InputError, match="pass --data"):
            experiment.run(Settings(), lambda done, total: None)
