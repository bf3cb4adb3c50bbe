import pytest

from benchmarks.peers import PEERS, versions
from benchmarks.solvers import instance
from countleak.attack.programs import certify
from countleak.attack.solvers.highs import Highs


@pytest.mark.parametrize("peer", PEERS, ids=lambda p: p.name)
def test_every_peer_solves_the_program_it_is_timed_on(peer):
    if not peer.installed:
        pytest.skip(f"{peer.name} is not installed (extra `bench`)")
    problem = instance("random", 20, 150, (1,))
    found = certify(problem, peer.solve(problem))
    optimum = certify(problem, Highs().solve(problem)).upper
    # cvxpy's default stops at its solver's default tolerance of 1e-8.
    assert found.gap < 1e-7
    assert found.upper == pytest.approx(optimum, rel=1e-6)


def test_versions_name_every_library():
    assert set(versions()) >= {"highspy", "scipy", "clarabel", "cvxpy", "piqp"}
