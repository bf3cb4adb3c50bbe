import pytest

from countleak import InputError
from countleak.lab.experiments import Settings
from countleak.lab.experiments.catalogue import CATALOGUE

RECORDED = [e for e in CATALOGUE.values() if e.answers == "recorded"]


@pytest.mark.parametrize("experiment", RECORDED, ids=lambda e: e.name)
def test_recorded_experiments_ask_for_the_data(experiment):
    with pytest.raises(InputError, match="pass --data"):
        experiment.run(Settings(), lambda done, total: None)


def test_every_experiment_says_where_its_answers_come_from():
    assert {e.answers for e in CATALOGUE.values()} == {"recorded", "simulated"}
