from countleak.cli.lab import reproduce
from countleak.lab.experiments import Claim, Experiment, Outcome, figure_3, presence
from countleak.lab.experiments.cells import cells
from countleak.lab.experiments.trials import grid

KEYS = {
    "range",
    "target",
    "accuracy_paper",
    "n",
    "queries",
    "max_exponent",
    "accuracy_dmt",
    "accuracy_bounded",
    "baseline",
    "kappa",
    "residual_mean",
    "residual_sd",
}


def small(settings, progress):
    """The experiment on suppression with a few small trials."""
    trials = grid(n=10, queries=(50, 150), suppression=(True, False), number=range(3))
    found = cells(
        settings.runner.run(trials, settings.setting, progress), ("sigma", "queries", "suppression")
    )
    return Outcome("rows", tuple(cell.record() for cell in found))


SMALL = Experiment("suppression", "A small one.", "simulated", small)


def test_the_list_names_every_experiment(run):
    assert {e["name"] for e in run("lab", "reproduce", "--json").json["experiments"]} >= {
        "table-1",
        "presence",
        "feasibility",
        "precision",
    }
    assert "What can be reproduced" in run("lab", "reproduce").out


def test_table_1_as_json_and_as_a_table(run, shared):
    data = shared / "data" / "cohen-nissim"
    rows = run("lab", "reproduce", "table-1", "--data", data, "--json").json["rows"]
    assert all(set(row) >= KEYS for row in rows)
    shown = run("lab", "reproduce", "table-1", "--data", data)
    assert "The paper (table-1): The linear program rebuilt all four ranges" in shown.out
    assert "10000-12000" in shown.out


def test_figures_and_page_of_a_small_reproduction(run, monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "CATALOGUE", {"suppression": SMALL})
    result = run("lab", "reproduce", "all", "--jobs", 1)
    assert result.code == 0
    assert "All of it on one page: runs/reproduction.html" in result.out
    assert (tmp_path / "runs" / "reproduction.html").stat().st_size
    assert (tmp_path / "runs" / "figures" / "suppression.svg").stat().st_size


def test_presence_as_json(run):
    trials = run("lab", "reproduce", "presence", "--json").json["trials"]
    assert all({"false_negatives", "false_positives"} <= set(trial) for trial in trials)


def test_a_quick_run_is_short_and_says_that_it_decides_little(run, monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "CATALOGUE", {"presence": presence.EXPERIMENT})
    shown = run("lab", "reproduce", "all", "--quick", "--jobs", 1)
    assert shown.code == 0
    assert "This is a quick run of 2 trials per point" in shown.err
    assert "quick run of 2 trials" in (tmp_path / "runs" / "reproduction.html").read_text()
    assert len((tmp_path / "runs" / "trials.jsonl").read_text().splitlines()) == 1 + 2
    refused = run("lab", "reproduce", "table-1", "--quick")
    assert refused.code == 2
    assert "--quick does not apply" in refused.err


def test_a_claim_that_disagrees_in_a_quick_run_says_how_few_trials_it_rests_on():
    wrong = Claim("Above .99", "2050", "never", False, "ten trials leave an error")
    right = Claim("Below .99", "5", "5", True)
    (first, second) = reproduce._hurried(Outcome("rows", (), (), (wrong, right))).claims
    assert first.why == "ten trials leave an error; and this is " + reproduce.FEW
    assert second == right


def test_a_quick_run_of_figure_3_keeps_to_its_panels():
    few, all_of_them = figure_3.trials(quick=True), figure_3.trials()
    assert set(few) < set(all_of_them)
    assert len(few) < len(all_of_them) / 10
