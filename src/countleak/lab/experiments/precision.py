"""Why the last range failed: whom a query counts depends on who computes it."""

from contextlib import ExitStack

import numpy as np

from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64, Numeric, numeric_server
from countleak.attack.queries.digits import fragile
from countleak.audit.targets.recorded import read_ranges
from countleak.lab.experiments import Experiment, Outcome, Settings
from countleak.lab.experiments.table_1 import residual_at
from countleak.progress import Progress


def run(settings: Settings, progress: Progress) -> Outcome:
    """Residual SD by exponent at the truth, for the highest range, in three arithmetics."""
    recorded = read_ranges(settings.required_data("precision"))[-1]
    with ExitStack() as stack:
        given = settings.arithmetic
        numeric = given if isinstance(given, Numeric) else None
        numeric = numeric or stack.enter_context(numeric_server(settings.postgres))
        arithmetics: tuple[Arithmetic, ...] = (Float64(), Exact(), numeric)
        residuals = {}
        for done, arithmetic in enumerate(arithmetics):
            progress(done, len(arithmetics))
            transcript = recorded.log.transcript(recorded.people.ids, arithmetic)
            residuals[arithmetic.name] = residual_at(recorded.secret, transcript)
    progress(len(arithmetics), len(arithmetics))
    queries = transcript.queries
    exponents = queries.parameters["exponent"][transcript.released]
    broken = fragile(queries)[transcript.released]
    records = [
        {
            "exponent": float(exponent),
            "queries": int((exponents == exponent).sum()),
            "fragile": int(broken[exponents == exponent].sum()),
            **{
                f"sd_{name}": float(r[exponents == exponent].std()) for name, r in residuals.items()
            },
        }
        for exponent in np.unique(exponents)
    ]
    whole, sound = (residuals["float64"][part].std() for part in (slice(None), ~broken))
    remarks = (
        f"{recorded.name}: residual SD {whole:.2f} over all queries, {sound:.2f} without the "
        f"{broken.sum()} fragile ones (float64 membership)",
    )
    return Outcome("rows", tuple(records), remarks)


EXPERIMENT = Experiment(
    "precision",
    "The queries of 10000-12000 needed more numerical precision than Diffix seemed to support; "
    "the larger exponents did the harm.",
    "recorded",
    run,
)
