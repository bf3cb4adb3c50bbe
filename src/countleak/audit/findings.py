"""What a probe found out of a system: what it answers, how noisily, whom it hides, what to ask."""

from collections.abc import Sequence
from dataclasses import dataclass

from countleak.audit.families import MOST_WAYS, SMALLEST_CELL, Known
from countleak.errors import NoResult

# How much less a question tells of one person than a count of them alone. Of a random half, by the
# mean square of its weights. Of a table, as measured: its cells are few, hidden, or nested in those
# of others (500 tables of 827 people, noise of SD 1.4: standard errors of .29, not .06).
OF_A_HALF, OF_A_TABLE = 4.0, 20.0
# Noise that is so much smaller cannot be told from chance by a few questions.
CLEARLY = 1.5
# The families of which one question is about any set of ids.
BY_ID = ("modular", "subsets", "digits")
# Answers that differ by less are equal, and there is no noise.
SAME = 1e-6
# How a system hides a count that a journal must be told of.
AS_ZERO = "answered 0"


@dataclass(frozen=True)
class Tried:
    """A family that was tried: how its first question read, and what came back.

    ``refused`` is why it is not answered. ``noise`` is the SD of the answers around the true
    counts and ``offset`` their mean; ``sticky`` says whether a question asked again got the same
    answer, and is None where there is no noise to tell by. Of tables, ``functions`` are those that
    a system groups by, up to ``ways`` at once, some of them ``of_any_width``, ``merges`` says
    whether a row more tells what it hides, and ``too_few`` that all its tables together do not
    determine everyone.
    """

    family: str
    statement: str
    refused: str | None = None
    noise: float | None = None
    offset: float | None = None
    sticky: bool | None = None
    functions: tuple[str, ...] = ()
    ways: int = MOST_WAYS
    merges: bool = False
    of_any_width: tuple[str, ...] = ()
    too_few: bool = False

    @property
    def per_question(self) -> float | None:
        """How uncertain one question leaves one person, as a variance: lower is better."""
        if self.noise is None:
            return None
        return self.noise**2 * (OF_A_TABLE if self.family == "tables" else OF_A_HALF)


@dataclass(frozen=True)
class Findings:
    """All that was found out: ``tried`` families, and what a system does to every count.

    ``hidden`` is the largest set of people whose count was not told, ``hidden_as`` how that shows;
    None where even one person is counted, or where it could not be told.
    """

    tried: tuple[Tried, ...]
    asked: int
    base: int | None
    fractions: bool
    hidden: int | None
    hidden_as: str | None

    @property
    def best(self) -> Tried:
        """The family with the least noise for its cost, the cheapest of equals."""
        answered = [each for each in self.tried if each.per_question is not None]
        # Where nothing else is answered, few tables are better than none.
        enough = [each for each in answered if not each.too_few] or answered
        costs = {each.family: each.per_question or 0.0 for each in enough}
        for each in enough:
            if costs[each.family] <= CLEARLY * min(costs.values()) + SAME:
                return each
        reasons = "; ".join(f"{each.family}: {each.refused}" for each in self.tried)
        raise NoResult(f"the system answers no family of questions ({reasons})")

    @property
    def by_id(self) -> bool:
        """Whether a condition may be about ids, so that anybody can be counted or left out."""
        return any(each.family in BY_ID and each.refused is None for each in self.tried)

    @property
    def is_noisy(self) -> bool:
        """Whether answers differ from counts."""
        return (self.best.noise or 0.0) > SAME

    def known(self, columns: Sequence[str]) -> Known:
        """What can be asked about those columns, of this system."""
        smallest = 1.0 if self.hidden is None else max(SMALLEST_CELL, (self.hidden + 1) / 2)
        tables = next((each for each in self.tried if each.functions), Tried("tables", ""))
        return Known(
            tuple(columns),
            tables.functions,
            smallest,
            tables.ways,
            tables.merges,
            tables.of_any_width,
        )
