"""`countleak budget`: what so many answers give away, and what would have kept it."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Literal

import typer

from countleak.audit.budget.advice import TIME_LIMIT, Advice, Limits, Row, advise
from countleak.audit.budget.evolution import (
    DECODERS,
    DIGITS,
    SIGNS,
    SUBSETS,
    Attack,
    Family,
    Recursion,
    decoders_for,
    subsets_of,
)
from countleak.audit.budget.inverse import queries_needed, sigma_for
from countleak.audit.budget.prediction import Prediction
from countleak.audit.budget.privacy import sigma_for_epsilon, sigma_of_one_answer
from countleak.audit.budget.verdict import assumption, noise_in_words, remedy, verdict
from countleak.audit.report.budget import draw_budget
from countleak.audit.report.drawing import require_drawing
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.cli import console, options
from countleak.cli.mechanisms import (
    MECHANISM_NEEDS,
    WITH_SIGMA,
    MechanismWord,
    mechanism_from,
)
from countleak.cli.option_rules import ABSENT, needs
from countleak.errors import InputError
from countleak.shares import percent

AS_IT_IS = "countleak audit FILE --known COLUMNS --family tables"


@dataclass(frozen=True)
class Size:
    """How many people and answers, and what is to be reached; what is missing is to be found."""

    n: int
    queries: int | None
    target: float | None


@needs(
    {
        **MECHANISM_NEEDS,
        "--epsilon": {"--mechanism": WITH_SIGMA},
        "--epsilon-each": {"--mechanism": WITH_SIGMA, "--sigma": ABSENT, "--epsilon": ABSENT},
        "--delta": {"--mechanism": WITH_SIGMA},
    }
)
@dataclass(frozen=True)
class Noise:
    """What is done to a count before it is released."""

    mechanism: Annotated[
        MechanismWord,
        typer.Option(help="How counts are changed (diffix: normal noise, rounded)."),
    ] = "gaussian"
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of an answer's noise, in people.")
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Epsilon of all answers together: without --sigma, the least noise that spends "
            "it; with --sigma, what noise it would have taken (1)."
        ),
    ] = None
    epsilon_each: Annotated[
        float | None,
        typer.Option(
            "--epsilon-each",
            help="Epsilon of each answer, in place of --sigma; laplace: pure, of scale 1/epsilon.",
        ),
    ] = None
    delta: Annotated[float, typer.Option(help="The delta of differential privacy.")] = 1e-6
    bound: Annotated[int | None, typer.Option(help="uniform: noise lies within ± this.")] = None
    base: Annotated[int | None, typer.Option(help="round: to multiples of this.")] = None
    random_rounding: Annotated[
        bool,
        typer.Option("--random-rounding", help="round: up or down by chance, right on average."),
    ] = False

    def mechanism_of(self, sigma: float | None) -> Mechanism | None:
        """The mechanism with noise of SD ``sigma``; missing where it needs one and has none."""
        size = {"uniform": self.bound, "round": self.base}.get(self.mechanism, 0)
        if size is None:
            flag = "--bound" if self.mechanism == "uniform" else "--base"
            raise InputError(f"--mechanism {self.mechanism} takes {flag}, a whole number")
        if sigma is None and self.mechanism in WITH_SIGMA:
            return None
        return mechanism_from(self.mechanism, sigma or 0.0, size, size, self.random_rounding)

    def sigma_of(self, queries: int | None) -> float | None:
        """The SD that is given, or that an epsilon means; missing where neither is."""
        if self.sigma is not None or (self.epsilon is None and self.epsilon_each is None):
            return self.sigma
        # Any noise of its kind will do to say which law it is.
        kind = self.mechanism_of(1.0)
        assert kind is not None
        if self.epsilon_each is not None:
            return sigma_of_one_answer(kind, self.epsilon_each, self.delta)
        if queries is None:
            raise InputError(
                "--epsilon is for all answers together: pass --queries, or --epsilon-each"
            )
        assert self.epsilon is not None
        return sigma_for_epsilon(kind, queries, self.epsilon, self.delta)


@needs({"--density": {"--family": ("subsets",)}})
@dataclass(frozen=True)
class Questions:
    """Whom the queries count, and how many of them have the secret."""

    family: Annotated[
        Literal["subsets", "digits", "signs"],
        typer.Option(help="Whom a query counts (signs: with +1 and -1)."),
    ] = "subsets"
    density: Annotated[
        float | None, typer.Option(help="subsets: chance that a query holds a person (0.5).")
    ] = None
    prior: Annotated[float, typer.Option(help="Share of the people who have the secret trait.")] = (
        0.5
    )

    def family_of(self) -> Family:
        """The family of queries."""
        if self.density is not None:
            return subsets_of(self.density)
        return {"subsets": SUBSETS, "digits": DIGITS, "signs": SIGNS}[self.family]


def budget(
    noise: Noise,
    questions: Questions,
    n: Annotated[int, typer.Option("--n", help="People the answers are about.", min=2)],
    queries: Annotated[
        int | None, typer.Option("--queries", "-m", help="Answers given, or to be given.", min=1)
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            help="Accuracy to reach, like 0.95: without --queries finds how many it takes, "
            "without --sigma how much noise still lets it happen."
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            help="How far from guessing to knowing everything you would let an attacker get: 0.1 "
            "is 55% right where guessing gets 50%."
        ),
    ] = 0.1,
    decoder: Annotated[
        Literal["lp", "ls", "bayes", "bounded"] | None,
        typer.Option(
            help="The attacker: the paper's is lp; the strongest, if none is named, bounded for "
            "uniform noise and rounding, bayes for other noise."
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Every decoder, the bounds, differential privacy, and notes."
        ),
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw accuracy against queries (.svg, .png, .html).")
    ] = None,
    json: options.Json = False,
) -> None:
    """Say what so many answers give away, next to guessing, and what would have kept it."""
    attacker = _attacker(decoder, noise)
    limits = Limits(limit, Limits.epsilon if noise.epsilon is None else noise.epsilon, noise.delta)
    if picture:
        require_drawing(picture)
    with console.progress("budget") as report:
        attack = _attack(Size(n, queries, target), noise, questions, attacker)
        advice = advise(attack, attacker, limits, target, progress=report)
    if picture:
        draw_budget(advice, picture)
    if json:
        sentences = {
            "verdict": verdict(advice),
            "remedy": remedy(advice),
            "assumes": assumption(advice),
        }
        drawn = str(picture) if picture else None
        console.print_json({**advice.record(), **sentences, "picture": drawn})
        return
    console.say(f"Verdict: {verdict(advice)}")
    console.say(f"Remedy:  {remedy(advice)}")
    console.say(f"Assumes: {assumption(advice)} ({AS_IT_IS})")
    if verbose:
        _explain(advice)
    else:
        if noise.epsilon is not None or noise.epsilon_each is not None:
            console.say(f"Privacy: {_privacy(advice)}")
        console.say("Details: every decoder, the bounds and differential privacy with --verbose")
    if picture:
        console.say(f"Picture: {picture}")


def _attacker(word: str | None, noise: Noise) -> Recursion:
    """The decoder of that name, or the strongest for such noise."""
    mechanism = noise.mechanism_of(1.0)
    assert mechanism is not None
    if word is None:
        return decoders_for(mechanism)[-1]
    return {each.name: each for each in DECODERS}[word]


def _attack(size: Size, noise: Noise, questions: Questions, attacker: Recursion) -> Attack:
    """The attack meant, with the queries or the noise that reach the target where one is open."""
    family, prior = questions.family_of(), questions.prior
    until = monotonic() + TIME_LIMIT
    mechanism = noise.mechanism_of(noise.sigma_of(size.queries))
    if mechanism is None:
        if size.queries is None or size.target is None:
            raise InputError(
                "say what noise there is: pass --sigma, --epsilon or --epsilon-each, or both "
                "--queries and --target to find it"
            )
        # Any noise of its kind will do to start from; the search replaces it.
        start = noise.mechanism_of(1.0)
        assert isinstance(start, Gaussian | Laplace | SimulatedDiffix)
        attack = Attack(size.n, size.queries, start, prior, family)
        mechanism = replace(start, sigma=sigma_for(attack, attacker, size.target, until))
    queries = size.queries
    if queries is None:
        if size.target is None:
            raise InputError("pass --queries, or --target to find how many it takes")
        one = Attack(size.n, 1, mechanism, prior, family)
        queries = queries_needed(one, attacker, size.target, until)
    return Attack(size.n, queries, mechanism, prior, family)


def _explain(advice: Advice) -> None:
    """Print what is behind the verdict."""
    found, attack = advice.prediction, advice.prediction.attack
    console.say("")
    console.say(
        f"{attack.queries} answers about {attack.people} people ({attack.family.name}; "
        f"{noise_in_words(attack.mechanism)}; {percent(attack.prior, 0)} have the secret trait)."
    )
    console.say(
        f"{_gets(found)}; guessing without any answer gets {percent(attack.baseline)}. That is "
        f"{percent(max(0.0, found.advantage), 0)} of the way from guessing to knowing everything."
    )
    if found.attained.why:
        console.say(_why_ideal(found))
    console.print_table([_shown(row, advice.target) for row in advice.rows])
    if advice.genie_bound is not None:
        console.say(
            f"No attacker, not even one who knows all others, gets more than "
            f"{percent(advice.genie_bound)} from such queries."
        )
    against = f"`{found.decoder}`" if found.decoder else "an ideal decoder"
    cost = ""
    if not advice.kept and advice.epsilon_needed is not None:
        cost = (
            f" Its noise costs epsilon = {advice.epsilon_needed:.3g} at delta = "
            f"{advice.limits.delta:g} in all."
        )
    console.say(f"The remedy is against {against}.{cost}")
    if advice.sigma_against_everyone is not None:
        console.say(
            f"Noise of SD {advice.sigma_against_everyone:.3g} or more keeps the limit against "
            "every attacker, even one who knows all others' secrets."
        )
    if advice.rounding_helps is False:
        console.say(
            "Rounding the counts in place of noise does not keep it: no base up to "
            f"{attack.widest_base:.0f} would do."
        )
    console.say(_privacy(advice))
    for remark in advice.remarks:
        console.remark(f"Note: {remark}")


def _gets(found: Prediction) -> str:
    """What an attacker gets, and by which decoder."""
    if found.decoder is None:
        return f"An ideal decoder gets {found.accuracy:.1%} of the secrets right"
    return (
        f"An attacker with these answers gets {found.accuracy:.1%} of the secrets right (decoder "
        f"`{found.decoder}`, measured within {found.attained.within:g})"
    )


def _why_ideal(found: Prediction) -> str:
    """Why no decoder is named, and what the best reaches."""
    attained = found.attained
    text = f"{attained.why[0].upper()}{attained.why[1:]}."
    if attained.reaches is not None:
        text += f" The best, `{attained.best}`, reaches about {attained.reaches:.1%} or more."
    return text


def _shown(row: Row, target: float | None) -> dict[str, object]:
    """A decoder's line in the table."""
    shown: dict[str, object] = {
        "decoder": row.decoder or f"ideal {row.meant}",
        "what it does": row.words,
        "accuracy": row.accuracy,
        "advantage": row.advantage,
    }
    if target is not None:
        shown[f"queries for {target:.1%}"] = row.queries_for_target
    return shown


def _privacy(advice: Advice) -> str:
    limits = advice.limits
    if isinstance(advice.prediction.attack.mechanism, Uniform | RoundedToBase):
        return "Differential privacy: none, for noise with a hard bound rules answers out for sure."
    if advice.epsilon is None:
        return "Differential privacy: not read, see the note."
    strength = (
        "a strong" if advice.epsilon <= 1 else "a weak" if advice.epsilon <= 10 else "hardly any"
    )
    text = (
        f"As differential privacy, all these answers together cost epsilon = {advice.epsilon:.3g} "
        f"at delta = {limits.delta:g}: {strength} guarantee."
    )
    differs = f"{advice.epsilon:.3g}" != f"{limits.epsilon:.3g}"
    if advice.sigma_for_epsilon is not None and differs:
        text += (
            f" For epsilon = {limits.epsilon:g} in total, each would have needed noise of SD "
            f"{advice.sigma_for_epsilon:.3g}."
        )
    return text
