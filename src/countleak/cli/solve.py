"""`countleak solve`: from queries and answers to a guess of every secret."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from countleak.attack.correlation import distinct
from countleak.attack.decoders import TIME_LIMIT, Decoder
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.categorical import Categorical
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.messages import Messages
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.decoders.sums import Sums
from countleak.attack.guess import WORDS, Guess, Passing
from countleak.attack.guess_file import write_guess
from countleak.attack.noise import Noise, Shape
from countleak.attack.programs import CappedDmt, DiNi, Dmt, Point, Program
from countleak.attack.queries.files import read_queries
from countleak.attack.rules import Rules
from countleak.attack.secrets import Bit, Category, Number, Secret
from countleak.attack.transcript import read_answers
from countleak.audit.budget.beside import predicted_in_words, predicted_right
from countleak.audit.judgement import (
    contradiction,
    expected_in_words,
    forced_in_words,
    rules_in_words,
)
from countleak.audit.people import read_known
from countleak.cli import console, options
from countleak.cli.option_rules import GIVEN, Needs, check_given, given, needs
from countleak.cli.rule_options import BOUNDING, RULES_BY_SECRET, StatedRules
from countleak.errors import InputError
from countleak.files import require_writable
from countleak.progress import Progress
from countleak.shares import percent

# What the paper's simulation adds, where a program needs a noise and none is given.
PAPERS_SIGMA = 4.0
SAMPLED = ("auto", "bayes", "robust")
OF_LP = (
    "--program", "--multiplier", "--keep-nonpositive", "--point", "--integer", "--solver",
)  # fmt: skip
BY_DECODER: Needs = {
    **{option: {"--decoder": ("lp",)} for option in OF_LP},
    "--prior": {"--decoder": (*SAMPLED, "messages")},
    "--by": {"--decoder": ("robust",)},
    "--time-limit": {"--decoder": ("auto", "bounded", "lp")},
    **{option: {"--decoder": ("auto", "bayes", "bounded")} for option in BOUNDING},
    **{option: {"--decoder": (*SAMPLED, "bounded")} for option in ("--suppressed", "--lowest")},
    "--noise": {"--decoder": (*SAMPLED, "bounded", "messages")},
    "--noise-sd": {"--decoder": ("auto", "lp", "ls", "bayes", "messages")},
    "--precision": {"--decoder": (*SAMPLED, "ls", "messages")},
}
# Programs over whole numbers may take long, others do not.
LIMITED: Needs = {"--time-limit": {"--integer": GIVEN}}
# Options that apply to one kind of secret only.
BY_SECRET: Needs = {
    **{
        option: {"the secret": ("a bit",)}
        for option in (*OF_LP, "--decoder", "--prior", "--by", "--polish")
    },
    **{option: {"the secret": ("a number",)} for option in ("--low", "--high", "--level")},
    "--precision": {"the secret": ("a bit", "a category")},
    "--time-limit": {"the secret": ("a bit", "a category")},
    **RULES_BY_SECRET,
}


@needs(
    {
        "--multiplier": {"--program": ("bounded", "dini")},
        "--keep-nonpositive": {"--program": ("bounded",)},
        "--point": {"--program": ("dini",)},
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

    def decoder(self, sigma: float | None, time_limit: float) -> Rounding:
        """The paper's decoder with this program."""
        scale = PAPERS_SIGMA if sigma is None else sigma
        default = 3.0 if self.program == "dini" else 5.0
        times = default if self.multiplier is None else self.multiplier
        programs: dict[str, Callable[[], Program]] = {
            "dmt": lambda: Dmt(self.integer),
            "bounded": lambda: CappedDmt(times * scale, not self.keep_nonpositive, self.integer),
            "dini": lambda: DiNi(times, scale, self.integer),
        }
        solver = options.solver_from(self.solver, time_limit, self.point)
        return Rounding(programs[self.program](), solver)


@dataclass(frozen=True)
class Facts:
    """What is known of the people beforehand."""

    prior: Annotated[
        float | None, typer.Option(help="auto, bayes, robust: rate of ones (default: estimated).")
    ] = None
    by: Annotated[
        str | None,
        typer.Option(help="robust: parameter whose values have noise of their own (exponent)."),
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

    def read_known(self) -> dict[Any, Any]:
        """What is known of whom."""
        return {} if self.known is None else read_known(self.known)


@dataclass(frozen=True)
class Claims:
    """What is claimed, and how long it may take."""

    polish: Annotated[
        bool,
        typer.Option(
            "--polish", help="Descend to the bits of least squared error; prove it if few."
        ),
    ] = False
    precision: Annotated[
        float | None, typer.Option(help="Claim only what is at least this probable, like 0.95.")
    ] = None
    time_limit: options.TimeLimit = TIME_LIMIT


def solve(
    context: typer.Context,
    queries: options.QueriesFile,
    answers: options.AnswersFile,
    programs: Programs,
    facts: Facts,
    stated: StatedRules,
    claims: Claims,
    decoder: Annotated[
        Literal["auto", "lp", "ls", "bayes", "robust", "bounded", "messages"] | None,
        typer.Option(
            help="auto diagnoses the system and picks, the default for bits; lp is the paper's, "
            "meant where a program is named; ls is least squares; messages is for very many people."
        ),
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
    if word == "lp":
        check_given(context, LIMITED, {"--integer": programs.integer})
    rules = stated.rules()
    if rules.sticky is not None:
        transcript = distinct(transcript, rules.sticky)
    if suppressed_as is not None:
        transcript = transcript.suppressed_as(suppressed_as)
    words = Words(word, programs, facts, stated, claims.time_limit, seed)
    with console.progress("solving") as report:
        chosen = words.decoder(secret, report)
        guess = (Polished(chosen) if claims.polish else chosen).decode(transcript)
    guess = replace(guess, basis=replace(guess.basis, stated=rules.words))
    if claims.precision is not None:
        guess = guess.claims_at(claims.precision)
    write_guess(out, guess, secret)
    answered = int(transcript.released.sum())
    with console.beside(out):
        if json:
            right = predicted_right(guess, answered)
            predicted = {} if right is None else {"predicted_right": right}
            record = {"file": str(out), **_summary(guess), **predicted, **guess.basis.record()}
            console.print_json(record)
        else:
            _tell(guess, out, predicted_in_words(guess, answered))


@dataclass(frozen=True)
class Words:
    """All that the options say of how to decode."""

    decoder_word: str
    programs: Programs
    facts: Facts
    stated: StatedRules
    time_limit: float
    seed: int

    def decoder(self, secret: Secret, progress: Progress) -> Decoder:
        """The decoder that the words mean, for a secret of this kind."""
        facts, known = self.facts, self.facts.read_known()
        if isinstance(secret, Number):
            numbers = {person: _number(person, value) for person, value in known.items()}
            return Sums(facts.low, facts.high, self.stated.noise_sd, numbers, facts.level)
        rules = self.stated.rules()
        if isinstance(secret, Category):
            names = {person: str(value) for person, value in known.items()}
            return Categorical(
                known=names, seed=self.seed, rules=rules, time_limit=self.time_limit,
                progress=progress,
            )  # fmt: skip
        if any(type(bit) is not int or bit not in (0, 1) for bit in known.values()):
            raise InputError(f"{facts.known}: the bits must be 0 or 1")
        chosen = self._of_bits(rules, progress)
        return Informed(chosen, known) if known else chosen

    def _of_bits(self, rules: Rules, progress: Progress) -> Decoder:
        facts, sd, seed = self.facts, self.stated.noise_sd, self.seed
        table: dict[str, Callable[[], Decoder]] = {
            "auto": lambda: AutoDecoder(
                facts.prior, rules=rules, time_limit=self.time_limit, seed=seed, progress=progress
            ),
            "lp": lambda: self.programs.decoder(sd, self.time_limit),
            "ls": lambda: LeastSquares(sd),
            "messages": lambda: Messages(facts.prior, rules, progress),
            "bayes": lambda: Bayes(rules.noise(), facts.prior, seed=seed, progress=progress),
            "robust": lambda: Robust(
                facts.by, rules.shape or Shape.GAUSSIAN, rules.floor, rules.suppressed,
                facts.prior, seed=seed, progress=progress,
            ),
            "bounded": lambda: Bounded(
                _bounded(rules), time_limit=self.time_limit, prior=facts.prior, seed=seed,
                progress=progress,
            ),
        }  # fmt: skip
        return table[self.decoder_word]()


def _bounded(rules: Rules) -> Noise:
    noise = rules.limits()
    if noise is None:
        raise InputError(
            "--decoder bounded needs a bound: state --exact, --noise-within 2, or --exact with "
            "--rounded-to 5; or let auto find one"
        )
    return noise


def _number(person: Any, value: Any) -> float:
    if not isinstance(value, int | float):
        raise InputError(f"the known number of {person} is {value!r}; write a number")
    return float(value)


def _summary(guess: Guess) -> dict[str, Any]:
    """What a guess says about everyone together."""
    record: dict[str, Any] = {
        "people": guess.ids.size,
        "claims": int(guess.claimed.sum()),
        "proven": int(guess.proven.sum()),
        "implied": int(guess.implied.sum()),
    }
    return {**record, **_by_kind(guess)}


def _by_kind(guess: Guess) -> dict[str, Any]:
    """What a guess of values or of numbers says besides."""
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


def _tell(guess: Guess, out: Path, predicted: str) -> None:
    claims, basis = int(guess.claimed.sum()), guess.basis
    console.say(f"{claims} of {guess.ids.size} people guessed, in {out}")
    for name, value in _by_kind(guess).items():
        console.say(f"{name.replace('_', ' ').capitalize()}: {_brief(value)}")
    if basis.picked_because:
        console.say(f"Picked {basis.decoder}: {basis.picked_because}")
    if isinstance(basis, Passing) and basis.computed != Passing.computed:
        console.say(f"Products with the queries were computed {basis.computed}")
    if guess.confidence is not None and claims:
        if guess.claimed.all():
            console.say(f"By its own probabilities {expected_in_words(guess)}")
        else:
            expected = percent(float(guess.confidence[guess.claimed].mean()))
            console.say(f"Expected to be right about {expected} of them, by its own probabilities")
    if predicted:
        console.say(predicted)
    if why_nobody := contradiction(guess):
        console.say(why_nobody[0].upper() + why_nobody[1:])
    if basis.misfit:
        console.say(f"The model does not fit these answers: {basis.misfit}")
    for line in (*rules_in_words(basis.stated, basis.inferred), *forced_in_words(guess)):
        console.say(line.rstrip("."))
    rests_on = {k: v for k, v in basis.record().items() if k not in WORDS}
    console.say(f"Rests on: {', '.join(f'{k} {_brief(v)}' for k, v in rests_on.items())}")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v is not None) + ")"
    if isinstance(value, list):
        return "/".join(_brief(v) for v in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
