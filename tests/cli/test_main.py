"""How the command line starts and how it ends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import countleak as countleak_package
from countleak.cli import budget
from tests.cli.conftest import contents, run_once


def countleak(*words, **settings):
    return subprocess.run(
        [sys.executable, "-m", "countleak.cli", *words],
        text=True,
        stderr=subprocess.PIPE,
        **settings,
    )


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


BUDGET = ("budget", "--n", 100, "-m", 300, "--sigma", 4, "--json")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("by zero"), 70, "please report it: ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), 130, "stopped; what was written so far is kept"),
        (PermissionError(13, "Permission denied", "secret"), 2, "secret: Permission denied"),
        (OSError(28, "No space left on device"), 2, "countleak: No space left on device"),
        (MemoryError(), 2, "not enough memory"),
        (EOFError(), 2, "the input ended"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_goes_wrong_is_one_line_and_a_code(run, monkeypatch, error, code, said):
    monkeypatch.setattr(budget, "advise", failing(error))
    result = run(*BUDGET)
    assert result.code == code
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert said in result.err


def test_the_traceback_is_shown_on_demand(run, monkeypatch):
    monkeypatch.setattr(budget, "advise", failing(ZeroDivisionError()))
    assert "COUNTLEAK_DEBUG=1" in run(*BUDGET).err
    monkeypatch.setenv("COUNTLEAK_DEBUG", "1")
    assert "Traceback" in run(*BUDGET).err


def test_a_closed_pipe_ends_quietly(run, monkeypatch):
    monkeypatch.setattr(budget, "advise", failing(BrokenPipeError()))
    assert run(*BUDGET) == type(run("--version"))(141, "", "")


def test_nobody_reads_on():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nowhere:
        result = countleak("lab", stdout=nowhere)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("words", [("--version",), tuple(map(str, BUDGET))], ids=str)
def test_a_full_disk_behind_the_output_is_one_line(words):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        result = countleak(*words, stdout=full)
    assert (result.returncode, result.stderr) == (2, "countleak: No space left on device\n")


def test_help_and_version(run):
    assert run("--version").out.startswith("countleak 0")
    for words in ((), ("lab",)):
        assert run(*words).code == 0
        assert run(*words).out == run(*words, "--help").out
    assert "Did you mean 'budget'?" in run("bugdet").err


def test_help_loads_neither_verbs_nor_anything_heavy():
    program = (
        "import sys; sys.argv = ['countleak', '--help']\n"
        "from countleak.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'scipy', 'sqlglot', 'duckdb', 'numba', 'pydantic', 'psycopg', 'joblib',\n"
        "         'countleak.attack', 'countleak.lab', 'countleak.diffix',\n"
        "         'countleak.cli.budget', 'countleak.cli.lab', 'countleak.cli.audit'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"


WITHOUT_FCNTL = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "termios", "pwd", "grp", "resource"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
for name in ("fcntl", "termios", "pwd", "grp", "resource"):
    sys.modules.pop(name, None)
from countleak.cli import main
sys.argv = ["countleak", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("plan", "--people", "census:9", "--family", "subsets", "-m", "20"),
        (
            "audit",
            "simulated",
            "--people",
            "census:9",
            "--secret",
            "sex = 1",
            "-m",
            "60",
            "--no-report",
        ),
        ("budget", "--n", "100", "-m", "300", "--sigma", "4"),
        ("solve", "--help"),
        ("serve", "--help"),
        ("lab", "--help"),
    ],
    ids=str,
)
def test_the_command_line_works_where_only_unix_has_a_module(tmp_path, words):
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_FCNTL, *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert (result.returncode, result.stderr) == (0, "")


PLAN = ("plan", "--people", "census:9", "--family", "subsets", "-m", "20")
ASK = ("ask", "queries.jsonl", "--people", "census:9", "--secret", "sex = 1", "--sigma", "1")
SOLVE = ("solve", "queries.jsonl", "answers.jsonl", "--decoder", "ls")
WRITERS = {"plan": PLAN, "ask": ASK, "solve": SOLVE}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for words in WRITERS.values():
        run_once(folder, *words)
    return folder


@pytest.fixture(params=WRITERS)
def writer(request, made, tmp_path):
    """The words of a verb that writes a file, and what it writes."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    name = {"plan": "queries", "ask": "answers", "solve": "guess"}[request.param]
    return WRITERS[request.param], (made / f"{name}.jsonl").read_text()


def test_a_result_goes_into_a_pipe(writer, tmp_path):
    words, written = writer
    result = countleak(*words, "-o", "/dev/stdout", cwd=tmp_path, stdout=subprocess.PIPE)
    assert (result.returncode, result.stdout) == (0, written)
    assert "in /dev/stdout" in result.stderr


def test_a_result_goes_into_a_named_pipe(writer, tmp_path):
    words, written = writer
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as cat:
        result = countleak(*words, "-o", "pipe", cwd=tmp_path, stdout=subprocess.DEVNULL)
        assert (result.returncode, result.stderr) == (0, "")
        assert cat.communicate()[0] == written


def test_files_are_read_from_pipes(made, tmp_path):
    """Each is read once: `countleak plan -o /dev/stdout | countleak ask /dev/stdin ...`."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for name, words in {
        "queries": ("ask", "/dev/stdin", *ASK[2:], "-o", "new.jsonl"),
        "answers": ("solve", "queries.jsonl", "/dev/stdin", "--decoder", "ls"),
        "guess": ("score", "/dev/stdin", "--people", "census:9"),
    }.items():
        text = (made / f"{name}.jsonl").read_text()
        result = countleak(*words, cwd=tmp_path, stdout=subprocess.PIPE, input=text)
        assert (result.returncode, result.stderr) == (0, ""), words


def test_a_full_device_is_one_line_and_does_not_hang(writer, tmp_path):
    words, _ = writer
    before = contents(tmp_path)
    result = countleak(*words, "-o", "/dev/full", cwd=tmp_path, stdout=subprocess.PIPE, timeout=60)
    said = "countleak: /dev/full: cannot be written (No space left on device)\n"
    assert (result.returncode, result.stderr) == (2, said)
    assert contents(tmp_path) == before


def test_a_file_of_people_is_not_written_over(writer, run, tmp_path):
    words, _ = writer
    (tmp_path / "people.csv").write_text("id,status\n1,A\n2,C\n")
    before = contents(tmp_path)
    result = run(*words, "-o", "people.csv")
    assert result.code == 2
    assert "people.csv" in result.err
    assert contents(tmp_path) == before


def test_nothing_is_written_where_the_folder_is_read_only(writer, tmp_path):
    words, _ = writer
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.access(tmp_path / "closed", os.W_OK):
        pytest.skip("this user may write everywhere")
    result = countleak(*words, "-o", "closed/x", cwd=tmp_path, stdout=subprocess.PIPE)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1


def test_a_read_only_install_without_a_home_works(tmp_path):
    """As in a container: no folder beside the code nor a home for what is compiled."""
    package = Path(countleak_package.__file__).parent
    shutil.copytree(
        package, tmp_path / "site" / "countleak", ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in (tmp_path / "site").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (tmp_path / "work").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("HOME", "PYTHONPATH")},
        "PYTHONPATH": str(tmp_path / "site"),
        "HOME": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for words in (PLAN, ASK, SOLVE):
        result = countleak(*words, cwd=tmp_path / "work", env=environment, stdout=subprocess.PIPE)
        assert (result.returncode, result.stderr) == (0, ""), words
    for path in (tmp_path / "site").rglob("*"):
        path.chmod(0o755)
