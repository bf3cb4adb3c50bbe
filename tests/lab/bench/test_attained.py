import pytest

from countleak.audit.targets.simulated import RoundedToBase, Uniform
from countleak.errors import InputError
from countleak.lab.bench.attained import MANY, Cells, measure_named

CELLS = (
    Cells(60, Uniform(3), (68, 114, 171)),
    Cells(60, RoundedToBase(5), (123,)),
    Cells(60, RoundedToBase(3, random=True), (150,)),
)


def test_the_decoders_named_attain_what_is_predicted():
    rows = measure_named(CELLS, trials=4, decoders=("ls", "bounded"))
    assert [row.queries for row in rows if row.named == "ls"] == [68, 114, 171, 123, 150]
    assert [row.queries for row in rows if row.named == "bounded"] == [68, 171, 123, 150]
    for row in rows:
        assert row.holds, row
        assert row.difference == row.predicted - row.measured
        assert (row.within is None) == (row.named is None)
    (near,) = (row for row in rows if row.named is None)
    assert (near.decoder, near.queries) == ("bounded", 114)
    assert near.predicted > 0.999


def test_a_decoder_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no decoder 'x'; choose lp, ls, bayes, bounded"):
        measure_named(CELLS, decoders=["x"])


@pytest.mark.slow
def test_the_decoders_named_attain_what_is_predicted_everywhere():
    for row in measure_named([cells for cells in MANY if cells.n <= 400], trials=8):
        assert row.holds, row
