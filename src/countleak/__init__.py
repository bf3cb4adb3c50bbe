"""countleak: ask a system many counts, and see whose secret the answers give away.

A name is loaded when it is first used, so that `import countleak` costs next to nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Every public name, by the module it lives in, in the order data flows.
_NAMES = {
    "countleak.audit.people": "Condition People Total generated_bank generated_census read_people",
    "countleak.attack.queries": "Queries count_statement read_queries write_queries",
    "countleak.attack.queries.arithmetic": "Arithmetic Exact Float64 Numeric numeric_server",
    "countleak.attack.queries.subsets": "random_subsets",
    "countleak.attack.queries.signs": "random_signs",
    "countleak.attack.queries.tables": "random_tables table_queries",
    "countleak.attack.queries.digits": "PaperName digit_queries digit_queries_of fragile",
    "countleak.attack.transcript": "Answers read_answers",
    "countleak.audit.targets": "Target",
    "countleak.audit.targets.simulated": (
        "BoundedUniform Gaussian Laplace Mechanism RoundedToBase Simulated SimulatedDiffix "
        "TwoSubsets"
    ),
    "countleak.diffix.salt": "Salt",
    "countleak.audit.targets.counts": "Counts",
    "countleak.audit.targets.diffix": "Diffix",
    "countleak.audit.targets.postgres": "PostgresTarget",
    "countleak.audit.targets.rest": "RestTarget",
    "countleak.audit.targets.several": "Manners",
    "countleak.audit.targets.recorded": "Recorded read_log read_ranges",
    "countleak.attack.programs": (
        "BoundedDmt Bracket Certificate DiNi Dmt FeasiblePoint Infeasible Objective Point "
        "Problem Program Solution Status certify"
    ),
    "countleak.attack.noise": "Noise Shape Threshold",
    "countleak.attack.diagnosis": "Diagnosis diagnose",
    "countleak.attack.solvers": "Solver",
    "countleak.attack.solvers.highs": "Highs",
    "countleak.attack.solvers.interior": "InteriorPoint",
    "countleak.attack.solvers.auto": "Auto",
    "countleak.attack.decoders": "Decoder Guess",
    "countleak.attack.decoders.rounding": "Rounding",
    "countleak.attack.decoders.least_squares": "LeastSquares",
    "countleak.attack.decoders.bayes": "Bayes",
    "countleak.attack.decoders.robust": "Robust",
    "countleak.attack.decoders.bounded": "Bounded",
    "countleak.attack.decoders.polish": "Polished",
    "countleak.attack.decoders.known": "Informed",
    "countleak.attack.decoders.automatic": "Automatic",
    "countleak.attack.decoders.categorical": "Categorical Categories",
    "countleak.attack.decoders.sums": "Amounts Sums",
    "countleak.attack.design": "Belief Goal Information Variance believe choose",
    "countleak.audit.scores": (
        "AmountScore Calibration CategoryScore Score calibration score score_amounts "
        "score_categories wilson"
    ),
    "countleak.audit.run": (
        "Adaptive Reconstruction Step ask ask_into audit_adaptively confidence reconstruct"
    ),
    "countleak.errors": (
        "CountleakError InputError MissingExtra NoPrediction Refused ShapeError SolverError "
        "TargetError"
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOME)

if TYPE_CHECKING:  # The same again, for type checkers and editors.
    from countleak.audit.people import (
        Condition as Condition,
        People as People,
        Total as Total,
        generated_bank as generated_bank,
        generated_census as generated_census,
        read_people as read_people,
    )
    from countleak.attack.queries import (
        Queries as Queries,
        count_statement as count_statement,
        read_queries as read_queries,
        write_queries as write_queries,
    )
    from countleak.attack.queries.arithmetic import (
        Arithmetic as Arithmetic,
        Exact as Exact,
        Float64 as Float64,
        Numeric as Numeric,
        numeric_server as numeric_server,
    )
    from countleak.attack.queries.subsets import random_subsets as random_subsets
    from countleak.attack.queries.signs import random_signs as random_signs
    from countleak.attack.queries.tables import (
        random_tables as random_tables,
        table_queries as table_queries,
    )
    from countleak.attack.queries.digits import (
        PaperName as PaperName,
        digit_queries as digit_queries,
        digit_queries_of as digit_queries_of,
        fragile as fragile,
    )
    from countleak.attack.transcript import Answers as Answers, read_answers as read_answers
    from countleak.audit.targets import Target as Target
    from countleak.audit.targets.simulated import (
        BoundedUniform as BoundedUniform,
        Gaussian as Gaussian,
        Laplace as Laplace,
        Mechanism as Mechanism,
        RoundedToBase as RoundedToBase,
        Simulated as Simulated,
        SimulatedDiffix as SimulatedDiffix,
        TwoSubsets as TwoSubsets,
    )
    from countleak.diffix.salt import Salt as Salt
    from countleak.audit.targets.counts import Counts as Counts
    from countleak.audit.targets.diffix import Diffix as Diffix
    from countleak.audit.targets.postgres import PostgresTarget as PostgresTarget
    from countleak.audit.targets.rest import RestTarget as RestTarget
    from countleak.audit.targets.several import Manners as Manners
    from countleak.audit.targets.recorded import (
        Recorded as Recorded,
        read_log as read_log,
        read_ranges as read_ranges,
    )
    from countleak.attack.programs import (
        BoundedDmt as BoundedDmt,
        Bracket as Bracket,
        Certificate as Certificate,
        DiNi as DiNi,
        Dmt as Dmt,
        FeasiblePoint as FeasiblePoint,
        Infeasible as Infeasible,
        Objective as Objective,
        Point as Point,
        Problem as Problem,
        Program as Program,
        Solution as Solution,
        Status as Status,
        certify as certify,
    )
    from countleak.attack.noise import Noise as Noise, Shape as Shape, Threshold as Threshold
    from countleak.attack.diagnosis import Diagnosis as Diagnosis, diagnose as diagnose
    from countleak.attack.solvers import Solver as Solver
    from countleak.attack.solvers.highs import Highs as Highs
    from countleak.attack.solvers.interior import InteriorPoint as InteriorPoint
    from countleak.attack.solvers.auto import Auto as Auto
    from countleak.attack.decoders import Decoder as Decoder, Guess as Guess
    from countleak.attack.decoders.rounding import Rounding as Rounding
    from countleak.attack.decoders.least_squares import LeastSquares as LeastSquares
    from countleak.attack.decoders.bayes import Bayes as Bayes
    from countleak.attack.decoders.robust import Robust as Robust
    from countleak.attack.decoders.bounded import Bounded as Bounded
    from countleak.attack.decoders.polish import Polished as Polished
    from countleak.attack.decoders.known import Informed as Informed
    from countleak.attack.decoders.automatic import Automatic as Automatic
    from countleak.attack.decoders.categorical import (
        Categorical as Categorical,
        Categories as Categories,
    )
    from countleak.attack.decoders.sums import Amounts as Amounts, Sums as Sums
    from countleak.attack.design import (
        Belief as Belief,
        Goal as Goal,
        Information as Information,
        Variance as Variance,
        believe as believe,
        choose as choose,
    )
    from countleak.audit.scores import (
        AmountScore as AmountScore,
        Calibration as Calibration,
        CategoryScore as CategoryScore,
        Score as Score,
        calibration as calibration,
        score as score,
        score_amounts as score_amounts,
        score_categories as score_categories,
        wilson as wilson,
    )
    from countleak.audit.run import (
        Adaptive as Adaptive,
        Reconstruction as Reconstruction,
        Step as Step,
        ask as ask,
        ask_into as ask_into,
        audit_adaptively as audit_adaptively,
        confidence as confidence,
        reconstruct as reconstruct,
    )
    from countleak.errors import (
        CountleakError as CountleakError,
        InputError as InputError,
        MissingExtra as MissingExtra,
        NoPrediction as NoPrediction,
        Refused as Refused,
        ShapeError as ShapeError,
        SolverError as SolverError,
        TargetError as TargetError,
    )


class _Package(ModuleType):
    """The package, where a public name wins over a room of the same name.

    Importing a room binds it here by its name, which would hide the function of that name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


if not TYPE_CHECKING:  # A type checker would take it to mean that every name exists.

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


sys.modules[__name__].__class__ = _Package
