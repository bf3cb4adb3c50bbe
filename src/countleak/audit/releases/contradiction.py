"""Published numbers that cannot all be true of the same people."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from countleak.attack.ledger.conflicts import conflict_of
from countleak.audit.releases.findings import Term, terms_of
from countleak.audit.releases.model import Model, Stated


@dataclass(frozen=True)
class Disagreement:
    """The ``terms`` that cannot all be true; none where too little time was left to find few.

    With ``adds_up`` their multiples add up to a contradiction; else it takes that counts are
    whole. ``irreducible``: counts are known that fit whichever is left out.
    """

    terms: tuple[Term, ...]
    adds_up: bool
    irreducible: bool

    def __str__(self) -> str:
        if not self.terms:
            return "No whole counts fit what was published: the rules or the tables are wrong."
        numbers = "; ".join(term.shown for term in self.terms)
        why = "" if self.adds_up else " No whole counts fit them."
        few = " Without any one of them counts fit." if self.irreducible else ""
        return (
            f"These numbers cannot all be true of the same people: {numbers}.{why}{few} They cover "
            "different people, or were made by other rules than stated."
        )

    def record(self) -> list[dict[str, Any]]:
        """The numbers as plain fields."""
        return [term.record() for term in self.terms]


def disagreement_of(model: Model, time_limit: float) -> Disagreement:
    """Few of the published numbers that no counts fit, of a model that none fit."""
    conflict = conflict_of(model.ledger, time_limit)
    if conflict is None:
        return Disagreement((), False, False)
    if conflict.proof is not None:
        return Disagreement(terms_of(model, conflict.proof), True, conflict.irreducible)
    low, high = model.ledger.low.tolist(), model.ledger.high.tolist()
    terms = (Term(model.numbers[row], Fraction(1), low[row], high[row]) for row in conflict.rows)
    return Disagreement(tuple(terms), False, conflict.irreducible)


def shown_differently(model: Model, stated: Sequence[Stated]) -> Disagreement | None:
    """Two numbers of the same people that differ, though their keys should make them the same."""
    if not any(each.rules.keys for each in stated):
        return None
    keys = [each.rules.keys for each in stated for _ in each.release.numbers]
    first: dict[object, int] = {}
    for row, key in enumerate(keys):
        value = model.numbers[row].value
        if key is None or value is None:
            continue
        people = (key, model.ledger.members(row).tobytes())
        other = first.setdefault(people, row)
        if model.numbers[other].value != value:
            low, high = model.ledger.low.tolist(), model.ledger.high.tolist()
            terms = (
                Term(model.numbers[each], Fraction(times), low[each], high[each])
                for each, times in ((other, 1), (row, -1))
            )
            return Disagreement(tuple(terms), True, True)
    return None
