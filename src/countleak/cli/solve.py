"""`countleak solve`: from queries and answers to a guess of every secret."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.categorical import Categorical, assumed_noise
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.decoders.sums import Sums
from countleak.attack.guess import Guess
from countleak.attack.guess_file import write_guess
from countleak.attack.noise import UNKNOWN, Noise, Threshold
from countleak.attack.programs import CappedDmt, DiNi, Dmt, Point, Program
from countleak.attack.queries.files import read_queries
from countleak.attack.secrets import Bit, Category, Number, Secret
from countleak.attack.transcript import Transcript, read_answers
from countleak.audit.people import read_known
from countleak.audit.scores import percent
from countleak.cli import console, options
from countleak.cli.option_rules import GIVEN, Needs, check_given, given, needs
from countleak.errors import InputError
from countleak.files import require_writable

# What the paper's simulation adds, where a program needs a noise and none is given.
PAPERS_SIGMA = 4.0
SAMPLED = ("auto", "bayes", "robust")
OF_LP = (
    "--program", "--multiplier", "--keep-nonpositive", "--point", "--integer", "--solver",
    "--time-limit",
)  # fmt: skip
BY_DECODER: Needs = {
    **{option: {"--decoder": ("lp",)} for option in OF_LP},
    "--prior": {"--decoder": SAMPLED},
    "--threshold": {"--decoder": ("bayes", "robust")},
    "--by": {"--decoder": ("robust",)},
    "--bound": {"--decoder": ("bounded",)},
    "--sigma": {"--decoder": ("lp", "ls", "bayes")},
    "--precision": {"--decoder": (*SAMPLED, "ls")},
}
# Options that apply to one kind of secret only.
BY_SECRET: Needs = {
    **{
        option: {"the secret": ("a bit",)}
        for option in (*OF_LP, "--decoder", "--prior", "--by", "--bound", "--polish")
    },
    **{option: {"the secret": ("a number",)} for option in ("--low", "--high", "--level")},
    **{
        option: {"the secret": ("a bit", "a category")} for option in ("--precision", "--threshold")
    },
}


@needs(
    {
        "--multiplier": {"--program": ("bounded", "dini")},
        "--keep-nonpositive": {"--program": ("bounded",)},
        "--point": {"--program": ("dini",)},
        "--time-limit": {"--integer": GIVEN},
    }
)
@dataclass(frozen=True)
class Programs:
    """The linear program of the decoder lp, and how it is solved."""

    program: Annotated[
        Literal["dmt", "bounded", "dini"],
        typer.Option(help="lp: least total residual, the same bounded, or any within a bound."),
    ] = "dmt"
    multiplier: Annotated[
        float | None,
        typer.Option("--multiplier", "-B", help="lp: bound in sigmas (bounded: 5, dini: 3)."),
    ] = None
    keep_nonpositive: Annotated[
        bool,
        typer.Option("--keep-nonpositive", help="lp, bounded: keep answers that are not positive."),
    ] = False
    point: Annotated[
        Point, typer.Option(help="dini: the simplex's vertex, or the centre of what is feasible.")
    ] = Point.VERTEX
    integer: Annotated[bool, typer.Option("--integer", help="lp: solve over whole numbers.")] = (
        False
    )
    solver: options.SolverWord = "auto"
    time_limit: Annotated[float, typer.Option(help="Seconds for an integer program.")] = 60.0

    def decoder(self, sigma: float | None) -> Rounding:
        """The paper's decoder with this program."""
        scale = PAPERS_SIGMA if sigma is None else sigma
        default = 3.0 if self.program == "dini" else 5.0
        times = default if self.multiplier is None else self.multiplier
        programs: dict[str, Callable[[], Program]] = {
            "dmt": lambda: Dmt(self.integer),
            "bounded": lambda: CappedDmt(times * scale, not self.keep_nonpositive, self.integer),
            "dini": lambda: DiNi(times, scale, self.integer),
        }
        solver = options.solver_from(self.solver, self.time_limit, self.point)
        return Rounding(programs[self.program](), solver)


@dataclass(frozen=True)
class Facts:
    """What is known of the noise and the people beforehand."""

    sigma: Annotated[
        float | None,
        typer.Option(help="SD of the noise (lp: 4 unless given; others estimate it)."),
    ] = None
    prior: Annotated[
        float | None, typer.Option(help="auto, bayes, robust: rate of ones (default: estimated).")
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="Counts below about this are suppressed (Diffix: 4)."),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(help="robust: parameter whose values have noise of their own (exponent)."),
    ] = None
    bound: Annotated[
        float | None, typer.Option(help="bounded: no answer is further from its count.")
    ] = None
    low: Annotated[
        float | None, typer.Option(help="Numbers: none is below this (default: estimated).")
    ] = None
    high: Annotated[
        float | None, typer.Option(help="Numbers: none is above this (default: estimated).")
    ] = None
    level: Annotated[float, typer.Option(help="Numbers: probability of the intervals.")] = 0.95
    known: Annotated[
        Path | None,
        typer.Option(help="CSV file of people known beforehand: an id and a value per line."),
    ] = None

    @property
    def noise(self) -> Noise:
        """The noise, as far as it is stated."""
        limit = None if self.threshold is None else Threshold(self.threshold)
        return Noise(UNKNOWN if self.sigma is None else self.sigma, threshold=limit)


def solve(
    context: typer.Context,
    queries: options.QueriesFile,
    answers: options.AnswersFile,
    programs: Programs,
    facts: Facts,
    decoder: Annotated[
        Literal["auto", "lp", "ls", "bayes", "robust", "bounded"] | None,
        typer.Option(
            help="auto diagnoses the system and picks, the default for bits; lp is the paper's, "
            "meant where a program is named; ls is least squares."
        ),
    ] = None,
    polish: Annotated[
        bool,
        typer.Option(
            "--polish", help="Descend to the bits of least squared error; prove it if few."
        ),
    ] = False,
    precision: Annotated[
        float | None, typer.Option(help="Claim only what is at least this probable, like 0.95.")
    ] = None,
    suppressed_as: Annotated[
        float | None, typer.Option(help="Read suppressed answers as this (the paper: 0).")
    ] = None,
    partial: options.Partial = False,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("guess.jsonl"),
    json: options.Json = False,
) -> None:
    """Solve for the secrets behind the answers, with a certificate or a probability each."""
    require_writable(out, "guess")
    planned = read_queries(queries)
    transcript, secret = read_answers(answers, planned, partial=partial)
    check_given(context, BY_SECRET, {"the secret": f"a {type(secret).__name__.lower()}"})
    word = decoder or ("lp" if given(context, OF_LP) else "auto")
    if isinstance(secret, Bit):
        check_given(context, BY_DECODER, {"--decoder": word})
    if suppressed_as is not None:
        transcript = transcript.suppressed_as(suppressed_as)
    known = {} if facts.known is None else read_known(facts.known)
    chosen = _decoder(secret, word, programs, facts, known, transcript, seed)
    if polish:
        chosen = Polished(chosen)
    with console.waiting("solving"):
        guess = chosen.decode(transcript)
    if precision is not None:
        guess = guess.claims_at(precision)
    write_guess(out, guess, secret)
    claims = int(guess.claimed.sum())
    with console.beside(out):
        if json:
            record: dict[str, Any] = {"file": str(out), "people": guess.ids.size, "claims": claims}
            console.print_json({**record, **_summary(guess), **guess.basis.record()})
        else:
            _tell(guess, out)


def _decoder(
    secret: Secret,
    word: str,
    programs: Programs,
    facts: Facts,
    known: dict[Any, Any],
    transcript: Transcript,
    seed: int,
) -> Decoder:
    """The decoder that the words mean, for a secret of this kind."""
    if isinstance(secret, Number):
        numbers = {person: _number(person, value) for person, value in known.items()}
        return Sums(facts.low, facts.high, facts.sigma, numbers, facts.level)
    if isinstance(secret, Category):
        seen = assumed_noise(transcript)
        stated = facts.noise
        noise = Noise(stated.sigma, floor=seen.floor, threshold=stated.threshold or seen.threshold)
        names = {person: str(value) for person, value in known.items()}
        return Categorical(noise, known=names, seed=seed)
    table: dict[str, Callable[[], Decoder]] = {
        "auto": lambda: AutoDecoder(facts.prior, seed=seed),
        "lp": lambda: programs.decoder(facts.sigma),
        "ls": lambda: LeastSquares(facts.sigma),
        "bayes": lambda: Bayes(facts.noise, facts.prior, seed=seed),
        "robust": lambda: Robust(
            facts.by, threshold=facts.noise.threshold, prior=facts.prior, seed=seed
        ),
        "bounded": lambda: Bounded(_required(facts.bound)),
    }
    if any(type(bit) is not int or bit not in (0, 1) for bit in known.values()):
        raise InputError(f"{facts.known}: the bits must be 0 or 1")
    return Informed(table[word](), known) if known else table[word]()


def _required(bound: float | None) -> float:
    if bound is None:
        raise InputError("pass --bound with --decoder bounded, or let auto find it")
    return bound


def _number(person: Any, value: Any) -> float:
    if not isinstance(value, int | float):
        raise InputError(f"the known number of {person} is {value!r}; write a number")
    return float(value)


def _summary(guess: Guess) -> dict[str, Any]:
    """What a guess of values or of numbers says about everyone together."""
    if guess.intervals is not None:
        width = guess.intervals.high - guess.intervals.low
        return {
            "median_interval": float(sorted(width.tolist())[width.size // 2]),
            "mean_standard_error": float(guess.intervals.error.mean()),
        }
    claimed = guess.values[guess.claimed]
    if guess.names:
        return {"values": {name: int((claimed == name).sum()) for name in guess.names}}
    return {}


def _tell(guess: Guess, out: Path) -> None:
    claims, basis = int(guess.claimed.sum()), guess.basis
    console.say(f"{claims} of {guess.ids.size} people guessed, in {out}")
    for name, value in _summary(guess).items():
        console.say(f"{name.replace('_', ' ').capitalize()}: {_brief(value)}")
    if basis.picked_because:
        console.say(f"Picked {basis.decoder}: {basis.picked_because}")
    if guess.confidence is not None and claims:
        expected = float(guess.confidence[guess.claimed].mean())
        console.say(
            f"Expected to be right about {percent(expected)} of them, by its own probabilities"
        )
    if guess.proven.any():
        console.say(f"{guess.proven.sum()} are implied: no other value fits the answers")
    rests_on = {k: v for k, v in basis.record().items() if k != "picked_because"}
    console.say(f"Rests on: {', '.join(f'{k} {_brief(v)}' for k, v in rests_on.items())}")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v is not None) + ")"
    if isinstance(value, list):
        return "/".join(_brief(v) for v in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
