"""`countleak ask`: the questions of a plan, or one of your own, put to a system."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countleak.audit import ask_into
from countleak.cli import console, words
from countleak.diffix.database import Database
from countleak.diffix.duck import Duck
from countleak.diffix.postgres import connect
from countleak.diffix.salt import Salt
from countleak.diffix.salt import salt_file as read_salt
from countleak.errors import InputError
from countleak.people import Condition, People, Total
from countleak.queries import Queries, read_queries
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


def ask(
    queries: Annotated[
        Path | None, typer.Argument(help="Queries written by `countleak plan`.")
    ] = None,
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    secret: words.Secret = "status = 'C'",
    total: Annotated[
        str | None,
        typer.Option("--sum", help="simulated: add up this column instead of counting --secret."),
    ] = None,
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
    database: Annotated[
        str | None,
        typer.Option(
            help="diffix: data to ask instead of --people: postgresql://..., or a CSV, Parquet or "
            "DuckDB file."
        ),
    ] = None,
    table: Annotated[str, typer.Option(help="diffix: the table that is asked about.")] = "loans",
    salt_file: words.SaltFile = Path("salt"),
    mechanism: Annotated[
        str,
        typer.Option(help="diffix (the authors' simulation), gaussian, laplace, uniform, round."),
    ] = "diffix",
    sigma: Annotated[
        float, typer.Option(help="SD of the noise, in people (--sum: in its units).")
    ] = 4.0,
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
    condition = Condition.parse(secret)
    if total is not None and (target != "simulated" or mechanism not in ("gaussian", "laplace")):
        raise InputError("--sum needs --target simulated and --mechanism gaussian or laplace")

    def simulated(stack: ExitStack, asked: Queries | None) -> tuple[Target, str]:
        if sql is not None or database is not None or asked is None:
            raise InputError("--sql and --database need --target diffix")
        mechanisms: dict[str, Callable[[], Mechanism]] = {
            "diffix": lambda: SimulatedDiffix(sigma, rounding, suppression, clamping),
            "gaussian": lambda: Gaussian(sigma),
            "laplace": lambda: Laplace(sigma),
            "uniform": lambda: BoundedUniform(bound),
            "round": lambda: RoundedToBase(base, random_rounding),
        }
        chosen = words.chosen(mechanisms, mechanism, "mechanism")
        system = _sign_mechanism(chosen, sign_noise) if asked.family == "signs" else chosen
        if total is not None:
            everyone = _everyone(people, id_column, None, asked)
            everyone.numbers(Total(total))
            about = f"simulated {system}, summing {total} of {people}, seed {seed}"
            return Simulated(everyone, Total(total), system, seed), about
        everyone = _everyone(people, id_column, condition, asked)
        about = f"simulated {system}, counting {condition} of {people}, seed {seed}"
        return Simulated(everyone, condition, system, seed), about

    def diffix(stack: ExitStack, asked: Queries | None) -> tuple[Target, str]:
        salt = read_salt(salt_file)
        counted = None if asked is None else condition
        if database is None:
            everyone = _everyone(people, id_column, counted, asked)
            system = Diffix(everyone, counted, release, salt, table=table)
        else:
            held = _database(stack, database, salt, table, id_column or "client_id")
            system = Diffix(held, counted, release, salt)
        of_whom = people if database is None else f"table {table}"
        return (
            system,
            f"Diffix {release}, counting {condition} of {of_whom}, salt {salt.fingerprint}",
        )

    targets = {"simulated": simulated, "diffix": diffix}
    if target not in targets:
        raise InputError(f"there is no target {target!r}; choose {', '.join(targets)}")
    make = targets[target]
    if (queries is None) == (sql is None):
        raise InputError("name a file of queries written by `countleak plan`, or pass --sql")
    asked = read_queries(queries) if queries is not None else None
    with ExitStack() as stack:
        system, about = make(stack, asked)
        if asked is None:
            assert isinstance(system, Diffix) and sql is not None
            _ask_one(system, sql, json)
        else:
            _ask_all(system, about, asked, out, json)


def _everyone(
    word: str, id_column: str | None, condition: Condition | None, asked: Queries | None
) -> People:
    """The people a word stands for; the queries must be about some of them."""
    everyone = words.people_of(word, id_column, None)
    if condition is not None:
        everyone.secret(condition)
    strangers = np.setdiff1d([] if asked is None else asked.ids, everyone.ids)
    if asked is not None and strangers.size:
        raise InputError(
            f"{strangers.size} of {asked.ids.size} people asked about are not in {word} (id "
            f"{strangers[0]}); check --people"
        )
    return everyone


def _database(stack: ExitStack, where: str, salt: Salt, table: str, user: str) -> Database:
    """The table at a PostgreSQL address or in a file."""
    if where.startswith(("postgresql://", "postgres://")):
        return stack.enter_context(connect(where, table=table, user=user))
    return Duck.of_file(Path(where), salt, table=table, user=user)


def _ask_all(system: Target, about: str, asked: Queries, out: Path, json: bool) -> None:
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
