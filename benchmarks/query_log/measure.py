"""How fast `countleak log` is, which planted trackers it catches and when, and if it errs.

The command runs in a process of its own. Every alarm is then checked on the people themselves: its
counts, as numpy computes their conditions, must add up to nobody but its few people.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.query_log.population import Mask, population
from benchmarks.query_log.trackers import Log, kinds_in_order, log_of
from countleak.errors import NoResult
from countleak.foreign import first_line


@dataclass(frozen=True)
class Caught:
    """Of a kind of tracker: how many were planted, and caught no later than their last query."""

    kind: str
    planted: int
    in_time: int
    late: int
    missed: int


@dataclass(frozen=True)
class Measured:
    """A run over a log: what it took, and what it said.

    ``false`` alarms are those whose counts do not add up to their people; ``proven`` rest on the
    answers alone. ``by_small_counts`` trackers would be seen by looking for small counts.
    """

    rows: int
    statements: int
    conditions: int
    seconds: float
    processor_seconds: float
    megabytes: float
    caught: tuple[Caught, ...]
    by_small_counts: int
    alarms: int
    planted_alarms: int
    proven: int
    unproven: int
    false: int
    not_read: int


def measure(rows: int, statements: int, conditions: int, trackers: int, seed: int) -> Measured:
    """Generate a population and a log, run the command on them, and check what it says."""
    people = population(rows, seed)
    log = log_of(people, statements, conditions, trackers, seed)
    with TemporaryDirectory() as folder:
        people.write(Path(folder) / "people.parquet")
        (Path(folder) / "log.sql").write_text(";\n".join(log.statements) + ";\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = perf_counter()
        command = (
            "-m", "countleak.cli", "log", "log.sql", "--database", "people.parquet", "--json",
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        seconds = perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise NoResult(f"countleak log failed: {first_line(done.stderr)}")
    found = json.loads(done.stdout)
    groups = [_group(log, alarm) for alarm in found["alarms"]]
    checked = [
        (alarm["query"], group)
        for alarm, group in zip(found["alarms"], groups, strict=True)
        if group is not None and int(group.sum()) == alarm["people"]
    ]
    caught = _caught(log, checked)
    targets = {tracker.target.tobytes() for tracker in log.trackers}
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    small = sum(
        any(0 < each.size <= found["small"] for each in tracker.conditions)
        for tracker in log.trackers
    )
    return Measured(
        rows,
        statements,
        log.distinct,
        seconds,
        used,
        after.ru_maxrss / 1024,
        tuple(caught),
        small,
        len(found["alarms"]),
        sum(group.tobytes() in targets for _, group in checked),
        sum(alarm["rests_on"] == "the answers alone" for alarm in found["alarms"]),
        found["unproven"],
        len(groups) - len(checked),
        found["not_read"],
    )


def _group(log: Log, alarm: Mapping[str, Any]) -> Mask | None:
    """Whom an alarm's counts add up to, as the people's own columns say; None if to no group."""
    times = [Fraction(term["times"]) for term in alarm["terms"]]
    unit = lcm(*(each.denominator for each in times))
    total = np.zeros(log.asked[0].people, np.int64)
    for term, each in zip(alarm["terms"], times, strict=True):
        condition = log.asked[term["query"] - 1]
        if condition.size != term["count"]:
            return None
        total += int(each * unit) * condition.mask
    return total == unit if ((total == 0) | (total == unit)).all() else None


def _caught(log: Log, alarms: Sequence[tuple[int, Mask]]) -> list[Caught]:
    """By kind, how many trackers have an alarm of just their people by their last query."""
    first: dict[bytes, int] = {}
    for query, group in alarms:
        first.setdefault(group.tobytes(), query)
    rows = []
    for kind in kinds_in_order(log.trackers):
        mine = [
            (first.get(tracker.target.tobytes()), last)
            for tracker, last in zip(log.trackers, log.last, strict=True)
            if tracker.kind == kind
        ]
        in_time = sum(query is not None and query <= last for query, last in mine)
        late = sum(query is not None and query > last for query, last in mine)
        rows.append(Caught(kind, len(mine), in_time, late, len(mine) - in_time - late))
    return rows
