"""Exact answers: whether secrets of everyone give every answer, and which."""

from dataclasses import replace

from countleak.attack.law import log_chance_of_exact
from countleak.attack.noise import UNKNOWN, Noise, Shape
from countleak.attack.posterior.evidence import are_whole
from countleak.attack.readings import readings_of_exact
from countleak.attack.rules import Rules, count_intervals
from countleak.attack.solvers.integer import WholeSolution, WholeStatus, solve_whole
from countleak.attack.transcript import Transcript
from countleak.progress import Progress, silent

# Bits that give every answer exactly are searched for among so many, for so many seconds.
SEARCHED, SEARCH_LIMIT = 400, 20.0
# The log of the chance that there are such bits although the answers are noisy.
LEAST_CHANCE = -3.0


def find_exact(
    transcript: Transcript,
    rules: Rules,
    time_limit: float,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Noise, WholeSolution] | None:
    """The law of exact answers and bits that give each, if no other is stated and there are such.

    That must be more than chance, and the bits found in time.
    """
    stated = rules.noise()
    open_law = rules.shape is None and stated.base == 1
    searched = transcript.ids.size <= SEARCHED and time_limit > 0
    if not open_law or not searched or not transcript.b.size or not are_whole(transcript.b):
        return None
    if log_chance_of_exact(transcript) > LEAST_CHANCE:
        return None
    until = min(time_limit, SEARCH_LIMIT)
    for noise in readings_of_exact(transcript, replace(stated, sigma=UNKNOWN, shape=Shape.EXACT)):
        intervals = count_intervals(transcript, noise)
        assert intervals is not None
        solution = solve_whole(intervals, time_limit=until, seed=seed, progress=progress)
        if solution.status is WholeStatus.SOLVED:
            return noise, solution
    return None
