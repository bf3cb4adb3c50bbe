"""`countleak solve`: from queries and answers to a guess of every secret."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.automatic import Automatic
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.files import basis, write_guess
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Threshold
from countleak.attack.programs import CappedDmt, DiNi, Dmt, Point, Program
from countleak.attack.queries import read_queries
from countleak.attack.transcript import read_answers
from countleak.cli import console, words
from countleak.errors import InputError

# What the paper's simulation adds, where a program needs a noise and none is given.
PAPERS_SIGMA = 4.0


def solve(
    queries: words.QueriesFile,
    answers: words.AnswersFile,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="auto (diagnoses the system and picks; the default), lp (the paper's), ls (least "
            "squares), bayes, robust, or bounded.",
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            help="lp: dmt (least total residual, the default), bounded (the same, bounded) or dini."
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise known, in people (lp: 4 unless given; others estimate it)."),
    ] = None,
    multiplier: Annotated[
        float | None,
        typer.Option("--multiplier", "-B", help="lp: bound in sigmas (bounded: 5, dini: 3)."),
    ] = None,
    keep_nonpositive: Annotated[
        bool, typer.Option(help="lp, bounded: keep answers that are not positive.")
    ] = False,
    point: Annotated[
        Point, typer.Option(help="dini: the simplex's vertex, or the centre of what is feasible.")
    ] = Point.VERTEX,
    integer: Annotated[bool, typer.Option(help="lp: solve over whole numbers.")] = False,
    solver: words.SolverWord = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds for an integer program.")] = 60.0,
    prior: Annotated[
        float | None, typer.Option(help="auto, bayes, robust: rate of ones (default: estimated).")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="bayes, robust: counts below about this are suppressed (Diffix: 4)."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="robust: parameter whose values have noise of their own (exponent)."),
    ] = None,
    bound: Annotated[
        float | None, typer.Option(help="bounded: no answer is further from its count.")
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="CSV file of people whose bit is known: an id and a 0 or 1 a line."),
    ] = None,
    polish: Annotated[
        bool, typer.Option(help="Descend to the bits of least squared error; prove it if few.")
    ] = False,
    precision: Annotated[
        float | None,
        typer.Option(help="Claim only what is at least this probable, like 0.95."),
    ] = None,
    suppressed_as: Annotated[
        float | None,
        typer.Option(help="Read suppressed answers as this (the paper: 0)."),
    ] = None,
    partial: words.Partial = False,
    seed: words.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("guess.jsonl"),
    json: words.Json = False,
) -> None:
    """Solve for the secrets behind the answers, with a certificate or a probability each."""
    if sigma is not None and not sigma > 0:
        raise InputError(f"--sigma is {sigma:g}; it must be above 0")
    asked = read_queries(queries)
    answered = read_answers(answers, asked, partial=partial)
    if suppressed_as is not None:
        answered = answered.suppressed_as(suppressed_as)
    name = decoder or ("lp" if program or integer or multiplier is not None else "auto")
    noise = Noise(sigma, threshold=None if threshold is None else Threshold(threshold))
    programs: dict[str, Callable[[], Program]] = {
        "dmt": lambda: Dmt(integer),
        "bounded": lambda: CappedDmt(
            (5.0 if multiplier is None else multiplier) * (sigma or PAPERS_SIGMA),
            not keep_nonpositive,
            integer,
        ),
        "dini": lambda: DiNi(
            3.0 if multiplier is None else multiplier, sigma or PAPERS_SIGMA, integer
        ),
    }
    decoders: dict[str, Callable[[], Decoder]] = {
        "auto": lambda: Automatic(prior, seed=seed),
        "lp": lambda: Rounding(
            words.chosen(programs, program or "dmt", "program"),
            words.solver_of(solver, time_limit, point),
        ),
        "ls": lambda: LeastSquares(sigma),
        "bayes": lambda: Bayes(noise, prior, seed=seed),
        "robust": lambda: Robust(by, threshold=noise.threshold, prior=prior, seed=seed),
        "bounded": lambda: Bounded(_required(bound)),
    }
    chosen = words.chosen(decoders, name, "decoder")
    if polish:
        chosen = Polished(chosen)
    with console.waiting("solving"):
        guess = Informed(chosen, _known_bits(known)).decode(asked, answered)
    if precision is not None:
        guess = guess.claims_at(precision)
    write_guess(out, guess)
    rests_on = basis(guess)
    claims = int(guess.claimed.sum())
    if json:
        console.print_json({"file": str(out), "claims": claims, **rests_on})
        return
    console.say(f"{claims} of {asked.ids.size} people guessed, in {out}")
    if "picked_because" in rests_on:
        console.say(f"Picked {rests_on['decoder']}: {rests_on.pop('picked_because')}")
    if guess.probability is not None and claims:
        sure = guess.probability[guess.claimed]
        expected = float(abs(sure - 0.5).mean() + 0.5)
        console.say(f"Expected to be right about {expected:.1%} of them, by its own probabilities")
    if guess.forced is not None and guess.forced.any():
        console.say(f"{guess.forced.sum()} are proven: no other value fits the answers")
    console.say(f"Rests on: {', '.join(f'{k} {_brief(v)}' for k, v in rests_on.items())}")


def _required(bound: float | None) -> float:
    if bound is None:
        raise InputError("pass --bound with --decoder bounded, or let auto find it")
    return bound


def _known_bits(path: Path | None) -> dict[int, int]:
    """The bits of a file of known people."""
    known = words.known_of(path)
    if any(type(bit) is not int or bit not in (0, 1) for bit in known.values()):
        raise InputError(f"{path}: the bits must be 0 or 1")
    return known


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v is not None) + ")"
    if isinstance(value, list):
        return "/".join(_brief(v) for v in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
