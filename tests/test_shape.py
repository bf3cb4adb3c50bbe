"""The shape the code should keep: short functions, short files, few parameters."""

import ast
from pathlib import Path

import pytest

import countleak

ROOT = Path(countleak.__file__).parent
CLONE = Path(__file__).parent.parent
FILES = sorted([*ROOT.rglob("*.py"), *(CLONE / "benchmarks").rglob("*.py")])
LONGEST_BODY, LONGEST_FILE, MOST_PARAMETERS = 60, 400, 14


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_a_function_is_one_step_and_a_file_one_idea(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
    for function in functions(path):
        first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
        assert function.body[-1].end_lineno - first.lineno < LONGEST_BODY, function.name
        parameters = [*function.args.args, *function.args.kwonlyargs]
        assert len(parameters) <= MOST_PARAMETERS, function.name
