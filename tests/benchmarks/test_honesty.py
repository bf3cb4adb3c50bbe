"""The battery's verdicts on made-up trials, and worlds without a result."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.honesty import trials as running
from benchmarks.honesty.battery import SYSTEMS
from benchmarks.honesty.trials import AUTO, Attempt, Trial, measure_honesty, try_world
from benchmarks.honesty.verdicts import conclude, judge
from countleak.errors import InputError, SolverError

N = 100


def attempt(right, confidence=None, proven=0, expected=None, reason=""):
    """Of 100 people the first ``right`` are right, and the first ``proven`` proven."""
    sure = None if confidence is None else np.full(N, confidence)
    expected = confidence if expected is None else expected
    place = np.arange(N)
    return Attempt(place < right, place < proven, sure, expected, reason, 0.5)


def trials(system, autos, others=(), baseline=0.55):
    """One trial per attempt of ``auto``, beside attempts of ``ls`` that got ``others`` right."""
    rights = others or [50] * len(autos)
    return [
        Trial(system, number, baseline, {"ls": attempt(right), AUTO: auto}, {})
        for number, (auto, right) in enumerate(zip(autos, rights, strict=True))
    ]


def figures(row):
    return {failure.figure for failure in row.failures}


def test_an_honest_row_passes():
    row = judge(trials("clean", [attempt(96, 0.96), attempt(95, 0.955), attempt(97, 0.96)]))
    assert row.failures == ()
    assert row.accuracy[AUTO].estimate == pytest.approx(0.96)
    assert row.gap.estimate == pytest.approx(0.96 + 0.955 / 3 - 0.96 / 3 - 0.96, abs=1e-9)
    assert row.lead["ls"].estimate == pytest.approx(0.46)
    assert row.claims[0].made == 300 and row.claims[0].right == 288 and row.claims[1].made == 0
    assert row.seconds == {"ls": 0.5, AUTO: 0.5}
    assert row.calibration_error == pytest.approx(abs(0.96 + 0.955 + 0.96 - 2.88) / 3)


@pytest.mark.parametrize(
    ("autos", "others", "expected"),
    [
        ([attempt(k, 0.9) for k in (80, 81, 79, 80)], (), {"gap"}),
        ([attempt(k, 0.8) for k in (90, 91, 89, 90)], (), {"gap"}),
        ([attempt(k, 0.96, expected=0.85) for k in (85, 84, 86, 85)], (), {"95%"}),
        ([attempt(k, 0.995, expected=0.96) for k in (96, 95, 97, 96)], (), {"99%"}),
        ([attempt(k, 0.8) for k in (80, 81, 79, 80)], (84, 85, 83, 84), {AUTO}),
        ([attempt(k, 0.8) for k in (80, 81, 79, 80)], (81, 82, 80, 81), set()),
        ([attempt(k, 0.5) for k in (50, 51, 49, 50)], (), {AUTO}),
        ([attempt(99, 0.99, proven=p) for p in (99, 100, 99, 99)], (), {"proven"}),
        ([attempt(80, None, reason="why") for _ in range(4)], (), {"withdrawn"}),
    ],
)
def test_each_fault_is_named(autos, others, expected):
    assert figures(judge(trials("clean", autos, others))) == expected


def test_one_bad_world_of_many_is_no_proof_against_an_expectation():
    autos = [attempt(95, 0.95)] * 9 + [attempt(60, 0.95)]
    assert "gap" not in figures(judge(trials("clean", autos)))


def test_withdrawn_probabilities_need_a_reason_where_a_system_did_not_hold():
    reasoned = judge(trials("repeated", [attempt(80, None, reason="no fit")] * 3))
    assert reasoned.failures == () and reasoned.reasons == {"no fit": 3} and reasoned.gap is None
    silent = judge(trials("repeated", [attempt(80)] * 3))
    assert figures(silent) == {"withdrawn"}
    everyone = judge(trials("repeated", [attempt(100, None, proven=100, expected=1.0)] * 3))
    assert everyone.withdrawn == 0 and everyone.claims[1].made == 300


def test_withdrawals_and_proofs_are_counted_over_the_battery():
    withdrawn = judge(trials("repeated", [attempt(80, None, reason="no fit")] * 2))
    proven = judge(trials("exact-told", [attempt(100, 1.0, proven=100)] * 2))
    assert conclude([withdrawn] * 5 + [proven] * 2).failures == ()
    verdict = conclude([withdrawn] * 6 + [proven] * 2)
    assert verdict.failures == ("probabilities withdrawn in 6 rows, over 5",)
    assert (verdict.proven, verdict.proven_wrong, verdict.rows) == (400, 0, 8)
    whole = conclude([replace(proven, worlds=20)] * len(SYSTEMS))
    assert whole.failures == (f"{200 * len(SYSTEMS)} proven, of at least 20000 to be checked",)


def test_an_error_of_countleak_is_no_result_and_any_other_surfaces_with_its_world(monkeypatch):
    class Refusing:
        def decode(self, transcript):
            raise SolverError("no certificate")

    class Broken:
        def decode(self, transcript):
            raise IndexError("oops")

    monkeypatch.setattr(running, "Bayes", Refusing)
    monkeypatch.setattr(running, "decoder_for", lambda secret, **_: Refusing())
    trial = try_world("exact-60-24", 3)
    assert trial.without_result == {"bayes": "no certificate", AUTO: "no certificate"}
    row = judge([trial, replace(trial, number=4)])
    assert row.without_result[AUTO] == {"no certificate": 2}
    assert row.withdrawn == 2 and row.reasons == {"no certificate": 2}
    assert row.failures[0].reason.endswith("fewer than two worlds: no certificate")
    monkeypatch.setattr(running, "decoder_for", lambda secret, **_: Broken())
    with pytest.raises(RuntimeError, match="exact-60-24, world 3, decoder auto: IndexError: oops"):
        try_world("exact-60-24", 3)


def test_an_interval_needs_two_worlds():
    with pytest.raises(InputError, match="1 worlds per system have no interval"):
        list(measure_honesty([SYSTEMS["clean"]], trials=1))


def test_a_trial_replays():
    first, again = try_world("ghosts", 1), try_world("ghosts", 1)
    assert np.array_equal(first.attempts[AUTO].confidence, again.attempts[AUTO].confidence)
    assert {name: a.accuracy for name, a in first.attempts.items()} == {
        name: a.accuracy for name, a in again.attempts.items()
    }
