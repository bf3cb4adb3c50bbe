"""`make check` runs the tests of what changed, and a test that takes too long fails."""

import pytest

from tests.affected import ROOT, affected, module_of

pytest_plugins = ("pytester",)


def test_the_tests_of_a_module_come_before_those_of_what_imports_it():
    found = affected(["src/countleak/audit/targets/limits.py"])
    own, importing = "tests/audit/targets/test_postgres.py", "tests/audit/targets/test_sql.py"
    assert found.index(own) < found.index(importing)
    assert "tests/attack/test_noise.py" not in found


def test_a_test_file_that_changed_comes_first_and_other_tests_of_its_helpers_follow():
    changed = ["tests/test_files.py", "tests/audit/targets/hostile.py"]
    found = affected(changed)
    assert found[0] == "tests/test_files.py"
    assert "tests/audit/targets/test_hostile.py" in found


def test_a_page_concerns_the_tests_of_pages():
    assert affected(["docs/live.md"]) == ["tests/test_docs.py", "tests/test_pages.py"]
    assert affected(["constraints.txt"]) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("src/countleak/errors.py", "countleak.errors"),
        ("src/countleak/audit/targets/__init__.py", "countleak.audit.targets"),
        ("tests/pages.py", "tests.pages"),
        ("docs/site.css", None),
    ],
)
def test_a_file_holds_a_module(name, module):
    assert module_of(name) == module


SPIN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"


@pytest.mark.parametrize("marked", [False, True])
def test_an_unmarked_test_that_takes_too_long_fails(pytester, marked):
    conftest = (ROOT / "tests" / "conftest.py").read_text()
    pytester.makeconftest(conftest.replace("MOST_SECONDS = 15.0", "MOST_SECONDS = 0.1"))
    mark = "@pytest.mark.slow\n" if marked else ""
    body = "".join(f"    {line}\n" for line in SPIN.splitlines())
    pytester.makepyfile(f"import pytest\n{mark}def test_spins():\n{body}")
    pytester.makeini("[pytest]\nmarkers = slow")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(
        passed=int(marked), failed=int(not marked)
    )


def test_what_would_begin_too_late_is_left_out_and_said(pytester):
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text())
    pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--within", "-1", "-rs")
    done.assert_outcomes(skipped=2)
    done.stdout.fnmatch_lines("*left out: it would begin after -1 s*")
