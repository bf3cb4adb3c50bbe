"""`countleak audit`: plan, ask, solve and score in one go, and say whether too much leaks."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.attack.decoders import TIME_LIMIT, Decoder
from countleak.attack.decoders.auto import decoder_for
from countleak.attack.rules import Rules
from countleak.attack.secrets import Bit, Secret
from countleak.audit.budget.beside import predicted_in_words
from countleak.audit.control import Control, control
from countleak.audit.families import statements
from countleak.audit.people import People
from countleak.audit.report.record import write_record
from countleak.audit.report.recording import Notes, record_of
from countleak.audit.report.report import read_report
from countleak.audit.report.writing import write_files
from countleak.audit.result import AuditResult, nothing_shown
from countleak.audit.run import Asking, Keeping
from countleak.audit.run import audit as run_audit
from countleak.audit.targets.simulated import Simulated, TwoSubsets
from countleak.cli import console, options
from countleak.cli.blocks import Blockwise
from countleak.cli.option_rules import ABSENT, GIVEN, Needs, check_given, needs
from countleak.cli.questions import Probed, Questions, people_asked
from countleak.cli.report import files_in_words
from countleak.cli.rule_options import RULE_OPTIONS, RULES_BY_SECRET, StatedRules
from countleak.cli.showing import asked_by_table, show, warn_of_suppression
from countleak.cli.target_options import (
    IN_PROCESS,
    LIVE,
    TARGET_HELP,
    Live,
    Opened,
    Release,
    Simulation,
    Systems,
    TargetWord,
    read_target,
    target_needs,
)
from countleak.errors import InputError, MissingExtra, NoResult
from countleak.foreign import clean
from countleak.shares import percent

FAILED = 1
BLOCKS: Needs = {
    "--jobs": {"--block": GIVEN},
    "--block": {"--control": ABSENT, "--dry-run": ABSENT, "TARGET": (*IN_PROCESS, *LIVE)},
    "--cluster": {"--block": GIVEN, "TARGET": IN_PROCESS},
}
BY_SECRET: Needs = {
    "--block": {"the secret": ("a bit", "a category")},
    **RULES_BY_SECRET,
    "--time-limit": {"the secret": ("a bit",)},
    "--state-rules": {"the secret": ("a bit", "a category")},
}


@needs({option: {"--state-rules": ABSENT} for option in RULE_OPTIONS})
@dataclass(frozen=True)
class Decoding:
    """What else the decoder is told, how long it may take, and in what blocks."""

    state_rules: Annotated[
        bool,
        typer.Option("--state-rules", help="simulated: state of the system exactly what it does."),
    ] = False
    time_limit: options.TimeLimit = TIME_LIMIT
    block: Annotated[
        int | None,
        typer.Option(
            help="Attack a large table in blocks of at most so many people, each asked about on "
            "its own with --queries of its own.",
            min=1,
        ),
    ] = None
    jobs: options.Jobs = -1
    cluster: options.Cluster = None

    def rules(self, stated: Rules, opened: Opened) -> Rules:
        """What is stated of the system: by the options, or by itself where it is simulated."""
        if not self.state_rules:
            return stated
        assert isinstance(opened.target, Simulated)
        assert not isinstance(opened.target.mechanism, TwoSubsets)
        return opened.target.mechanism.rules


@dataclass(frozen=True)
class Judging:
    """What an audit is compared with, and how much may leak."""

    truth: Annotated[
        str | None,
        typer.Option(
            help="Who has what, read for scoring only: a file like that of --people, or generated "
            "people (default: the people, where they have the secret's column)."
        ),
    ] = None
    fail_above: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 if the advantage over guessing may be larger than this share (0 to "
            "1), by its interval; or, without the truth, if more people's values are proven or "
            "implied, or surely so many are guessed right."
        ),
    ] = None

    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Attack a twin with shuffled secrets too, and say what is left of the risk beyond "
            "luck.",
        ),
    ] = False

    report: Annotated[
        bool,
        typer.Option(
            "--report/--no-report",
            help="Write a report at the end; it decodes fewer answers too, for about 20 s.",
        ),
    ] = True

    def checked(self) -> float | None:
        """How much may leak."""
        if self.fail_above is not None and not 0 <= self.fail_above <= 1:
            raise InputError(f"--fail-above is {self.fail_above:g}; choose a share from 0 to 1")
        return self.fail_above

    def check_without(self, secret: Secret) -> None:
        """Raise where what is wanted takes the truth, which is not there."""
        if self.control:
            raise InputError("--control compares with the truth; name a file of it with --truth")
        if self.fail_above is not None and not isinstance(secret, Bit):
            raise InputError(
                "--fail-above compares with the truth, but the people have no column "
                f"{secret.column!r}; leave it out, add the column, or name a file with --truth"
            )

    def twin(self, result: AuditResult, decoder: Decoder, seed: int) -> Control | None:
        """What the attack gets right by luck, on a twin of the system; missing unless wanted."""
        if not self.control:
            return None
        with console.waiting("attacking a twin"):
            return control(result, decoder, seed)

    def known(self, people: People, id_column: str | None) -> People:
        """Those whose truth is known: the people themselves, unless a file says."""
        if self.truth is None:
            return people
        return options.people_from(self.truth, id_column, None)


@needs({**target_needs("TARGET"), "--state-rules": {"TARGET": IN_PROCESS}, **BLOCKS})
def audit(
    context: typer.Context,
    target: Annotated[
        TargetWord, typer.Argument(help=TARGET_HELP, parser=read_target, metavar="TARGET")
    ],
    who: options.Who,
    questions: Questions,
    simulation: Simulation,
    release: Release,
    live: Live,
    stated: StatedRules,
    decoding: Decoding,
    judging: Judging,
    secret: options.OpenSecret = None,
    seed: options.Seed = 0,
    folder: Annotated[
        Path, typer.Option(help="Where the files go; an audit there is resumed.")
    ] = Path("audit"),
    json: options.Json = False,
) -> None:
    """Plan, ask, solve and score in one go; exit code 1 when more leaks than is allowed."""
    fail_above, rules = judging.checked(), stated.rules()
    people = people_asked(target, who, live, questions.columns, bool(secret), questions.dry_run)
    answers = judging.known(people, who.id_column)
    named = answers.named(_given(secret, people))
    values = len(named.conditions)
    if not answers.knows(named):
        judging.check_without(named)
    check_given(context, BY_SECRET, {"the secret": f"a {type(named).__name__.lower()}"})
    systems = Systems(simulation, release, live, dry_run=questions.dry_run)
    if decoding.block is not None:
        blockwise = Blockwise(target, questions, systems, rules, decoding, judging, seed, folder)
        raise typer.Exit(FAILED if blockwise.run(people, answers, named, json) else 0)
    probed = questions.probed(target, people, systems, folder, seed)
    systems = systems if probed is None else probed.seen(systems, target)
    snaps = not target.is_live or live.system_at(target).snaps
    plan = questions.plan(people, probed, snaps, seed)
    opened = systems.open(target, people, named, plan, seed)
    rules = decoding.rules(rules, opened)
    by_table = asked_by_table(opened, plan)
    asking = questions.asking(by_table, probed, named, seed)
    count = len(plan) * values
    if target.is_live or questions.dry_run:
        show(opened, plan, asking.order(count).tolist(), min(count, asking.most or count))
    if questions.dry_run:
        _sent_nothing(opened, json)
        return
    opened.keep_salt()
    keeping = Keeping(folder, opened.about, live.authorised_by)
    with console.stages("asking", "decoding") as (asked, decoded):
        decoder = decoder_for(named, seed, rules, time_limit=decoding.time_limit, progress=decoded)
        result = run_audit(
            people,
            secret=named,
            target=opened.target,
            queries=plan,
            asking=asking,
            keeping=keeping,
            truth=answers,
            decoder=decoder,
            progress=asked,
            outlook=lambda share: asked.note(f"{percent(share)} expected right so far"),
        )
    nothing = nothing_shown(result, is_live=target.is_live)
    twin = judging.twin(result, decoder, seed) if nothing is None else None
    if judging.report:
        _report(result, keeping, judging, twin, probed, seed, nothing)
    if nothing is not None:
        raise NoResult(nothing)
    if not json:
        _tell(result, asking, opened.about, folder, probed)
        _tell_besides(twin, folder if judging.report else None)
        warn_of_suppression(opened, result.transcript)
    failed = fail_above is not None and result.leaks_more_than(fail_above)
    if json:
        record = _record(result, opened.about, folder, failed, probed, by_table)
        console.print_json(record if twin is None else {**record, "control": twin.record()})
    elif fail_above is not None:
        console.say(result.verdict_in_words(fail_above))
    if failed:
        raise typer.Exit(FAILED)


def _given(secret: str | None, people: People) -> str:
    """What is secret; without it, what there is to choose from is said."""
    if secret is None:
        columns = clean(", ".join(people.all_columns))
        raise InputError(f"say what is secret, like --secret \"status = 'C'\"; there is {columns}")
    return secret


def _sent_nothing(opened: Opened, json: bool) -> None:
    console.remark("Nothing was sent (--dry-run).")
    if json:
        console.print_json({"system": opened.about, "sent": 0})


def _report(
    result: AuditResult,
    keeping: Keeping,
    judging: Judging,
    twin: Control | None,
    probed: Probed | None,
    seed: int,
    nothing: str | None,
) -> None:
    """Write the record of an audit and its report; without the extra, all of it but the page."""
    notes = Notes(
        keeping.system,
        keeping.authorised_by,
        seed,
        judging.fail_above,
        twin,
        probed.asked if probed else 0,
        nothing or "",
    )
    with console.progress("reporting") as reported:
        write_record(keeping.folder, record_of(result, notes, reported))
    try:
        write_files(read_report(keeping.folder), keeping.folder)
    except MissingExtra as error:
        console.remark(f"No page: {error}; then run countleak report {keeping.folder}")


def _record(
    result: AuditResult,
    about: str,
    folder: Path,
    failed: bool,
    probed: Probed | None,
    by_table: bool,
) -> dict[str, Any]:
    asked = statements(result.transcript, by_table=by_table) + (probed.asked if probed else 0)
    basis = result.guess.basis
    return {
        "folder": str(folder),
        "system": about,
        "secret": str(result.secret),
        "family": result.transcript.queries.family.name,
        "queries": asked,
        "probe": None if probed is None else asdict(probed),
        "answers": len(result.transcript),
        "accuracy": None,
        "interval": None,
        "baseline": None,
        "confidence": result.confidence,
        "proven": int(result.guess.proven.sum()),
        "implied": int(result.guess.implied.sum()),
        "stated": list(basis.stated),
        "inferred": list(basis.inferred),
        "assuming": basis.assuming,
        "misfit": basis.misfit,
        "reached": result.steps[-1].reached,
        "refused": result.refused,
        "steps": [
            {"queries": len(step.transcript), "confidence": step.confidence}
            for step in result.steps
        ],
        **({} if result.score is None else result.score.record()),
        "advantage": result.advantage,
        "failed": failed,
    }


def _tell_besides(twin: Control | None, reported: Path | None) -> None:
    if twin is not None:
        console.say(str(twin))
    if reported is not None:
        console.say(files_in_words(reported))


def _tell(
    result: AuditResult, asking: Asking, about: str, folder: Path, probed: Probed | None
) -> None:
    if probed is not None:
        console.say(str(probed))
    console.say(f"Asked: {about}")
    console.say(str(result))
    if predicted := predicted_in_words(result.guess, int(result.transcript.released.sum())):
        console.say(f"{predicted}.")
    if result.steps[-1].reached and asking.until is not None:
        asked = len(result.transcript)
        console.say(f"Stopped after {asked} queries: {percent(asking.until)} was wanted.")
    console.say(f"Files in {folder}/: queries.jsonl, answers.jsonl, guess.jsonl")
