"""`countleak probe`: what a system accepts, how noisy it is and whom it hides, by asking it."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from countleak.audit.findings import Findings, Tried
from countleak.audit.probe import probe as probe_target
from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.cli.questions import TOO_FEW, people_asked
from countleak.cli.target_options import (
    Live,
    Release,
    Systems,
    TargetWord,
    read_target,
    target_needs,
)

SHOWN = 100
SAME_AGAIN = {None: "", True: "yes", False: "no"}


@needs(target_needs("TARGET"))
def probe(
    target: Annotated[
        TargetWord,
        typer.Argument(
            help="Who answers: a live system, or `diffix`, rebuilt over the people.",
            parser=read_target,
            metavar="TARGET",
        ),
    ],
    who: options.Who,
    known: options.KnownColumns,
    release: Release,
    live: Live,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be tried; send nothing.")
    ] = False,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Find out by asking which questions a system answers, and what it does to a count."""
    people = people_asked(target, who, live, known.columns, secret=True, dry_run=dry_run)
    systems = Systems(release=release, live=live, dry_run=dry_run)
    opened = systems.open_to_probe(target, people)
    console.remark(
        f"Asking {opened.target} a few dozen questions about {len(people)} people and nobody's "
        "secret."
    )
    if dry_run:
        console.remark("Nothing was sent (--dry-run).")
        return
    opened.keep_salt()
    with console.progress("probing") as progress:
        findings = probe_target(opened.target, people, known.columns, seed=seed, progress=progress)
    if json:
        console.print_json(record_of(findings))
    else:
        tell(findings)


def record_of(findings: Findings) -> dict[str, Any]:
    """The findings as plain fields."""
    return {**asdict(findings), "family": findings.best.family, "noisy": findings.is_noisy}


def tell(findings: Findings) -> None:
    """Say what was asked and found out."""
    console.print_table(
        [_cells(each) for each in findings.tried], f"{findings.asked} statements were sent"
    )
    for each in findings.tried:
        if each.refused is not None:
            console.say(f"{each.family} is not answered: {each.refused[: 2 * SHOWN]}")
    for line in in_words(findings):
        console.say(line)


def in_words(findings: Findings) -> list[str]:
    """What a system does to counts, and what to ask it."""
    lines = [
        "Conditions may be about ids: anybody can be counted or left out."
        if findings.by_id
        else "No condition about ids is answered."
    ]
    if findings.hidden is not None:
        lines.append(f"Counts of {findings.hidden} or fewer are {findings.hidden_as}.")
    if findings.base is not None:
        lines.append(f"Answers are multiples of {findings.base}.")
    if findings.fractions:
        lines.append("Answers are not whole numbers.")
    best = findings.best
    noise = f"noise of SD {best.noise:.2g}" if findings.is_noisy else "no noise"
    if best.sticky is not None:
        again = "the same" if best.sticky else "another"
        lines.append(f"The same question again gets {again} noise.")
    if best.functions and best.family == "tables":
        merged = ", and shows a row of what it hides" if best.merges else ""
        lines.append(f"It groups by up to {best.ways} columns at once{merged}.")
    lines.append(f"Proposed: {best.family}, {noise}, like {best.statement[:SHOWN]}")
    if best.too_few:
        lines.append(TOO_FEW)
    return lines


def _cells(each: Tried) -> dict[str, str]:
    return {
        "family": each.family,
        "answered": "yes" if each.refused is None else "no",
        "noise SD": "" if each.noise is None else f"{each.noise:.3g}",
        "offset": "" if each.offset is None else f"{each.offset:+.2g}",
        "same again": SAME_AGAIN[each.sticky],
        "groups by": ", ".join(name or "values" for name in each.functions),
    }
