"""Trials on disk: a line each, only ever appended, so that a killed run goes on where it was.

The file is JSON lines under a header; DuckDB reads it as it is:

    SELECT trial.sigma, avg(accuracy) FROM 'trials.jsonl' WHERE trial IS NOT NULL GROUP BY ALL
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from countleak.records import append_records, mend_journal, read_records, start_journal


class Store:
    """The trials at ``path``; ``records`` holds them by key, those of earlier runs included."""

    def __init__(self, path: Path):
        """Open the store, or start it."""
        self.path = path
        self.records: dict[str, Mapping[str, Any]] = {}
        if path.exists():
            found = read_records(path, "trials", drop_torn=True)
            mend_journal(path)
            for line, record in found.lines:
                key = record.get("key")
                if not isinstance(key, str) or "trial" not in record:
                    raise found.fault(line, "not a trial; remove the line")
                self.records[key] = record
        else:
            start_journal(path, "trials", {})

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; they are on disk when this returns."""
        new = list(records)
        append_records(self.path, new)
        self.records.update({record["key"]: record for record in new})
