"""The grids are the authors', and the claims are judged by the cells they speak of."""

from countleak.lab.experiments import figure_1, figure_2, figure_3
from countleak.lab.experiments.cells import Cell


def test_the_authors_grids_are_all_there():
    dmt = {(t.n, t.queries, t.sigma, t.number) for t in figure_1.trials()}
    assert {
        (n, 50 * primes, float(sigma), number)
        for n in (50, 75, 100, 125, 150)
        for primes in range(1, 60, 2)
        for sigma in range(2, 9)
        for number in range(10)
    } <= dmt
    vertex = [t for t in figure_3.trials() if t.decoder == "dini-vertex"]
    dini = {(t.queries, t.sigma, t.multiplier, t.number) for t in vertex}
    assert {
        (50 * primes, float(sigma), half / 2, number)
        for primes in range(1, 60, 2)
        for sigma in range(2, 9)
        for half in range(21)
        for number in range(10)
    } <= dini
    assert {t.sign_noise for t in figure_2.trials() if t.family == "signs"} == {
        "direct",
        "two-subsets",
        "double",
    }


def cell(axis, value, mean):
    return Cell({axis: value}, 100, 100, 0, 100, mean, 0.02, 0.5, 0.001)


def test_a_crossing_is_judged_by_the_first_cell_beyond():
    found = [cell("queries", m, mean) for m, mean in ((950, 0.93), (1050, 0.949), (1150, 0.953))]
    claim = figure_1.crossing("F", "above", found, "queries", 0.95, 1150, (1050, 1250))
    assert claim.agrees
    assert claim.ours.startswith("1150 (mean 0.9530")
    assert not figure_1.crossing("F", "above", found, "queries", 0.94, 1150, (1150, 1250)).agrees
    never = figure_1.crossing("F", "above", found, "queries", 0.99, 2050, (1950, 2450))
    assert (never.ours, never.agrees) == ("never", False)
    assert never.why
