"""What our code asks of the machine: one BLAS thread, and a folder for what Numba compiles."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from sys import version_info
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    # SciPy brings an OpenBLAS of its own, which is seen only once it is loaded.
    import scipy.linalg.cython_lapack  # noqa: F401

    return ThreadpoolController().select(internal_api="openblas")


def one_thread() -> AbstractContextManager[Any]:
    """Keep OpenBLAS to one thread meanwhile.

    Many small steps gain little from several threads, and on a busy machine the threads wait for
    each other: eigenvectors of 1,000 people then take 9 s instead of 0.2. A single large product
    is better left alone, and so is another BLAS.
    """
    limited: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limited


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Numba's ``njit`` with ``options``, its cache in ``cache_folder``."""
    # Numba takes a third of a second to load, which only those who compile should wait for.
    from numba import config, njit

    folder = cache_folder()
    jit = njit(nogil=True, error_model="numpy", cache=folder is not None, **options)

    def decorate(function: Any) -> Any:
        if folder is None:
            return jit(function)
        # Numba reads the setting when it decorates; other packages keep theirs.
        theirs, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            return jit(function)
        finally:
            config.CACHE_DIR = theirs

    return decorate


@cache
def cache_folder() -> Path | None:
    """A folder that can be written, for code compiled from these sources; None if there is none.

    Numba compares the file of a cached function alone, not the files whose functions were compiled
    into it, so the folder is named after all of them.
    """
    name = f"compiled-{_fingerprint()}"
    for parent in _parents():
        with suppress(OSError):
            folder = parent / name
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _fingerprint() -> str:
    """What compiled code depends on, hashed: the place and text of the sources, the compiler."""
    kernels = Path(__file__).resolve().parent / "kernels"
    parts = [str(kernels), version("numba"), str(version_info[:2])]
    parts += [path.read_text(encoding="utf-8") for path in sorted(kernels.glob("*.py"))]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _parents() -> Iterator[Path]:
    """Where the folder may be, best first: as Numba is configured, with the code, at home."""
    configured = os.environ.get("NUMBA_CACHE_DIR")
    if configured:
        yield Path(configured)
        return
    yield Path(__file__).resolve().parent / "__pycache__"
    with suppress(RuntimeError):  # there need be no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "countleak"
    with suppress(OSError):
        temporary = _private_temporary_folder()
        if temporary is not None:
            yield temporary


def _private_temporary_folder() -> Path | None:
    """The temporary folder of this user; None if someone else could write to it.

    Loading a cache runs what is in it, and anyone may create a folder of that name.
    """
    if not hasattr(os, "getuid"):
        # Windows gives every user a temporary folder of their own.
        return Path(tempfile.gettempdir()) / "countleak"
    folder = Path(tempfile.gettempdir()) / f"countleak-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    return folder if private and status.st_uid == os.getuid() else None
