"""countleak: ask a system many counts, and see whose secret the answers give away."""

from countleak.audit.people import (
    Condition,
    People,
    Total,
    generated_bank,
    generated_census,
    read_people,
)
from countleak.attack.queries import Queries, count_statement, read_queries, write_queries
from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64, Numeric, numeric_server
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.tables import random_tables, table_queries
from countleak.attack.queries.digits import PaperName, digit_queries, digit_queries_of, fragile
from countleak.attack.transcript import Answers, read_answers
from countleak.audit.targets import Target
from countleak.audit.targets.simulated import (
    BoundedUniform,
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
)
from countleak.diffix.salt import Salt
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.several import Manners
from countleak.audit.targets.recorded import Recorded, read_log, read_ranges
from countleak.attack.programs import (
    CappedDmt,
    Bracket,
    Certificate,
    DiNi,
    Dmt,
    FeasiblePoint,
    Infeasible,
    Objective,
    Point,
    Problem,
    Program,
    Solution,
    Status,
    certify,
)
from countleak.attack.noise import Noise, Shape, Threshold
from countleak.attack.diagnosis import Diagnosis, diagnose
from countleak.attack.solvers import Solver
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.decoders import Decoder, Guess
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.automatic import Automatic
from countleak.attack.decoders.categorical import Categorical, Categories
from countleak.attack.decoders.sums import Amounts, Sums
from countleak.attack.design import Belief, Goal, Information, Variance, believe, choose
from countleak.audit.scores import (
    AmountScore,
    Calibration,
    CategoryScore,
    Score,
    calibration,
    score,
    score_amounts,
    score_categories,
    wilson,
)
from countleak.audit.run import (
    Adaptive,
    Reconstruction,
    Step,
    ask,
    ask_into,
    audit_adaptively,
    confidence,
    reconstruct,
)
from countleak.errors import (
    CountleakError,
    InputError,
    MissingExtra,
    NoPrediction,
    Refused,
    ShapeError,
    SolverError,
    TargetError,
)

__version__ = "0.1.0"

# fmt: off
__all__ = [
    "Condition", "People", "Total", "generated_bank", "generated_census", "read_people",
    "Queries", "count_statement", "read_queries", "write_queries",
    "Arithmetic", "Exact", "Float64", "Numeric", "numeric_server",
    "random_subsets", "random_signs", "random_tables", "table_queries",
    "PaperName", "digit_queries", "digit_queries_of", "fragile",
    "Answers", "read_answers",
    "Target",
    "BoundedUniform", "Gaussian", "Laplace", "Mechanism", "RoundedToBase", "Simulated",
    "SimulatedDiffix", "TwoSubsets",
    "Salt", "Counts", "Diffix", "PostgresTarget", "RestTarget", "Manners",
    "Recorded", "read_log", "read_ranges",
    "CappedDmt", "Bracket", "Certificate", "DiNi", "Dmt", "FeasiblePoint", "Infeasible",
    "Objective", "Point", "Problem", "Program", "Solution", "Status", "certify",
    "Solver", "Highs", "InteriorPoint", "AutoSolver",
    "Noise", "Shape", "Threshold", "Diagnosis", "diagnose",
    "Decoder", "Guess", "Rounding", "LeastSquares", "Bayes", "Robust", "Bounded", "Polished",
    "Informed", "Automatic", "Categorical", "Categories", "Amounts", "Sums",
    "Belief", "Goal", "Information", "Variance", "believe", "choose",
    "AmountScore", "Calibration", "CategoryScore", "Score", "calibration", "score",
    "score_amounts", "score_categories", "wilson",
    "Adaptive", "Reconstruction", "Step", "ask", "ask_into", "audit_adaptively", "confidence",
    "reconstruct",
    "CountleakError", "InputError", "MissingExtra", "NoPrediction", "Refused", "ShapeError",
    "SolverError", "TargetError",
]
# fmt: on
