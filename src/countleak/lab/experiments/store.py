"""Trials on disk: a line each, only ever appended, so that a killed run goes on where it was.

The file is JSON lines under a header; DuckDB reads it as it is:

    SELECT trial.sigma, avg(accuracy) FROM 'trials.jsonl' WHERE trial IS NOT NULL GROUP BY ALL
"""

import fcntl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from countleak.errors import InputError
from countleak.files import append_records, mend_journal, read_records, start_journal


class Store:
    """The trials at ``path``; ``records`` holds them by key, those of earlier runs included.

    A store is one writer's at a time; the file is locked until ``close``.
    """

    def __init__(self, path: Path):
        """Open the store, or start it."""
        self.path = path
        self.records: dict[str, Mapping[str, Any]] = {}
        if not path.exists():
            start_journal(path, "trials", {})
        self._lock = path.open("rb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InputError(
                f"{path}: another run is writing there; wait for it, or name another folder"
            ) from None
        try:
            self._load()
        except InputError:
            self.close()
            raise

    def _load(self) -> None:
        found = read_records(self.path, "trials", drop_torn=True)
        mend_journal(self.path)
        for line, record in found.lines:
            key = record.get("key")
            if (
                not isinstance(key, str)
                or not isinstance(record.get("trial"), dict)
                or not {"accuracy", "baseline", "people", "rests_on"} <= set(record)
            ):
                raise found.fault(line, "not a trial; remove the line")
            self.records[key] = record

    def close(self) -> None:
        """Let others write."""
        self._lock.close()

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; they are on disk when this returns."""
        new = list(records)
        append_records(self.path, new)
        self.records.update({record["key"]: record for record in new})
