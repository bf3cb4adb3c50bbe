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
from countleak.audit.budget.inverse import accuracy_at, queries_needed, sigma_for
from countleak.audit.budget.prediction import Prediction
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
from countleak.cli.option_rules import needs
from countleak.errors import InputError
from countleak.shares import percent


@dataclass(frozen=True)
class Size:
    """How many people and answers, and what is to be reached."""

    n: Annotated[int, typer.Option("--n", help="People the answers are about.", min=2)]
    queries: Annotated[
        int | None, typer.Option("--queries", "-m", help="Answers given, or to be given.", min=1)
    ] = None
    target: Annotated[
        float | None,
        typer.Option(
            help="Accuracy to reach, like 0.95: without --queries finds how many it takes, "
            "without --sigma how much noise still lets it happen."
        ),
    ] = None


@needs(MECHANISM_NEEDS)
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


@needs({"--epsilon": {"--mechanism": WITH_SIGMA}, "--delta": {"--mechanism": WITH_SIGMA}})
@dataclass(frozen=True)
class Acceptable:
    """What the system's owner would accept."""

    limit: Annotated[
        float,
        typer.Option(
            help="Advantage over guessing you would accept, (accuracy - guessing)/(1 - guessing)."
        ),
    ] = 0.1
    epsilon: Annotated[
        float, typer.Option(help="Total epsilon whose noise is to be shown, too.")
    ] = 1.0
    delta: Annotated[float, typer.Option(help="The delta of differential privacy.")] = 1e-6


def budget(
    size: Size,
    noise: Noise,
    questions: Questions,
    acceptable: Acceptable,
    decoder: Annotated[
        Literal["lp", "ls", "bayes", "bounded"] | None,
        typer.Option(
            help="The attacker: the paper's is lp; the strongest, if none is named, bounded for "
            "uniform noise and rounding, bayes for other noise."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw accuracy against queries (.svg, .png, .html).")
    ] = None,
    json: options.Json = False,
) -> None:
    """Say what so many answers give away, next to guessing, and what would have kept it."""
    attacker = _attacker(decoder, noise)
    limits = Limits(acceptable.limit, acceptable.epsilon, acceptable.delta)
    if picture:
        require_drawing(picture)
    with console.progress("budget") as report:
        attack = _attack(size, noise, questions, attacker)
        advice = advise(attack, attacker, limits, size.target, progress=report)
    if picture:
        draw_budget(advice, picture)
    if json:
        console.print_json({**advice.record(), "picture": str(picture) if picture else None})
    else:
        _tell(advice, picture)


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
    mechanism = noise.mechanism_of(noise.sigma)
    if mechanism is None:
        if size.queries is None or size.target is None:
            raise InputError("pass --sigma, or both --queries and --target to find it")
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


def _tell(advice: Advice, picture: Path | None) -> None:
    """Print the advice as one would say it."""
    found, limits = advice.prediction, advice.limits
    attack = found.attack
    console.say(
        f"{attack.queries} answers about {attack.people} people ({attack.family.name}; "
        f"{_noise(attack.mechanism)}; {percent(attack.prior, 0)} have the secret trait)."
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
    console.say("")
    most = accuracy_at(limits.advantage, attack.baseline)
    allowed = f"{percent(limits.advantage, 0)} of the way, {percent(most)} right"
    verdict = "stays within" if advice.kept else "breaks"
    remedies = _remedies(advice)
    against = f"against `{found.decoder}`" if found.decoder else "against an ideal decoder"
    keeps = f"Any of these keeps it, {against}:" if remedies else f"No remedy is known {against}."
    console.say(f"This {verdict} your limit ({allowed}). {keeps}")
    for line in remedies:
        console.say(f"  - {line}")
    if advice.rounding_helps is False:
        console.say(
            "Rounding the counts in place of noise does not: no base up to "
            f"{attack.widest_base:.0f} would do."
        )
    console.say("")
    console.say(_privacy(advice))
    for remark in advice.remarks:
        console.remark(f"Note: {remark}")
    if picture:
        console.say(f"Picture: {picture}")


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


def _noise(mechanism: Mechanism) -> str:
    if isinstance(mechanism, Uniform):
        return f"uniform noise within ±{mechanism.bound}"
    if isinstance(mechanism, RoundedToBase):
        return f"counts rounded to multiples of {mechanism.base}"
    assert isinstance(mechanism, Gaussian | Laplace | SimulatedDiffix)
    kind = "Laplace" if isinstance(mechanism, Laplace) else "normal"
    whole = ", rounded" if isinstance(mechanism, SimulatedDiffix) else ""
    return f"{kind} noise of SD {mechanism.sigma:.4g}{whole}"


def _remedies(advice: Advice) -> list[str]:
    """What would have kept the attack within the limit, a line each."""
    lines = []
    if advice.sigma_needed is not None:
        lines.append(
            f"noise of SD {advice.sigma_needed:.3g} or more on each of the "
            f"{advice.prediction.attack.queries} answers"
        )
    if advice.sigma_against_everyone is not None:
        lines.append(
            f"noise of SD {advice.sigma_against_everyone:.3g} or more, against every attacker, "
            "even one who knows all others' secrets"
        )
    if advice.queries_allowed == 0:
        lines.append("no cap on the queries: the first answer breaks the limit")
    elif advice.queries_allowed is not None:
        lines.append(f"a cap of {advice.queries_allowed} answers in all, with the noise as it is")
    if advice.base_needed is not None:
        lines.append(f"counts rounded to multiples of {advice.base_needed} in place of noise")
    return lines


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
    if advice.sigma_for_epsilon is not None:
        text += (
            f" For epsilon = {limits.epsilon:g} in total, each would have needed noise of SD "
            f"{advice.sigma_for_epsilon:.3g}."
        )
    return text
