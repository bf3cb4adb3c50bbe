"""`countleak audit --block`: a large table, attacked in blocks of people."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countleak.attack.queries import Queries
from countleak.attack.rules import Rules
from countleak.attack.secrets import Secret
from countleak.audit.blocks import Cut, audit_in_blocks
from countleak.audit.joining import BlocksResult, faults_of
from countleak.audit.people import People
from countleak.audit.report.blocks import record_of_blocks
from countleak.audit.report.record import write_record
from countleak.audit.report.recording import Notes
from countleak.audit.report.report import read_report
from countleak.audit.report.writing import write_files
from countleak.audit.run import Keeping
from countleak.cli import console
from countleak.cli.questions import Probed, Questions
from countleak.cli.report import files_in_words
from countleak.cli.target_options import Systems, TargetWord
from countleak.errors import InputError, MissingExtra, NoResult

if TYPE_CHECKING:
    from countleak.cli.audit import Decoding, Judging


@dataclass(frozen=True)
class Blockwise:
    """What an audit in blocks is told by its options, but for who is asked about what."""

    target: TargetWord
    questions: Questions
    systems: Systems
    rules: Rules
    decoding: "Decoding"
    judging: "Judging"
    seed: int
    folder: Path

    def run(self, people: People, answers: People, named: Secret, json: bool) -> bool:
        """Attack all blocks and tell; whether more leaks than is allowed.

        Raises NoResult where a block could not be attacked and no leak was found all the same.
        """
        fail_above, word, questions = self.judging.fail_above, self.target, self.questions
        cut = Cut(self.decoding.block or 0, self.decoding.jobs, self.decoding.cluster)
        if word.is_live and self.systems.live.system_at(word).snaps:
            raise InputError(
                "--block: this system snaps ranges, so a block would count its neighbours; choose "
                "the people with --between"
            )
        first = _first_block(people, cut)
        probed = questions.probed(word, first, self.systems, self.folder, self.seed)
        systems = self.systems if probed is None else probed.seen(self.systems, word)
        plan = partial(_plan, questions, probed, not word.is_live)
        sample = plan(first, self.seed)
        opened = systems.open(word, people, named, sample, self.seed)
        about = f"{opened.about}, in {cut.count(len(people))} blocks of people"
        if word.is_live:
            each, blocks = len(sample) * len(named.conditions), cut.count(len(people))
            console.remark(f"{blocks} blocks, one after the other; each up to {each} statements")
        keeping = Keeping(self.folder, about, self.systems.live.authorised_by)
        with console.progress("attacking blocks") as progress:
            result = audit_in_blocks(
                people,
                secret=named,
                target=opened.target,
                cut=cut,
                keeping=keeping,
                plan=plan,
                asking=questions.asking(False, probed, named, self.seed),
                rules=self.decoding.rules(self.rules, opened),
                truth=answers,
                time_limit=self.decoding.time_limit,
                progress=progress,
            )
        if self.judging.report:
            self._report(result, keeping, probed)
        if result.nothing and not result.guess.claimed.any():
            raise NoResult(f"{result.nothing}; this audit shows nothing")
        failed = fail_above is not None and result.leaks_more_than(fail_above)
        self._tell(result, about, probed, failed, json)
        if result.nothing and not failed:
            raise NoResult(f"{result.nothing}; this audit has not passed")
        return failed

    def _tell(
        self, result: BlocksResult, about: str, probed: Probed | None, failed: bool, json: bool
    ) -> None:
        if json:
            console.print_json(_record(result, about, self.folder, probed, failed))
            return
        console.say(f"Asked: {about}")
        console.say(str(result))
        console.say(f"Files in {self.folder}/: guess.jsonl, and those of each block in blocks/")
        if self.judging.report:
            console.say(files_in_words(self.folder))
        if self.judging.fail_above is not None:
            console.say(result.verdict_in_words(self.judging.fail_above))

    def _report(self, result: BlocksResult, keeping: Keeping, probed: Probed | None) -> None:
        nothing = "" if result.guess.claimed.any() else result.nothing or ""
        notes = Notes(
            keeping.system,
            keeping.authorised_by,
            self.seed,
            self.judging.fail_above,
            probed=probed.asked if probed else 0,
            nothing=nothing,
        )
        write_record(self.folder, record_of_blocks(result, notes))
        try:
            write_files(read_report(self.folder), self.folder)
        except MissingExtra as error:
            console.remark(f"No page: {error}; then run countleak report {self.folder}")


def _first_block(people: People, cut: Cut) -> People:
    part = next(cut.parts(len(people)))
    return people.among(people.ids[part])


def _plan(
    questions: Questions, probed: Probed | None, snaps: bool, people: People, seed: int
) -> Queries:
    return questions.plan(people, probed, snaps, seed)


def _record(
    result: BlocksResult, about: str, folder: Path, probed: Probed | None, failed: bool
) -> dict[str, Any]:
    basis = result.guess.basis
    return {
        "folder": str(folder),
        "system": about,
        "secret": str(result.secret),
        "family": result.blocks[0].family,
        "queries": result.answered + (probed.asked if probed else 0),
        "answers": result.answered,
        "accuracy": None,
        "interval": None,
        "baseline": None,
        "confidence": result.confidence,
        "proven": int(result.guess.proven.sum()),
        "implied": int(result.guess.implied.sum()),
        "stated": list(basis.stated),
        "inferred": list(basis.inferred),
        "assuming": basis.assuming,
        "misfit": faults_of(result.blocks) or "",
        "refused": result.refused,
        "blocks": [asdict(block) for block in result.blocks],
        **({} if result.score is None else result.score.record()),
        "advantage": result.advantage,
        "failed": failed,
    }
