"""`countleak audit`: plan, ask, solve and score in one go, and say whether too much leaks."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from countleak.attack.decoders.files import write_guess
from countleak.attack.design import Goal, Information, Variance
from countleak.attack.queries import Queries, write_queries
from countleak.attack.queries.arithmetic import Float64
from countleak.attack.transcript import Journal
from countleak.audit.people import Condition
from countleak.audit.run import Adaptive, Step, audit_adaptively
from countleak.audit.scores import Score, score
from countleak.audit.targets import Target
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.several import Manners
from countleak.audit.targets.simulated import SimulatedDiffix
from countleak.cli import console, live, words
from countleak.cli.ask import diffix_target, mechanism_of, simulated_target
from countleak.cli.stages import family_of
from countleak.errors import InputError

FAILED = 1


def audit(
    people: words.PeopleWord = "bank",
    id_column: words.IdColumn = None,
    between: words.Between = None,
    secret: words.Secret = "status = 'C'",
    target: Annotated[
        str,
        typer.Option(
            help="Who answers: `simulated` (see --mechanism), `diffix`, or a live system at "
            "postgresql://..., http://... or https://..."
        ),
    ] = "simulated",
    release: words.ReleaseWord = "18.1",
    salt_file: words.SaltFile = Path("salt"),
    mechanism: Annotated[
        str,
        typer.Option(help="simulated: diffix, gaussian, laplace, uniform or round, see `ask`."),
    ] = "diffix",
    sigma: Annotated[float, typer.Option(help="simulated: noise's SD, in people.")] = 4.0,
    bound: Annotated[int, typer.Option(help="uniform: noise lies within ± this.")] = 5,
    base: Annotated[int, typer.Option(help="round: to multiples of this.")] = 5,
    family: Annotated[str, typer.Option(help="Family of the queries: digits or subsets.")] = (
        "digits"
    ),
    primes: Annotated[
        int, typer.Option(help="digits: choose from those of so many primes, 140 each.", min=1)
    ] = 25,
    pool: Annotated[
        int | None, typer.Option(help="subsets: choose from so many (default: 1000).", min=1)
    ] = None,
    queries: Annotated[
        int | None, typer.Option("--queries", "-m", help="Ask at most so many.", min=1)
    ] = None,
    adaptive: Annotated[
        bool, typer.Option(help="Choose every batch by the answers so far, and stop early.")
    ] = False,
    until: Annotated[
        float, typer.Option(help="adaptive: stop once this share is expected to be right.")
    ] = 0.99,
    first: Annotated[int, typer.Option(help="adaptive: queries in the first batch.")] = 100,
    batch: Annotated[int, typer.Option(help="adaptive: queries in each batch after it.")] = 50,
    goal: Annotated[
        str, typer.Option(help="adaptive: gain `information`, lower `variance`, or `random`.")
    ] = "information",
    fail_above: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 if the attack learns more than this share (0 to 1) of what guessing "
            "leaves open."
        ),
    ] = None,
    seed: words.Seed = 0,
    table: Annotated[str, typer.Option(help="An address: the table asked about.")] = "loans",
    system: live.SystemWord = None,
    data_source: live.DataSource = None,
    token_file: live.TokenFile = None,
    connections: live.Connections = 1,
    rate: live.Rate = None,
    timeout: live.Timeout = 30.0,
    authorised_by: live.AuthorisedBy = None,
    folder: Annotated[
        Path, typer.Option(help="Where the files go; an audit there is gone on with.")
    ] = Path("audit"),
    json: words.Json = False,
) -> None:
    """Plan, ask, solve and score in one go; exit code 1 when more leaks than is allowed."""
    if fail_above is not None and not 0 <= fail_above <= 1:
        raise InputError(f"--fail-above is {fail_above:g}; choose a share from 0 to 1")
    condition = Condition.parse(secret)
    everyone = words.people_of(people, id_column, between)
    # Whoever audits a live system may know the ids alone.
    unknown = live.is_address(target) and condition.column not in everyone.columns
    truth = None if unknown else everyone.secret(condition)
    if truth is None and fail_above is not None:
        raise InputError(
            f"--fail-above compares with the truth, but {people} has no column "
            f"{condition.column!r}; leave it out, or add the column"
        )
    goals: dict[str, Goal | None] = {
        "information": Information(),
        "variance": Variance(),
        "random": None,
    }
    if goal not in goals:
        raise InputError(f"there is no goal {goal!r}; choose {', '.join(goals)}")
    if family == "signs":
        raise InputError("an audit asks counts, and ±1 queries are none; choose digits or subsets")
    if family == "digits" and pool is not None:
        raise InputError("--pool is for subsets; --primes says how many digit queries there are")
    plan = family_of(family, everyone, pool, primes, words.exponents_of("attack"), Float64(), seed)
    most = min(queries or len(plan), len(plan))
    how = (
        Adaptive(until, first, batch, most, goals[goal], seed=seed)
        if adaptive
        else Adaptive(1.0, most, most, most, None, seed=seed)
    )
    with ExitStack() as stack:
        asked: Target
        if target == "simulated":
            noise = mechanism_of(mechanism, SimulatedDiffix(sigma), sigma, bound, base)
            asked, about = simulated_target(plan, people, id_column, condition, noise, seed)
        elif target == "diffix":
            asked, about = diffix_target(
                stack, plan, people, id_column, condition, release, salt_file
            )
        elif live.is_address(target):
            asked = live.Live(
                target,
                Counts(table, everyone.id_column, condition, live.system_of(system, target)),
                Manners(connections, timeout, rate),
                data_source,
                token_file,
                authorised_by,
            ).target()
            about = live.about(asked)
            live.show(asked, plan, np.arange(most))
        else:
            raise InputError(
                f"there is no target {target.split('@')[-1]!r}; choose simulated, diffix, or an "
                "address that begins with postgresql://, http:// or https://"
            )
        # A journal of another audit raises here, before any file is touched.
        journal = Journal(folder / "answers.jsonl", plan, about, authorised_by)
        steps = _run(plan, asked, how, most, folder, journal)
    found = None if truth is None else score(steps[-1].guess, truth)
    advantage = None if found is None or found.kappa is None else found.kappa / 100
    failed = fail_above is not None and advantage is not None and advantage > fail_above
    if json:
        console.print_json(
            {
                "folder": str(folder),
                "system": about,
                "queries": len(steps[-1].answers),
                "confidence": steps[-1].confidence,
                "reached": steps[-1].reached,
                "steps": [
                    {"queries": len(step.answers), "confidence": step.confidence} for step in steps
                ],
                **({} if found is None else console.score_record(found, known=len(everyone))),
                "advantage": advantage,
                "failed": failed,
            }
        )
    else:
        _tell(steps, how, most, adaptive, found, about, folder)
        if fail_above is not None:
            _judge(advantage, fail_above, failed)
    if failed:
        raise typer.Exit(FAILED)


def _run(
    plan: Queries, target: Target, how: Adaptive, most: int, folder: Path, journal: Journal
) -> list[Step]:
    """The steps of an audit, with its files."""
    write_queries(folder / "queries.jsonl", plan)
    with console.progress("auditing") as report:
        steps = list(
            audit_adaptively(plan, target, how, journal, lambda asked: report(asked, most))
        )
    write_guess(folder / "guess.jsonl", steps[-1].guess)
    return steps


def _tell(
    steps: list[Step],
    how: Adaptive,
    most: int,
    adaptive: bool,
    found: Score | None,
    about: str,
    folder: Path,
) -> None:
    last = steps[-1]
    suppressed = int(np.sum(~last.answers.released))
    console.say(f"{len(last.answers)} answers, {suppressed} suppressed, from: {about}")
    expected = f"{last.confidence:.1%} of the guesses are expected to be right"
    if adaptive and last.reached:
        console.say(
            f"Stopped after {len(last.answers)} of {most} queries: {expected}, {how.until:.1%} "
            "were wanted"
        )
    else:
        console.say(expected)
    if found is not None:
        console.say(console.describe_score(found, "no claim"))
    console.say(f"Files in {folder}/: queries.jsonl, answers.jsonl, guess.jsonl")


def _judge(advantage: float | None, allowed: float, failed: bool) -> None:
    if advantage is None:
        console.say("Everyone has the same value, so guessing is always right: nothing can leak.")
        return
    verdict = "FAILED" if failed else "passed"
    console.say(
        f"{verdict}: of what guessing leaves open the attack learns {advantage:.1%}; "
        f"{allowed:.1%} is allowed"
    )
