"""The audit in one call: frames in, a sentence, a score and one row per person out."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import countleak as cl
from countleak.attack.guess_file import read_guess
from countleak.attack.queries.files import read_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, read_transcript
from countleak.audit.people import People, generated_bank, generated_census
from countleak.audit.run import Asking, Keeping, audit
from countleak.audit.scores import score
from countleak.audit.targets.simulated import Gaussian, Simulated, Uniform
from countleak.errors import InputError, NoResult
from countleak.shares import percent

N = 40
RNG = np.random.default_rng(4)
SEX = RNG.choice(["f", "m"], N, p=[0.6, 0.4])
STATUS = RNG.choice(["A", "B", "C"], N)
AMOUNT = RNG.integers(1000, 9000, N)
IDS = [f"p{i:03}" for i in range(N)]
DATA = {"uid": IDS, "sex": SEX.tolist(), "status": STATUS.tolist(), "amount": AMOUNT.tolist()}
# Frames need not be in the order of their ids.
ORDER = np.random.default_rng(5).permutation(N)
SHUFFLED = {name: [values[i] for i in ORDER] for name, values in DATA.items()}
FRAMES = pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame], ids=lambda kind: kind.__module__.split(".")[0]
)


@FRAMES
def test_a_frame_in_and_a_sentence_with_all_its_figures_out(frame):
    heard = []
    result = audit(
        frame(SHUFFLED),
        id="uid",
        secret="sex = 'm'",
        target=Gaussian(2.0),
        queries=300,
        progress=lambda *counts: heard.append(counts),
    )
    assert result.score.right == (result.guess.values == (SEX == "m")).sum()
    assert result.score.record() == score(result.guess, (SEX == "m").astype(np.int8)).record()
    assert result.score.accuracy > 0.9
    assert result.score.baseline == max((SEX == "m").mean(), (SEX == "f").mean())
    low, high = result.score.interval()
    sentence = str(result)
    assert "300 answers about 40 people, 0 suppressed; secret: sex = 'm'." in sentence
    for share in (result.score.accuracy, low, high, result.score.baseline, result.advantage):
        assert percent(share) in sentence
    assert heard == [(0, 300), (300, 300)]
    assert len(result.transcript) == 300
    assert len(result.steps) == 1
    assert result.confidence == result.guess.expected_right > 0.8


@FRAMES
def test_one_row_per_person(frame):
    result = audit(frame(SHUFFLED), id="uid", secret="sex = 'm'", target=Gaussian(1.0), queries=200)
    rows = result.people.columns()
    assert list(rows) == ["uid", "guess", "probability", "proven", "implied"]
    assert rows["uid"] == IDS
    assert rows["guess"] == result.guess.values.tolist()
    assert rows["probability"] == result.guess.confidence.tolist()
    assert min(rows["probability"]) >= 0.5
    assert len(result.people) == N
    assert isinstance(result.people.to_frame(), pl.DataFrame)
    back = result.people.to_frame("pandas")
    assert isinstance(back, pd.DataFrame)
    assert back["guess"].tolist() == rows["guess"]
    polars = result.people.to_frame("polars")
    assert polars.shape == (N, 5)
    assert polars["proven"].to_list() == rows["proven"]


def test_what_is_implied_is_proven_where_the_rule_is_stated():
    given = {"id": "uid", "secret": "sex = 'm'", "target": Uniform(1), "queries": 300}
    implied = audit(pl.DataFrame(DATA), **given)
    frame = implied.people.to_frame()
    assert frame["implied"].all() and not frame["proven"].any()
    within = "no answer is further than 1 from its count"
    assert f"40 people's values are implied, if {within}." in str(implied)
    assert "Inferred from the answers: noise lies within ± 1." in str(implied)
    assert "Stated" not in str(implied)
    proven = audit(pl.DataFrame(DATA), **given, rules=cl.Rules(cl.Shape.UNIFORM, bound=1))
    frame = proven.people.to_frame()
    assert frame["proven"].all() and not frame["implied"].any()
    assert "40 people's values are proven: under the rules stated no other fits." in str(proven)
    assert "Stated: noise lies within ± 1." in str(proven)
    assert "Inferred" not in str(proven)
    for result in (implied, proven):
        assert np.array_equal(result.guess.values, SEX == "m")


def test_rules_that_do_not_fit_a_secret_or_a_decoder_are_refused():
    given = {"id": "uid", "target": Gaussian(1.0), "queries": 100}
    exact = cl.Rules(cl.Shape.EXACT)
    with pytest.raises(InputError, match="no noise is added: a number can be decoded with"):
        audit(pl.DataFrame(DATA), secret="sum(amount)", rules=exact, **given)
    with pytest.raises(InputError, match="give rules, or a decoder that knows them, not both"):
        audit(
            pl.DataFrame(DATA), secret="sex = 'm'", rules=exact, decoder=cl.AutoDecoder(), **given
        )  # fmt: skip


def test_what_is_stated_of_a_category_is_used():
    rules = cl.Rules(sigma=1.0, floor=-50.0)
    result = audit(
        pl.DataFrame(DATA), id="uid", secret="status", target=Gaussian(1.0), queries=100,
        rules=rules,
    )  # fmt: skip
    assert result.guess.basis.sigma == (1.0,)
    assert "Stated: noise is normal of SD 1; no answer is below -50." in str(result)


def test_html_shows_the_same_and_escapes_it():
    people = People(np.arange(1, N + 1), {"<b>": SEX == "m"})
    result = audit(people, secret='"<b>" = true', target=Gaussian(1.0), queries=150)
    html = result._repr_html_()
    assert "<b>" not in html.replace("<strong>", "")
    assert "&lt;b&gt;" in html
    assert percent(result.score.accuracy) in html
    assert repr(result).startswith("<audit: 150 answers about 40 people")
    assert "\n" not in repr(result)


def test_a_composite_key_has_a_column_each():
    data = {**DATA, "branch": ["x", "y"] * (N // 2)}
    result = audit(
        pd.DataFrame(data), id=("branch", "uid"), secret="sex = 'm'", target=Gaussian(1.0),
        queries=200,
    )  # fmt: skip
    frame = result.people.to_frame("pandas")
    assert list(frame.columns) == ["branch", "uid", "guess", "probability", "proven", "implied"]
    assert sorted(frame["uid"].tolist()) == IDS
    assert frame["branch"].tolist() == ["x"] * 20 + ["y"] * 20
    assert result.score.accuracy > 0.9


def test_without_the_truth_there_is_no_success_rate():
    people = People(np.array(IDS), {"sex": SEX}, "uid")
    bare = People(np.array(IDS), {}, "uid")
    target = Simulated(people, cl.Bit("sex = 'm'"), Gaussian(2.0))
    result = audit(bare, secret="sex = 'm'", target=target, queries=300)
    assert result.score is None
    assert result.advantage is None
    assert "no success rate can be given" in str(result)
    assert "recovered" not in str(result)
    low, high = (percent(share) for share in result.guess.expected_interval)
    expected = f"{percent(result.confidence)} ({low} to {high}) of the guesses should be right"
    assert expected in str(result)
    assert (result.guess.values == (SEX == "m")).mean() > 0.9


def test_values_and_numbers_are_audited_as_well():
    values = audit(pl.DataFrame(DATA), id="uid", secret="status", target=Gaussian(1.0), queries=150)
    assert str(values.secret) == "status IN ('A', 'B', 'C')"
    assert values.score.accuracy > 0.9
    assert len(values.transcript) == 450
    frame = values.people.to_frame()
    assert set(frame["guess"].to_list()) == {"A", "B", "C"}
    assert (frame["probability"] > 0.3).all()
    numbers = audit(
        pl.DataFrame(DATA), id="uid", secret="sum(amount)", target=Gaussian(200.0), queries=150
    )
    assert numbers.score.errors.r_squared > 0.95
    assert numbers.people.to_frame()["probability"].to_list() == [None] * N
    assert "within 10%" in str(numbers)


def test_files_are_kept_and_resumed(tmp_path):
    keeping = Keeping(tmp_path / "kept", "a simulation", "the owner")
    given = {"id": "uid", "secret": "sex = 'm'", "target": Gaussian(2.0), "queries": 200}
    result = audit(pl.DataFrame(DATA), keeping=keeping, **given)
    queries = read_queries(keeping.folder / "queries.jsonl")
    transcript = read_transcript(keeping.folder / "answers.jsonl", queries)
    assert np.array_equal(np.sort(transcript.values), np.sort(result.transcript.values))
    guess, secret = read_guess(keeping.folder / "guess.jsonl")
    assert (str(secret), guess.ids.tolist()) == ("sex = 'm'", IDS)
    assert guess.probability == pytest.approx(result.guess.probability, abs=1e-8)
    header = json.loads((keeping.folder / "answers.jsonl").read_text().splitlines()[0])
    assert (header["system"], header["authorised_by"]) == ("a simulation", "the owner")

    class Silent:
        def answer(self, queries, positions):
            raise AssertionError("asked again")

    again = audit(pl.DataFrame(DATA), keeping=keeping, **{**given, "target": Silent()})
    assert np.array_equal(again.guess.probability, result.guess.probability)
    with pytest.raises(InputError, match="name a new file"):
        audit(pl.DataFrame(DATA), keeping=keeping, **{**given, "secret": "sex = 'f'"})


def test_asking_until_it_is_sure_asks_less():
    asking = Asking(until=0.95, first=60, batch=40)
    result = audit(
        pl.DataFrame(DATA), id="uid", secret="sex = 'm'", target=Gaussian(1.0), queries=600,
        asking=asking,
    )  # fmt: skip
    assert result.steps[-1].reached
    assert len(result.transcript) < 600
    assert result.confidence >= 0.95


def test_one_s_own_questions_and_target():
    queries = random_subsets(np.array(IDS), 120, np.random.default_rng(1))
    truth = (SEX == "m").astype(float)

    class Mine:
        def answer(self, queries, positions):
            yield Answers(positions, queries.dot(truth)[positions], np.ones(positions.size, bool))

    result = audit(pl.DataFrame(DATA), id="uid", secret="sex = 'm'", target=Mine(), queries=queries)
    assert result.score.accuracy == 1.0
    assert result.transcript.ids.tolist() == IDS


def test_bad_input_says_what_to_write():
    with pytest.raises(InputError, match="name the column that tells people apart, like id="):
        audit(pl.DataFrame(DATA), secret="sex = 'm'", target=Gaussian(1.0))
    with pytest.raises(InputError, match="a pandas or polars frame, not list"):
        audit([1, 2], id="uid", secret="sex = 'm'", target=Gaussian(1.0))
    with pytest.raises(InputError, match="no column 'nothing'"):
        audit(pl.DataFrame(DATA), id="uid", secret="nothing = 1", target=Gaussian(1.0))
    with pytest.raises(InputError, match="cannot be read"):
        audit(pl.DataFrame(DATA), id="uid", secret="sex is m", target=Gaussian(1.0))
    with pytest.raises(InputError, match="a target answers queries"):
        audit(pl.DataFrame(DATA), id="uid", secret="sex = 'm'", target="postgres")
    with pytest.raises(InputError, match="queries about other people"):
        audit(
            pl.DataFrame(DATA), id="uid", secret="sex = 'm'", target=Gaussian(1.0),
            queries=random_subsets(np.arange(N), 50, np.random.default_rng(0)),
        )  # fmt: skip


def test_an_audit_passes_only_where_the_attack_was_as_good_as_it_should_be():
    """People who are not the system's would otherwise pass for people who are safe."""
    people = generated_census(60, seed=1)
    shuffled = np.random.default_rng(0).permutation(people.columns["sex"])
    others = replace(people, columns={"sex": shuffled})
    target = Simulated(others, Bit("sex = 1"), Gaussian(1.0))
    result = audit(people, secret="sex = 1", target=target, queries=400)
    assert result.advantage < 0.6
    with pytest.raises(NoResult, match="these people are not the system's"):
        result.leaks_more_than(0.9)
    bounded = audit(
        people, secret="sex = 1", target=Simulated(others, Bit("sex = 1"), Uniform(1)), queries=400
    )
    assert bounded.guess.implied.all()
    with pytest.raises(NoResult, match="these people are not the system's"):
        bounded.leaks_more_than(0.9)
    for sigma, leaks in ((1.0, True), (1000.0, False)):
        fair = audit(people, secret="sex = 1", target=Gaussian(sigma), queries=400)
        assert fair.leaks_more_than(0.5) is leaks


@pytest.mark.parametrize("off", [-9, 9])
def test_a_truth_that_contradicts_the_stated_bound_shows_nothing(off):
    """Whether answers are too high or too low for it."""
    people = generated_census(20, seed=1)
    rng = np.random.default_rng(0)
    queries = random_subsets(people.ids, 60, rng)
    system = Simulated(people, Bit("sex = 1"), Uniform(1))
    result = audit(people, secret="sex = 1", target=system, queries=queries)
    assert result.unfit is None
    values = result.transcript.values.copy()
    values[0] += off
    step = replace(result.steps[-1], transcript=replace(result.transcript, values=values))
    moved = replace(result, steps=(step,))
    assert "no answer should be further than 1" in moved.unfit


def test_other_people_than_the_systems_cannot_pass_for_several_values_either():
    """Answers about others imply values that the truth given contradicts."""
    people = generated_bank(seed=7).between(2000, 2499)
    shuffled = np.random.default_rng(0).permutation(people.columns["status"])
    others = replace(people, columns={**people.columns, "status": shuffled})
    secret = people.named("status")
    result = audit(
        people, secret="status", target=Simulated(others, secret, Uniform(1)), queries=150
    )
    assert result.guess.implied.all()
    assert result.advantage < 0.9
    with pytest.raises(NoResult, match="these people are not the system's"):
        result.leaks_more_than(0.9)
    fair = audit(people, secret="status", target=Uniform(1), queries=150)
    assert fair.leaks_more_than(1.0) is False
