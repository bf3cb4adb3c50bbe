import pytest

from countleak.errors import InputError
from countleak.lab.experiments import Claim, Outcome, Settings
from countleak.lab.experiments.comparison import Published
from countleak.lab.reproduction import CATALOGUE, draw_figures, write_page

RECORDED = [e for e in CATALOGUE.values() if e.answers == "recorded"]


@pytest.mark.parametrize("experiment", RECORDED, ids=lambda e: e.name)
def test_recorded_experiments_ask_for_the_data(experiment):
    with pytest.raises(InputError, match="give the folder `data` of the authors' repository"):
        experiment.run(Settings(), lambda done, total: None)


def test_every_experiment_says_where_its_answers_come_from():
    assert {e.answers for e in CATALOGUE.values()} == {"recorded", "simulated"}


def row(n, queries, accuracy):
    interval = (accuracy - 0.01, min(1.0, accuracy + 0.01))
    return {"n": n, "queries": queries, "sigma": 4.0, "accuracy": accuracy, "interval": interval}


CLAIMS = (Claim("Size <matters> little", "together", "close", True),
          Claim("Above .99 at 2050", "2050", "never", False, "ten trials"))  # fmt: skip
OUTCOMES = {
    "figure-1": Outcome(
        "rows", tuple(row(n, m, 0.6 + m / 1000) for n in (50, 100) for m in (50, 150)), (), CLAIMS
    )
}
PUBLISHED = (Published("dmt", 100, 50, 4.0, 0.0, 10, 0.64, 0.03, 0),)


def test_figures_are_drawn_three_ways_with_the_papers_points(tmp_path):
    figures = draw_figures(OUTCOMES, PUBLISHED, tmp_path)
    assert list(figures) == ["1b-queries"]
    for suffix in ("svg", "png", "html"):
        assert (tmp_path / f"1b-queries.{suffix}").stat().st_size
    drawn = (tmp_path / "1b-queries.svg").read_text()
    for word in ("questions answered", "secrets right, mean of trials", "people", "95%", "99%"):
        assert f">{word}</text>" in drawn
    # The interactive page carries its own copy of the drawing library.
    html = (tmp_path / "1b-queries.html").read_text()
    assert "cdn" not in html.lower().split("</head>")[0]


def test_the_page_has_every_claim_and_is_escaped(tmp_path):
    figures = draw_figures(OUTCOMES, PUBLISHED, tmp_path)
    comparison = Claim("The authors' own means", "420 cells", "they agree", True)
    page = write_page(OUTCOMES, [comparison], figures, None, tmp_path / "page.html").read_text()
    assert "Size &lt;matters&gt; little" in page
    assert '<span class="no">no</span>: ten trials' in page
    assert "420 cells" in page
    assert page.count("<figure>") == 1
    assert "a generated census" in page
    # No legend is cut where a browser's letters are wider than those it was measured with.
    assert "overflow: visible" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
