"""Trials on disk: one line each, only ever appended, so that a killed run can be resumed.

The file is JSON lines under a header; DuckDB reads it as it is:

    SELECT trial.sigma, avg(accuracy) FROM 'trials.jsonl' WHERE trial IS NOT NULL GROUP BY ALL
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from countleak.errors import InputError
from countleak.journals import JournalFile


class Store:
    """The trials at ``path``; ``records`` holds them by key, those of earlier runs included.

    A store has one writer at a time; the file is locked until ``close``. A store to which nothing
    was added leaves nothing behind.
    """

    def __init__(self, path: Path):
        """Open the store; the file is there from the first trial on."""
        self.path = path
        self.records: dict[str, Mapping[str, Any]] = {}
        self._block = ExitStack()
        self._journal = JournalFile(path, "trials", {})
        try:
            self._block.enter_context(self._journal.held())
            self._load()
        except InputError:
            self.close()
            raise

    def _load(self) -> None:
        if (earlier := self._journal.earlier) is None:
            return
        for line, record in earlier.lines:
            key = record.get("key")
            if (
                not isinstance(key, str)
                or not isinstance(record.get("trial"), dict)
                or not {"accuracy", "baseline", "people", "rests_on"} <= set(record)
            ):
                raise earlier.fault(line, "not a trial; remove the line")
            self.records[key] = record

    def close(self) -> None:
        """Let others write."""
        self._block.close()

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; they are safe from the end of this process when this returns."""
        new = list(records)
        self._journal.append(new)
        self.records.update({record["key"]: record for record in new})
