"""The interior point's compiled loops, bottom up: bits, lapack, newton, finish, path, centre.

All of it is compiled by Numba: half a minute the first time ever, then loaded from its cache.
"""

import hashlib
from contextlib import suppress
from pathlib import Path


def _drop_stale_code() -> None:
    """Remove compiled code of other sources than these.

    Numba looks at the file of a cached function alone, not at the files whose functions were
    compiled into it.
    """
    folder = Path(__file__).parent
    sources = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(folder.glob("*.py"))))
    stamp = folder / "__pycache__" / "kernels.sha256"
    # A folder that cannot be written holds no cache either.
    with suppress(OSError):
        if not stamp.exists() or stamp.read_text() != sources.hexdigest():
            stamp.parent.mkdir(exist_ok=True)
            for compiled in stamp.parent.glob("*.nb[ic]"):
                compiled.unlink(missing_ok=True)
            stamp.write_text(sources.hexdigest())


_drop_stale_code()
