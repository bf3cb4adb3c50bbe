"""What an audit shows, in one sentence; never that nothing leaks, for no audit shows that."""

from dataclasses import dataclass
from enum import StrEnum

from countleak.audit.report.record import Record, Scored
from countleak.foreign import brief
from countleak.shares import percent

# So much of the way from guessing to knowing is nearly everyone, or most.
NEARLY_ALL, MOST = 0.9, 0.5
NO_PROOF = (
    "That is no proof of anonymity: another attack, other questions or other knowledge may succeed."
)


class Outcome(StrEnum):
    """What kind of verdict it is."""

    LEAKS = "leaks"
    NOT_SHOWN = "no leak shown"
    CONFIDENCE = "truth unknown"
    MISFIT = "model does not fit"
    NOTHING = "could not attack"


@dataclass(frozen=True)
class Verdict:
    """The ``headline``, the sentence with its numbers, and what must be said with it."""

    outcome: Outcome
    headline: str
    sentence: str
    caution: str


def verdict_of(record: Record, forced: int, is_proven: bool) -> Verdict:
    """The verdict on an audit; ``forced`` people are proven, or else implied."""
    score, nothing = record.score, record.judged.nothing
    if nothing:
        return Verdict(
            Outcome.NOTHING,
            "This audit shows nothing",
            f"The attack could not be carried out: {nothing}.",
            "It has not passed. Nothing was learned about what the system gives away.",
        )
    if score is None:
        return _without_truth(record, forced, is_proven)
    if score.accuracy is None or score.interval is None:
        return Verdict(
            Outcome.NOTHING,
            "This audit shows nothing",
            "The attack came to no conclusion about anyone.",
            "It has not passed. Nothing was learned about what the system gives away.",
        )
    if score.advantage is None or score.advantage_interval is None:
        return Verdict(
            Outcome.NOTHING,
            "There is nothing to measure here",
            f"Everyone has the same value, so guessing is right for everyone too "
            f"({_rights(record, score)}).",
            "Audit another secret, or other people.",
        )
    if score.advantage_interval[0] > 0:
        return Verdict(Outcome.LEAKS, _leaking(score), _measured(record, score), _leak_caution)
    if record.method.misfit or _contradicted(record, score):
        return Verdict(
            Outcome.MISFIT,
            "The model does not fit: this audit shows nothing",
            f"{_measured(record, score)} The attack's own model does not fit the answers"
            f"{f' ({record.method.misfit})' if record.method.misfit else ''}, so that it did badly "
            "says nothing about the system.",
            "It has not passed. Another model of the system, stated or inferred, may succeed.",
        )
    return Verdict(
        Outcome.NOT_SHOWN, "This attack showed no leak", _measured(record, score), NO_PROOF
    )


_leak_caution = (
    "This is what one attack found. A better attack, more questions or more knowledge may find "
    "more."
)


def _without_truth(record: Record, forced: int, is_proven: bool) -> Verdict:
    if forced:
        how = (
            "proven: under the rules stated of the system no other value fits the answers"
            if is_proven
            else f"implied: no other value fits the answers if {record.method.assuming}"
            if record.method.assuming
            else "implied: no other value fits the answers, if the system was read rightly"
        )
        return Verdict(
            Outcome.LEAKS if is_proven else Outcome.CONFIDENCE,
            f"The values of {forced:,} of {record.people:,} people are "
            f"{'proven' if is_proven else 'implied'}",
            f"After {_answers(record)}, {forced:,} people's values are {how}.",
            _leak_caution,
        )
    if record.expected is None:
        why = record.method.misfit
        return Verdict(
            Outcome.MISFIT if why else Outcome.CONFIDENCE,
            "The model does not fit, and the truth is unknown" if why else "Nobody can tell yet",
            f"After {_answers(record)} there is a guess about everyone but no probability that it "
            f"is right{f': the model does not fit the answers ({why})' if why else ''}.",
            "The guesses may be right all the same: name the truth to measure how many are.",
        )
    expected = record.expected
    low, high = (percent(end) for end in expected.interval)
    return Verdict(
        Outcome.CONFIDENCE,
        f"The attack expects {percent(expected.share)} of its guesses to be right",
        f"After {_answers(record)}, {percent(expected.share)} of its guesses about "
        f"{record.people:,} people should be right by its own reckoning (95% interval {low} to "
        f"{high}).",
        "Nobody has checked: the truth is not known here, so this is a confidence, not a success "
        "rate. Name the truth to measure one.",
    )


def _leaking(score: Scored) -> str:
    assert score.advantage is not None
    if score.right == score.people:
        return f"The answers give away the secret of all {score.people:,} people"
    if score.advantage >= NEARLY_ALL:
        return "The answers give away almost everyone's secret"
    if score.advantage >= MOST:
        return "The answers give away most people's secret"
    return "The answers give away more than anyone could guess"


def _measured(record: Record, score: Scored) -> str:
    assert score.interval is not None
    low, high = (percent(end) for end in score.interval)
    return (
        f"After {_answers(record)}, {_rights(record, score)} "
        f"({percent(score.accuracy or 0.0)}; 95% interval {low} to {high}); guessing without any "
        f"answer gets {percent(score.baseline)}."
    )


def _rights(record: Record, score: Scored) -> str:
    within = "" if score.tolerance is None else f" to within {score.tolerance:.0%}"
    about = brief(record.secret)
    return f"{score.right:,} of {score.claims:,} guesses about {about} are right{within}"


def _answers(record: Record) -> str:
    one = record.asked.answers == 1
    return f"{record.asked.answers:,} {'answer' if one else 'answers'}"


def _contradicted(record: Record, score: Scored) -> bool:
    """Whether more should be right, by the attack's own probabilities, than can have been."""
    from countleak.audit.judgement import DOUBT

    if record.expected is None or score.interval is None:
        return False
    return record.expected.share > score.interval[1] + DOUBT
