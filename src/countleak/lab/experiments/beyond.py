"""Beyond the paper: integer programs, other families, more people, suppression on and off."""

from collections.abc import Callable, Sequence

from countleak.lab.experiments import Experiment, Outcome, Settings
from countleak.lab.experiments.cells import cells
from countleak.lab.experiments.trials import Trial, grid
from countleak.progress import Progress


def _experiment(
    name: str, question: str, trials: Callable[[], list[Trial]], by: Sequence[str]
) -> Experiment:
    def run(settings: Settings, progress: Progress) -> Outcome:
        records = settings.runner.run(trials(), settings.setting, progress)
        return Outcome("rows", tuple(cell.record() for cell in cells(records, by)))

    return Experiment(name, question, "simulated", run)


def _integer() -> list[Trial]:
    return grid(
        n=30,
        queries=(150, 250, 350),
        sigma=2.0,
        family="subsets",
        mechanism="gaussian",
        decoder=("dmt", "dmt-integer"),
        number=range(20),
    )


def _families() -> list[Trial]:
    return grid(
        family=("digits", "subsets"), queries=(550, 1050, 1550, 2050, 2550), number=range(40)
    )


def _people() -> list[Trial]:
    return grid(n=(100, 200, 500, 1000), queries=(2550, 5050), sigma=4.0, number=range(10))


def _suppression() -> list[Trial]:
    return grid(
        world="presence",
        n=101,
        queries=(500, 1000, 2000, 3500),
        sigma=(2.0, 4.0),
        suppression=(True, False),
        number=range(20),
    )


EXPERIMENTS = (
    _experiment(
        "integer",
        "Says nothing of this: does solving over whole numbers beat rounding the linear program?",
        _integer,
        ("decoder", "queries"),
    ),
    _experiment(
        "families",
        "Says nothing of this: are digit queries as good as uniformly random subsets?",
        _families,
        ("family", "queries"),
    ),
    _experiment(
        "people",
        "Says nothing of this: the attack on up to 1000 people.",
        _people,
        ("n", "queries"),
    ),
    _experiment(
        "suppression",
        "Says nothing of this: what does suppressing low counts cost the attacker? (12 of 101)",
        _suppression,
        ("sigma", "queries", "suppression"),
    ),
)
