import numpy as np
import pytest

from countleak.attack.design import Information
from countleak.errors import InputError
from countleak.lab.bench.questions import RANDOM, Curve, measure_questions, savings
from countleak.lab.figures.benches import draw_orders

IDS = (2000, 2999)


def curve(order, salt, confidence, accuracy):
    queries = 100 + 50 * np.arange(len(confidence))
    return Curve(IDS, salt, 0, order, queries, np.array(confidence), np.array(accuracy))


def test_queries_needed_until_sure_and_until_right_for_good():
    found = curve(RANDOM, 0, [0.8, 0.96, 0.94, 0.97], [0.9, 1.0, 0.94, 0.96])
    assert found.needed("expected", 0.95) == 150
    assert found.needed("true", 0.95) == 250
    assert found.needed("true", 0.9) == 100
    assert found.needed("expected", 0.99) is None
    assert found.needed("true", 0.99) is None


def test_savings_are_paired_and_leave_out_those_who_never_got_there():
    sure, never = [0.9, 0.95, 0.99], [0.9, 0.9, 0.9]
    right = [1.0, 1.0, 1.0]
    curves = [
        curve(RANDOM, 0, sure, right),
        curve("chosen", 0, [0.95, 0.99, 0.99], right),
        curve(RANDOM, 1, sure, right),
        curve("chosen", 1, sure, right),
        curve(RANDOM, 2, sure, right),
        curve("chosen", 2, never, right),
    ]
    rows = {(row.until, row.level): row for row in savings(curves)}
    row = rows["expected", 0.99]
    assert (row.systems, row.pairs, row.wins, row.ties) == (3, 2, 1, 1)
    assert (row.random, row.chosen, row.fewer) == (200.0, 175.0, 25.0)
    assert row.fewer_error == pytest.approx(25.0)
    assert row.fewer_share == pytest.approx(0.125)
    assert rows["true", 0.95].fewer == 0.0


def test_both_orders_start_with_the_same_queries_to_the_same_system(tmp_path):
    curves = measure_questions(
        tmp_path, {"information": Information()}, [IDS], 2, batch=60, most=160, primes=2
    )
    assert [(c.salt, c.order) for c in curves] == [
        (salt, order) for salt in (0, 1) for order in (RANDOM, "information")
    ]
    for one, other in (curves[:2], curves[2:]):
        assert one.queries.tolist() == other.queries.tolist() == [100, 160]
        assert one.confidence[0] == other.confidence[0]
        assert one.accuracy[0] == other.accuracy[0]
    draw_orders(curves, tmp_path / "orders.svg")
    assert "2 systems" in (tmp_path / "orders.svg").read_text()


def test_one_salt_has_no_error(tmp_path):
    with pytest.raises(InputError, match="at least 2"):
        measure_questions(tmp_path, {}, [IDS], 1)
