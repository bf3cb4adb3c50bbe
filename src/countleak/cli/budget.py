"""`countleak budget`: what so many answers give away, and what would have kept it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.budget.advice import Advice, Limits, advise
from countleak.audit.budget.evolution import (
    DECODERS,
    DIGITS,
    SIGNS,
    SUBSETS,
    Attack,
    Family,
    Recursion,
    subsets_of,
)
from countleak.audit.budget.inverse import accuracy_at, queries_needed, sigma_for
from countleak.audit.report.budget import draw_budget
from countleak.audit.report.drawing import require_drawing
from countleak.audit.targets.simulated import (
    Uniform,
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
)
from countleak.cli import console, words
from countleak.errors import InputError


def budget(
    n: Annotated[int, typer.Option("--n", help="People the answers are about.", min=2)],
    queries: Annotated[
        int | None, typer.Option("--queries", "-m", help="Answers given, or to be given.", min=1)
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of an answer's noise, in people.")
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
            help="Advantage over guessing you would accept, (accuracy - guessing)/(1 - guessing)."
        ),
    ] = 0.1,
    decoder: Annotated[
        str,
        typer.Option(help="The attacker: lp (the paper's), ls, or bayes (the strongest)."),
    ] = "bayes",
    mechanism: Annotated[
        str, typer.Option(help="gaussian, laplace, diffix (rounded), uniform, round.")
    ] = "gaussian",
    bound: Annotated[int | None, typer.Option(help="uniform: noise lies within ± this.")] = None,
    base: Annotated[int | None, typer.Option(help="round: to multiples of this.")] = None,
    random_rounding: Annotated[
        bool, typer.Option(help="round: up or down by chance, right on average.")
    ] = False,
    family: Annotated[
        str, typer.Option(help="Whom a query counts: subsets, digits, or signs (+1 and -1).")
    ] = "subsets",
    density: Annotated[
        float | None, typer.Option(help="subsets: chance that a query holds a person (0.5).")
    ] = None,
    prior: Annotated[
        float, typer.Option(help="Share of the people who have the secret trait.")
    ] = 0.5,
    epsilon: Annotated[
        float, typer.Option(help="Total epsilon whose noise is to be shown, too.")
    ] = 1.0,
    delta: Annotated[float, typer.Option(help="The delta of differential privacy.")] = 1e-6,
    picture: Annotated[
        Path | None, typer.Option(help="Draw accuracy against queries (.svg, .png, .html).")
    ] = None,
    json: words.Json = False,
) -> None:
    """Say what so many answers give away, next to guessing, and what would have kept it."""
    attacker = _decoder(decoder)
    asked = _family(family, density)
    limits = Limits(limit, epsilon, delta)
    accuracy_at(limit, max(prior, 1 - prior))
    if picture:
        require_drawing(picture)
    noise = _mechanism(mechanism, sigma, bound, base, random_rounding)
    if noise is None:
        if queries is None or target is None:
            raise InputError("pass --sigma, or both --queries and --target to find it")
        # Any noise of its kind will do to start from; the search replaces it.
        noise = _mechanism(mechanism, 1.0, bound, base, random_rounding)
        assert noise is not None
        attack = Attack(n, queries, noise, prior, asked)
        found = sigma_for(attack, attacker, target)
        noise = replace(noise, sigma=found)  # type: ignore[type-var]
    if queries is None:
        if target is None:
            raise InputError("pass --queries, or --target to find how many it takes")
        queries = queries_needed(Attack(n, 1, noise, prior, asked), attacker, target)
    advice = advise(Attack(n, queries, noise, prior, asked), attacker, limits, target)
    if picture:
        draw_budget(advice, picture)
    if json:
        console.print_json({**advice.record(), "picture": str(picture) if picture else None})
    else:
        _tell(advice, picture)


def _decoder(word: str) -> Recursion:
    for each in DECODERS:
        if each.name == word:
            return each
    names = ", ".join(each.name for each in DECODERS)
    raise InputError(f"there is no decoder {word!r}; choose {names}")


def _family(word: str, density: float | None) -> Family:
    if density is not None:
        if word != "subsets":
            raise InputError(f"--density is for --family subsets, not {word}")
        return subsets_of(density)
    table: dict[str, Callable[[], Family]] = {
        "subsets": lambda: SUBSETS,
        "digits": lambda: DIGITS,
        "signs": lambda: SIGNS,
    }
    return words.chosen(table, word, "family")


def _mechanism(
    word: str, sigma: float | None, bound: int | None, base: int | None, random: bool
) -> Mechanism | None:
    """The mechanism of that name; missing where its sigma is."""
    if word in ("uniform", "round"):
        flag, size = ("--bound", bound) if word == "uniform" else ("--base", base)
        if size is None or sigma is not None:
            raise InputError(f"--mechanism {word} takes {flag}, a whole number, and no --sigma")
        return Uniform(size) if word == "uniform" else RoundedToBase(size, random)
    if bound is not None or base is not None:
        raise InputError("--bound is for --mechanism uniform, --base for --mechanism round")
    table: dict[str, Callable[[float], Mechanism]] = {
        "gaussian": Gaussian,
        "laplace": Laplace,
        "diffix": SimulatedDiffix,
    }
    if word not in table:
        raise InputError(
            f"there is no mechanism {word!r}; choose {', '.join([*table, 'uniform', 'round'])}"
        )
    return None if sigma is None else table[word](sigma)


def _tell(advice: Advice, picture: Path | None) -> None:
    """Print the advice as one would say it."""
    found, limits = advice.prediction, advice.limits
    attack = found.attack
    console.say(
        f"{attack.queries} answers about {attack.people} people ({attack.family.name}; "
        f"{_noise(attack.mechanism)}; {attack.prior:.0%} have the secret trait)."
    )
    console.say(
        f"An attacker with these answers gets {found.accuracy:.1%} of the secrets right (decoder "
        f"`{found.decoder}`); guessing without any answer gets {attack.baseline:.1%}. That is "
        f"{max(0.0, found.advantage):.0%} of the way from guessing to knowing everything."
    )
    shown = [
        {
            "decoder": row.decoder,
            "what it does": row.words,
            "accuracy": row.accuracy,
            "advantage": row.advantage,
            **(
                {f"queries for {advice.target:.1%}": row.queries_for_target}
                if advice.target is not None
                else {}
            ),
        }
        for row in advice.rows
    ]
    console.print_table(shown)
    if advice.genie_bound is not None:
        console.say(
            f"No attacker, not even one who knows all others, gets more than "
            f"{advice.genie_bound:.1%} from such queries."
        )
    console.say("")
    most = accuracy_at(limits.advantage, attack.baseline)
    allowed = f"{limits.advantage:.0%} of the way, {most:.1%} right"
    verdict = "stays within" if advice.kept else "breaks"
    remedies = _remedies(advice)
    against = f"against `{found.decoder}`"
    keeps = f"Any of these keeps it, {against}:" if remedies else f"No remedy is known {against}."
    console.say(f"This {verdict} your limit ({allowed}). {keeps}")
    for line in remedies:
        console.say(f"  - {line}")
    if advice.base_needed is None:
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
