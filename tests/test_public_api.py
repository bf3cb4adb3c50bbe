import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import countleak as cl
from countleak import lazy

SOURCE = Path(inspect.getsourcefile(cl)).read_text(encoding="utf-8")


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def lazy_table(source):
    """What a package's call of ``lazy_names`` maps, read from its source."""
    (call,) = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy_names"
    )
    return ast.literal_eval(call.args[1])


def checked_imports(source):
    """What the ``if TYPE_CHECKING`` block imports: the module that defines each name."""
    (block,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    named = {}
    for node in block.body:
        for alias in node.names:
            module = f"{node.module}.{alias.name}"
            is_module = importlib.util.find_spec(module) is not None if is_package(node) else False
            named[alias.name] = module if is_module else node.module
    return named


def is_package(node):
    return hasattr(importlib.import_module(node.module), "__path__")


def test_the_face_is_small_and_every_name_of_it_is_there():
    assert len(cl.__all__) == len(set(cl.__all__)) <= 42
    for name in cl.__all__:
        assert getattr(cl, name) is not None
    assert set(cl.__all__) <= set(dir(cl))


def test_the_lazy_table_is_what_the_type_checker_sees():
    table, checked = lazy_table(SOURCE), checked_imports(SOURCE)
    # `audit` is bound when the package is imported; the table lists it for dir().
    assert table == {**checked, "audit": "countleak.audit.run"}
    assert set(cl.__all__) == {n for n, module in table.items() if not module.endswith(f".{n}")}


def test_every_public_name_is_the_one_of_its_module():
    for name, module in lazy_table(SOURCE).items():
        home = importlib.import_module(module)
        assert getattr(cl, name) is (home if module.endswith(f".{name}") else getattr(home, name))


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'countleak' has no attribute 'Nothing'"):
        _ = cl.Nothing
    load, names = lazy.lazy_names("package", {"x": "somewhere"})
    assert names() == ["x"]
    with pytest.raises(AttributeError, match="'package' has no attribute 'y'"):
        load("y")


@pytest.mark.parametrize("decoder", sorted(dir(cl.decoders)))
def test_decoders_are_one_level_down(decoder):
    assert hasattr(getattr(cl.decoders, decoder), "decode")


@pytest.mark.parametrize(
    "code",
    [
        "import countleak as cl, countleak.audit.targets",
        "import countleak.audit.targets, countleak as cl",
        "import countleak as cl; cl.targets; cl.People; cl.scores; cl.report; cl.budget",
        "from countleak.audit.people import People; import countleak as cl",
        "import countleak.audit; import countleak as cl",
        "import countleak.audit.run; import countleak as cl",
    ],
)
def test_audit_stays_the_function_whatever_is_imported(code):
    assert run_python(f"{code}; print(callable(cl.audit), cl.audit.__name__)") == "True audit"


def test_importing_loads_no_more_than_it_must():
    heavy = "{'numba', 'scipy', 'duckdb', 'sqlglot', 'pandas', 'polars'} & set(sys.modules)"
    assert run_python(f"import sys, countleak; print({heavy})") == "set()"


def test_the_public_face_reads_like_the_sentence():
    people = cl.generated_bank(seed=7).between(2000, 3000)
    secret = cl.Bit("status = 'C'")
    queries = cl.digit_queries(people.ids, primes=25)
    system = cl.Simulated(people, secret, cl.SimulatedDiffix(sigma=4.0), seed=1)
    found = cl.reconstruct(queries, system)
    score = cl.score(found.guess, people.truth(secret))
    assert score.accuracy > 0.95 > score.baseline
