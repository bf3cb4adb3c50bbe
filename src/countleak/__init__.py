"""countleak: ask a system many counts, and see whose secret the answers give away.

The names below are in the order data flows; more lives one level down, in ``countleak.queries``,
``targets``, ``decoders``, ``solvers`` and their neighbours. Everything but ``audit`` is loaded when
it is first used.
"""

from typing import TYPE_CHECKING

# Bound now, for importing a module of the room `countleak.audit` would bind the room to this name.
from countleak.audit.run import audit
from countleak.lazy import lazy_names

if TYPE_CHECKING:
    from countleak.attack import secrets as secrets
    from countleak.attack import queries as queries
    from countleak.attack import noise as noise
    from countleak.attack import programs as programs
    from countleak.attack import solvers as solvers
    from countleak.attack import decoders as decoders
    from countleak.attack import diagnosis as diagnosis
    from countleak.attack import design as design
    from countleak.audit import people as people
    from countleak.audit import targets as targets
    from countleak.audit import scores as scores
    from countleak.audit import budget as budget
    from countleak.audit import report as report
    from countleak.audit import query_log as query_log
    from countleak.audit.people import (
        People,
        generated_bank,
        generated_census,
        people_of,
        read_people,
    )
    from countleak.attack.secrets import Bit, Category, Number
    from countleak.attack.queries import Queries
    from countleak.attack.queries.digits import digit_queries
    from countleak.attack.queries.files import read_queries, write_queries
    from countleak.attack.queries.subsets import random_subsets
    from countleak.attack.queries.tables import table_queries
    from countleak.audit.targets import Target
    from countleak.audit.targets.simulated import (
        Gaussian,
        Laplace,
        RoundedToBase,
        Simulated,
        SimulatedDiffix,
        Uniform,
    )
    from countleak.audit.targets.diffix import Diffix
    from countleak.audit.targets.frames import FrameTarget
    from countleak.audit.targets.postgres import PostgresTarget
    from countleak.audit.targets.rest import RestTarget
    from countleak.audit.run import Asking, ask, reconstruct
    from countleak.attack.transcript import Transcript, read_transcript
    from countleak.attack.noise import Noise, Shape
    from countleak.attack.rules import Rules
    from countleak.attack.diagnosis import diagnose
    from countleak.attack.decoders.auto import AutoDecoder
    from countleak.attack.guess import Guess
    from countleak.audit.scores import Score, score
    from countleak.audit.result import AuditResult
    from countleak.errors import CountleakError, Refused

__version__ = "0.2.0"

# fmt: off
__all__ = [
    "People", "generated_bank", "generated_census", "people_of", "read_people",
    "Bit", "Category", "Number",
    "Queries", "digit_queries", "random_subsets", "table_queries", "read_queries", "write_queries",
    "Target", "Simulated", "SimulatedDiffix", "Gaussian", "Laplace", "Uniform", "RoundedToBase",
    "Diffix", "FrameTarget", "PostgresTarget", "RestTarget",
    "Transcript", "ask", "read_transcript",
    "Noise", "Rules", "Shape", "diagnose",
    "AutoDecoder", "Guess", "reconstruct",
    "Score", "score",
    "Asking", "AuditResult", "audit",
    "CountleakError", "Refused",
]
# fmt: on

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "People": "countleak.audit.people",
        "generated_bank": "countleak.audit.people",
        "generated_census": "countleak.audit.people",
        "people_of": "countleak.audit.people",
        "read_people": "countleak.audit.people",
        "Bit": "countleak.attack.secrets",
        "Category": "countleak.attack.secrets",
        "Number": "countleak.attack.secrets",
        "Queries": "countleak.attack.queries",
        "digit_queries": "countleak.attack.queries.digits",
        "random_subsets": "countleak.attack.queries.subsets",
        "table_queries": "countleak.attack.queries.tables",
        "read_queries": "countleak.attack.queries.files",
        "write_queries": "countleak.attack.queries.files",
        "Target": "countleak.audit.targets",
        "Simulated": "countleak.audit.targets.simulated",
        "SimulatedDiffix": "countleak.audit.targets.simulated",
        "Gaussian": "countleak.audit.targets.simulated",
        "Laplace": "countleak.audit.targets.simulated",
        "Uniform": "countleak.audit.targets.simulated",
        "RoundedToBase": "countleak.audit.targets.simulated",
        "Diffix": "countleak.audit.targets.diffix",
        "FrameTarget": "countleak.audit.targets.frames",
        "PostgresTarget": "countleak.audit.targets.postgres",
        "RestTarget": "countleak.audit.targets.rest",
        "Transcript": "countleak.attack.transcript",
        "ask": "countleak.audit.run",
        "read_transcript": "countleak.attack.transcript",
        "Noise": "countleak.attack.noise",
        "Rules": "countleak.attack.rules",
        "Shape": "countleak.attack.noise",
        "diagnose": "countleak.attack.diagnosis",
        "AutoDecoder": "countleak.attack.decoders.auto",
        "Guess": "countleak.attack.guess",
        "reconstruct": "countleak.audit.run",
        "Score": "countleak.audit.scores",
        "score": "countleak.audit.scores",
        "Asking": "countleak.audit.run",
        "audit": "countleak.audit.run",
        "AuditResult": "countleak.audit.result",
        "CountleakError": "countleak.errors",
        "Refused": "countleak.errors",
        # One level down, by the short name of each module.
        "secrets": "countleak.attack.secrets",
        "queries": "countleak.attack.queries",
        "noise": "countleak.attack.noise",
        "programs": "countleak.attack.programs",
        "solvers": "countleak.attack.solvers",
        "decoders": "countleak.attack.decoders",
        "diagnosis": "countleak.attack.diagnosis",
        "design": "countleak.attack.design",
        "people": "countleak.audit.people",
        "targets": "countleak.audit.targets",
        "scores": "countleak.audit.scores",
        "budget": "countleak.audit.budget",
        "report": "countleak.audit.report",
        "query_log": "countleak.audit.query_log",
    },
)
