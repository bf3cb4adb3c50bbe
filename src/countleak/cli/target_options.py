"""The system that is asked: the options that `ask` and `audit` share, and the target they mean."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import positions_of
from countleak.attack.queries.signs import Signs
from countleak.attack.secrets import Number, Secret
from countleak.audit.people import People
from countleak.audit.targets import Target
from countleak.audit.targets.command import SCHEME
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.retries import RETRIES, Retries
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
)
from countleak.audit.targets.sql import DIFFIX, PLAIN, SYSTEMS, System
from countleak.cli.mechanisms import MECHANISM_NEEDS, MechanismWord, in_words, mechanism_from
from countleak.cli.option_rules import Needs, needs
from countleak.cli.options import is_generated
from countleak.diffix.databases.database import Database
from countleak.diffix.salt import Salt, keep_salt, read_salt
from countleak.errors import InputError
from countleak.files import is_file, read_text
from countleak.foreign import clean

# The targets that are simulated.
IN_PROCESS = ("simulated", "file")
# Those that are asked as they are, wherever they run; those of them with SQL at an address.
LIVE = ("postgresql", "http", "database", "duckdb", "callable", "command")
POSTGRES, HTTP = ("postgresql://", "postgres://"), ("http://", "https://")
ADDRESS = re.compile(r"[a-z][a-z0-9]*(\+[a-z0-9_]+)?://", re.IGNORECASE)
FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
TOKEN = "COUNTLEAK_TOKEN"
TWO_SUBSETS = "two-subsets"
TARGET_HELP = (
    "Who answers: a live system at postgresql://..., http://..., https://..., or the URL of any "
    "database that SQLAlchemy knows (sqlite:///clinic.db, mysql+pymysql://...); a file as "
    "duckdb:///loans.duckdb (or .csv, .parquet); a program as `cmd:python engine.py`; a function "
    "as `module:function`; `diffix`, rebuilt over the people; `simulated` (see --mechanism); or a "
    "CSV or Parquet file, simulated over its people."
)


@dataclass(frozen=True)
class TargetWord:
    """A target as it is named: a word, a file or an address. As text it is its kind."""

    text: str

    @property
    def kind(self) -> str:
        """What kind of system it is."""
        if self.text.startswith(POSTGRES):
            return "postgresql"
        if self.text.startswith(HTTP):
            return "http"
        if self.text.startswith("duckdb:"):
            return "duckdb"
        if self.text.startswith(SCHEME):
            return "command"
        if ADDRESS.match(self.text):
            return "database"
        if FUNCTION.fullmatch(self.text) and not is_generated(self.text):
            return "callable"
        return self.text if self.text in ("diffix", "simulated") else "file"

    @property
    def is_live(self) -> bool:
        """Whether it is a system of its own, which is asked as it is."""
        return self.kind in LIVE

    @property
    def people(self) -> str | None:
        """The file of people that it is, if it is one."""
        return self.text if self.kind == "file" else None

    def __str__(self) -> str:
        return self.kind


SIMULATED = TargetWord("simulated")


def read_target(word: str | TargetWord) -> TargetWord:
    """The target that a word names; typer hands over a default as it is."""
    if isinstance(word, TargetWord):
        return word
    target = TargetWord(word)
    if (scheme := _database_in(word)) is not None:
        raise InputError(f"{clean(word)} is a database; write {scheme}{clean(word)}")
    if target.people is not None and not is_file(target.people):
        if target.people.endswith((".csv", ".parquet")):
            raise InputError(f"{clean(word)}: no such file")
        hint = f"; for generated people write simulated --people {word}"
        raise InputError(
            f"there is no target{shown_name(word)}; choose simulated, diffix, a CSV or Parquet "
            "file, an address that begins with postgresql://, http://, https://, sqlite:/// or as "
            "SQLAlchemy writes it, duckdb:///FILE, cmd:PROGRAM, or module:function"
            f"{hint if is_generated(word) else ''}"
        )
    return target


def _database_in(word: str) -> str | None:
    """How to address the database that a file of that name is, if it is one."""
    try:
        with Path(word).open("rb") as file:
            head = file.read(16)
    except (OSError, ValueError):
        # No file has such a name.
        return None
    if head.startswith(b"SQLite format 3"):
        return "sqlite:///"
    return "duckdb:///" if head[8:12] == b"DUCK" else None


def shown_name(word: str) -> str:
    """A word as it is shown, and nothing of one that may be an address with its password."""
    plain = is_generated(word) or not set("@:=?") & set(word)
    return f" {clean(word)[:100]!r}" if plain and word.strip() else " of that name"


def target_needs(flag: str) -> Needs:
    """Which options apply to which kind of target, ``flag`` being how a verb takes the target."""
    live, http = LIVE, ("http",)
    in_sql = tuple(kind for kind in LIVE if kind != "callable")
    simulated = (
        "--mechanism", "--sigma", "--bound", "--base", "--random-rounding", "--rounding",
        "--suppression", "--clamping",
    )  # fmt: skip
    at_address = (
        "--table", "--system", "--connections", "--rate", "--timeout", "--retry", "--authorised-by",
    )  # fmt: skip
    return {
        **{option: {flag: IN_PROCESS} for option in simulated},
        **{option: {flag: ("diffix",)} for option in ("--release", "--salt-file")},
        **{option: {flag: live} for option in at_address},
        **{option: {flag: http} for option in ("--data-source", "--token-file")},
        "--count-sql": {flag: in_sql},
        "--people": {flag: ("simulated", "diffix", *live)},
        "--dry-run": {flag: ("diffix", *live)},
    }


@needs(
    {
        **MECHANISM_NEEDS,
        "--rounding": {"--mechanism": ("diffix",)},
        "--suppression": {"--mechanism": ("diffix",)},
        "--clamping": {"--mechanism": ("diffix",)},
    }
)
@dataclass(frozen=True)
class Simulation:
    """What a simulated system does to a count before it is released."""

    mechanism: Annotated[
        MechanismWord,
        typer.Option(help="simulated: what is done to counts (diffix: the authors' simulation)."),
    ] = "diffix"
    sigma: Annotated[
        float, typer.Option(help="simulated: SD of the noise, in people (sums: in their units).")
    ] = 4.0
    bound: Annotated[int, typer.Option(help="uniform: noise lies within ± this.")] = 5
    base: Annotated[int, typer.Option(help="round: to multiples of this.")] = 5
    random_rounding: Annotated[
        bool,
        typer.Option("--random-rounding", help="round: up or down by chance, right on average."),
    ] = False
    rounding: Annotated[bool, typer.Option(help="mechanism diffix: whole-number noise.")] = True
    suppression: Annotated[bool, typer.Option(help="mechanism diffix: suppress low counts.")] = True
    clamping: Annotated[bool, typer.Option(help="mechanism diffix: no answer below 0.")] = True

    def mechanism_for(self, queries: Queries, sign_noise: str) -> Mechanism | TwoSubsets:
        """The mechanism, as it answers such queries."""
        mechanism = mechanism_from(
            self.mechanism, self.sigma, self.bound, self.base, self.random_rounding
        )
        if isinstance(mechanism, SimulatedDiffix):
            mechanism = SimulatedDiffix(self.sigma, self.rounding, self.suppression, self.clamping)
        return _signed(mechanism, sign_noise) if isinstance(queries.family, Signs) else mechanism


def _signed(mechanism: Mechanism, noise: str) -> Mechanism | TwoSubsets:
    """How a ±1 query is answered: directly, as two subsets, or with a given noise."""
    if noise == TWO_SUBSETS:
        return TwoSubsets(mechanism)
    if isinstance(mechanism, SimulatedDiffix):
        # A sum of +1 and -1 is no count: none is low, and it may be negative.
        mechanism = replace(mechanism, suppressing=False, clamped=False)
    if noise == "direct":
        return mechanism
    if not isinstance(mechanism, SimulatedDiffix | Gaussian | Laplace):
        raise InputError(
            f"--sign-noise {noise} needs a mechanism with a sigma: diffix, gaussian or laplace"
        )
    try:
        return replace(mechanism, sigma=float(noise))
    except ValueError as error:
        raise InputError(
            f"--sign-noise {noise!r}: write direct, two-subsets or a standard deviation ({error})"
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
        str | None, typer.Option(help="A live system: the table that is asked about.")
    ] = None
    count_sql: Annotated[
        str | None,
        typer.Option(
            help='A live system: a statement of your own that counts, like "SELECT '
            "noisy_count('{table}', '{condition}')\"."
        ),
    ] = None
    system: Annotated[
        Literal["diffix", "plain"] | None,
        typer.Option(
            help="A live system: `diffix` (ranges are snapped, 0 means suppressed; the default for "
            "http) or `plain` (0 is a count; the default for all others).",
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
        int, typer.Option(help="A live system: connections to ask over.", min=1)
    ] = 1
    rate: Annotated[
        float | None,
        typer.Option(
            help="A live system: at most so many queries per second (another machine: 20)."
        ),
    ] = None
    timeout: Annotated[
        float, typer.Option(help="A live system: seconds to wait for an answer.")
    ] = 30.0
    retry: Annotated[
        float,
        typer.Option(
            help="A live system: seconds for which a question is asked again after what may pass, "
            "like a lost connection; 0: stop at once.",
            min=0.0,
        ),
    ] = RETRIES.seconds
    authorised_by: Annotated[
        str | None,
        typer.Option(help="Who allows it: needed for an address on another machine; recorded."),
    ] = None

    @property
    def limits(self) -> RequestLimits:
        """How fast and how long a system is asked."""
        retries = Retries(RETRIES.tries if self.retry else 0, self.retry)
        return RequestLimits(self.connections, self.timeout, self.rate, retries)

    def system_at(self, word: TargetWord) -> System:
        """What the system at an address is like: as stated, or as its kind of address suggests."""
        if self.system is not None:
            return SYSTEMS[self.system]
        return DIFFIX if word.kind == "http" else PLAIN

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
    salt: Salt | None = None
    salt_file: Path | None = None

    def keep_salt(self) -> None:
        """Write a new salt to its file, now that it is about to be used."""
        if self.salt is not None and self.salt_file is not None:
            keep_salt(self.salt_file, self.salt)


@dataclass(frozen=True)
class Systems:
    """All that the options say of the system that is asked."""

    simulation: Simulation = field(default_factory=Simulation)
    release: Release = field(default_factory=Release)
    live: Live = field(default_factory=Live)
    sign_noise: str = TWO_SUBSETS
    dry_run: bool = False
    seen: System | None = None

    def open(
        self, word: TargetWord, people: People, secret: Secret, queries: Queries, seed: int
    ) -> Opened:
        """The target that a word, a file or an address means."""
        strangers = positions_of(queries.ids, people.ids) < 0
        if strangers.any():
            raise InputError(
                f"{strangers.sum()} of {queries.ids.size} people asked about are not among "
                f"--people (id {queries.ids[strangers][0]}); check it"
            )
        if word.is_live or word.kind == "diffix":
            if isinstance(queries.family, Signs):
                raise InputError("±1 queries cannot be asked in SQL; name a simulated target")
            if word.is_live:
                return self._live(word, people, secret)
            return over_diffix(people, secret, self.release, people.table)
        people.truth(secret)
        mechanism = self.simulation.mechanism_for(queries, self.sign_noise)
        if isinstance(secret, Number) and not isinstance(mechanism, Gaussian | Laplace):
            raise InputError("sums are simulated with --mechanism gaussian or laplace only")
        about = f"simulated, {in_words(mechanism)}; {secret} of {people.table}, seed {seed}"
        return Opened(Simulated(people, secret, mechanism, seed), about)

    def open_to_probe(self, word: TargetWord, people: People) -> Opened:
        """The same, asked about nobody's secret."""
        if word.is_live:
            return self._live(word, people, None)
        if word.kind == "diffix":
            return over_diffix(people, None, self.release, people.table)
        raise InputError("a simulated system answers everything; probe an address, or diffix")

    def _live(self, word: TargetWord, people: People, secret: Secret | None) -> Opened:
        # Loaded here: most audits ask no system of this kind.
        from countleak.cli.live_targets import live_target

        seen = self.seen or self.live.system_at(word)
        target = live_target(word, self.live, people, secret, seen, self.dry_run)
        own = target.questions.template
        about = target.questions.about + ("" if own is None else f", by {clean(own.text)}")
        system = target.questions.system.name
        return Opened(target, f"{target}, counting {about}, as {system}")


def over_diffix(
    data: People | Callable[[Salt], Database], secret: Secret | None, release: Release, table: str
) -> Opened:
    """Diffix over people, or over a database that is opened with the salt."""
    from countleak.audit.targets.diffix import Diffix

    salt = read_salt(release.salt_file)
    held = data if isinstance(data, People) else data(salt)
    target = Diffix(held, secret, release.release, salt)
    what = "people" if secret is None else secret
    about = f"Diffix {release.release}, counting {what} of {table}, salt {salt.fingerprint}"
    return Opened(target, about, salt, release.salt_file)
