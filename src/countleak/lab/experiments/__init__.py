"""The paper's experiments, one file each: the claim, what to run, and the outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from countleak.attack.queries.arithmetic import Arithmetic, Float64
from countleak.attack.solvers import Solver
from countleak.attack.solvers.auto import AutoSolver
from countleak.errors import InputError
from countleak.lab.experiments.runner import Runner
from countleak.lab.experiments.trials import Setting
from countleak.progress import Progress


@dataclass(frozen=True)
class Settings:
    """How to run an experiment: the authors' ``data`` where given, seed, arithmetic, solver.

    ``sound`` leaves fragile digit queries out; ``postgres`` is a server to use for numeric
    arithmetic instead of one started for the purpose; ``runner`` runs and keeps simulated trials.
    """

    data: Path | None = None
    seed: int = 0
    arithmetic: Arithmetic = field(default_factory=Float64)
    solver: Solver = field(default_factory=AutoSolver)
    sound: bool = False
    postgres: str | None = None
    runner: Runner = field(default_factory=lambda: Runner(Path("runs")))

    @property
    def quick(self) -> bool:
        """Whether a first look is wanted, of a few trials per point."""
        return self.runner.most is not None

    @property
    def setting(self) -> Setting:
        """What the trials of a run share."""
        return Setting(self.seed, str(self.data) if self.data else None)

    def required_data(self, experiment: str) -> Path:
        """The authors' folder, for an experiment on recorded answers."""
        if self.data is None:
            raise InputError(
                f"{experiment} reads recorded answers; give the folder `data` of the authors' "
                "repository (a785236/Linear-Program-Reconstruction)"
            )
        return self.data


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper beside our result: whether they agree, and if not, why."""

    text: str
    paper: str
    ours: str
    agrees: bool
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """The results: ``records`` of flat fields, called ``kind``, claims, and remarks."""

    kind: str
    records: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A name, the paper's claim, where the answers come from, and how to run it."""

    name: str
    claim: str
    answers: str
    run: Callable[[Settings, Progress], Outcome]
