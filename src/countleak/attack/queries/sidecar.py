"""The members of many queries as a file of bits beside the file of queries.

``queries.jsonl`` then says in its header how many bytes ``queries.jsonl.bits`` holds, and their
SHA-256, so that neither is ever read with another's partner.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.rows import CHUNK, Packed, Rows, width_of
from countleak.errors import InputError
from countleak.files import (
    Name,
    Records,
    header_line,
    is_stream,
    replacing,
    require_writable,
)

KIND = "members"
AGAIN = "copy both files, or run `countleak plan` again"


def beside(path: Name) -> Path:
    """Where the bits of a file of queries are."""
    return Path(f"{path}.bits")


def write_members(path: Name, rows: Rows) -> dict[str, Any]:
    """Write the bits of rows of 0 and 1 beside ``path``; what its header says of them."""
    if is_stream(path):
        raise InputError(
            f"{path}: so many queries need a file beside this one, which no pipe has; name a file, "
            "or plan hashed ones, of which a seed is enough"
        )
    require_writable(path, "queries")
    require_writable(beside(path), KIND)
    digest, size = hashlib.sha256(), 0
    with replacing(beside(path), "wb") as file:
        file.write(header_line(KIND, {"shape": list(rows.shape)}).encode())
        for bits in _bits(rows):
            digest.update(bits.tobytes())
            file.write(bits)
            size += bits.nbytes
    return {"bytes": size, "sha256": digest.hexdigest()}


def remove_members(path: Name) -> None:
    """Remove bits that belonged to what stood at ``path`` before."""
    with suppress(InputError, OSError, ValueError):
        if beside(path).is_file():
            require_writable(beside(path), KIND)
            beside(path).unlink()


def read_members(records: Records, shape: tuple[int, int]) -> Packed:
    """The rows of 0 and 1 beside a file of queries."""
    path, (m, n) = beside(records.path), shape
    said = records.header["sidecar"]
    expected = m * width_of(n)
    try:
        with path.open("rb") as file:
            file.readline()
            bits = np.fromfile(file, np.uint8)
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file, and {records.path} needs its bits; {AGAIN}"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(said, dict) or said.get("bytes") != expected:
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    if bits.size != expected:
        raise InputError(f"{path}: holds {bits.size} bytes of {expected}; {AGAIN}")
    if hashlib.sha256(bits.data).hexdigest() != said.get("sha256"):
        raise InputError(f"{path}: these are not the bits of {records.path}; {AGAIN}")
    return Packed(bits.reshape(m, -1), n)


def _bits(rows: Rows) -> Iterator[NDArray[np.uint8]]:
    """The packed bits, some rows at a time."""
    m, n = rows.shape
    step = max(1, CHUNK // n)
    for at in range(0, m, step):
        block = rows.take(np.arange(at, min(at + step, m)))
        if not isinstance(block, Packed):
            block = Packed.of([block.dense()], *block.shape)
        yield block.bits
