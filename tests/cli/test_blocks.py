"""`countleak audit --block`: one report and one exit code for all blocks."""

import json

import pytest

AUDIT = (
    "audit", "simulated", "--people", "census:40:7", "--secret", "sex = 1", "--family", "subsets",
    "--mechanism", "gaussian", "--block", 20, "--jobs", 1, "--time-limit", 0,
)  # fmt: skip


def test_one_report_and_one_verdict_of_all_blocks(run, tmp_path):
    found = run(*AUDIT, "--sigma", 0.5, "-m", 40, "--fail-above", 0.2, "--json")
    assert found.code == 1
    said = json.loads(found.out)
    assert said["failed"] and said["people"] == 40 and len(said["blocks"]) == 2
    assert said["answers"] == sum(block["answers"] for block in said["blocks"]) == 80
    report = json.loads((tmp_path / "audit" / "report.json").read_text())
    assert report["audit"]["score"]["right"] == said["right"]
    assert report["audit"]["judged"]["failed"] is True
    # The same audit again takes what is finished, and comes to the same.
    assert (
        run(*AUDIT, "--sigma", 0.5, "-m", 40, "--json", "--no-report").json["right"]
        == said["right"]
    )


def test_a_block_that_shows_nothing_is_named_and_ends_with_2(run, tmp_path):
    rows = [f"{i},{i % 3 // 2}" for i in range(1, 41)]
    (tmp_path / "all.csv").write_text("\n".join(["id,ill", *rows]))
    # The system holds nobody of the second block, so all that it says of them is 0.
    (tmp_path / "half.csv").write_text("\n".join(["id,ill", *rows[:20]]))
    live = ("audit", "duckdb:///half.csv", "--people", "all.csv", "--secret", "ill = 1")
    found = run(*live, "--family", "modular", "-m", 40, "--block", 20, "--fail-above", 1)
    assert found.code == 2
    assert "block 2: every answer is 0" in found.err
    assert "block 1" not in found.err
    report = json.loads((tmp_path / "audit" / "report.json").read_text())
    assert report["audit"]["judged"]["failed"] is None
    assert "block 2" in report["audit"]["judged"]["words"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--control",), "--block does not apply with --control"),
        (("--block", 3), "at least 10"),
    ],
)
def test_what_does_not_go_together_is_said_in_a_line(run, words, why):
    assert why in run(*AUDIT, *words).err
