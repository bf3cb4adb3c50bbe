"""The record of an audit in blocks: what the report tells of all of them together."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from countleak.audit.joining import BlocksResult
from countleak.audit.report.growth import Growth
from countleak.audit.report.record import Asked, Expected, Record
from countleak.audit.report.recording import (
    KINDS,
    Notes,
    calibrated_of,
    judged_of,
    method_of,
    scored_of,
    versions,
)
from countleak.audit.report.remedy import ACCEPTED, Remedy

ONE_BY_ONE = "the blocks were decoded one by one, so this was not worked out for all of them"


def record_of_blocks(result: BlocksResult, notes: Notes) -> Record:
    """The record; of an attack that no block shows anything of there are no figures."""
    if notes.nothing:
        nobody = np.zeros_like(result.guess.claimed)
        guess = replace(result.guess, claimed=nobody, forced=nobody, probability=None)
        result = replace(result, joined=guess, score=None, truth=None)
    expected = result.guess.expected_interval
    return Record(
        system=notes.system,
        simulated=result.simulated,
        secret=str(result.secret),
        kind=KINDS[type(result.secret)],
        people=len(result.audited),
        key=result.audited.key,
        authorised_by=notes.authorised_by,
        seed=notes.seed,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        asked=Asked(
            family=result.blocks[0].family,
            answers=result.answered,
            suppressed=result.suppressed,
            statements=result.answered + notes.probed,
            probed=notes.probed,
        ),
        method=method_of(result),
        judged=judged_of(result, notes),
        score=None if result.score is None else scored_of(result),
        expected=None
        if expected is None or result.confidence is None
        else Expected(result.confidence, expected),
        calibration=calibrated_of(result),
        control=None,
        growth=Growth((), ONE_BY_ONE),
        residuals=None,
        remedy=Remedy(notes.allowed or ACCEPTED, why=ONE_BY_ONE),
    )
