"""Words of the command line and the objects they stand for."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from countleak.attack.programs import Point
from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64, numeric_server
from countleak.attack.queries.digits import ATTACK_EXPONENTS, SWEEP_EXPONENTS
from countleak.attack.solvers import Solver
from countleak.attack.solvers.auto import Auto
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.audit.people import People, generated_bank, generated_census, read_people
from countleak.errors import InputError

T = TypeVar("T")


class Arithmetics(StrEnum):
    """Ways to decide a digit query."""

    FLOAT64 = "float64"
    EXACT = "exact"
    NUMERIC = "numeric"


QueriesFile = Annotated[Path, typer.Argument(help="Queries written by `countleak plan`.")]
AnswersFile = Annotated[Path, typer.Argument(help="Answers written by `countleak ask`.")]
Partial = Annotated[bool, typer.Option(help="Accept answers to some queries only.")]
Seed = Annotated[int, typer.Option(help="Seed of what this command draws at random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
PeopleWord = Annotated[
    str,
    typer.Option(
        "--people",
        help="A CSV file, or the generated `bank` or `census:N` (`bank:7`, `census:100:7` with a "
        "seed).",
    ),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Id column of the CSV file (default: the first).")
]
Between = Annotated[
    tuple[int, int] | None, typer.Option(help="Only people with ids from LOW to HIGH.")
]
Secret = Annotated[
    str, typer.Option("--secret", help="What is secret of a person, like \"status = 'C'\".")
]
ArithmeticWord = Annotated[
    Arithmetics,
    typer.Option(
        "--arithmetic",
        help="How digit queries are decided: float64 as DuckDB, exact, or numeric as PostgreSQL.",
    ),
]
PostgresUrl = Annotated[
    str | None,
    typer.Option(
        "--postgres",
        help="URL of the PostgreSQL server that computes numeric arithmetic (default: one "
        "started for the purpose).",
    ),
]

ReleaseWord = Annotated[
    str,
    typer.Option("--release", help="diffix: the release, 18.1 (as attacked), 18.3, paper, tables."),
]
SaltFile = Annotated[
    Path,
    typer.Option(
        "--salt-file",
        help="diffix: file of the secret behind its noise; made at random where there is none.",
    ),
]
RunFolder = Annotated[
    Path, typer.Option("--out", help="Folder for trials and figures; a run goes on where it was.")
]
Jobs = Annotated[int, typer.Option(help="Cores to use (-1: all).")]
Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler (tcp://host:8786), or `local:2`."),
]
SolverWord = Annotated[
    str,
    typer.Option(
        "--solver", help="auto (picks and says which), highs, or interior (the fast one)."
    ),
]


def solver_of(word: str, time_limit: float = 60.0, point: Point = Point.VERTEX) -> Solver:
    """The solver of that name."""
    table: dict[str, Callable[[], Solver]] = {
        "auto": lambda: Auto(time_limit, point),
        "highs": lambda: Highs(time_limit=time_limit),
        "interior": InteriorPoint,
    }
    return chosen(table, word, "solver")


@contextmanager
def arithmetic_of(word: Arithmetics, postgres: str | None) -> Iterator[Arithmetic]:
    """The arithmetic of that name, with a server while it is needed."""
    if word is Arithmetics.NUMERIC:
        with numeric_server(postgres) as numeric:
            yield numeric
    else:
        yield Exact() if word is Arithmetics.EXACT else Float64()


def people_of(word: str, id_column: str | None, between: tuple[int, int] | None) -> People:
    """The people a word stands for, within the id range."""
    name, _, rest = word.partition(":")
    if name == "bank":
        people = generated_bank(*_numbers(word, rest, 1))
    elif name == "census":
        people = generated_census(*(_numbers(word, rest, 2) or [100]))
    else:
        people = read_people(Path(word), id_column)
    return people.between(*between) if between else people


def known_of(path: Path | None) -> dict[int, Any]:
    """What a CSV file of people known beforehand says: an id and a value a line."""
    if path is None:
        return {}
    people = read_people(path)
    if len(people.columns) != 1:
        raise InputError(f"{path}: {len(people.columns)} columns beside the id, expected one")
    (values,) = people.columns.values()
    return dict(zip(people.ids.tolist(), values.tolist(), strict=True))


def _numbers(word: str, text: str, most: int) -> list[int]:
    parts = text.split(":") if text else []
    if len(parts) > most or not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        raise InputError(f"people {word!r} cannot be read; write bank, bank:7 or census:100:7")
    return [int(part) for part in parts]


def whole(text: str, flag: str) -> int:
    """The positive whole number that ``text`` writes."""
    if not re.fullmatch(r"\s*[0-9]{1,9}\s*", text) or int(text) < 1:
        raise InputError(f"{flag}: {text!r} is not a whole number above 0")
    return int(text)


def exponents_of(word: str) -> tuple[float, ...]:
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


def chosen(table: dict[str, Callable[[], T]], word: str, what: str) -> T:
    """The object that ``word`` names in ``table``."""
    if word not in table:
        raise InputError(f"there is no {what} {word!r}; choose {', '.join(table)}")
    return table[word]()
