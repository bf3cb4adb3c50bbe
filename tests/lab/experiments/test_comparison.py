import pytest

from countleak.errors import InputError
from countleak.lab.experiments import Outcome
from countleak.lab.experiments.comparison import (
    Published,
    compare,
    published_points,
    read_paper_results,
)

HEADER = "lp,n,num_primes,m,sigma,dini_bound,trials,mean_accuracy,mean_time_s,infeas,sd\n"


def test_the_authors_results_read(shared):
    found = read_paper_results(shared / "data" / "cohen-nissim" / "paper_results.csv")
    assert len(found) == 1260
    assert {cell.program for cell in found} == {"dmt", "dini"}
    cell = next(c for c in found if (c.program, c.n, c.queries, c.sigma) == ("dmt", 100, 1050, 4))
    assert cell.mean == 0.928


def test_a_malformed_cell_is_reported_by_line(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(HEADER + "dmt,100,1,50,4,0,10,high,0,0,0\n")
    with pytest.raises(InputError, match=r"results\.csv line 2"):
        read_paper_results(path)
    path.write_text("something,else\n1,2\n")
    with pytest.raises(InputError, match="line 1: not the authors' results"):
        read_paper_results(path)


def test_infeasible_trials_are_taken_out_of_their_mean():
    half = Published("dini", 100, 1850, 4.0, 2.5, 10, 0.413, 0.4, 5)
    assert half.feasible_mean == pytest.approx(0.826)
    none = Published("dini", 100, 1850, 4.0, 2.5, 10, 0.0, 0.0, 10)
    assert none.feasible_mean is None
    points = published_points([half], "dini", {"decoder": "dini-vertex", "sigma": 4.0})
    assert points[0]["accuracy"] == pytest.approx(0.826)


def test_comparison_in_words():
    dmt = {"n": 100, "queries": 50, "sigma": 4.0, "accuracy": 0.902, "standard_error": 0.01}
    dini = {
        "decoder": "dini-vertex",
        "multiplier": 2.5,
        "queries": 50,
        "sigma": 4.0,
        "trials": 10,
        "accuracy": 0.7,
        "feasible_share": 0.5,
    }
    outcomes = {"figure-1": Outcome("rows", (dmt,)), "figure-3": Outcome("rows", (dini,))}
    published = (
        Published("dmt", 100, 50, 4.0, 0.0, 10, 0.90, 0.03, 0),
        Published("dini", 100, 50, 4.0, 2.5, 10, 0.4, 0.4, 4),
    )
    first, second = compare(outcomes, published)
    assert first.agrees
    assert first.ours == "mean difference +0.0020; 100.0% of cells within 2.5 standard errors of it"
    assert second.agrees
    assert second.ours.startswith("5 of 10")
    assert second.paper.startswith("4 of 10")
    far = Published("dmt", 100, 50, 4.0, 0.0, 10, 0.80, 0.03, 0)
    assert not compare(outcomes, (far,))[0].agrees
    assert compare(outcomes, ()) == []
