"""Whether someone of whom a few things are known is in published tables, and what follows then."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from countleak.attack.ledger.bounds import Bounder, Interval
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.axes import Axis, band_of
from countleak.audit.releases.disclosures import axis_named, possible_cells
from countleak.audit.releases.findings import Finding, Group
from countleak.errors import InputError

IN, OUT, UNKNOWN = "certainly", "certainly not", "unknown"


@dataclass(frozen=True)
class Membership:
    """Whether anyone like the person described is in the tables: ``verdict``, with its ``proof``.

    ``low`` to ``high`` people are like them. ``follows`` says of each other dimension which values
    they can have there, if they are counted at all; where that is one, ``reasons`` prove that
    nobody like them has another. What only whole numbers show has no proof.
    """

    person: Mapping[str, str]
    verdict: str
    low: int
    high: float
    exact: bool
    proof: Finding | None
    follows: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, Finding | None]

    def __str__(self) -> str:
        who = ", ".join(self.person.values())
        words = {
            IN: "somebody like this is in the tables, for certain",
            OUT: "nobody like this is in the tables, for certain",
            UNKNOWN: "the tables do not say whether somebody like this is in them",
        }
        most = f"{self.high:g}" if np.isfinite(self.high) else "any number"
        lines = [f"{who}: {words[self.verdict]} ({self.low} to {most} people)."]
        if self.verdict != UNKNOWN:
            lines.append(f"  {_equation(self.proof)}")
        for name, reason in self.reasons.items():
            value = self.follows[name][0]
            lines.append(f"  Whoever it is has {name} {value}: {_equation(reason)}")
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
            "reasons": {
                name: None if proof is None else proof.record()
                for name, proof in self.reasons.items()
            },
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
    proof, witness = None, audit.witness()
    if verdict != UNKNOWN and np.isfinite(interval.high):
        proof = witness.finding(Group(person, cells), interval)
    possible, exact = possible_cells(bounder, audit.model.ledger.cells)
    follows: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, Finding | None] = {}
    for axis in axes:
        if axis.name in person:
            continue
        parts = [audit.model.cells_of({**known, axis.name: (at,)}) for at in axis.everything]
        held = [at for at, part in enumerate(parts) if possible[part].any()]
        follows[axis.name] = tuple(axis.groups[at] for at in held)
        if len(held) == 1 and len(parts) > 1:
            others = np.concatenate([part for at, part in enumerate(parts) if at != held[0]])
            named = {**person, axis.name: f"not {axis.groups[held[0]]}"}
            reasons[axis.name] = witness.finding(Group(named, others), Interval(0, 0, True))
    ends = interval.low, interval.high, exact and interval.exact
    return Membership(dict(person), verdict, *ends, proof, follows, reasons)


def _equation(proof: Finding | None) -> str:
    return "that follows without a short proof" if proof is None else proof.equation


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
