import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from countleak.attack.solvers import machine
from countleak.attack.solvers.machine import cache_folder, one_thread

NOBODY = 65534


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A package that cannot be written, no home, and an empty folder for temporary files."""
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(machine, "__file__", str(file / "machine.py"))
    monkeypatch.setenv("HOME", str(file))
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary


def chosen() -> Path | None:
    return cache_folder.__wrapped__()


def test_the_cache_lies_with_the_code_by_default(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert chosen().parent == Path(machine.__file__).parent / "__pycache__"


def test_the_cache_lies_where_numba_is_configured_to_put_it(read_only, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert chosen().parent == tmp_path / "numba"


def test_the_cache_lies_at_home_where_the_package_cannot_be_written(
    read_only, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert chosen().parent == tmp_path / ".cache" / "countleak"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert chosen().parent == tmp_path / "xdg" / "countleak"


def test_without_a_home_the_cache_is_a_private_temporary_folder(read_only):
    private = chosen().parent
    assert private.parent == read_only
    assert private.stat().st_mode & 0o777 == 0o700
    assert private.stat().st_uid == os.getuid()
    assert chosen().parent == private


@pytest.mark.parametrize("trap", ["open", "link", "file", "foreign"])
def test_a_temporary_folder_that_others_can_write_is_not_used(read_only, tmp_path, trap):
    folder = read_only / f"countleak-{os.getuid()}"
    if trap == "open":
        folder.mkdir()
        folder.chmod(0o777)
    elif trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif trap == "file":
        folder.touch(mode=0o700)
    else:
        folder.mkdir(mode=0o700)
        if os.getuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, NOBODY, NOBODY)
    assert chosen() is None


def test_changed_sources_get_another_folder(read_only, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "package" / "machine.py"))
    kernels = tmp_path / "package" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "bits.py").write_text("one = 1\n")
    before = chosen()
    (kernels / "bits.py").write_text("one = 2\n")
    assert chosen() != before
    assert before.is_dir()


SEARCH = """
import numpy as np
from countleak.attack.posterior import sphere
best, proven = sphere.search(np.eye(3), np.array([1.0, 0.0, 1.0]), np.zeros(3), 100)
assert proven and best.tolist() == [1, 0, 1]
print(sum(sphere._search.stats.cache_hits.values()))
"""


@pytest.fixture
def read_only_copy(tmp_path):
    """The folder of a copy of the package whose folders even their owner cannot write."""
    source = Path(machine.__file__).parents[2]
    copy = tmp_path / "installed" / "countleak"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield copy.parent
    for folder in folders:
        folder.chmod(0o755)


def without_privileges(command):
    """The command, held to the permissions of files where root would not be."""
    if os.getuid() != 0:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("root can write anywhere, and there is no setpriv to change that")
    return ["setpriv", "--bounding-set=-dac_override", *command]


@pytest.mark.slow
def test_a_read_only_package_without_a_home_compiles_once(read_only_copy, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(read_only_copy),
        "HOME": "/dev/null",
        "TMPDIR": str(temporary),
    }
    command = without_privileges([sys.executable, "-W", "error", "-c", SEARCH])
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    # The second run loads what the first one compiled.
    assert [(run.stdout, run.stderr) for run in runs] == [("0\n", ""), ("1\n", "")]
    assert [path.name for path in temporary.iterdir()] == [f"countleak-{os.getuid()}"]
    assert not list(read_only_copy.rglob("*.nbi"))


def test_one_thread_limits_every_openblas_and_restores_it():
    np.linalg.inv(np.eye(3))

    def threads():
        return [each["num_threads"] for each in machine._blas().info()]

    before = threads()
    assert before
    with one_thread():
        assert set(threads()) == {1}
    assert threads() == before
