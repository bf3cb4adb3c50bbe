"""Whether someone of whom a few things are known is in published tables, and what follows then."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from countleak.attack.ledger.bounds import Bounder
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.axes import Axis, band_of
from countleak.audit.releases.disclosures import axis_named, possible_cells
from countleak.audit.releases.findings import Finding, Group
from countleak.errors import InputError

IN, OUT, UNKNOWN = "certainly", "certainly not", "unknown"


@dataclass(frozen=True)
class Membership:
    """Whether anyone like the person described is in the tables: ``verdict``, with its ``proof``.

    ``follows`` says of each other dimension which values such a person can have there, if they
    are counted at all; ``low`` to ``high`` people are like them.
    """

    person: Mapping[str, str]
    verdict: str
    low: int
    high: float
    exact: bool
    proof: Finding | None
    follows: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        who = ", ".join(self.person.values())
        words = {
            IN: "somebody like this is in the tables, for certain",
            OUT: "nobody like this is in the tables, for certain",
            UNKNOWN: "the tables do not say whether somebody like this is in them",
        }
        most = f"{self.high:g}" if np.isfinite(self.high) else "any number"
        lines = [f"{who}: {words[self.verdict]} ({self.low} to {most} people)."]
        if self.proof is not None:
            lines.append(f"  {self.proof.equation}")
        if self.verdict != OUT:
            for name, values in self.follows.items():
                if len(values) == 1:
                    lines.append(f"  Whoever it is has {name} {values[0]}, for certain.")
        if not self.exact:
            lines.append("Time ran out: more may follow.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The same as plain fields."""
        return {
            "person": dict(self.person),
            "in_tables": self.verdict,
            "low": self.low,
            "high": self.high if np.isfinite(self.high) else None,
            "exact": self.exact,
            "proof": None if self.proof is None else self.proof.record(),
            "possible": {name: list(values) for name, values in self.follows.items()},
        }


def membership(
    audit: TablesAudit, person: Mapping[str, str], *, time_limit: float = 60.0
) -> Membership:
    """Whether someone with these labels, by dimension, is in the tables."""
    axes = audit.model.axes
    known = {name: _members(axis_named(axes, name), label) for name, label in person.items()}
    cells = audit.model.cells_of(known)
    bounder = Bounder(audit.model.ledger, time_limit)
    interval = bounder.interval(cells)
    verdict = IN if interval.low >= 1 else OUT if interval.high == 0 else UNKNOWN
    proof = None
    if verdict != UNKNOWN and np.isfinite(interval.high):
        proof = audit.witness().finding(Group(person, cells), interval)
    possible, exact = possible_cells(bounder, audit.model.ledger.cells)
    follows = {}
    for axis in axes:
        if axis.name not in person:
            parts = [audit.model.cells_of({**known, axis.name: (at,)}) for at in axis.everything]
            held = zip(axis.groups, parts, strict=True)
            follows[axis.name] = tuple(name for name, part in held if possible[part].any())
    return Membership(
        dict(person), verdict, interval.low, interval.high, exact and interval.exact, proof, follows
    )


def person_of(text: str) -> dict[str, str]:
    """`region=Leeds,sex=F` as labels by dimension."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, label = (each.strip() for each in part.partition("="))
        if not equals or not name or not label or name in found:
            raise InputError(
                f"the person {text!r} cannot be read; write each dimension once, like "
                "region=Leeds,sex=F"
            )
        found[name] = label
    return found


def _members(axis: Axis, label: str) -> tuple[int, ...]:
    """The groups of an axis that someone with this label may be in."""
    if label in axis.members:
        return axis.members[label]
    if label in axis.groups:
        return (axis.groups.index(label),)
    band = band_of(label)
    if band is not None:
        # Someone of 32 years is in the band 30-34.
        inside = tuple(
            at
            for at, name in enumerate(axis.groups)
            if (of := band_of(name)) is not None and band in of
        )
        if inside:
            return inside
    raise InputError(
        f"{axis.name} has no {label!r}; the tables tell apart {', '.join(axis.groups[:20])}"
    )
