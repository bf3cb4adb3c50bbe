"""`countleak demo`: the whole attack on a generated bank that a server answers for, in a minute."""

import json as json_module
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from countleak.attack.decoders.files import basis, write_guess
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.programs import Bracket
from countleak.attack.queries import Queries, write_queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.transcript import Answers
from countleak.audit.people import Condition, People, generated_bank
from countleak.audit.report.leak import draw_leak, draw_residuals
from countleak.audit.run import ask, ask_into
from countleak.audit.scores import Score, score
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.simulated import Simulated, SimulatedDiffix
from countleak.cli import console, words
from countleak.diffix.salt import Salt
from countleak.diffix.server.background import TABLE, serve_columns
from countleak.errors import InputError, MissingExtra, SolverError
from countleak.files import replacing

# The ids that `BETWEEN 2000 and 3000` means to Diffix, whose ranges end before their end.
LOW, HIGH = 2000, 2999


def demo(
    seed: words.Seed = 7,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo"),
    json: words.Json = False,
) -> None:
    """Serve a generated bank through Diffix 18.1, ask it over the wire, and rebuild its loans."""
    bank, condition = generated_bank(seed), Condition("status", "=", "C")
    people = bank.between(LOW, HIGH)
    secret = people.secret(condition)
    queries = digit_queries(people.ids)
    counts = Counts(TABLE, bank.id_column, condition)

    _clear(folder / "answers.jsonl")
    bank.write_csv(folder / "people.csv")
    write_queries(folder / "queries.jsonl", queries)
    with ExitStack() as stack:
        with console.waiting("starting the server"):
            # A secret that everyone can read, so that the demo is the same twice.
            salt = Salt(f"salt of demo {seed}".encode())
            columns = {bank.id_column: bank.ids, **bank.columns}
            served = stack.enter_context(
                serve_columns(columns, bank.id_column, folder, salt, "18.1")
            )
        report = stack.enter_context(console.progress("asking"))
        heard: list[int] = []

        def count(new: int) -> None:
            heard.append(new)
            report(sum(heard), len(queries))

        target = PostgresTarget(served.postgres, counts)
        begin = perf_counter()
        answers = ask_into(folder / "answers.jsonl", queries, target, f"demo, seed {seed}", count)
        seconds = perf_counter() - begin
    with console.waiting("solving"):
        guess = Rounding().decode(queries, answers)
    write_guess(folder / "guess.jsonl", guess)
    found = score(guess, secret)
    record = console.score_record(found, known=len(people))
    with replacing(folder / "score.json") as file:
        json_module.dump(record, file, indent=2)
    certificate, solution = guess.certificate, guess.solution
    if not isinstance(certificate, Bracket) or solution is None or solution.x is None:
        raise SolverError("the demo's program came back without a bracket; please report this")
    try:
        title = f"{len(people)} loans of a generated bank, Diffix 18.1"
        growth = list(_growth(queries, answers, secret, seed))
        draw_leak(growth, solution.x, secret, title, folder / "leak.svg")
        draw_residuals(_residuals(queries, answers, bank, condition), folder / "residuals.svg")
        picture = "leak.svg, residuals.svg"
    except MissingExtra as error:
        picture = f"no picture: {error}"
    if json:
        console.print_json({"folder": str(folder), **record, "rests_on": basis(guess)})
        return
    console.say(
        f"A generated bank of {len(bank)} loans; {len(people)} clients have ids from {LOW} to "
        f"{HIGH}. Their secret: {condition}."
    )
    console.say(
        f"Served by Diffix 18.1 over DuckDB (noise of SD 4, low counts suppressed) at {target}."
    )
    console.say(
        f"Asked {len(queries)} counts over PostgreSQL's protocol in {seconds:.1f} s, like\n"
        f"  {counts.statement(queries, 0)}"
    )
    console.say(
        f"Solved one linear program in {1000 * solution.seconds:.1f} ms ({solution.solver}); its "
        f"optimum lies within a relative gap of {certificate.gap:.0e}, recomputed."
    )
    console.say(console.describe_score(found, solution.status.name.lower()))
    console.say(
        f"Files in {folder}/: people.csv, queries.jsonl, answers.jsonl, guess.jsonl, score.json, "
        f"{picture}; to ask it yourself: countleak serve {folder}/server.toml"
    )


def _clear(journal: Path) -> None:
    """Remove the journal of an earlier demo; anyone else's stays, and stops this one."""
    if journal.is_file():
        with journal.open(encoding="utf-8") as file:
            header = file.readline()
        if '"system":"demo' not in header and '"system":"simulated demo' not in header:
            raise InputError(f"{journal.parent}: holds another run; name another folder")
        journal.unlink()


def _residuals(
    queries: Queries, answers: Answers, bank: People, condition: Condition
) -> dict[str, NDArray[np.float64]]:
    """Answers less true counts: of the system, and of the authors' simulation of it."""
    simulated = ask(queries, Simulated(bank, condition, SimulatedDiffix(sigma=4.0)))
    truth = bank.secret(condition)[np.searchsorted(bank.ids, queries.ids)]
    exact = queries.dot(truth.astype(np.float64))
    return {
        name: (found.values - exact[found.query])[found.released]
        for name, found in {"Diffix 18.1, rebuilt": answers, "simulated": simulated}.items()
    }


def _growth(
    queries: Queries, answers: Answers, secret: np.ndarray, seed: int
) -> Iterator[tuple[int, Score]]:
    """The score after the first m of the queries, asked in random order."""
    order = np.random.default_rng(seed).permutation(len(queries))
    for m in (60, 120, 200, 300, 450, 700, 1000, 1400, 1900, 2500, len(queries)):
        first = np.sort(order[:m])
        guess = Rounding().decode(queries.take(first), answers.to_some(first))
        yield m, score(guess, secret)
