"""plan and score: the first and the last stage, a file between each and the next."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countleak.attack.decoders.files import read_guess
from countleak.attack.queries import Queries, write_queries
from countleak.attack.queries.arithmetic import Arithmetic
from countleak.attack.queries.digits import digit_queries, fragile
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import random_subsets
from countleak.audit.people import Condition, People
from countleak.audit.report.diagnosis import draw_calibration
from countleak.audit.report.drawing import require_drawing
from countleak.audit.scores import calibration
from countleak.audit.scores import score as score_guess
from countleak.cli import console, words
from countleak.cli.kinds import report_amounts, report_categories
from countleak.errors import InputError, ShapeError
from countleak.files import kind_of

GuessFile = Annotated[
    Path, typer.Argument(help="Guess written by `countleak solve`, `categories` or `sums`.")
]


def plan(
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    between: words.Between = None,
    family: Annotated[
        str, typer.Option(help="Family of queries: digits, subsets or signs.")
    ] = "digits",
    queries: Annotated[
        int | None,
        typer.Option("--queries", "-m", help="How many queries (digits: that many of them)."),
    ] = None,
    primes: Annotated[int, typer.Option(help="Digit queries: how many primes.")] = 25,
    exponents: Annotated[
        str, typer.Option(help="Digit queries: attack, sweep or a list like 0.5,0.7.")
    ] = "attack",
    arithmetic: words.ArithmeticWord = words.Arithmetics.FLOAT64,
    postgres: words.PostgresUrl = None,
    without_fragile: Annotated[
        bool,
        typer.Option(
            help="Leave out digit queries that float64 and exact arithmetic decide apart."
        ),
    ] = False,
    list_fragile: Annotated[bool, typer.Option(help="List those queries, in SQL.")] = False,
    repeat: Annotated[
        int, typer.Option(help="Ask that many of them twice, to see whether noise sticks.", min=0)
    ] = 0,
    seed: words.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path(
        "queries.jsonl"
    ),
    json: words.Json = False,
) -> None:
    """Choose the questions: whom each counts, and how it is asked in SQL."""
    chosen_people = words.people_of(people, id_column, between)
    if family != "digits" and (without_fragile or list_fragile):
        raise InputError(f"only digit queries can be fragile; leave the flag out for {family}")
    with (
        console.waiting("planning"),
        words.arithmetic_of(arithmetic, postgres) as chosen_arithmetic,
    ):
        planned = family_of(
            family,
            chosen_people,
            queries,
            primes,
            words.exponents_of(exponents),
            chosen_arithmetic,
            seed,
        )
    found: dict[str, Any] = {"file": str(out), "people": planned.ids.size}
    if family == "digits":
        marks = fragile(planned)
        found["fragile"] = int(marks.sum())
        if list_fragile:
            found["fragile_queries"] = [planned.where[i] for i in np.flatnonzero(marks)]
        if without_fragile:
            planned = planned.take(np.flatnonzero(~marks))
    if repeat > len(planned):
        raise InputError(f"--repeat is {repeat}, but there are {len(planned)} queries")
    if repeat:
        planned = planned.take(np.append(np.arange(len(planned)), np.arange(repeat)))
    write_queries(out, planned)
    found["queries"] = len(planned)
    if json:
        console.print_json(found)
        return
    console.say(f"{len(planned)} {family} queries about {planned.ids.size} people in {out}")
    if "fragile" in found:
        fate = "left out" if without_fragile else "kept; --without-fragile leaves them out"
        console.say(f"{found['fragile']} are fragile (float64 and exact arithmetic differ): {fate}")
    for where in found.get("fragile_queries", ()):
        console.say(f"  {where}")
    if planned.where:
        console.say(f"The first counts those WHERE {_shortened(planned.where[0])}")


def family_of(
    family: str,
    people: People,
    m: int | None,
    primes: int,
    exponents: tuple[float, ...],
    arithmetic: Arithmetic,
    seed: int,
) -> Queries:
    """The queries of a family: ``m`` of them, or as many as there are by default."""
    rng = np.random.default_rng([seed, 1])
    if m is not None and m < 1:
        raise InputError(f"--queries is {m}; ask at least one")

    def digits() -> Queries:
        every = digit_queries(
            people.ids,
            primes=primes,
            exponents=exponents,
            arithmetic=arithmetic,
            column=people.id_column,
        )
        if m is None:
            return every
        if m > len(every):
            raise InputError(
                f"--queries is {m}, but {primes} primes give {len(every)}; raise --primes"
            )
        return every.take(np.sort(rng.choice(len(every), size=m, replace=False)))

    return words.chosen(
        {
            "digits": digits,
            "subsets": lambda: random_subsets(people.ids, m or 1000, rng, people.id_column),
            "signs": lambda: random_signs(people.ids, m or 1000, rng),
        },
        family,
        "family",
    )


def score(
    guess: GuessFile,
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    secret: words.Secret = "status = 'C'",
    column: Annotated[
        str | None,
        typer.Option(help="Guess of values or numbers: their column (status, amount)."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Guess of numbers: count those within this share of the truth.")
    ] = 0.1,
    picture: Annotated[
        Path | None, typer.Option(help="Draw how often claims of each confidence are right.")
    ] = None,
    json: words.Json = False,
) -> None:
    """Compare a guess with the truth: accuracy, interval, baseline, kappa, alpha, calibration."""
    if picture is not None:
        require_drawing(picture)
    everyone = words.people_of(people, id_column, None)
    kind = kind_of(guess)
    if kind in ("categories", "amounts") and picture is not None:
        raise InputError(f"{guess}: only guesses of bits have a picture; leave --picture out")
    if kind == "categories":
        report_categories(guess, everyone, column or "status", json)
    elif kind == "amounts":
        report_amounts(guess, everyone, column or "amount", tolerance, json)
    else:
        _score_bits(guess, people, everyone, secret, picture, json)


def _score_bits(
    guess: Path, people: str, everyone: People, secret: str, picture: Path | None, json: bool
) -> None:
    guessed, rests_on = read_guess(guess)
    bits = everyone.secret(Condition.parse(secret))
    missing = np.setdiff1d(guessed.ids, everyone.ids)
    if missing.size:
        raise ShapeError(
            f"{guess}: guesses about {missing.size} people who are not in {people} (id "
            f"{missing[0]}); check --people"
        )
    truth = bits[np.searchsorted(everyone.ids, guessed.ids)]
    found = score_guess(guessed, truth)
    record = console.score_record(found, known=guessed.ids.size)
    if guessed.probability is not None:
        found_calibration = calibration(guessed.probability, truth)
        record |= {"calibration_error": found_calibration.error, "brier": found_calibration.brier}
    if picture is not None:
        if guessed.probability is None:
            raise InputError(
                f"{guess}: there are no probabilities to draw; solve with another --decoder"
            )
        draw_calibration(calibration(guessed.probability, truth), picture)
        record["picture"] = str(picture)
    if json:
        console.print_json(record)
        return
    console.say(console.describe_score(found, str(rests_on.get("status"))))
    console.print_table([record])


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
