import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.robust import Robust
from tests.attack.decoders.worlds import accuracy


@pytest.mark.parametrize(
    ("kind", "decoder"),
    [
        ("wrong", Robust()),
        pytest.param("two groups", Robust(by="server"), marks=pytest.mark.slow),
        pytest.param("offset", Robust(), marks=pytest.mark.slow),
    ],
)
def test_robust_where_the_plain_one_is_misled(kind, decoder):
    setting = Setting(kind=kind)
    assert accuracy(decoder, setting) >= accuracy(Bayes(), setting) - 0.005
    assert accuracy(decoder, setting) > 0.93
