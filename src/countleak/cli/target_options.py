"""The system that is asked: the options that `ask` and `audit` share, and the target they mean."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import positions_of
from countleak.attack.queries.signs import Signs
from countleak.attack.secrets import Number, Secret
from countleak.attack.transcript import Transcript
from countleak.audit.people import People
from countleak.audit.targets import Target
from countleak.audit.targets.pool import RequestLimits
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
    Uniform,
)
from countleak.audit.targets.sql import DIFFIX, PLAIN, SYSTEMS, SqlQuestions, System
from countleak.cli import console
from countleak.cli.option_rules import Needs, needs
from countleak.errors import InputError
from countleak.files import read_text

POSTGRES, HTTP = ("postgresql://", "postgres://"), ("http://", "https://")
TOKEN = "COUNTLEAK_TOKEN"
SHOWN = 3
TARGET_HELP = (
    "Who answers: a live system at postgresql://..., http://... or https://...; `diffix`, rebuilt "
    "over the people; `simulated` (see --mechanism); or a CSV file, simulated over its people."
)


@dataclass(frozen=True)
class TargetWord:
    """A target as it is named: a word, a file or an address. As text it is its kind."""

    text: str

    def __post_init__(self) -> None:
        if self.kind == "simulated" and self.text != "simulated" and not Path(self.text).is_file():
            raise InputError(
                f"there is no target {self.text.split('@')[-1]!r}; choose simulated, diffix, a CSV "
                "file, or an address that begins with postgresql://, http:// or https://"
            )

    @property
    def kind(self) -> str:
        """What kind of system it is."""
        if self.text.startswith(POSTGRES):
            return "postgresql"
        if self.text.startswith(HTTP):
            return "http"
        return "diffix" if self.text == "diffix" else "simulated"

    @property
    def is_live(self) -> bool:
        """Whether it is named by an address."""
        return self.kind in ("postgresql", "http")

    @property
    def people(self) -> str | None:
        """The file of people that it is, if it is one."""
        return None if self.is_live or self.text in ("diffix", "simulated") else self.text

    def __str__(self) -> str:
        return self.kind


SIMULATED = TargetWord("simulated")


def read_target(word: str | TargetWord) -> TargetWord:
    """The target that a word names; typer hands over a default as it is."""
    return word if isinstance(word, TargetWord) else TargetWord(word)


def target_needs(flag: str) -> Needs:
    """Which options apply to which kind of target, ``flag`` being how a verb takes the target."""
    live, http = ("postgresql", "http"), ("http",)
    simulated = (
        "--mechanism", "--sigma", "--bound", "--base", "--random-rounding", "--rounding",
        "--suppression", "--clamping", "--sign-noise",
    )  # fmt: skip
    at_address = ("--table", "--system", "--connections", "--rate", "--timeout", "--authorised-by")
    return {
        **{option: {flag: ("simulated",)} for option in simulated},
        **{option: {flag: ("diffix",)} for option in ("--release", "--salt-file")},
        **{option: {flag: live} for option in at_address},
        **{option: {flag: http} for option in ("--data-source", "--token-file")},
    }


@needs(
    {
        "--sigma": {"--mechanism": ("diffix", "gaussian", "laplace")},
        "--bound": {"--mechanism": ("uniform",)},
        "--base": {"--mechanism": ("round",)},
        "--random-rounding": {"--mechanism": ("round",)},
        "--rounding": {"--mechanism": ("diffix",)},
        "--suppression": {"--mechanism": ("diffix",)},
        "--clamping": {"--mechanism": ("diffix",)},
    }
)
@dataclass(frozen=True)
class Simulation:
    """What a simulated system does to a count before it is released."""

    mechanism: Annotated[
        Literal["diffix", "gaussian", "laplace", "uniform", "round"],
        typer.Option(help="simulated: what is done to counts (diffix: the authors' simulation)."),
    ] = "diffix"
    sigma: Annotated[
        float, typer.Option(help="simulated: SD of the noise, in people (sums: in their units).")
    ] = 4.0
    bound: Annotated[int, typer.Option(help="uniform: noise lies within ± this.")] = 5
    base: Annotated[int, typer.Option(help="round: to multiples of this.")] = 5
    random_rounding: Annotated[
        bool, typer.Option(help="round: up or down by chance, right on average.")
    ] = False
    rounding: Annotated[bool, typer.Option(help="mechanism diffix: whole-number noise.")] = True
    suppression: Annotated[bool, typer.Option(help="mechanism diffix: suppress low counts.")] = True
    clamping: Annotated[bool, typer.Option(help="mechanism diffix: no answer below 0.")] = True
    sign_noise: Annotated[
        str,
        typer.Option(
            help="±1 queries: noise of one `direct` answer, of `two-subsets`, or a standard "
            "deviation."
        ),
    ] = "two-subsets"

    def mechanism_for(self, queries: Queries) -> Mechanism | TwoSubsets:
        """The mechanism, as it answers such queries."""
        mechanism: Mechanism
        if self.mechanism == "uniform":
            mechanism = Uniform(self.bound)
        elif self.mechanism == "round":
            mechanism = RoundedToBase(self.base, self.random_rounding)
        elif self.mechanism == "diffix":
            mechanism = SimulatedDiffix(self.sigma, self.rounding, self.suppression, self.clamping)
        elif self.mechanism == "gaussian":
            mechanism = Gaussian(self.sigma)
        else:
            mechanism = Laplace(self.sigma)
        return self._signed(mechanism) if isinstance(queries.family, Signs) else mechanism

    def _signed(self, mechanism: Mechanism) -> Mechanism | TwoSubsets:
        """How a ±1 query is answered: directly, as two subsets, or with a given noise."""
        if self.sign_noise == "two-subsets":
            return TwoSubsets(mechanism)
        if isinstance(mechanism, SimulatedDiffix):
            # A sum of +1 and -1 is no count: none is low, and it may be negative.
            mechanism = replace(mechanism, suppressing=False, clamped=False)
        if self.sign_noise == "direct":
            return mechanism
        if not isinstance(mechanism, SimulatedDiffix | Gaussian | Laplace):
            raise InputError(
                f"--sign-noise {self.sign_noise} needs a mechanism with a sigma: diffix, gaussian "
                "or laplace"
            )
        try:
            return replace(mechanism, sigma=float(self.sign_noise))
        except ValueError as error:
            raise InputError(
                f"--sign-noise {self.sign_noise!r}: write direct, two-subsets or a standard "
                f"deviation ({error})"
            ) from None


@dataclass(frozen=True)
class Release:
    """Which Diffix answers."""

    release: Annotated[
        str,
        typer.Option(help="diffix: the release, 18.1 (as attacked), 18.3, paper, tables."),
    ] = "18.1"
    salt_file: Annotated[
        Path,
        typer.Option(
            help="diffix: file of the secret behind its noise; made at random where there is none."
        ),
    ] = Path("salt")


@dataclass(frozen=True)
class Live:
    """How a live system is asked."""

    table: Annotated[
        str | None, typer.Option(help="An address: the table that is asked about.")
    ] = None
    system: Annotated[
        Literal["diffix", "plain"] | None,
        typer.Option(
            help="An address: `diffix` (ranges are snapped, 0 means suppressed; the default for "
            "http) or `plain` (0 is a count; the default for postgresql).",
        ),
    ] = None
    data_source: Annotated[
        str | None, typer.Option(help="http(s): the name of the data source that is asked.")
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"http(s): file of the token, if it is not in the variable {TOKEN}."),
    ] = None
    connections: Annotated[
        int, typer.Option(help="An address: connections to ask over.", min=1)
    ] = 1
    rate: Annotated[
        float | None, typer.Option(help="An address: at most so many queries per second.")
    ] = None
    timeout: Annotated[float, typer.Option(help="An address: seconds to wait for an answer.")] = (
        30.0
    )
    authorised_by: Annotated[
        str | None,
        typer.Option(help="Who allows it: needed for an address on another machine; recorded."),
    ] = None

    @property
    def limits(self) -> RequestLimits:
        """How fast and how long a system is asked."""
        return RequestLimits(self.connections, self.timeout, self.rate)

    def system_at(self, word: TargetWord) -> System:
        """What the system at an address is like: as stated, or as its kind of address suggests."""
        if self.system is not None:
            return SYSTEMS[self.system]
        return PLAIN if word.kind == "postgresql" else DIFFIX

    @property
    def token(self) -> str | None:
        """The token, from its file or the environment; never from the command line."""
        if self.token_file is not None:
            return read_text(self.token_file).strip()
        return os.environ.get(TOKEN)


@dataclass(frozen=True)
class Opened:
    """A target, and what it is called in a journal."""

    target: Target
    about: str


@dataclass(frozen=True)
class Systems:
    """All that the options say of the system that is asked."""

    simulation: Simulation = field(default_factory=Simulation)
    release: Release = field(default_factory=Release)
    live: Live = field(default_factory=Live)

    def open(
        self, word: TargetWord, people: People, secret: Secret, queries: Queries, seed: int
    ) -> Opened:
        """The target that a word, a file or an address means."""
        if word.is_live:
            return self._address(word, people, secret)
        strangers = positions_of(queries.ids, people.ids) < 0
        if strangers.any():
            raise InputError(
                f"{strangers.sum()} of {queries.ids.size} people asked about are not among "
                f"--people (id {queries.ids[strangers][0]}); check it"
            )
        people.truth(secret)
        if word.kind == "diffix":
            return self._diffix(people, secret)
        mechanism = self.simulation.mechanism_for(queries)
        if isinstance(secret, Number) and not isinstance(mechanism, Gaussian | Laplace):
            raise InputError("sums are simulated with --mechanism gaussian or laplace only")
        about = f"simulated {mechanism}, counting {secret} of {people.table}, seed {seed}"
        return Opened(Simulated(people, secret, mechanism, seed), about)

    def _diffix(self, people: People, secret: Secret) -> Opened:
        from countleak.audit.targets.diffix import Diffix
        from countleak.diffix.salt import keep_salt, read_salt

        salt = read_salt(self.release.salt_file)
        target = Diffix(people, secret, self.release.release, salt)
        # Kept only now: a release that does not exist leaves no salt behind.
        keep_salt(self.release.salt_file, salt)
        about = (
            f"Diffix {self.release.release}, counting {secret} of {people.table}, salt "
            f"{salt.fingerprint}"
        )
        return Opened(target, about)

    def _address(self, word: TargetWord, people: People, secret: Secret) -> Opened:
        from countleak.audit.targets.postgres import PostgresTarget
        from countleak.audit.targets.rest import RestTarget

        live = self.live
        if live.table is None:
            raise InputError("name the table that is asked about with --table")
        system = live.system_at(word)
        questions = SqlQuestions(live.table, people.key, secret, system)
        target: PostgresTarget | RestTarget
        if word.kind == "postgresql":
            target = PostgresTarget(word.text, questions, live.limits)
        elif live.data_source is None:
            raise InputError("name the data source that is asked with --data-source")
        else:
            target = RestTarget(word.text, live.data_source, questions, live.token, live.limits)
        if not target.is_local and not (live.authorised_by or "").strip():
            raise InputError(
                f"{target} is not this machine; ask only systems you may audit, and say who allows "
                "it with --authorised-by NAME"
            )
        return Opened(target, f"{target}, counting {questions.about}, as {system.name}")


def show(opened: Opened, queries: Queries, positions: list[int], count: int) -> None:
    """Say what will be asked of a live system, before it is."""
    questions: SqlQuestions | None = getattr(opened.target, "questions", None)
    if questions is None:
        raise InputError("only a system that takes SQL has questions to show; name another target")
    console.remark(f"{count} queries to {opened.target}, like")
    for position in positions[:SHOWN]:
        console.remark(f"  {questions.statement(queries, position)}")
    means = "is a count" if questions.system.suppressed_as is None else "means: suppressed"
    console.remark(f"An answer of 0 {means} (--system {questions.system.name}).")


def warn_of_suppression(opened: Opened, transcript: Transcript) -> None:
    """Say so where answers taken for counts look like those of a system that suppresses some."""
    questions: SqlQuestions | None = getattr(opened.target, "questions", None)
    zeros = int((transcript.values == 0).sum())
    if questions is None or questions.system.suppressed_as is not None:
        return
    if zeros and not (transcript.values == 1).any():
        console.remark(
            f"{zeros} answers are 0 and none is 1: if the system suppresses low counts, ask again "
            "with --system diffix into a new file."
        )
