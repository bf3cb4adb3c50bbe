"""The memory of a process: how much it may take (on Linux; else no limit), and what stays in it."""

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_USED = Path("/proc/self/statm")
_DATA = 5


def used() -> int:
    """The bytes of data this process holds now, as the limit counts them; 0 where unknown."""
    try:
        return int(_USED.read_bytes().split()[_DATA]) * resource.getpagesize()
    except OSError:
        return 0


def limit(more: int) -> None:
    """Allow this process ``more`` bytes than it holds now, for good."""
    if now := used():
        _set(now + more)


@contextmanager
def at_most(more: int) -> Iterator[None]:
    """Allow this process ``more`` bytes than it holds now, in the block."""
    now, before = used(), resource.getrlimit(resource.RLIMIT_DATA)[0]
    if not now:
        yield
        return
    _set(now + more if before == resource.RLIM_INFINITY else min(now + more, before))
    try:
        yield
    finally:
        _set(before)


@contextmanager
def frozen() -> Iterator[None]:
    """Have the collector leave alone, in the block, what is there now.

    It would go through all of it every now and then, and everything else would stand still.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _set(soft: int) -> None:
    # Whatever asks for more gets no memory, and says so: the limit stops the statement alone.
    resource.setrlimit(resource.RLIMIT_DATA, (soft, resource.getrlimit(resource.RLIMIT_DATA)[1]))
