import pytest

from countleak.errors import InputError
from countleak.lab.experiments.sweep import Sweep, read_sweep

TOML = 'name = "mine"\nqueries = [200, 400]\nsigma = [1, 2.5]\nfamily = "subsets"\ntrials = 3\n'


def test_a_sweep_reads_from_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    sweep = read_sweep(path)
    assert (sweep.name, sweep.repeats, sweep.axes) == ("mine", 3, ["queries", "sigma"])
    assert len(sweep.trials()) == 12
    assert {t.sigma for t in sweep.trials()} == {1.0, 2.5}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("queries = [", "not TOML"),
        ("colour = 1", "there is no field 'colour'"),
        ('queries = "many"', "queries is 'many', expected a whole number"),
        ("sigma = true", "sigma is True, expected a number"),
        ("sigma = []", "sigma has no value"),
        ("trials = 1.5", "trials is 1.5"),
    ],
)
def test_a_bad_file_is_named_with_the_field(tmp_path, text, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        read_sweep(path)
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize("name", ["", "../../out", "a/b", ".hidden"])
def test_a_name_is_a_name(name):
    with pytest.raises(InputError, match="make a name"):
        Sweep(name, {}).trials()


def test_no_trials_are_refused():
    with pytest.raises(InputError, match="at least 1"):
        Sweep("x", {}, 0).trials()
