"""The files between the stages: JSON lines under a header that says what and which version.

The first line is ``{"countleak": KIND, "version": 2, ...}``, every other line one record.
A whole file is replaced at once or not at all, and only by a file of its own kind. Pipes and
devices are written straight through. A file that only grows is a journal: see ``journals``.
"""

import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from countleak.errors import InputError

VERSION = 2
# No first line is longer, except in a file that has no lines.
LONGEST_LINE = 2**24

Record = dict[str, Any]
Name = str | os.PathLike[str]


@dataclass(frozen=True)
class Records:
    """A file read whole: its header and, for each record, the line it stands on."""

    path: Path
    header: Record
    lines: tuple[tuple[int, Record], ...]

    def fault(self, line: int, what: str) -> InputError:
        """An error that names this file and ``line``."""
        return InputError(f"{self.path} line {line}: {what}")


def read_text(path: Name) -> str:
    """The text of a file or of a pipe, or an InputError that says why there is none."""
    try:
        mode = Path(path).stat().st_mode
        # A device may never end.
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path}: a device, not a file; name another one")
        # Spreadsheets mark their CSV with a byte order mark; utf-8-sig takes it off.
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the name") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from None
    except ValueError as error:
        # A name that no file can have.
        raise InputError(f"{path!r}: cannot be read ({error})") from None


def read_records(path: Name, kind: str, *, drop_torn: bool = False) -> Records:
    """The records of a ``kind`` file; ``drop_torn`` forgives a last line cut off in the middle."""
    path = Path(path)
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
            f"{path} line {number}: not JSON ({what}); correct or remove the line"
        ) from None
    if not isinstance(record, dict):
        raise InputError(
            f"{path} line {number}: expected a JSON object; correct or remove the line"
        )
    return record


def write_records(
    path: Name, kind: str, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]
) -> None:
    """Write a whole file; what stood there before stays until the new one is complete.

    Only an empty file or one of the same kind is replaced: anything else was named by mistake.
    """
    require_writable(path, kind)
    with replacing(path) as file:
        file.write(header_line(kind, header))
        file.writelines(record_line(record) for record in records)


def require_writable(path: Name, kind: str) -> None:
    """Raise if a ``kind`` file cannot take the place of what stands at ``path``."""
    require_own(path, f"a countleak {kind} file", lambda beginning: _kind(beginning) == kind)
    with plain_errors(path):
        require_file(Path(path))


def require_own(path: Name, what: str, recognise: Callable[[bytes], bool]) -> None:
    """Raise if something else than ``what`` stands at ``path``, judged by its first line."""
    beginning = beginning_of(path)
    if beginning and not recognise(beginning):
        kind = _kind(beginning)
        held = f"a countleak {kind} file" if kind else f"something else ({_glimpse(beginning)})"
        raise InputError(f"{path}: holds {held}, not {what}; name another file to write to")


def beginning_of(path: Name) -> bytes:
    """The first line of a regular file; nothing where there is no such file."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return b""
        with Path(path).open("rb") as file:
            return file.readline(LONGEST_LINE)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _kind(beginning: bytes) -> str | None:
    try:
        header = json.loads(beginning)
    except (ValueError, RecursionError):
        return None
    kind = header.get("countleak") if isinstance(header, dict) else None
    return kind if isinstance(kind, str) else None


def _glimpse(beginning: bytes) -> str:
    """The first words of a file, for an error message."""
    text = beginning.decode("utf-8", "replace").lstrip("\ufeff").strip()[:30]
    return f"it begins {text!r}" if text.isprintable() and "\ufffd" not in text else "binary data"


@contextmanager
def replacing(path: Name, mode: str = "w") -> Iterator[IO[Any]]:
    """A file that takes the place of ``path`` when the block ends without an error.

    ``mode`` is "w" for text or "wb" for bytes. A pipe or device is written to as it is.
    """
    with plain_errors(path):
        if is_stream(path):
            with _opened(path, mode) as file:
                yield file
            return
        target = Path(path).resolve()
        require_file(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with _opened(handle, mode) as file:
                yield file
            Path(temporary).chmod(_permissions(target))
            Path(temporary).replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
            raise


def is_file(path: Name) -> bool:
    """Whether a file or a pipe stands there; never an error, whatever the name is."""
    try:
        return Path(path).is_file() or is_stream(path)
    except (OSError, ValueError):
        return False


def is_stream(path: Name) -> bool:
    """Whether a pipe or a device stands there: something written to but not replaced."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def require_file(path: Path) -> None:
    """Raise if something stands there that is neither a file nor written straight through."""
    if path.exists() and not path.is_file() and not is_stream(path):
        what = "a folder" if path.is_dir() else "not a file that can be replaced"
        raise InputError(f"{path}: {what}; name another file to write to")


def _opened(file: Name | int, mode: str) -> IO[Any]:
    return open(file, mode, encoding=None if "b" in mode else "utf-8")  # noqa: PTH123


@contextmanager
def plain_errors(path: Name) -> Iterator[None]:
    """What the system says against writing to ``path``, as an InputError; a closed pipe passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _permissions(path: Path) -> int:
    """The permissions of a file there, or of a new one under the user's umask."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def header_line(kind: str, header: Mapping[str, Any]) -> str:
    """The first line of a file."""
    return record_line({"countleak": kind, "version": VERSION, **header})


def record_line(record: Mapping[str, Any]) -> str:
    """The line of a record."""
    return json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"
