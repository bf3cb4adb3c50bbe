"""Whom an audit asks about, and which questions: of a family named, or that a probe proposes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import typer

from countleak.attack.design import Goal, Information, Variance
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import fits_digits
from countleak.attack.secrets import Bit, Secret
from countleak.audit.families import Known, family_queries
from countleak.audit.findings import AS_ZERO, Findings
from countleak.audit.people import People
from countleak.audit.probe import probe
from countleak.audit.run import Asking
from countleak.cli import console, options
from countleak.cli.option_rules import GIVEN, needs
from countleak.cli.target_options import Live, Systems, TargetWord
from countleak.errors import InputError
from countleak.files import replacing

PROBE = "probe.json"
# The kinds of target whose table lists its people.
LISTING = ("postgresql", "database", "duckdb")
TOO_FEW = "All its tables together do not determine everyone; name more known columns."
Family = Literal["digits", "subsets", "modular", "hashed", "ranges", "tables"]


@dataclass(frozen=True)
class Probed:
    """What a probe proposed, in the words of its file."""

    system: str
    asked: int
    family: str
    noise: float
    functions: tuple[str, ...]
    ways: int
    merged: bool
    of_any_width: tuple[str, ...]
    smallest: float
    hidden_as: str | None
    too_few: bool

    @classmethod
    def of(cls, findings: Findings, system: str) -> "Probed":
        """The proposal of some findings."""
        known, best = findings.known(()), findings.best
        return cls(
            system,
            findings.asked,
            best.family,
            best.noise or 0.0,
            known.functions,
            known.ways,
            known.merged,
            known.of_any_width,
            known.smallest,
            findings.hidden_as if findings.hidden else None,
            best.too_few,
        )

    @classmethod
    def read(cls, path: Path, system: str) -> "Probed | None":
        """The proposal in a file, if it is about this system."""
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            several = {name: tuple(record[name]) for name in ("functions", "of_any_width")}
            probed = cls(**{**record, **several})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        is_known = probed.family in get_args(Family) and isinstance(probed.asked, int)
        return probed if is_known and probed.system == system else None

    def write(self, path: Path) -> None:
        """Keep it, so that whoever resumes the audit asks the same questions."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps(asdict(self), indent=2) + "\n")

    def known(self, columns: Sequence[str]) -> Known:
        """What can be asked about those columns."""
        return Known(
            tuple(columns),
            self.functions,
            self.smallest,
            self.ways,
            self.merged,
            self.of_any_width,
        )

    def seen(self, systems: Systems, word: TargetWord) -> Systems:
        """The systems, with a live one as the probe has seen it where nothing else is stated."""
        if self.hidden_as is None or not word.is_live or systems.live.system is not None:
            return systems
        zero = 0.0 if self.hidden_as == AS_ZERO else None
        system = replace(systems.live.system_at(word), hides=True, suppressed_as=zero)
        return replace(systems, seen=system)

    def __str__(self) -> str:
        noise = f"noise of SD {self.noise:.2g}" if self.noise else "no noise"
        few = f" {TOO_FEW}" if self.too_few else ""
        return f"Probed with {self.asked} statements: {self.family}, {noise}.{few}"


@needs(
    {
        "--primes": {"--family": options.DIGITS},
        "--until": {"--adaptive": GIVEN},
        "--first": {"--adaptive": GIVEN},
        "--batch": {"--adaptive": GIVEN},
        "--goal": {"--adaptive": GIVEN},
    }
)
@dataclass(frozen=True)
class Questions(options.KnownColumns):
    """Which questions an audit asks, how many, and in what order."""

    family: Annotated[
        Family | None,
        typer.Option(
            help="Family of the queries (default: the one of least noise for its cost, found by "
            "probing the system; simulated: digits where ids are whole numbers, else subsets)."
        ),
    ] = None
    primes: Annotated[
        int, typer.Option(help="digits: choose from those of so many primes, 140 each.", min=1)
    ] = 25
    pool: Annotated[
        int | None, typer.Option(help="Choose from so many queries (subsets: 1000).", min=1)
    ] = None
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries", "-m", help="Send at most so many, those of the probe included.", min=1
        ),
    ] = None
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive", help="Choose every batch by the answers so far, and stop early."
        ),
    ] = False
    until: Annotated[
        float, typer.Option(help="adaptive: stop once this share is expected to be right.")
    ] = 0.99
    first: Annotated[int, typer.Option(help="adaptive: queries in the first batch.", min=1)] = 100
    batch: Annotated[int, typer.Option(help="adaptive: queries in each later batch.", min=1)] = 50
    goal: Annotated[
        Literal["information", "variance", "random"] | None,
        typer.Option(
            help="adaptive: what a question should gain (default: information for conditions, "
            "random for values)."
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be asked; send nothing.")
    ] = False

    def probed(
        self, word: TargetWord, people: People, systems: Systems, folder: Path, seed: int
    ) -> Probed | None:
        """What a probe proposes, now or before; nothing where a family is named, or none asked."""
        if self.family is not None or not (word.is_live or word.kind == "diffix"):
            return None
        if self.dry_run:
            console.remark("A probe would come first, and choose the family of the queries.")
            return None
        opened = systems.open_to_probe(word, people)
        before = Probed.read(folder / PROBE, opened.about)
        if before is not None:
            return before
        opened.keep_salt()
        with console.progress("probing") as progress:
            findings = probe(opened.target, people, self.columns, seed=seed, progress=progress)
        found = Probed.of(findings, opened.about)
        found.write(folder / PROBE)
        return found

    def plan(self, people: People, probed: Probed | None, snaps: bool, seed: int) -> Queries:
        """The pool of queries to ask from; of a system that snaps ranges, digits by default."""
        family: str
        if self.family is not None:
            family = self.family
        elif probed is not None:
            family = probed.family
        else:
            family = "digits" if snaps and fits_digits(people.ids) else "subsets"
        most = self._left(probed)
        if family == "digits":
            return options.Family("digits", self.primes).queries(people, self.pool, seed)
        if family == "tables" and self.adaptive:
            raise InputError("--adaptive chooses single questions, not tables; name a --family")
        size = self.pool
        if size is None and most is not None:
            size = max(most, 1000) if self.adaptive else most
        about = Known(self.columns) if probed is None else probed.known(self.columns)
        return family_queries(family, people, size, np.random.default_rng([seed, 1]), about)

    def asking(self, by_table: bool, probed: Probed | None, secret: Secret, seed: int) -> Asking:
        """How the pool is asked about a secret, table ``by_table`` or one count at a time."""
        # A table is one statement, however many cells it has, so all of its cells are asked for.
        most = None if by_table else self._left(probed)
        if not self.adaptive:
            return Asking(most, seed=seed)
        goals: dict[str, Goal | None] = {
            "information": Information(),
            "variance": Variance(),
            "random": None,
        }
        goal = goals[self.goal or ("information" if isinstance(secret, Bit) else "random")]
        return Asking(most, self.until, self.first, self.batch, goal, seed)

    def _left(self, probed: Probed | None) -> int | None:
        """How many statements may be sent after the probe."""
        if self.queries is None or probed is None:
            return self.queries
        if self.queries <= probed.asked:
            raise InputError(
                f"--queries is {self.queries}, but the probe alone sent {probed.asked}; allow "
                "more, or name a --family"
            )
        return self.queries - probed.asked


def people_asked(
    target: TargetWord,
    who: options.Who,
    live: Live,
    columns: Sequence[str],
    secret: bool,
    dry_run: bool,
) -> People:
    """Who is asked about: those who are named, or whom the table of a database lists itself.

    Its ``columns`` are read too; where there is no ``secret`` yet, that is asked for as well.
    """
    if who.people is not None or target.kind not in LISTING:
        return who.read(target.people)
    if dry_run:
        raise InputError("--dry-run sends nothing, so it reads no ids; name a file with --people")
    # Loaded here: most audits ask no database.
    from countleak.cli.live_targets import named_people

    people = named_people(target, live, who, columns, secret)
    return people.between(*who.between) if who.between else people
