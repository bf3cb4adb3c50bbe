import shlex

import pytest

from countleak.lab_page.accuracy_map import MapSettings, accuracy_map


def test_how_many_queries_reach_a_target(run):
    found = run("budget", "--n", 100, "--sigma", 4, "--target", 0.95, "--json").json
    assert found["decoder"] == "bayes"
    assert found["accuracy"] == pytest.approx(0.95, abs=0.001)
    assert 650 < found["queries"] < 800
    assert found["sigma"] == 4
    again = run(
        "budget", "--n", 100, "--queries", found["queries"], "--target", 0.95, "--json"
    ).json
    assert again["sigma"] == pytest.approx(4, rel=0.01)
    assert again["accuracy"] == pytest.approx(0.95, abs=1e-4)
    known = run("budget", "--n", 100, "-m", found["queries"], "--sigma", 4, "--json").json
    assert known["accuracy"] == found["accuracy"]
    assert known["target"] is None


FIRST = ("budget", "--n", 100, "--sigma", 4, "--target", 0.95)


def test_a_verdict_a_remedy_and_what_is_assumed(run, tmp_path):
    shown = run(*FIRST, "--picture", "plan.svg")
    lines = shown.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "Verdict", "Remedy", "Assumes", "Details", "Picture",
    ]  # fmt: skip
    assert "get 95 of 100 people's secrets right (95.0%), where guessing gets 50" in lines[0]
    assert "breaks your limit of 55.0%" in lines[0]
    assert "Normal noise of SD 53.8 or more" in lines[1]
    assert "off by up to 105, where a count is about 25)" in lines[1]
    assert "epsilon" not in shown.out
    assert "stop after 5 answers" in lines[1]
    assert "few, fixed filters" in lines[2]
    assert lines[2].endswith("(countleak audit FILE --known COLUMNS --family tables)")
    assert "bayes" not in shown.out and shown.err == ""
    assert "your limit" in (tmp_path / "plan.svg").read_text()
    told = run(*FIRST, "--json").json
    for key, line in zip(("verdict", "remedy", "assumes"), lines, strict=False):
        assert line.partition(":")[2].strip().startswith(told[key])


def test_the_figures_behind_it_are_told_on_demand(run):
    text = " ".join(run(*FIRST, "--verbose").out.split())
    assert "An attacker with these answers gets 95.0% of the secrets right" in text
    assert "(decoder `bayes`, measured within 0.05)" in text
    assert "The remedy is against `bayes`. Its noise costs epsilon = 2.26 at delta = 1e-06" in text
    assert "gets more than 99.1%" in text
    assert "no base up to 7 would do" in text
    assert "cost epsilon = 54 at delta = 1e-06" in text


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "diffix"])
def test_an_epsilon_for_all_answers_is_noise_that_costs_it(run, mechanism):
    words = ("budget", "--n", 100, "-m", 300, "--mechanism", mechanism)
    found = run(*words, "--epsilon", 3, "--json").json
    assert found["epsilon"] == pytest.approx(3, rel=2e-3)
    assert found["sigma"] == found["sigma_for_epsilon"]
    told = run(*words, "--epsilon", 3).out
    assert "Privacy: As differential privacy, all these answers together cost epsilon = 3 " in told
    # Nothing else was needed for it.
    assert "would have needed" not in told
    again = run(*words, "--sigma", found["sigma"], "--json").json
    assert again["accuracy"] == found["accuracy"]


def test_an_epsilon_of_each_answer_is_noise_too(run):
    words = ("budget", "--n", 100, "--target", 0.9, "--epsilon-each", 0.5, "--json")
    laplace = run(*words, "--mechanism", "laplace").json
    assert laplace["sigma"] == pytest.approx(2 * 2**0.5)
    assert laplace["accuracy"] == pytest.approx(0.9, abs=0.01)
    normal = run(*words).json
    one = ("budget", "--n", 100, "-m", 1, "--sigma", normal["sigma"], "--json")
    assert run(*one).json["epsilon"] == pytest.approx(0.5, rel=1e-6)


def test_for_noise_with_a_bound_the_noise_that_would_do_is_told(run):
    words = ("budget", "--n", 100, "--mechanism", "uniform")
    few = run(*words, "--bound", 6, "-m", 20, "--json").json
    assert f"uniform noise within ±{few['bound_needed']} or more" in few["remedy"]
    assert run(*words, "--bound", few["bound_needed"], "-m", 20, "--json").json["within_limit"]
    less = run(*words, "--bound", few["bound_needed"] - 1, "-m", 20, "--json").json
    assert not less["within_limit"]
    normal = ("budget", "--n", 100, "-m", 20, "--sigma", few["normal_sigma_needed"], "--json")
    assert run(*normal).json["advantage"] == pytest.approx(0.1, abs=1e-3)
    many = run(*words, "--bound", 6, "-m", 300, "--json").json
    assert many["bound_needed"] is None
    assert "No uniform noise up to ±250 does" in many["remedy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", 60, "--mechanism", "round", "--base", 5), "counts rounded to multiples of 5"),
        (("-m", 60, "--mechanism", "uniform", "--bound", 5), "uniform noise within ±5"),
        (("-m", 300, "--mechanism", "laplace", "--sigma", 4), "Laplace noise of SD 4"),
        (("-m", 300, "--mechanism", "diffix", "--sigma", 4), "normal noise of SD 4, rounded"),
        (("-m", 300, "--family", "signs", "--sigma", 4), "a random +1 or -1"),
        (("-m", 300, "--family", "digits", "--sigma", 4), "by digits of their ids"),
        (("-m", 300, "--density", 0.2, "--sigma", 4), "counts a random 20% of the people"),
        (("-m", 300, "--prior", 0.1, "--sigma", 4, "--decoder", "lp"), "not the strongest attack"),
        (("-m", 300, "--sigma", 60), "That is within your limit of 55.0%: a prediction, no proof."),
        (("-m", 1, "--sigma", 20), "1 answer with normal noise of SD 20 lets an"),
        (("-m", 300, "--mechanism", "uniform", "--bound", 6), "with what is shipped here"),
    ],
    ids=str,
)
def test_every_kind_of_noise_and_query_is_told(run, words, said):
    result = run("budget", "--n", 100, *words)
    assert result.code == 0
    assert said in result.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--sigma", 4), "pass --queries, or --target to find how many it takes"),
        (("-m", 300), "pass --sigma, --epsilon or --epsilon-each, or both --queries"),
        (("-m", 300, "--sigma", 0), "sigma is 0"),
        (("-m", 300, "--sigma", 4, "--decoder", "oracle"), "'oracle' is not one of 'lp', 'ls'"),
        (("-m", 300, "--sigma", 4, "--family", "dice"), "'dice' is not one of"),
        (("-m", 300, "--sigma", 4, "--mechanism", "magic"), "'magic' is not one of"),
        (("-m", 300, "--mechanism", "round"), "takes --base"),
        (
            ("-m", 300, "--sigma", 4, "--mechanism", "round"),
            "it needs --mechanism diffix or --mechanism gaussian",
        ),
        (
            ("-m", 300, "--sigma", 4, "--base", 5),
            "--base does not apply to --mechanism gaussian; it needs --mechanism round",
        ),
        (
            ("-m", 300, "--mechanism", "round", "--base", 5, "--delta", 0.1),
            "--delta does not apply",
        ),
        (("-m", 300, "--sigma", 1e-300), "sigma is 1e-300; the closed form holds from 0.001"),
        (
            ("-m", 300, "--sigma", 1e308),
            "sigma is 1e+308; it must lie above 0 and be at most 1e+09",
        ),
        (("-m", 300, "--sigma", 1e8), "sigma is 1e+08; the closed form holds from 0.001"),
        (("-m", 300, "--sigma", "nan"), "--sigma is nan; give a finite number"),
        (("-m", 10**18, "--sigma", 4), "the closed form goes up to 1e+09 and 1e+12"),
        (("-m", 300, "--mechanism", "uniform", "--bound", 10**9), "too wide for the closed form"),
        (("-m", 300, "--sigma", 4, "--density", 1e-300), "density is 1e-300"),
        (("-m", 300, "--sigma", 4, "--prior", 1e-300), "prior is 1e-300"),
        (("-m", 300, "--sigma", 4, "--epsilon", 1e20), "epsilon is 1e+20"),
        (("-m", 300, "--epsilon", 0), "epsilon is 0"),
        (("-m", 300, "--epsilon-each", -1), "epsilon is -1"),
        (("--epsilon", 1, "--target", 0.9), "pass --queries, or --epsilon-each"),
        (("-m", 300, "--sigma", 4, "--epsilon-each", 1), "does not apply with --sigma"),
        (
            ("-m", 300, "--mechanism", "uniform", "--bound", 6, "--epsilon", 1),
            "--epsilon does not apply to --mechanism uniform",
        ),
        (("-m", 300, "--mechanism", "round", "--base", 90), "plan with a base up to 7"),
        (("-m", 300, "--sigma", 4, "--family", "signs", "--density", 0.2), "--density does not"),
        (("-m", 300, "--sigma", 4, "--prior", 1), "prior is 1"),
        (("-m", 300, "--sigma", 4, "--limit", 1), "an advantage lies between 0 and 1"),
        (("-m", 300, "--sigma", 4, "--delta", 0), "delta is 0"),
        (("-m", 300, "--sigma", 4, "--picture", "x.gif"), "cannot draw '.gif'"),
        (("--sigma", 4, "--target", 0.4), "guessing alone gets 0.5"),
        (("-m", 300, "--target", 0.4), "guessing alone gets 0.5"),
        (("-m", 40, "--sigma", 0.5, "--decoder", "lp"), "plan with more than half as many queries"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(run, tmp_path, words, complaint):
    result = run("budget", "--n", 100, *words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert complaint in result.err
    assert not list(tmp_path.iterdir())


def test_the_papers_program_has_no_prediction_for_fifty_exact_answers(run):
    result = run("budget", "--n", 150, "-m", 50, "--sigma", 1, "--decoder", "lp")
    assert result.code == 2
    assert "50 answers about 150 people are met by many solutions alike" in result.err


def test_a_prediction_that_no_decoder_attains_is_said_to_be_ideal(run):
    words = ("budget", "--n", 100, "--mechanism", "uniform", "--bound", 6)
    text = " ".join(run(*words, "-m", 300, "--verbose").out.split())
    assert "let an ideal attacker get 100 of 100" in text
    assert "An ideal decoder gets 100.0% of the secrets right" in text
    assert "No shipped decoder attains this: `bounded` can get stuck" in text
    assert "The best, `ls`, reaches about 83.7% or more" in text
    assert "ideal bounded" in text and "The remedy is against an ideal decoder" in text
    after = run(*words, "-m", 450, "--verbose")
    assert "(decoder `bounded`, measured within 0.05)" in " ".join(after.out.split())
    assert "ideal" not in after.out
    found = run(*words, "-m", 300, "--json").json
    assert found["decoder"] is None and found["meant"] == "bounded"


def test_a_decoder_that_does_not_know_the_noise_is_refused(run):
    words = ("budget", "--n", 100, "-m", 300)
    bounded = run(*words, "--mechanism", "uniform", "--bound", 6, "--decoder", "bayes")
    assert bounded.code == 2
    assert "predict one of lp, ls, bounded" in bounded.err
    normal = run(*words, "--sigma", 4, "--decoder", "bounded")
    assert normal.code == 2
    assert "predict one of lp, ls, bayes" in normal.err


@pytest.mark.parametrize(
    "form",
    [{"people": "60", "questions": "400"}, {"law": "laplace", "attacker": "ls", "share": "30"}],
    ids=["usual", "other"],
)
def test_the_command_under_the_labs_map_predicts_what_the_map_does(form, run):
    settings = MapSettings.of_form({**form, "sd": "8", "limit": "20"})
    on_map = accuracy_map(settings)
    found = run(*shlex.split(settings.command)[1:], "--json").json
    assert found["accuracy"] == pytest.approx(on_map.prediction.accuracy)
    assert found["sigma_needed"] == pytest.approx(on_map.sd_needed)
    assert found["queries_allowed"] == on_map.questions_allowed
