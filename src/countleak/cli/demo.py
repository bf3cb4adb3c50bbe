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

from countleak.attack.decoders.rounding import Rounding
from countleak.attack.guess import Guess
from countleak.attack.guess_file import write_guess
from countleak.attack.programs import Bracket
from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.files import write_queries
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Journal, Transcript
from countleak.audit.people import People, generated_bank
from countleak.audit.report.leak import draw_leak, draw_residuals
from countleak.audit.run import ask, ask_into
from countleak.audit.scores import Score, score
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.simulated import Simulated, SimulatedDiffix
from countleak.audit.targets.sql import DIFFIX, SqlQuestions
from countleak.cli import console, options
from countleak.diffix.salt import Salt
from countleak.diffix.server.background import TABLE, serve_columns
from countleak.errors import InputError, MissingExtra, SolverError
from countleak.files import read_text, replacing

# The ids that `BETWEEN 2000 and 3000` means to Diffix, whose ranges end before their end.
LOW, HIGH = 2000, 2999
MARK = "Written by `countleak demo`, which replaces the files here when it runs again.\n"
FILES = (
    "README.txt", "people.csv", "queries.jsonl", "answers.jsonl", "guess.jsonl", "score.json",
    "leak.svg", "residuals.svg", "bank.duckdb", "server.toml", "server.salt", "server.log",
)  # fmt: skip


def demo(
    seed: options.Seed = 7,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo"),
    json: options.Json = False,
) -> None:
    """Serve a generated bank through Diffix 18.1, ask it over the wire, and rebuild its loans."""
    bank, secret = generated_bank(seed), Bit("status = 'C'")
    people = bank.between(LOW, HIGH)
    queries = digit_queries(people.ids)
    questions = SqlQuestions(TABLE, bank.key, secret, DIFFIX)
    _claim(folder)
    bank.write_csv(folder / "people.csv")
    write_queries(folder / "queries.jsonl", queries)
    journal = Journal(folder / "answers.jsonl", queries, secret, f"demo, seed {seed}")
    with ExitStack() as stack:
        with console.waiting("starting the server"):
            # A secret that everyone can read, so that the demo is the same twice.
            salt = Salt(f"salt of demo {seed}".encode())
            served = stack.enter_context(
                serve_columns(bank.all_columns, bank.key[0], folder, salt, "18.1")
            )
        report = stack.enter_context(console.progress("asking"))
        target = PostgresTarget(served.postgres, questions)
        begin = perf_counter()
        transcript = ask_into(journal, target, report)
        seconds = perf_counter() - begin
    with console.waiting("solving"):
        guess = Rounding().decode(transcript)
    write_guess(folder / "guess.jsonl", guess, secret)
    result = score(guess, people.truth(secret))
    with replacing(folder / "score.json") as file:
        json_module.dump(result.record(), file, indent=2)
    if json:
        rests_on = guess.basis.record()
        console.print_json({"folder": str(folder), **result.record(), "rests_on": rests_on})
        return
    picture = _draw(folder, transcript, guess, bank, people, secret, seed)
    console.say(
        f"A generated bank of {len(bank)} loans; {len(people)} clients have ids from {LOW} to "
        f"{HIGH}. Their secret: {secret}."
    )
    console.say(
        f"Served by Diffix 18.1 over DuckDB (noise of SD 4, low counts suppressed) at {target}."
    )
    console.say(
        f"Asked {len(queries)} counts over PostgreSQL's protocol in {seconds:.1f} s, like\n"
        f"  {questions.statement(queries, 0)}"
    )
    console.say(_solved(guess))
    console.say(str(result))
    console.say(
        f"Files in {folder}/: people.csv, queries.jsonl, answers.jsonl, guess.jsonl, score.json, "
        f"{picture}; to ask it yourself: countleak serve {folder}/server.toml"
    )


def _solved(guess: Guess) -> str:
    """How the program was solved, and how near the optimum."""
    certificate, solution = guess.basis.certificate, guess.basis.solution
    if not isinstance(certificate, Bracket) or solution is None:
        raise SolverError("the demo's program came back without a bracket; please report this")
    return (
        f"Solved one linear program in {1000 * solution.seconds:.1f} ms ({solution.solver}); its "
        f"optimum lies within a relative gap of {certificate.gap:.0e}, recomputed."
    )


def _draw(
    folder: Path,
    transcript: Transcript,
    guess: Guess,
    bank: People,
    people: People,
    secret: Bit,
    seed: int,
) -> str:
    """Draw the pictures; their names, or why there are none."""
    x = None if guess.basis.solution is None else guess.basis.solution.x
    if x is None:
        return "no picture: the program has no solution"
    truth = people.truth(secret)
    try:
        title = f"{len(people)} loans of a generated bank, Diffix 18.1"
        draw_leak(list(_growth(transcript, truth, seed)), x, truth, title, folder / "leak.svg")
        draw_residuals(_residuals(transcript, bank, secret), folder / "residuals.svg")
    except MissingExtra as error:
        return f"no picture: {error}"
    return "leak.svg, residuals.svg"


def _claim(folder: Path) -> None:
    """Mark the folder as the demo's, whose files it may replace; anyone else's stop it."""
    mark = folder / "README.txt"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: not a folder; name another one")
    marked = mark.is_file() and read_text(mark) == MARK
    if not marked and (others := [name for name in FILES if (folder / name).exists()]):
        raise InputError(f"{folder}: holds another run ({others[0]}); name another folder")
    with replacing(mark) as file:
        file.write(MARK)
    (folder / "answers.jsonl").unlink(missing_ok=True)


def _residuals(transcript: Transcript, bank: People, secret: Bit) -> dict[str, NDArray[np.float64]]:
    """Answers less true counts: of the system, and of the authors' simulation of it."""
    queries = transcript.queries
    simulated = ask(queries, Simulated(bank, secret, SimulatedDiffix(sigma=4.0)))
    truth = bank.truth(secret)[np.searchsorted(bank.ids, queries.ids)]
    return {
        name: part.b - part.A @ truth.astype(np.float64)
        for name, part in {"Diffix 18.1, rebuilt": transcript, "simulated": simulated}.items()
    }


def _growth(
    transcript: Transcript, truth: NDArray[np.int64], seed: int
) -> Iterator[tuple[int, Score]]:
    """The score after the first m of the queries, asked in random order."""
    order = np.random.default_rng(seed).permutation(len(transcript))
    for m in (60, 120, 200, 300, 450, 700, 1000, 1400, 1900, 2500, len(transcript)):
        yield m, score(Rounding().decode(transcript.take(np.sort(order[:m]))), truth)
