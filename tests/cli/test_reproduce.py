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


def test_the_list_names_every_experiment(run):
    assert {e["name"] for e in run("reproduce", "--json").json["experiments"]} >= {
        "table-1",
        "presence",
        "feasibility",
        "precision",
    }
    assert "What can be reproduced" in run("reproduce").out


def test_table_1_as_json_and_as_a_table(run, shared):
    data = shared / "data" / "cohen-nissim"
    rows = run("reproduce", "table-1", "--data", data, "--json").json["rows"]
    assert all(set(row) >= KEYS for row in rows)
    shown = run("reproduce", "table-1", "--data", data)
    assert "The paper: The linear program rebuilt all four ranges" in shown.out
    assert "10000-12000" in shown.out


def test_presence_as_json(run):
    trials = run("reproduce", "presence", "--json").json["trials"]
    assert all({"false_negatives", "false_positives"} <= set(trial) for trial in trials)
