"""Solvers of the programs in ``problems``; each is a frozen dataclass of its settings."""

from typing import Protocol

from countleak.attack.programs import Problem, Solution


class Solver(Protocol):
    """Anything that turns a Problem into a Solution."""

    def solve(self, problem: Problem) -> Solution:
        """Solve, or say in ``status`` why not."""
        ...
