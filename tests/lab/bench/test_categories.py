import pytest

from countleak.lab.bench.categories import JOINT, PAPER, SEPARATE, measure_categories
from countleak.lab.figures.benches import draw_categories


@pytest.mark.parametrize("suppression", [False, True])
def test_values_decoded_together_are_compared_with_one_by_one(suppression, tmp_path):
    rows = measure_categories((100,), people=40, trials=2, suppression=suppression)
    assert [row.decoder for row in rows] == [JOINT, SEPARATE, PAPER]
    joint, separate, paper = rows
    assert joint.gain == 0.0
    for row in rows:
        assert row.gain == pytest.approx(joint.accuracy - row.accuracy)
        assert row.baseline == joint.baseline < 1
    assert joint.accuracy > joint.baseline
    assert joint.claimed is not None
    assert separate.claimed is not None
    assert paper.claimed is paper.precision is None
    draw_categories(rows, tmp_path / "kinds.svg")
    assert "queries per value" in (tmp_path / "kinds.svg").read_text()
