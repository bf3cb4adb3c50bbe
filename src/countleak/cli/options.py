"""Options that several verbs share, and the objects that their words stand for."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from countleak.attack.programs import Point
from countleak.attack.queries import Queries
from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64, numeric_server
from countleak.attack.queries.digits import (
    ATTACK_EXPONENTS,
    SWEEP_EXPONENTS,
    digit_queries,
    fits_digits,
)
from countleak.attack.queries.hashed import random_hashed
from countleak.attack.queries.modular import modular_queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.solvers import Solver
from countleak.audit.people import People, generated_bank, generated_census, read_people
from countleak.cli.option_rules import NOT_GIVEN, needs
from countleak.errors import InputError

# Options of digit queries need that family, or none named.
DIGITS = ("digits", NOT_GIVEN)


class Arithmetics(StrEnum):
    """Ways to decide a digit query."""

    FLOAT64 = "float64"
    EXACT = "exact"
    NUMERIC = "numeric"


QueriesFile = Annotated[
    Path,
    typer.Argument(metavar="QUERIES", help="Queries written by `countleak plan`."),
]
AnswersFile = Annotated[
    Path,
    typer.Argument(metavar="ANSWERS", help="Answers written by `countleak ask`."),
]
Partial = Annotated[bool, typer.Option("--partial", help="Accept answers to some queries only.")]
Seed = Annotated[int, typer.Option(help="Seed of what this command draws at random.", min=0)]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        help="Seconds for proofs and for integer programs; 0: prove nothing.",
        min=0.0,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
_SECRET = typer.Option(
    "--secret",
    help="What is secret about a person: a condition like \"status = 'C'\", one value of "
    'several like status, or a number like "sum(amount)".',
)
Secret = Annotated[str, _SECRET]
OpenSecret = Annotated[str | None, _SECRET]
PEOPLE_HELP = (
    "Who is asked about: a CSV file with one row per person, or the generated `bank:SEED` or "
    "`census:N:SEED`."
)
RunFolder = Annotated[
    Path, typer.Option("--out", help="Folder for trials and figures; a run there is resumed.")
]


def _cores(jobs: int) -> int:
    if jobs == 0 or jobs < -1:
        raise InputError(f"jobs is {jobs}; give a number of cores, or -1 for all")
    return jobs


Jobs = Annotated[int, typer.Option(help="Cores to use (-1: all).", callback=_cores)]
Cluster = Annotated[
    str | None, typer.Option(help="A Dask scheduler (tcp://host:8786), or `local:2`.")
]
SolverWord = Annotated[
    Literal["auto", "highs", "interior"],
    typer.Option("--solver", help="auto picks and says which; interior is the fast one."),
]


ArithmeticWord = Annotated[
    Arithmetics,
    typer.Option(
        "--arithmetic",
        help="digits: decided in float64 as DuckDB does, exact, or numeric as PostgreSQL.",
    ),
]
PostgresUrl = Annotated[
    str | None,
    typer.Option(
        "--postgres",
        help="digits: URL of the PostgreSQL server that computes numeric arithmetic (default: one "
        "started for the purpose).",
    ),
]


@dataclass(frozen=True)
class Who:
    """The people asked about."""

    people: Annotated[str | None, typer.Option("--people", help=PEOPLE_HELP)] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="Id column of the file (default: the first); a,b for a composite key."
        ),
    ] = None
    between: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="LOW HIGH", help="Only people with ids from LOW to HIGH."),
    ] = None

    def read(self, default: str | None = None) -> People:
        """The people, by default those of a file already named."""
        word = self.people or default
        if word is None:
            raise InputError("say who is asked about: --people FILE, or a generated bank:7")
        return people_from(word, self.id_column, self.between)


@dataclass(frozen=True)
class KnownColumns:
    """What is known of everyone besides the id."""

    known: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns that an attacker knows of everyone, like amount,duration: for tables "
            "and ranges.",
        ),
    ] = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by name."""
        words = (self.known or "").split(",")
        return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


@needs(
    {
        "--primes": {"--family": DIGITS},
        "--exponents": {"--family": DIGITS},
        "--arithmetic": {"--family": DIGITS},
        "--postgres": {"--arithmetic": ("numeric",)},
    }
)
@dataclass(frozen=True)
class Family:
    """The family of the queries, and what its queries are made of."""

    family: Annotated[
        Literal["digits", "subsets", "modular", "hashed", "signs"] | None,
        typer.Option(
            help="Whom a query counts: by a digit of the id (as Diffix was asked; the default "
            "where ids are whole numbers), random subsets listed in SQL, by a line of arithmetic "
            "on the id, by a hash of the id and a seed (nothing else is stored), or weights of +1 "
            "and -1 (simulated systems only)."
        ),
    ] = None
    primes: Annotated[
        int, typer.Option(help="digits: how many primes, 140 queries each.", min=1)
    ] = 25
    exponents: Annotated[
        str, typer.Option(help="digits: attack, sweep or a list like 0.5,0.7.")
    ] = "attack"
    arithmetic: ArithmeticWord = Arithmetics.FLOAT64
    postgres: PostgresUrl = None

    def queries(self, people: People, m: int | None, seed: int) -> Queries:
        """The queries of the family about those people: ``m``, or as many as it has by default."""
        rng = np.random.default_rng([seed, 1])
        family = self.family or ("digits" if fits_digits(people.ids) else "subsets")
        if family == "subsets":
            return random_subsets(people.ids, m or 1000, rng)
        if family == "modular":
            return modular_queries(people.ids, m or 1000, rng)
        if family == "hashed":
            return random_hashed(people.ids, m or 1000, rng)
        if family == "signs":
            return random_signs(people.ids, m or 1000, rng)
        with arithmetic_from(self.arithmetic, self.postgres) as arithmetic:
            pool = digit_queries(
                people.ids,
                primes=self.primes,
                exponents=exponents_from(self.exponents),
                arithmetic=arithmetic,
            )
        if m is None:
            return pool
        if m > len(pool):
            raise InputError(
                f"--queries is {m}, but {self.primes} primes give {len(pool)}; raise --primes"
            )
        return pool.take(np.sort(rng.choice(len(pool), size=m, replace=False)))


def solver_from(word: str, time_limit: float = 60.0, point: Point = Point.VERTEX) -> Solver:
    """The solver of that name."""
    # Loaded here: most verbs solve nothing.
    from countleak.attack.solvers.auto import AutoSolver
    from countleak.attack.solvers.highs import Highs
    from countleak.attack.solvers.interior import InteriorPoint

    table: dict[str, Callable[[], Solver]] = {
        "auto": lambda: AutoSolver(time_limit, point),
        "highs": lambda: Highs(time_limit=time_limit),
        "interior": InteriorPoint,
    }
    return table[word]()


@contextmanager
def arithmetic_from(word: Arithmetics, postgres: str | None) -> Iterator[Arithmetic]:
    """The arithmetic of that name, with a server while it is needed."""
    if word is Arithmetics.NUMERIC:
        with numeric_server(postgres) as numeric:
            yield numeric
    else:
        yield Exact() if word is Arithmetics.EXACT else Float64()


def people_from(word: str, id_column: str | None, between: tuple[int, int] | None) -> People:
    """The people a word stands for, within the id range."""
    name, _, rest = word.partition(":")
    if name in ("bank", "census"):
        if id_column is not None:
            raise InputError(f"--id names a column of a file; {word} is generated")
        people = (
            generated_bank(*_numbers(word, rest, 1, 1))
            if name == "bank"
            else (generated_census(*_numbers(word, rest, 1, 2)))
        )
    else:
        people = read_people(word, id_column)
    return people.between(*between) if between else people


def is_generated(word: str) -> bool:
    """Whether a word stands for generated people."""
    return word.partition(":")[0] in ("bank", "census")


def _numbers(word: str, text: str, least: int, most: int) -> list[int]:
    parts = text.split(":") if text else []
    if not least <= len(parts) <= most or not all(re.fullmatch("[0-9]{1,9}", p) for p in parts):
        raise InputError(f"people {word!r} cannot be read; write bank:7 or census:100:7")
    return [int(part) for part in parts]


def exponents_from(word: str) -> tuple[float, ...]:
    """The exponents `attack` (0.5-1.9), `sweep` (0.5-0.9), or a list like 0.5,0.7."""
    named = {"attack": ATTACK_EXPONENTS, "sweep": SWEEP_EXPONENTS}
    if word in named:
        return named[word]
    try:
        exponents = tuple(float(part) for part in word.split(","))
    except ValueError:
        raise InputError(
            f"exponents {word!r}: write attack, sweep or a list like 0.5,0.7"
        ) from None
    if any(e.is_integer() for e in exponents):
        raise InputError(f"exponents {word!r}: with a whole one the query is everyone")
    return exponents
