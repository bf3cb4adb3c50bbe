import pytest

from countleak import InputError
from countleak.experiments import Outcome
from countleak.experiments.comparison import (
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
    dmt = {"n": 100, "queries": 50, "sigma": 4.0, "accuracy": 0.91, "interval": (0.89, 0.93)}
    dini = {"decoder": "dini-vertex", "multiplier": 3.0, "queries": 50, "sigma": 4.0,
            "accuracy": 0.7, "interval": (0.6, 0.8), "feasible_share": 0.5}  # fmt: skip
    outcomes = {"figure-1": Outcome("rows", (dmt,)), "figure-3": Outcome("rows", (dini,))}
    published = (
        Published("dmt", 100, 50, 4.0, 0.0, 10, 0.90, 0.03, 0),
        Published("dini", 100, 50, 4.0, 3.0, 10, 0.4, 0.4, 4),
    )
    first, second = compare(outcomes, published)
    assert "1 cells: mean difference +0.0100; 100.0% of cells" in first
    assert "infeasible 50.0% of trials, theirs 40.0%" in second
    assert compare(outcomes, ()) == []
