"""`countleak categories` and `countleak sums`: secrets that are no bits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from countleak.attack.decoders.categorical import Categorical, assumed_noise
from countleak.attack.decoders.sums import Sums
from countleak.attack.decoders.value_files import (
    read_amounts,
    read_categories,
    write_amounts,
    write_categories,
)
from countleak.attack.noise import Noise, Threshold
from countleak.attack.posterior.fit import Asked
from countleak.attack.queries import read_queries
from countleak.attack.transcript import read_answers
from countleak.audit.people import People, Total
from countleak.audit.scores import score_amounts, score_categories
from countleak.cli import console, words
from countleak.errors import InputError, ShapeError

KnownFile = Annotated[
    Path | None,
    typer.Option("--known", help="CSV file of people known beforehand: an id and a value a line."),
]


def categories(
    queries: words.QueriesFile,
    answers: Annotated[
        list[str],
        typer.Option(help="Answers about one value, like A=a.jsonl; once for every value."),
    ],
    queries_of: Annotated[
        list[str] | None,
        typer.Option(help="Queries asked about one value, like B=b-queries.jsonl, if others."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(help="Name of whatever else a person may have, that nobody asked about."),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise known, in people (default: estimated).", min=1e-6)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Counts below about this are suppressed (4, if any answer was)."),
    ] = None,
    known: KnownFile = None,
    precision: Annotated[
        float | None, typer.Option(help="Claim only what is at least this probable, like 0.95.")
    ] = None,
    partial: words.Partial = False,
    seed: words.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path(
        "categories.jsonl"
    ),
    json: words.Json = False,
) -> None:
    """Guess which of several values everyone has, from the answers about each, all together."""
    files = _named(answers, "--answers")
    others = _named(queries_of or [], "--queries-of")
    if strangers := set(others) - set(files):
        raise InputError(f"--queries-of {min(strangers)}: there are no --answers of that value")
    shared = read_queries(queries)
    asked: dict[str, Asked] = {}
    for name, path in files.items():
        planned = read_queries(others[name]) if name in others else shared
        asked[name] = planned, read_answers(path, planned, partial=partial)
    seen = assumed_noise(list(asked.values()))
    limit = seen.threshold if threshold is None else Threshold(threshold)
    decoder = Categorical(
        Noise(sigma, floor=seen.floor, threshold=limit),
        other,
        known={person: str(value) for person, value in words.known_of(known).items()},
        seed=seed,
    )
    with console.waiting("sampling"):
        guess = decoder.decode(asked)
    if precision is not None:
        guess = guess.claims_at(precision)
    write_categories(out, guess)
    claimed = guess.values[guess.claimed]
    found = {
        "file": str(out),
        "people": guess.ids.size,
        "claims": int(guess.claimed.sum()),
        "values": {name: int((claimed == name).sum()) for name in guess.names},
        **guess.basis,
    }
    if json:
        console.print_json(found)
        return
    counts = ", ".join(f"{name} {count}" for name, count in found["values"].items())
    console.say(f"{found['claims']} of {guess.ids.size} people guessed, in {out}: {counts}")
    console.say(
        f"Noise of SD {np.mean(guess.basis['sigma']):.2f}; independent chains differ by "
        f"{guess.basis['disagreement']:.3f} on average."
    )


def sums(
    queries: words.QueriesFile,
    answers: words.AnswersFile,
    low: Annotated[
        float | None, typer.Option(help="No number is below this (default: estimated).")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="No number is above this (default: estimated).")
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise known, in units of the answers (default: estimated).", min=1e-9),
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.95,
    known: KnownFile = None,
    partial: words.Partial = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path(
        "amounts.jsonl"
    ),
    json: words.Json = False,
) -> None:
    """Guess everyone's number from sums over many subsets, each with an interval."""
    asked = read_queries(queries)
    answered = read_answers(answers, asked, partial=partial)
    facts = {person: _number(person, value) for person, value in words.known_of(known).items()}
    with console.waiting("solving"):
        guess = Sums(low, high, sigma, facts, level).decode(asked, answered)
    write_amounts(out, guess)
    width = float(np.median(guess.high - guess.low))
    if json:
        console.print_json(
            {
                "file": str(out),
                "people": guess.ids.size,
                "median_interval": width,
                "mean_standard_error": float(guess.error.mean()),
                **guess.basis,
            }
        )
        return
    least, most = guess.basis["bounds"]
    console.say(f"{guess.ids.size} numbers guessed, in {out}, between {least:,.0f} and {most:,.0f}")
    console.say(
        f"Noise of SD {guess.basis['sigma']:,.4g}; the median {level:.0%} interval is "
        f"{width:,.4g} wide, where the numbers themselves have an SD of {guess.basis['sd']:,.4g}."
    )


def report_categories(path: Path, everyone: People, column: str, json: bool) -> None:
    """Print how many values of a file of categories are right."""
    guess = read_categories(path)
    truth = _of(path, everyone, guess.ids, everyone.column(column).astype(np.str_))
    found = score_categories(guess, truth)
    record: dict[str, Any] = {
        "people": found.people,
        "claims": found.claims,
        "right": found.right,
        "accuracy": found.accuracy,
        "interval": found.interval(),
        "baseline": found.baseline,
    }
    if json:
        console.print_json({**record, "by_value": found.by_value()})
        return
    interval = found.interval()
    if found.accuracy is None or interval is None:
        console.say(f"No claim about any of {found.people} people.")
        return
    console.say(
        f"{found.right} of {found.claims} values of {column} recovered ({found.accuracy:.1%}, 95% "
        f"interval {interval[0]:.1%} to {interval[1]:.1%}); naming everyone the commonest gets "
        f"{found.baseline:.1%}."
    )
    console.print_table(found.by_value())


def report_amounts(path: Path, everyone: People, column: str, tolerance: float, json: bool) -> None:
    """Print how near the numbers of a file of amounts came."""
    guess = read_amounts(path)
    truth = _of(path, everyone, guess.ids, everyone.numbers(Total(column)))
    found = score_amounts(guess, truth, tolerance)
    if json:
        console.print_json(
            {
                "people": found.people,
                "tolerance": found.tolerance,
                "within": found.within,
                "accuracy": found.accuracy,
                "interval": found.interval(),
                "baseline": found.baseline,
                "coverage": found.coverage,
                "level": found.level,
                "r_squared": found.r_squared,
                "mean_error": found.mean_error,
                "baseline_error": found.baseline_error,
            }
        )
        return
    low, high = found.interval()
    console.say(
        f"{found.within} of {found.people} within {tolerance:.0%} of their {column} "
        f"({found.accuracy:.1%}, 95% interval {low:.1%} to {high:.1%}); guessing everyone the mean "
        f"gets {found.baseline:.1%}."
    )
    console.say(
        f"R squared {found.r_squared:.3f} (the mean: 0); off by {found.mean_error:,.4g} on average "
        f"(the mean: {found.baseline_error:,.4g}); {found.coverage:.1%} of the {found.level:.0%} "
        "intervals hold the truth."
    )


def _of(path: Path, everyone: People, ids: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """The values (n,) of the people guessed about, who must all be there."""
    missing = np.setdiff1d(ids, everyone.ids)
    if missing.size:
        raise ShapeError(
            f"{path}: guesses about {missing.size} people who are not there (id {missing[0]}); "
            "check --people"
        )
    return np.asarray(values[np.searchsorted(everyone.ids, ids)])


def _named(parts: Sequence[str], flag: str) -> dict[str, Path]:
    """The files of words like A=a.jsonl, by name."""
    files: dict[str, Path] = {}
    for part in parts:
        name, equals, path = part.partition("=")
        if not (name and equals and path):
            raise InputError(f"{flag} {part!r}: write the value and its file, like A=a.jsonl")
        if name in files:
            raise InputError(f"{flag} {part!r}: {name} was given already; name each value once")
        files[name] = Path(path)
    return files


def _number(person: int, value: Any) -> float:
    if not isinstance(value, int | float):
        raise InputError(f"the known number of {person} is {value!r}, expected a number")
    return float(value)
