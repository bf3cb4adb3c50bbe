"""countleak: ask a system many counts, and see whose secret the answers give away."""

from countleak.people import Condition, People, Total, generated_bank, generated_census, read_people
from countleak.queries import Queries, count_statement, read_queries, write_queries
from countleak.queries.arithmetic import Arithmetic, Exact, Float64, Numeric, numeric_server
from countleak.queries.subsets import random_subsets
from countleak.queries.signs import random_signs
from countleak.queries.tables import random_tables, table_queries
from countleak.queries.digits import PaperName, digit_queries, digit_queries_of, fragile
from countleak.answers import Answers, read_answers
from countleak.targets import Target
from countleak.targets.simulated import (
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
from countleak.targets.counts import Counts
from countleak.targets.diffix import Diffix
from countleak.targets.postgres import PostgresTarget
from countleak.targets.rest import RestTarget
from countleak.targets.several import Manners
from countleak.targets.recorded import Recorded, read_log, read_ranges
from countleak.problems import (
    BoundedDmt,
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
from countleak.noise import Noise, Shape, Threshold
from countleak.diagnosis import Diagnosis, diagnose
from countleak.solvers import Solver
from countleak.solvers.highs import Highs
from countleak.solvers.interior import InteriorPoint
from countleak.solvers.auto import Auto
from countleak.decoders import Decoder, Guess
from countleak.decoders.rounding import Rounding
from countleak.decoders.least_squares import LeastSquares
from countleak.decoders.bayes import Bayes
from countleak.decoders.robust import Robust
from countleak.decoders.bounded import Bounded
from countleak.decoders.polish import Polished
from countleak.decoders.known import Informed
from countleak.decoders.automatic import Automatic
from countleak.decoders.categorical import Categorical, Categories
from countleak.decoders.sums import Amounts, Sums
from countleak.questions import Belief, Goal, Information, Variance, believe, choose
from countleak.scores import (
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
from countleak.audit import (
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
    "BoundedDmt", "Bracket", "Certificate", "DiNi", "Dmt", "FeasiblePoint", "Infeasible",
    "Objective", "Point", "Problem", "Program", "Solution", "Status", "certify",
    "Solver", "Highs", "InteriorPoint", "Auto",
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
