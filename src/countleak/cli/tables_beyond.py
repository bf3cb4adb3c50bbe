"""What `countleak tables` does beyond its findings: cures, groups that share a value, people."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.audit.releases import TablesAudit
from countleak.audit.releases.cure import Remedy, cure
from countleak.audit.releases.cure.coarsening import Coarsen
from countleak.audit.releases.cure.rounding import Round
from countleak.audit.releases.cure.suppress import Suppress
from countleak.audit.releases.cure.writing import write_tables
from countleak.audit.releases.disclosures import disclosures
from countleak.audit.releases.likely import Posterior, likely_counts, likely_disclosures
from countleak.audit.releases.membership import membership, person_of
from countleak.audit.releases.records import reconstruct_records
from countleak.cli import console
from countleak.cli.option_rules import GIVEN, needs


class Remedies(StrEnum):
    """Ways to cure tables."""

    SUPPRESS = "suppress"
    COARSEN = "coarsen"
    ROUND = "round"


REMEDIES: Mapping[Remedies, Remedy] = {
    Remedies.SUPPRESS: Suppress(),
    Remedies.COARSEN: Coarsen(),
    Remedies.ROUND: Round(),
}


@dataclass(frozen=True)
class Part:
    """A part of the result: its ``record``, and the same in ``words``; whether it ``failed``."""

    record: Mapping[str, Any]
    words: str
    failed: bool = False


@needs({"--write": {"--cure": GIVEN}})
@dataclass(frozen=True)
class Beyond:
    """Options of what is done with an audit of tables."""

    cure: Annotated[
        Remedies | None,
        typer.Option(help="Say what to hide, merge or round so that nothing is pinned."),
    ] = None
    write: Annotated[
        Path | None, typer.Option(metavar="DIR", help="cure: write the cured tables to a folder.")
    ] = None

    secret: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Find groups whose members all have one value of a dimension."
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Someone like region=Leeds,sex=F: certainly in the tables, or not, and what "
            "follows.",
        ),
    ] = None
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write people who fit all tables, one per row, and say how far others can differ.",
        ),
    ] = None
    likely: Annotated[
        bool,
        typer.Option("--likely", help="Say how likely each count is where several are possible."),
    ] = False

    def parts(self, audit: TablesAudit, time_limit: float) -> list[Part]:
        """All that was asked for, one after the other."""
        found = []
        if self.cure is not None:
            found.append(self._cured(audit, REMEDIES[self.cure], time_limit))
        if self.secret is not None:
            shared = disclosures(audit, self.secret, time_limit=time_limit)
            found.append(Part({"disclosures": shared.record()}, str(shared)))
        if self.person is not None:
            member = membership(audit, person_of(self.person), time_limit=time_limit)
            found.append(Part({"person": member.record()}, str(member)))
        if self.records is not None:
            rebuilt = reconstruct_records(audit.model, time_limit)
            rebuilt.write(self.records)
            found.append(Part({"records": rebuilt.record()}, str(rebuilt)))
        if self.likely:
            posterior = Posterior(audit.model, time_limit=time_limit)
            beliefs = likely_counts(audit, posterior)
            found.append(Part({"likely": beliefs.record()}, str(beliefs)))
            if self.secret is not None:
                sharing = likely_disclosures(audit, self.secret, posterior, time_limit=time_limit)
                found.append(Part({"likely_disclosures": sharing.record()}, str(sharing)))
        return found

    def _cured(self, audit: TablesAudit, remedy: Remedy, time_limit: float) -> Part:
        with console.progress("rounds of the cure") as progress:
            found = cure(audit, remedy, time_limit=time_limit, progress=progress)
        record, words = found.record(), str(found)
        if self.write is not None and found.failure is None:
            paths = write_tables(found.described, self.write)
            record["written"] = [str(path) for path in paths]
            words += f"\nWritten: {', '.join(record['written'])}"
        return Part({"cure": record}, words, found.failure is not None)
