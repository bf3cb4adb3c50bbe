import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.attack.queries import gpu
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.rows import Dense


def a_gpu():
    try:
        return gpu.device()
    except gpu.NoGpu:
        return ""


@given(
    st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=20),
    st.integers(1, 3),
)
def test_digits_put_together_are_the_values(values, digits):
    given_values = np.array(values)
    whole, unit = gpu._whole(given_values, digits)
    parts = [gpu._digit(whole, digit, digits) for digit in range(digits)]
    assert all(part.dtype == np.int16 for part in parts)
    together = sum(part.astype(np.int64) * gpu.RADIX**digit for digit, part in enumerate(parts))
    assert np.array_equal(together, whole)
    off = np.abs(whole * unit - given_values).max()
    assert off <= np.abs(given_values).max() / 2 ** (16 * digits - 1)


def test_whole_numbers_are_taken_as_they_are():
    whole, unit = gpu._whole(np.array([0.0, 1.0, -32767.0]), 1)
    assert whole.tolist() == [0, 1, -32767]
    assert unit == 1.0


def test_few_entries_and_rows_of_other_kinds_stay_on_the_processor():
    few = HashedRows(1, np.arange(100), np.arange(50))
    assert gpu.quickest(few) == (few, "on the processor")
    stored = Dense(np.ones((2, 3), np.int8))
    assert gpu.quickest(stored) == (stored, "on the processor")


@pytest.mark.skipif(bool(a_gpu()), reason="there is a GPU")
def test_without_a_gpu_the_processor_takes_over_and_says_why():
    many = HashedRows(1, np.arange(2**17), np.arange(2**16))
    products, where = gpu.quickest(many)
    assert products is many
    assert where.startswith("on the processor: ")
    with pytest.raises(gpu.NoGpu):
        gpu.OnGpu(many)


@pytest.mark.gpu
@pytest.mark.skipif(not a_gpu(), reason="no GPU, or no CuPy")
def test_products_on_the_gpu_are_those_of_the_processor():
    from benchmarks.gpu import agreement

    for seed in range(5):
        assert agreement(seed=seed) < 1e-8


@pytest.mark.gpu
@pytest.mark.skipif(not a_gpu(), reason="no GPU, or no CuPy")
def test_message_passing_on_the_gpu_finds_a_hundred_thousand_people():
    from benchmarks.gpu import passing

    found = passing(2**17, 2**17, 20.0)
    assert abs(found.accuracy - found.predicted) < 0.002
    assert not found.doubt
