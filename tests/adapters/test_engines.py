"""Every adapter asks its real engine, in an environment made from its pins by pip."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from countleak.audit.people import generated_bank

ADAPTERS = Path(__file__).parents[2] / "adapters"
SCRIPTS = sorted(path for path in ADAPTERS.glob("*.py") if path.name != "questions.py")
# People few enough for an engine that takes its time; enough for counts above a threshold of 10.
FEW, MANY = (2000, 2200), (2000, 3120)
PEOPLE = ("--people", "people.csv", "--secret", "status = 'C'", "--timeout", 120)
SUBSETS = ("--family", "subsets", "--queries")

SLOW = pytest.mark.slow


def pip(python, *words):
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def python(request, script, tmp_path):
    """The interpreter of the adapter's environment, which is kept for as long as the pins are."""
    pins = script.with_suffix(".txt")
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    folder = request.config.cache.mkdir("adapters") / f"{script.stem}-{digest}"
    made, python = folder / "made", folder / "bin" / "python"
    if made.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    done = pip(python, "install", "-r", str(pins))
    if done.returncode:
        # Is it the pins, or is there no registry at all?
        reachable = pip(python, "download", "--no-deps", "--dest", str(tmp_path / "wheels"), "pip")
        if reachable.returncode:
            pytest.skip(f"the package registry cannot be reached to install {pins.name}")
        pytest.fail(done.stderr)
    made.touch()
    return python


@pytest.fixture
def audited(run, script, python, tmp_path):
    """A short audit through the adapter."""

    def audited(between, words, *options):
        generated_bank(7).between(*between).write_csv(tmp_path / "people.csv")
        target = f"cmd:{python} {script} people.csv {words}"
        done = run("audit", target, *PEOPLE, *options, "--json")
        assert done.code == 0, done.err
        return done.json

    return audited


def test_every_adapter_has_pins_and_is_in_the_docs():
    docs = (ADAPTERS.parent / "docs" / "engines.md").read_text()
    for script in SCRIPTS:
        pins = script.with_suffix(".txt").read_text().split()
        assert all("==" in pin for pin in pins)
        assert f"adapters/{script.name}" in docs


def only(*names):
    return pytest.mark.parametrize("script", [ADAPTERS / name for name in names], ids=names)


@SLOW
@only("smartnoise_sql.py", "pipeline_dp_engine.py")
def test_noise_anew_for_every_question_hides_nobody(audited):
    found = audited(FEW, "--epsilon 1", *SUBSETS, 150)
    assert (found["answers"], found["refused"]) == (150, None)
    assert "epsilon 1 per query" in found["system"]
    assert found["accuracy"] >= 0.9 > found["baseline"]


@SLOW
@only("smartnoise_sql.py")
def test_smartnoise_censors_low_counts(run, script, python, tmp_path):
    generated_bank(7).between(*FEW).write_csv(tmp_path / "people.csv")
    target = f"cmd:{python} {script} people.csv --epsilon 1 --delta 1e-12 --censor"
    done = run("audit", target, *PEOPLE, *SUBSETS, 20)
    # The threshold is 27 people, and there are fewer.
    assert done.code == 2
    assert "every answer was suppressed" in done.err


@SLOW
@only("opendp_context.py")
def test_opendp_ends_the_audit_with_its_budget(audited):
    found = audited((2000, 2120), "--epsilon 1 --total 40", *SUBSETS, 100)
    assert found["answers"] == 40
    assert "would exceed privacy budget (40.0)" in found["refused"]
    assert found["accuracy"] >= 0.8 > found["baseline"]


@SLOW
@only("diffprivlib_tools.py")
def test_diffprivlib_ends_the_audit_with_its_budget(audited):
    found = audited(FEW, "--epsilon 1 --total 120", *SUBSETS, 200)
    assert found["answers"] == 120
    assert "will exceed remaining privacy budget" in found["refused"]
    assert found["accuracy"] >= 0.9 > found["baseline"]


@SLOW
@only("syndiffix_rows.py")
def test_syndiffix_rows_are_about_nobody_in_particular(audited):
    found = audited(MANY, "", "--family", "ranges", "--known", "amount,duration", "--queries", 150)
    assert found["answers"] == 150
    # Made once from a salt, they are the same in every run.
    assert found["interval"][0] < found["baseline"]


@SLOW
@only("cell_key_table.py")
def test_the_cell_key_method_rounds_and_hides_nobody(audited):
    found = audited(MANY, "", *SUBSETS, 150)
    assert found["accuracy"] == 1.0
    assert "answers are rounded to multiples of 5" in found["inferred"]
    assert found["implied"] == found["people"]
