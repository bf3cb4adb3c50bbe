"""A live system named by its address, the manners it is asked with, and what is shown before."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.counts import DIFFIX, PLAIN, SYSTEMS, Counts, System
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.several import Manners
from countleak.cli import console
from countleak.errors import InputError
from countleak.files import read_text

POSTGRES, HTTP = ("postgresql://", "postgres://"), ("http://", "https://")
TOKEN = "COUNTLEAK_TOKEN"
SHOWN = 3

SystemWord = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="An address: `diffix` (ranges are snapped, 0 means held back; http(s) if not said) or "
        "`plain` (0 is a count; postgresql:// if not said).",
    ),
]
DataSource = Annotated[
    str | None, typer.Option(help="http(s): the name of the data source that is asked.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(help=f"http(s): file of the token, if it is not in the variable {TOKEN}."),
]
Connections = Annotated[int, typer.Option(help="An address: connections to ask over.", min=1)]
Rate = Annotated[float | None, typer.Option(help="An address: at most so many queries a second.")]
Timeout = Annotated[float, typer.Option(help="An address: seconds to wait for an answer.")]
Limit = Annotated[
    int | None, typer.Option(help="Ask at most so many queries now; run again to go on.", min=1)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be asked; send nothing.")]
AuthorisedBy = Annotated[
    str | None,
    typer.Option(help="Who allows it: needed for an address on another machine, and recorded."),
]


@dataclass(frozen=True)
class Live:
    """What the command line says of a live system."""

    address: str
    counts: Counts
    manners: Manners
    data_source: str | None
    token_file: Path | None
    authorised_by: str | None

    def target(self) -> PostgresTarget | RestTarget:
        """The system at the address; whoever asks another machine says who allows it."""
        target = self._target()
        if not target.is_local and not (self.authorised_by or "").strip():
            raise InputError(
                f"{target} is not this machine; ask only systems you may audit, and say who allows "
                "it with --authorised-by NAME"
            )
        return target

    def _target(self) -> PostgresTarget | RestTarget:
        if self.address.startswith(POSTGRES):
            return PostgresTarget(self.address, self.counts, self.manners)
        if self.data_source is None:
            raise InputError("name the data source that is asked with --data-source")
        return RestTarget(self.address, self.data_source, self.counts, self._token(), self.manners)

    def _token(self) -> str | None:
        if self.token_file is not None:
            return read_text(self.token_file).strip()
        return os.environ.get(TOKEN)


def is_address(word: str) -> bool:
    """Whether a target is named by its address."""
    return word.startswith((*POSTGRES, *HTTP))


def system_of(word: str | None, address: str) -> System:
    """What the system at an address is like: as said, or as its kind of address suggests."""
    if word is None:
        return PLAIN if address.startswith(POSTGRES) else DIFFIX
    if word not in SYSTEMS:
        raise InputError(f"there is no system {word!r}; choose {', '.join(SYSTEMS)}")
    return SYSTEMS[word]


def about(target: PostgresTarget | RestTarget) -> str:
    """The system in words, as the journal keeps them."""
    counts = target.counts
    which = "" if counts.condition is None else f" where {counts.condition}"
    return f"{target}, counting {counts.column} of {counts.table}{which}, as {counts.system.name}"


def show(
    target: PostgresTarget | RestTarget, queries: Queries, positions: NDArray[np.int64]
) -> None:
    """Say what will be asked, before it is."""
    first = [target.counts.harmless(queries, at) for at in positions[:SHOWN].tolist()]
    console.remark(f"{positions.size} queries to {target}, like")
    for statement in first:
        console.remark(f"  {statement}")
    means = "is a count" if target.counts.system.held_back is None else "means: held back"
    console.remark(f"An answer of 0 {means} (--system {target.counts.system.name}).")


def doubt(system: System, answers: Answers) -> None:
    """Say so where answers taken for counts look like those of a system that holds some back."""
    zeros = int((answers.values == 0).sum())
    if system.held_back is None and zeros and not (answers.values == 1).any():
        console.remark(
            f"{zeros} answers are 0 and none is 1: if the system holds back low counts, ask again "
            "with --system diffix into a new file."
        )
