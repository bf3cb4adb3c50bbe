"""Trials on disk: one line each, only ever appended, so that a killed run can be resumed.

The file is JSON lines under a header; DuckDB reads it as it is:

    SELECT trial.sigma, avg(accuracy) FROM 'trials.jsonl' WHERE trial IS NOT NULL GROUP BY ALL
"""

import fcntl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from countleak.errors import InputError
from countleak.files import VERSION, append_records, mend_journal, read_records

HEADER = {"countleak": "trials", "version": VERSION}


class Store:
    """The trials at ``path``; ``records`` holds them by key, those of earlier runs included.

    A store has one writer at a time; the file is locked until ``close``. A store to which nothing
    was added leaves nothing behind.
    """

    def __init__(self, path: Path):
        """Open the store; its header is written with the first records."""
        self.path = path
        self.records: dict[str, Mapping[str, Any]] = {}
        # The lock needs a file and its folders; what is new is removed again if nothing is added.
        self._new = [each for each in (path, *path.parents) if not each.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.open("ab")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
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
        if not self.path.stat().st_size:
            return
        stored = read_records(self.path, "trials", drop_torn=True)
        mend_journal(self.path)
        for line, record in stored.lines:
            key = record.get("key")
            if (
                not isinstance(key, str)
                or not isinstance(record.get("trial"), dict)
                or not {"accuracy", "baseline", "people", "rests_on"} <= set(record)
            ):
                raise stored.fault(line, "not a trial; remove the line")
            self.records[key] = record

    def close(self) -> None:
        """Let others write."""
        if self._new and not self.path.stat().st_size:
            self.path.unlink()
            for folder in self._new[1:]:
                with suppress(OSError):
                    folder.rmdir()
        self._lock.close()

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; they are on disk when this returns."""
        new = list(records)
        header = [] if self.path.stat().st_size else [HEADER]
        append_records(self.path, [*header, *new])
        self.records.update({record["key"]: record for record in new})
