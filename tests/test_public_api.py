import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import countleak

# Public names that are also the name of a room: `cl.audit(...)` and `countleak.audit.targets`.
ROOMS = [name for name in countleak.__all__ if importlib.util.find_spec(f"countleak.{name}")]


def python(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("name", countleak.__all__)
def test_every_public_name_is_there(name):
    member = getattr(countleak, name)
    assert name in dir(countleak)
    assert getattr(member, "__name__", name) == name


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(countleak.__file__).read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {alias.asname: statement.module for statement in block.body for alias in statement.names}
    assert seen == countleak._HOME


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        countleak.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, countleak; print([m for m in sys.modules if m.startswith('countleak')])"
    assert python(program) == "['countleak']"


@pytest.mark.parametrize("name", ROOMS)
def test_a_function_is_not_hidden_by_the_room_of_its_name(name):
    rooms = f"import countleak.{name}, countleak.cli, countleak.errors"
    assert python(f"import countleak as cl; {rooms}; print(callable(cl.{name}))") == "True"


def test_a_stand_in_is_not_hidden_by_the_room_of_its_name():
    program = """
import countleak as cl, countleak.errors
countleak.errors.audit = lambda: "called"
cl._HOME["audit"] = "countleak.errors"
import countleak.audit.targets
print(cl.audit())
from countleak.audit.targets import Target
print(cl.audit())
"""
    assert python(program) == "called\ncalled"


def test_the_public_face_reads_like_the_sentence():
    people = countleak.generated_bank(seed=7).between(2000, 3000)
    condition = countleak.Condition.parse("status = 'C'")
    queries = countleak.digit_queries(people.ids, primes=25)
    system = countleak.Simulated(people, condition, countleak.SimulatedDiffix(sigma=4.0), seed=1)
    run = countleak.reconstruct(queries, system)
    found = countleak.score(run.guess, people.secret(condition))
    assert found.accuracy > 0.95 > found.baseline
