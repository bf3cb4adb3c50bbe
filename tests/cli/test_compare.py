import pytest

from tests.cli.conftest import run_once

AUDIT = (
    "audit", "simulated", "--people", "census:12", "--secret", "sex = 1", "--family", "subsets",
    "-m", 40, "--mechanism", "gaussian",
)  # fmt: skip


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """A folder with two audits: little noise before, much after."""
    folder = tmp_path_factory.mktemp("audits")
    run_once(folder, *AUDIT, "--sigma", 1, "--folder", "before")
    run_once(folder, *AUDIT, "--sigma", 40, "--folder", "after")
    return folder


def test_what_changed_and_whether_by_more_than_chance(run, audits):
    said = run("compare", audits / "before", audits / "after")
    assert said.code == 0
    assert said.out.startswith("Less is given away: the advantage over guessing is")
    assert "beyond chance" in said.out
    assert "system: simulated, normal noise of SD 1;" in said.out
    assert "no proof of anonymity" in said.err


def test_as_json_and_as_a_page(run, audits, tmp_path):
    words = ("compare", audits / "before", audits / "after", "--page", tmp_path / "both.html")
    found = run(*words, "--json").json
    first = found["differences"][0]
    assert first["difference"] == pytest.approx(first["after"] - first["before"])
    assert first["interval"][0] < first["difference"] < first["interval"][1]
    assert found["page"] == str(tmp_path / "both.html")
    assert "What changed" in (tmp_path / "both.html").read_text()
    assert run(*words).code == 0


def test_what_is_no_audit_or_not_ours_is_refused(run, audits, tmp_path):
    assert run("compare", audits / "before", tmp_path).code == 2
    (tmp_path / "mine.html").write_text("<html>")
    refused = run("compare", audits / "before", audits / "after", "--page", tmp_path / "mine.html")
    assert refused.code == 2
    assert (tmp_path / "mine.html").read_text() == "<html>"
