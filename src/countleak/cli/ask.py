"""`countleak ask`: the questions of a plan, or one of your own, put to a system."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countleak.attack.queries import Queries, read_queries
from countleak.attack.transcript import Answers, Journal
from countleak.audit.people import Condition, People, Total
from countleak.audit.run import ask_into
from countleak.audit.targets import Target
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.several import Manners
from countleak.audit.targets.simulated import (
    Uniform,
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
)
from countleak.cli import console, live, words
from countleak.diffix.databases.database import Database
from countleak.diffix.databases.postgres import connect
from countleak.diffix.salt import Salt
from countleak.diffix.salt import salt_file as read_salt
from countleak.errors import InputError


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
            help="Who answers: `simulated` (see --mechanism), `diffix`, the system rebuilt over a "
            "database, or a live system at postgresql://..., http://... or https://..."
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
    table: Annotated[
        str, typer.Option(help="diffix, or an address: the table that is asked about.")
    ] = "loans",
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
    system: live.SystemWord = None,
    data_source: live.DataSource = None,
    token_file: live.TokenFile = None,
    connections: live.Connections = 1,
    rate: live.Rate = None,
    timeout: live.Timeout = 30.0,
    limit: live.Limit = None,
    dry_run: live.DryRun = False,
    authorised_by: live.AuthorisedBy = None,
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
        diffix = SimulatedDiffix(sigma, rounding, suppression, clamping)
        chosen = mechanism_of(mechanism, diffix, sigma, bound, base, random_rounding)
        drawn = _sign_mechanism(chosen, sign_noise) if asked.family == "signs" else chosen
        if total is not None:
            everyone = _everyone(people, id_column, None, asked)
            everyone.numbers(Total(total))
            about = f"simulated {drawn}, summing {total} of {people}, seed {seed}"
            return Simulated(everyone, Total(total), drawn, seed), about
        return simulated_target(asked, people, id_column, condition, drawn, seed)

    def diffix(stack: ExitStack, asked: Queries | None) -> tuple[Target, str]:
        counted = None if asked is None else condition
        return diffix_target(
            stack, asked, people, id_column, counted, release, salt_file, database, table
        )

    def address(stack: ExitStack, asked: Queries | None) -> tuple[Target, str]:
        if sql is not None or database is not None or asked is None:
            raise InputError("--sql and --database need --target diffix")
        found = live.Live(
            target,
            Counts(table, id_column or "client_id", condition, live.system_of(system, target)),
            Manners(connections, timeout, rate),
            data_source,
            token_file,
            authorised_by,
        ).target()
        about = live.about(found)
        positions = np.arange(len(asked))
        if out.exists():
            positions = Journal(out, asked, about, authorised_by).open_queries()
        live.show(found, asked, positions[:limit])
        return found, about

    targets = {"simulated": simulated, "diffix": diffix}
    if target not in targets and not live.is_address(target):
        raise InputError(
            f"there is no target {target.split('@')[-1]!r}; choose {', '.join(targets)}, or an "
            "address that begins with postgresql://, http:// or https://"
        )
    make = targets.get(target, address)
    if (queries is None) == (sql is None):
        raise InputError("name a file of queries written by `countleak plan`, or pass --sql")
    if dry_run and not live.is_address(target):
        raise InputError("--dry-run needs a target at an address")
    asked = read_queries(queries) if queries is not None else None
    with ExitStack() as stack:
        answering, about = make(stack, asked)
        if asked is None:
            assert isinstance(answering, Diffix) and sql is not None
            _ask_one(answering, sql, json)
        elif dry_run:
            console.remark("Nothing was sent (--dry-run).")
            if json:
                console.print_json({"system": about, "sent": 0})
        else:
            answers = _ask_all(answering, about, asked, out, json, limit, authorised_by)
            if isinstance(answering, PostgresTarget | RestTarget):
                live.doubt(answering.counts.system, answers)


def mechanism_of(
    word: str,
    diffix: SimulatedDiffix,
    sigma: float,
    bound: int,
    base: int,
    random_rounding: bool = False,
) -> Mechanism:
    """The mechanism of that name."""
    mechanisms: dict[str, Callable[[], Mechanism]] = {
        "diffix": lambda: diffix,
        "gaussian": lambda: Gaussian(sigma),
        "laplace": lambda: Laplace(sigma),
        "uniform": lambda: Uniform(bound),
        "round": lambda: RoundedToBase(base, random_rounding),
    }
    return words.chosen(mechanisms, word, "mechanism")


def simulated_target(
    asked: Queries,
    people: str,
    id_column: str | None,
    condition: Condition,
    mechanism: Mechanism | TwoSubsets,
    seed: int,
) -> tuple[Target, str]:
    """A simulation over people, and what it is called in a journal."""
    everyone = _everyone(people, id_column, condition, asked)
    about = f"simulated {mechanism}, counting {condition} of {people}, seed {seed}"
    return Simulated(everyone, condition, mechanism, seed), about


def diffix_target(
    stack: ExitStack,
    asked: Queries | None,
    people: str,
    id_column: str | None,
    condition: Condition | None,
    release: str,
    salt_file: Path,
    database: str | None = None,
    table: str = "loans",
) -> tuple[Diffix, str]:
    """Diffix over people, or over a database, and what it is called in a journal."""
    salt = read_salt(salt_file)
    if database is None:
        everyone = _everyone(people, id_column, condition, asked)
        system = Diffix(everyone, condition, release, salt, table=table)
    else:
        held = _database(stack, database, salt, table, id_column or "client_id")
        system = Diffix(held, condition, release, salt)
    of_whom = people if database is None else f"table {table}"
    return (
        system,
        f"Diffix {release}, counting {condition} of {of_whom}, salt {salt.fingerprint}",
    )


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
    # Loaded here: most of countleak needs no database.
    from countleak.diffix.databases.duck import Duck

    return Duck.of_file(Path(where), salt, table=table, user=user)


def _ask_all(
    system: Target,
    about: str,
    asked: Queries,
    out: Path,
    json: bool,
    limit: int | None,
    authorised_by: str | None,
) -> Answers:
    heard: list[int] = []
    with console.progress("asking") as report:

        def count(new: int) -> None:
            heard.append(new)
            report(sum(heard), len(asked))

        answers = ask_into(
            out, asked, system, about, count, limit=limit, authorised_by=authorised_by
        )
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
        missing = f" of {len(asked)}; run again to go on" if len(answers) < len(asked) else ""
        console.say(f"{len(answers)} answers{before}{missing}, {suppressed} suppressed, in {out}")
        console.say(f"From: {about}")
    return answers


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
