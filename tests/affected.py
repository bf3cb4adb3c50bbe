"""Lists the test files that a change concerns, the nearest first, for `make check`.

    python -m tests.affected main

A change concerns the tests that import a changed module or are named after it, then those of the
modules that import a changed module. A change of a test file concerns itself and the tests that
import it.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
# Tests of pages, which no module imports.
OF_PAGES = ("tests/test_docs.py", "tests/test_pages.py")


def changed_files(base: str) -> list[str]:
    """The files that differ from ``base``, those that git does not track yet among them."""
    commands = (
        ("diff", "--name-only", "--merge-base", base),
        ("ls-files", "--others", "--exclude-standard"),
    )
    found: list[str] = []
    for words in commands:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        found += done.stdout.splitlines()
    return sorted(set(found))


def affected(changed: Iterable[str]) -> list[str]:
    """The test files that the ``changed`` files concern, the nearest first."""
    changed = list(changed)
    tests = {str(path.relative_to(ROOT)): path for path in sorted(TESTS.rglob("test_*.py"))}
    imported = {name: imports_of(path) for name, path in tests.items()}
    graph = grimp.build_graph("countleak", cache_dir=str(ROOT / ".import_linter_cache"))
    modules = {module_of(name) for name in changed} - {None}
    importers = {
        importer
        for module in modules & graph.modules
        for importer in graph.find_modules_that_directly_import(module)
    }
    rings = [
        [name for name in tests if name in changed],
        [name for name in OF_PAGES if any(each.endswith(".md") for each in changed)],
        *(
            [name for name in tests if imported[name] & ring or named_after(name) & ring]
            for ring in (modules, importers)
        ),
    ]
    return list(dict.fromkeys(name for ring in rings for name in ring if name in tests))


def module_of(name: str) -> str | None:
    """The module in a file, by its path below the clone; None if it holds no module."""
    path = Path(name)
    if path.suffix != ".py":
        return None
    parts = list(path.with_suffix("").parts)
    if parts[0] == "src":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def named_after(test: str) -> set[str]:
    """The modules that a test file may be named after: a/test_b.py after countleak.a.b."""
    *folders, name = Path(test).with_suffix("").parts[1:]
    return {".".join(("countleak", *folders, name.removeprefix("test_")))}


def imports_of(path: Path) -> set[str]:
    """Every module that a file may import, by the names it writes."""
    return set(_imports(ast.parse(path.read_text())))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            # What is imported from a package may be a module of it.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


if __name__ == "__main__":
    print("\n".join(affected(changed_files(*sys.argv[1:]))))  # noqa: T201
