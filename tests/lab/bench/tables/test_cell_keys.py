"""The averaging attack, on the real cell-key-perturbation."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from countleak.errors import InputError
from countleak.lab.bench.tables import cell_keys

PINS = Path(__file__).parents[4] / "adapters" / "cell_key_table.txt"


def test_noise_is_bounded_and_has_no_mean():
    table = np.array(list(cell_keys.noise_table()))
    count, key, added = table.T
    assert (np.bincount(count)[1:] == cell_keys.KEYS).all()
    assert key.max() == cell_keys.KEYS - 1
    assert np.abs(added).max() == cell_keys.REACH
    assert (count + added >= 0).all()
    # 256 keys do not divide by five.
    assert np.abs(np.bincount(count, added)[1:]).max() <= cell_keys.REACH


def test_the_engine_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"docs/engines\.md"):
        cell_keys.measure_cell_keys(tmp_path / "python")


@pytest.mark.slow
def test_averages_have_the_counts_right(request):
    folder = request.config.cache.mkdir("adapters") / "cell_keys"
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "-r", str(PINS)], check=False)
        if done.returncode:
            pytest.skip("the package registry cannot be reached")
        (folder / "made").touch()
    rows, needed = cell_keys.measure_cell_keys(python, worlds=2, tables=100)
    last = {row.system: row for row in rows if row.tables == 100}
    for system in cell_keys.SYSTEMS:
        assert last[system.name].low > last[system.name].published
    assert last[cell_keys.SYSTEMS[0].name].share > 0.9
    assert needed[0].median is not None
