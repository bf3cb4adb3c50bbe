"""Trials on disk: one line each, only ever appended, so that a killed run can be resumed.

The file is JSON lines under a header; DuckDB reads it as it is:

    SELECT trial.sigma, avg(accuracy) FROM 'trials.jsonl' WHERE trial IS NOT NULL GROUP BY ALL
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from countleak.errors import InputError
from countleak.files import JournalFile


class Store:
    """The trials at ``path``; ``records`` holds them by key, those of earlier runs included.

    A store has one writer at a time; the file is locked until ``close``. A store to which nothing
    was added leaves nothing behind.
    """

    def __init__(self, path: Path):
        """Open the store; the file is there from the first trial on."""
        self.path = path
        self.records: dict[str, Mapping[str, Any]] = {}
        # An empty file to lock, and its folders; whichever are new go again if nothing comes.
        self._new = [each for each in (path, *path.parents) if not each.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.open("ab")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        try:
            _lock(self._lock)
        except OSError:
            self._lock.close()
            raise InputError(
                f"{path}: another run is writing there; wait for it, or name another folder"
            ) from None
        try:
            self._journal = JournalFile(path, "trials", {})
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
        if self._new and not self.path.stat().st_size:
            self.path.unlink()
            for folder in self._new[1:]:
                with suppress(OSError):
                    folder.rmdir()
        self._lock.close()

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; they are on disk when this returns."""
        new = list(records)
        self._journal.append(new)
        self.records.update({record["key"]: record for record in new})


def _lock(file: IO[bytes]) -> None:
    """Lock a file, or raise OSError where another process has; Windows has no such lock."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
