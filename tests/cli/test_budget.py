import pytest


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


def test_the_advice_reads_as_one_would_say_it(run, tmp_path):
    shown = run("budget", "--n", 100, "--sigma", 4, "--target", 0.95, "--picture", "plan.svg").out
    text = " ".join(shown.split())
    assert "An attacker with these answers gets 95.0% of the secrets right" in text
    assert "guessing without any answer gets 50.0%" in text
    assert "This breaks your limit (10% of the way, 55.0% right)" in text
    assert "a cap of 5 answers in all" in text
    assert "cost epsilon = 54 at delta = 1e-06" in text
    assert "the limit" in (tmp_path / "plan.svg").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", 60, "--mechanism", "round", "--base", 5), "counts rounded to multiples of 5"),
        (("-m", 60, "--mechanism", "uniform", "--bound", 5), "uniform noise within ±5"),
        (("-m", 300, "--mechanism", "laplace", "--sigma", 4), "Laplace noise of SD 4"),
        (("-m", 300, "--mechanism", "diffix", "--sigma", 4), "normal noise of SD 4, rounded"),
        (("-m", 300, "--family", "signs", "--sigma", 4), "(signs;"),
        (("-m", 300, "--density", 0.2, "--sigma", 4), "(subsets of density 0.2;"),
        (("-m", 300, "--prior", 0.1, "--sigma", 4, "--decoder", "lp"), "guessing without any"),
        (("-m", 300, "--sigma", 400), "This stays within your limit"),
    ],
    ids=str,
)
def test_every_kind_of_noise_and_query_is_told(run, words, said):
    result = run("budget", "--n", 100, *words)
    assert result.code == 0
    assert said in " ".join(result.out.split())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--sigma", 4), "pass --queries, or --target to find how many it takes"),
        (("-m", 300), "pass --sigma, or both --queries and --target"),
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
    text = " ".join(run(*words, "-m", 300).out.split())
    assert "An ideal decoder gets 100.0% of the secrets right" in text
    assert "No shipped decoder attains this: `bounded` can get stuck" in text
    assert "The best, `ls`, reaches about 83.7% or more" in text
    assert "ideal bounded" in text and "against an ideal decoder" in text
    after = run(*words, "-m", 450)
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
