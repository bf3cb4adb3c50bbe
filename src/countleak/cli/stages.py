"""plan, ask, solve, score: one verb a stage, a file between each and the next."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countleak.answers import read_answers
from countleak.audit import ask_into
from countleak.cli import console, words
from countleak.decoders.files import basis, read_guess, write_guess
from countleak.decoders.rounding import Rounding
from countleak.errors import InputError, ShapeError
from countleak.people import Condition, People
from countleak.problems import BoundedDmt, DiNi, Dmt, Point, Program
from countleak.queries import Queries, read_queries, write_queries
from countleak.queries.arithmetic import Arithmetic
from countleak.queries.digits import digit_queries, fragile
from countleak.queries.signs import random_signs
from countleak.queries.subsets import random_subsets
from countleak.scores import score as score_guess
from countleak.targets import Target
from countleak.targets.diffix import Diffix
from countleak.targets.simulated import (
    BoundedUniform,
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
)

QueriesFile = Annotated[Path, typer.Argument(help="Queries written by `countleak plan`.")]
AnswersFile = Annotated[Path, typer.Argument(help="Answers written by `countleak ask`.")]
GuessFile = Annotated[Path, typer.Argument(help="Guess written by `countleak solve`.")]


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
        planned = _family(
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


def _family(
    family: str,
    people: People,
    m: int | None,
    primes: int,
    exponents: tuple[float, ...],
    arithmetic: Arithmetic,
    seed: int,
) -> Queries:
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


def ask(
    queries: Annotated[
        Path | None, typer.Argument(help="Queries written by `countleak plan`.")
    ] = None,
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    secret: words.Secret = "status = 'C'",
    target: Annotated[
        str,
        typer.Option(
            help="Who answers: `simulated` (see --mechanism), or `diffix`, the system rebuilt over "
            "a database."
        ),
    ] = "simulated",
    sql: Annotated[
        str | None, typer.Option(help="diffix: one question in SQL, over the table `loans`.")
    ] = None,
    release: words.ReleaseWord = "18.1",
    salt_file: words.SaltFile = Path("salt"),
    mechanism: Annotated[
        str,
        typer.Option(help="diffix (the authors' simulation), gaussian, laplace, uniform, round."),
    ] = "diffix",
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise, in people.")] = 4.0,
    bound: Annotated[int, typer.Option(help="uniform: noise lies within ± this.")] = 5,
    base: Annotated[int, typer.Option(help="round: to multiples of this.")] = 5,
    random_rounding: Annotated[
        bool, typer.Option(help="round: up or down by chance, right on average.")
    ] = False,
    rounding: Annotated[bool, typer.Option(help="diffix: whole-number noise.")] = True,
    suppression: Annotated[bool, typer.Option(help="diffix: hold back low counts.")] = True,
    clamping: Annotated[bool, typer.Option(help="diffix: no answer below 0.")] = True,
    sign_noise: Annotated[
        str,
        typer.Option(
            help="±1 queries: noise of one `direct` answer, of `two-subsets`, or a standard "
            "deviation."
        ),
    ] = "two-subsets",
    seed: words.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write or go on with.")] = Path(
        "answers.jsonl"
    ),
    json: words.Json = False,
) -> None:
    """Put the questions to a system and keep its answers as they come; or one of your own."""
    everyone = words.people_of(people, id_column, None)
    if sql is not None:
        if target != "diffix" or queries is not None:
            raise InputError("--sql is one question to --target diffix, without a file of queries")
        _ask_one(Diffix(everyone, None, release, salt_file), sql, json)
        return
    if queries is None:
        raise InputError("name a file of queries written by `countleak plan`, or pass --sql")
    asked = read_queries(queries)
    condition = Condition.parse(secret)
    everyone.secret(condition)
    strangers = np.setdiff1d(asked.ids, everyone.ids)
    if strangers.size:
        raise InputError(
            f"{queries}: {strangers.size} of {asked.ids.size} people are not in {people} (id "
            f"{strangers[0]}); check --people"
        )

    def simulated() -> tuple[Target, str]:
        mechanisms: dict[str, Callable[[], Mechanism]] = {
            "diffix": lambda: SimulatedDiffix(sigma, rounding, suppression, clamping),
            "gaussian": lambda: Gaussian(sigma),
            "laplace": lambda: Laplace(sigma),
            "uniform": lambda: BoundedUniform(bound),
            "round": lambda: RoundedToBase(base, random_rounding),
        }
        chosen = words.chosen(mechanisms, mechanism, "mechanism")
        system = _sign_mechanism(chosen, sign_noise) if asked.family == "signs" else chosen
        about = f"simulated {system}, counting {condition} of {people}, seed {seed}"
        return Simulated(everyone, condition, system, seed), about

    def diffix() -> tuple[Target, str]:
        made = Diffix(everyone, condition, release, salt_file)
        salt = made.engine.salt.fingerprint
        return made, f"Diffix {release}, counting {condition} of {people}, salt {salt}"

    system, about = words.chosen({"simulated": simulated, "diffix": diffix}, target, "target")
    heard: list[int] = []
    with console.progress("asking") as report:

        def count(new: int) -> None:
            heard.append(new)
            report(sum(heard), len(asked))

        answers = ask_into(out, asked, system, about, count)
    suppressed, known = int((~answers.released).sum()), heard[0]
    if json:
        console.print_json(
            {
                "file": str(out),
                "answers": len(answers),
                "known_before": known,
                "suppressed": suppressed,
                "system": about,
            }
        )
    else:
        before = f" ({known} of them known before)" if known else ""
        console.say(f"{len(answers)} answers{before}, {suppressed} suppressed, in {out}")
        console.say(f"From: {about}")


def _ask_one(system: Diffix, sql: str, json: bool) -> None:
    answer = system.ask(sql)
    rows = [dict(zip(answer.columns, row.values, strict=True)) for row in answer.rows]
    if json:
        console.print_json(
            {
                "rows": rows,
                "released": [row.released for row in answer.rows],
                "notices": list(answer.notices),
            }
        )
        return
    for notice in answer.notices:
        console.remark(notice)
    if rows:
        console.print_table(rows)
    else:
        console.say("Every group has too few people and is held back, and so are all together.")
    if not all(row.released for row in answer.rows):
        console.remark("Too few people: the count is held back, and 0 says so.")


def _sign_mechanism(mechanism: Any, noise: str) -> Mechanism | TwoSubsets:
    """How a ±1 query is answered: directly, as two subsets, or with a given noise."""
    if noise == "two-subsets":
        return TwoSubsets(mechanism)
    if isinstance(mechanism, SimulatedDiffix):
        # A sum of +1 and -1 is no count: there is no low one to hold back, and it may be negative.
        mechanism = replace(mechanism, suppressing=False, clamped=False)
    if noise == "direct":
        return mechanism  # type: ignore[no-any-return]
    try:
        return replace(mechanism, sigma=float(noise))  # type: ignore[no-any-return]
    except ValueError as error:
        raise InputError(
            f"--sign-noise {noise!r}: write direct, two-subsets or a standard deviation ({error})"
        ) from None
    except TypeError:
        raise InputError(
            f"--sign-noise {noise} needs a mechanism with a sigma: diffix, gaussian or laplace"
        ) from None


def solve(
    queries: QueriesFile,
    answers: AnswersFile,
    program: Annotated[
        str, typer.Option(help="dmt (least total residual), bounded (the same, bounded) or dini.")
    ] = "dmt",
    sigma: Annotated[float, typer.Option(help="bounded, dini: noise assumed, in people.")] = 4.0,
    multiplier: Annotated[
        float | None,
        typer.Option("--multiplier", "-B", help="Bound in sigmas (bounded: 5, dini: 3)."),
    ] = None,
    keep_nonpositive: Annotated[
        bool, typer.Option(help="bounded: keep answers that are not positive.")
    ] = False,
    point: Annotated[
        Point, typer.Option(help="dini: the simplex's vertex, or the centre of what is feasible.")
    ] = Point.VERTEX,
    integer: Annotated[bool, typer.Option(help="Solve over whole numbers.")] = False,
    solver: words.SolverWord = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds for an integer program.")] = 60.0,
    suppressed_as: Annotated[
        float | None,
        typer.Option(help="Read suppressed answers as this (the paper: 0; default: leave out)."),
    ] = None,
    partial: Annotated[bool, typer.Option(help="Accept answers to some queries only.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("guess.jsonl"),
    json: words.Json = False,
) -> None:
    """Solve for the secrets behind the answers, with a certificate."""
    asked = read_queries(queries)
    answered = read_answers(answers, asked, partial=partial)
    if suppressed_as is not None:
        answered = answered.suppressed_as(suppressed_as)
    if sigma <= 0:
        raise InputError(f"--sigma is {sigma:g}; it must be above 0")
    programs: dict[str, Callable[[], Program]] = {
        "dmt": lambda: Dmt(integer),
        "bounded": lambda: BoundedDmt(
            (5.0 if multiplier is None else multiplier) * sigma, not keep_nonpositive, integer
        ),
        "dini": lambda: DiNi(3.0 if multiplier is None else multiplier, sigma, integer),
    }
    chosen_program = words.chosen(programs, program, "program")
    decoder = Rounding(chosen_program, words.solver_of(solver, time_limit, point))
    with console.waiting("solving"):
        guess = decoder.decode(asked, answered)
    write_guess(out, guess)
    rests_on = basis(guess)
    claims = int(guess.claimed.sum())
    if json:
        console.print_json({"file": str(out), "claims": claims, **rests_on})
        return
    console.say(f"{claims} of {asked.ids.size} people guessed, in {out}")
    console.say(f"Rests on: {', '.join(f'{k} {_brief(v)}' for k, v in rests_on.items())}")


def score(
    guess: GuessFile,
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    secret: words.Secret = "status = 'C'",
    json: words.Json = False,
) -> None:
    """Compare a guess with the truth: accuracy, interval, baseline, kappa, alpha."""
    guessed, rests_on = read_guess(guess)
    everyone = words.people_of(people, id_column, None)
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
    if json:
        console.print_json(record)
        return
    console.say(console.describe_score(found, str(rests_on.get("status"))))
    console.print_table([record])


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v is not None) + ")"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
