import numpy as np
import pytest
from scipy.optimize import nnls

from countleak.attack.decoders.sums import Sums, fit_spread
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Number
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.simulated import Gaussian, Simulated
from countleak.errors import InputError

BANK = generated_bank(5)


def summed(n, m, sigma, seed=0):
    queries = random_subsets(BANK.ids[:n], m, np.random.default_rng([seed, 1]))
    return ask(queries, Simulated(BANK, Number("amount"), Gaussian(sigma), seed))


def test_numbers_come_back_and_intervals_hold_what_they_say():
    covered, n = 0, 60
    truth = BANK.columns["amount"][:n]
    for seed in range(10):
        guess = Sums(low=0.0).decode(summed(n, 300, 50_000.0, seed))
        assert ((guess.values - truth) ** 2).sum() < 0.05 * ((truth - truth.mean()) ** 2).sum()
        covered += int(((guess.intervals.low <= truth) & (truth <= guess.intervals.high)).sum())
        assert guess.basis.sigma == pytest.approx(50_000, rel=0.15)
    # 600 intervals at 95%: a binomial of SD .009, people of one trial nearly independent.
    assert 0.91 < covered / (10 * n) < 0.985


def with_trouble(trouble, seed, n=60, m=300, sigma=50_000.0):
    """Answers with noise of SD ``sigma`` and something else wrong, and the numbers."""
    rng = np.random.default_rng([seed, 7])
    truth = generated_bank(100 + seed).columns["amount"][:n].astype(float)
    queries = random_subsets(np.arange(n), m // 4 if trouble == "repeated" else m, rng)
    exact = queries.dot(truth)
    values = exact + rng.normal(0, sigma, len(queries))
    matrix = queries.matrix
    match trouble:
        case "gross errors":
            values += (rng.random(m) < 0.05) * rng.choice([-2e6, 2e6], m)
        case "repeated":
            matrix, values = np.tile(matrix, (4, 1)), np.tile(values, 4)
        case "rounded":
            values = 200_000 * np.rint(exact / 200_000)
        case "offset":
            values += 300_000
        case "drifting":
            values += np.linspace(0, 8 * sigma, m)
        case "long tails":
            values = exact + sigma * rng.standard_t(2, m)
    queries = Queries(np.arange(n), matrix, Subsets())
    return truth, Transcript.of(queries, Answers.to_all(values))


@pytest.mark.parametrize(
    ("trouble", "share"),
    [
        ("none", 0.99),
        ("gross errors", 0.99),
        ("repeated", 0.93),
        ("rounded", 0.99),
        ("offset", 0.99),
        ("drifting", 0.99),
        ("long tails", 0.97),
    ],
)
def test_intervals_hold_what_they_say_whatever_is_wrong_with_the_sums(trouble, share):
    covered, explained = [], []
    for seed in range(20):
        truth, transcript = with_trouble(trouble, seed)
        guess = Sums(low=0.0).decode(transcript)
        covered.append(((guess.intervals.low <= truth) & (truth <= guess.intervals.high)).mean())
        left = ((guess.values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        explained.append(1 - left)
    # Coverage of 60 intervals varies by about .035 from world to world: a mean of 20 by .008.
    assert 0.95 - 0.024 < np.mean(covered) < 0.95 + 0.024
    assert np.mean(explained) > share


def test_what_is_wrong_with_the_sums_is_named():
    gross = Sums(low=0.0).decode(with_trouble("gross errors", 1)[1]).basis
    assert gross.wrong_answers == pytest.approx(0.05, abs=0.03)
    assert gross.offset is None
    off = Sums(low=0.0).decode(with_trouble("offset", 1)[1]).basis
    assert off.offset == pytest.approx(300_000, rel=0.2)
    plain = Sums(low=0.0).decode(with_trouble("none", 1)[1]).basis
    assert plain.wrong_answers is None and plain.offset is None


def test_exact_sums_give_exact_numbers():
    guess = Sums(low=0.0).decode(summed(40, 60, 1e-3))
    assert np.abs(guess.values - BANK.columns["amount"][:40]).max() < 0.05


def test_the_spread_is_that_of_the_data():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, size=(900, 300)).astype(float)
    v = rng.normal(50.0, 8.0, 300)
    spread = fit_spread(A, A @ v + rng.normal(0, 20.0, 900))
    assert spread.mean == pytest.approx(50, abs=2)
    assert spread.sd == pytest.approx(8, rel=0.15)
    assert spread.sigma == pytest.approx(20, rel=0.1)
    # Against the posterior written out in full.
    inverse = np.linalg.inv(A.T @ A / spread.sigma**2 + np.eye(300) / spread.sd**2)
    assert spread.error == pytest.approx(np.sqrt(np.diag(inverse)))


def test_the_bounds_bind_as_in_another_solver():
    rng = np.random.default_rng(3)
    queries = random_subsets(np.arange(20), 60, rng)
    truth = np.maximum(rng.normal(0.0, 3.0, 20), 0.0)
    answers = Answers.to_all(queries.dot(truth) + rng.normal(0, 3.0, 60))
    guess = Sums(low=0.0, high=1e6).decode(Transcript.of(queries, answers))
    ratio = guess.basis.sigma / guess.basis.sd
    rows = np.vstack([queries.matrix, ratio * np.eye(20)])
    target = np.concatenate([answers.values, np.full(20, ratio * guess.basis.mean)])
    assert guess.values == pytest.approx(nnls(rows, target)[0], abs=1e-6)
    assert (guess.values == 0).any()
    assert (guess.intervals.low >= 0).all()


def test_fewer_sums_than_people_need_the_noise_and_stay_sane():
    truth = BANK.columns["amount"][:60]
    transcript = summed(60, 30, 20_000.0)
    with pytest.raises(
        InputError, match=r"30 sums about 60 people .* give sigma, or ask at least 73"
    ):
        Sums(low=0.0).decode(transcript)
    guess = Sums(low=0.0, sigma=20_000.0).decode(transcript)
    error = ((guess.values - truth) ** 2).sum()
    assert error < ((truth - truth.mean()) ** 2).sum()


def test_known_numbers_are_taken_out():
    truth = BANK.columns["amount"][:40]
    known = {int(person): float(v) for person, v in zip(BANK.ids[:20], truth[:20], strict=True)}
    guess = Sums(low=0.0, known=known).decode(summed(40, 60, 20_000.0))
    assert np.array_equal(guess.values[:20], truth[:20])
    assert (guess.intervals.error[:20] == 0).all()
    assert np.array_equal(guess.intervals.low[:20], guess.intervals.high[:20])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"low": 5.0, "high": 1.0}, "the first must be below"),
        ({"sigma": 0.0}, "sigma is 0"),
        ({"level": 1.0}, "the level is 1"),
        ({"known": {-4: 1.0}}, "no query is about that id"),
        ({"high": -1e9}, "outside the bounds"),
    ],
)
def test_bad_settings_say_what_to_do(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        Sums(**settings).decode(summed(20, 60, 1000.0))
