"""What will be asked of a live system, and what its zeros may mean: said to whoever runs it."""

from itertools import islice

import numpy as np

from countleak.attack.queries import Queries
from countleak.attack.transcript import Transcript
from countleak.audit.families import statements
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.sql import SqlQuestions
from countleak.cli import console
from countleak.cli.target_options import Opened
from countleak.errors import InputError

SHOWN, LONGEST_SHOWN = 3, 400


def asked_by_table(opened: Opened, queries: Queries) -> bool:
    """Whether all cells of a table are asked for at once."""
    questions: SqlQuestions | None = getattr(opened.target, "questions", None)
    is_table = queries.family.name == "tables"
    return is_table and questions is not None and questions.whole_tables


def show(opened: Opened, queries: Queries, positions: list[int], count: int) -> None:
    """Say what will be asked of a live system, before it is."""
    questions: SqlQuestions | None = getattr(opened.target, "questions", None)
    if questions is None:
        raise InputError("only a system that takes SQL has questions to show; name another target")
    by_table = asked_by_table(opened, queries)
    if by_table:
        tables = questions.by_tables(queries, np.arange(len(queries)))
        texts = [text for _, text in islice(tables, SHOWN)]
        count = statements(queries) * (count // len(queries))
    else:
        texts = [questions.statement(queries, position) for position in positions[:SHOWN]]
    limits: RequestLimits | None = getattr(opened.target, "limits", None)
    rate = "" if limits is None or limits.rate is None else f", {limits.rate:g} per second"
    console.remark(f"{count} {'tables' if by_table else 'queries'} to {opened.target}{rate}, like")
    for text in texts:
        rest = f" ... ({len(text)} characters)" if len(text) > LONGEST_SHOWN else ""
        console.remark(f"  {text[:LONGEST_SHOWN]}{rest}")
    system = questions.system
    means = "is a count" if system.suppressed_as is None else "means: suppressed"
    hiding = "; low counts are hidden" if system.hides and system.suppressed_as is None else ""
    console.remark(f"An answer of 0 {means}{hiding} (--system {system.name}).")


def warn_of_suppression(opened: Opened, transcript: Transcript) -> None:
    """Say so where answers taken for counts look like those of a system that suppresses some."""
    questions: SqlQuestions | None = getattr(opened.target, "questions", None)
    zeros = int((transcript.values == 0).sum())
    if questions is None or questions.system.hides:
        return
    if zeros and not (transcript.values == 1).any():
        console.remark(
            f"{zeros} answers are 0 and none is 1: if the system suppresses low counts, ask again "
            "with --system diffix into a new file."
        )
