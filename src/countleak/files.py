"""The files between the stages: JSON lines under a header that says what and which version.

The first line is ``{"countleak": KIND, "version": 1, ...}``, every other line one record.
A whole file is replaced at once or not at all; a journal only ever grows.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from countleak.errors import InputError

VERSION = 1

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """A file read whole: its header and, for each record, the line it stands on."""

    path: Path
    header: Record
    lines: tuple[tuple[int, Record], ...]

    def fault(self, line: int, what: str) -> InputError:
        """An error that names this file and ``line``."""
        return InputError(f"{self.path} line {line}: {what}")


def read_text(path: Path) -> str:
    """The text of a file, or an InputError that says why there is none."""
    try:
        # Spreadsheets mark their CSV with a byte order mark; utf-8-sig takes it off.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from None


def read_records(path: Path, kind: str, *, drop_torn: bool = False) -> Records:
    """The records of a ``kind`` file; ``drop_torn`` forgives a last line cut off in the middle."""
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path}: the file is empty, expected a countleak {kind} file")
    lines = text.splitlines()
    if not text.endswith("\n"):
        if not drop_torn:
            raise InputError(
                f"{path} line {len(lines)}: cut off in mid-line; remove that line, "
                "or run the command that wrote the file again"
            )
        lines.pop()
    parsed = [(i, _parse(path, i, line)) for i, line in enumerate(lines, 1) if line.strip()]
    header = parsed[0][1] if parsed else {}
    if header.get("countleak") != kind:
        raise InputError(
            f"{path} line 1: not a countleak {kind} file (its header says "
            f"{header.get('countleak')!r}); check which file goes where"
        )
    if header.get("version") != VERSION:
        raise InputError(
            f"{path} line 1: format version {header.get('version')!r}, this countleak reads "
            f"{VERSION}; write the file again, or use the countleak that wrote it"
        )
    return Records(path, header, tuple(parsed[1:]))


def _parse(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", type(error).__name__)
        raise InputError(
            f"{path} line {number}: not JSON ({what}); mend or remove the line"
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{path} line {number}: expected a JSON object; mend or remove the line")
    return record


def write_records(
    path: Path, kind: str, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]
) -> None:
    """Write a whole file; what stood there before stays until the new one is complete.

    A countleak file of another kind is never replaced: that is a slip, not a wish.
    """
    if (found := kind_of(path)) not in (None, kind):
        raise InputError(f"{path}: holds {found}, not {kind}; name another file to write to")
    with replacing(path) as file:
        file.write(_line({"countleak": kind, "version": VERSION, **header}))
        file.writelines(_line(record) for record in records)


def kind_of(path: Path) -> str | None:
    """What a countleak file holds by its header; None for anything else."""
    try:
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return None
    kind = header.get("countleak") if isinstance(header, dict) else None
    return kind if isinstance(kind, str) else None


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """A text file that takes the place of ``path`` when the block ends without an error."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not a file that can be replaced; name another one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        Path(name).chmod(_mode(path))
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _mode(path: Path) -> int:
    """The permissions of a file there, or of a new one under the user's umask."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def start_journal(path: Path, kind: str, header: Mapping[str, Any]) -> None:
    """Write a journal that holds a header and no record yet."""
    write_records(path, kind, header, ())


def append_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Add records to a journal, on disk before this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(_line(record) for record in records)
        file.flush()
        os.fsync(file.fileno())


def mend_journal(path: Path) -> None:
    """Drop a last line that was cut off when the writer was killed."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with path.open("r+b") as file:
            file.truncate(len(whole))


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"
