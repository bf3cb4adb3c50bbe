import numpy as np
import pytest

from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.modular import modular_queries
from countleak.attack.queries.rows import Packed
from countleak.attack.queries.subsets import random_subsets
from countleak.errors import InputError

IDS = np.arange(1000, 1131)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What is many, for tests."""
    for module in ("files", "rows", "subsets"):
        monkeypatch.setattr(f"countleak.attack.queries.{module}.SMALL", 1000)
    for module in ("rows", "sidecar"):
        monkeypatch.setattr(f"countleak.attack.queries.{module}.CHUNK", 5000)


@pytest.mark.parametrize("make", [random_subsets, modular_queries])
def test_the_bits_are_kept_beside_the_file(tmp_path, make):
    queries, path = make(IDS, 300, np.random.default_rng(0)), tmp_path / "q.jsonl"
    assert isinstance(queries.rows, Packed)
    write_queries(path, queries)
    assert (tmp_path / "q.jsonl.bits").stat().st_size < 300 * 24 + 200
    again = read_queries(path)
    assert isinstance(again.rows, Packed)
    assert (again.matrix == queries.matrix).all()
    assert again.digest == queries.digest
    for name, values in queries.parameters.items():
        assert again.parameters[name].tolist() == values.tolist()


def test_how_rows_are_held_changes_nothing(monkeypatch):
    packed = random_subsets(IDS, 300, np.random.default_rng(0))
    monkeypatch.setattr("countleak.attack.queries.subsets.SMALL", 10**6)
    monkeypatch.setattr("countleak.attack.queries.rows.SMALL", 10**6)
    dense = random_subsets(IDS, 300, np.random.default_rng(0))
    assert isinstance(dense.weights, np.ndarray)
    assert (packed.matrix == dense.matrix).all()
    assert packed.digest == dense.digest
    assert packed.members(7).tolist() == np.flatnonzero(dense.matrix[7]).tolist()


def test_a_smaller_plan_takes_the_bits_away(tmp_path):
    path = tmp_path / "q.jsonl"
    write_queries(path, random_subsets(IDS, 300, np.random.default_rng(0)))
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    assert [each.name for each in tmp_path.iterdir()] == ["q.jsonl"]
    # A file of somebody else's that is called so is left alone.
    (tmp_path / "q.jsonl.bits").write_text("mine")
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    assert (tmp_path / "q.jsonl.bits").read_text() == "mine"
    with pytest.raises(InputError, match=r"q\.jsonl\.bits: holds something else"):
        write_queries(path, random_subsets(IDS, 300, np.random.default_rng(0)))


def test_bits_that_are_missing_torn_or_of_another_plan_are_an_error(tmp_path):
    path, bits = tmp_path / "q.jsonl", tmp_path / "q.jsonl.bits"
    write_queries(tmp_path / "other.jsonl", random_subsets(IDS, 300, np.random.default_rng(1)))
    write_queries(path, random_subsets(IDS, 300, np.random.default_rng(0)))
    whole = bits.read_bytes()
    bits.write_bytes(whole[:-5])
    with pytest.raises(InputError, match=r"q\.jsonl\.bits: holds 7195 bytes of 7200; copy both"):
        read_queries(path)
    bits.write_bytes((tmp_path / "other.jsonl.bits").read_bytes())
    with pytest.raises(InputError, match=r"these are not the bits of .*q\.jsonl; copy both"):
        read_queries(path)
    bits.unlink()
    with pytest.raises(InputError, match=r"q\.jsonl\.bits: no such file, and .* needs its bits"):
        read_queries(path)
