"""`countleak lab reproduce`: the paper's experiments by name, or all of them on one page."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, options
from countleak.cli.option_rules import ABSENT, GIVEN, needs
from countleak.errors import InputError
from countleak.lab.experiments import Claim, Experiment, Outcome, Settings
from countleak.lab.experiments.comparison import compare, read_paper_results
from countleak.lab.experiments.runner import Runner
from countleak.lab.reproduction import CATALOGUE, draw_figures, write_page

# A table of more rows is for machines; people get the claims and the figures.
MOST_ROWS = 60
# Trials per point for a first look.
QUICK = 2
FEW = f"a quick run of {QUICK} trials per point, which decides little"
SIMULATED = ("all", *(each.name for each in CATALOGUE.values() if each.answers == "simulated"))
# Experiments on answers that were recorded, which can be decided and solved in several ways.
RECORDED = ("all", *(each.name for each in CATALOGUE.values() if each.answers == "recorded"))


@dataclass(frozen=True)
class Recorded:
    """What the authors recorded, and how it is decided and solved."""

    data: Annotated[
        Path | None,
        typer.Option(help="Folder `data` of the authors' repository, with recorded answers."),
    ] = None
    paper_results: Annotated[
        Path | None, typer.Option(help="The authors' own results (CSV), to lay over ours.")
    ] = None
    arithmetic: options.ArithmeticWord = options.Arithmetics.FLOAT64
    postgres: options.PostgresUrl = None
    without_fragile: Annotated[
        bool,
        typer.Option(
            "--without-fragile",
            help="table-1: leave out queries that float64 and exact arithmetic decide apart.",
        ),
    ] = False
    solver: options.SolverWord = "auto"


@needs(
    {
        "--data": {"NAME": GIVEN},
        "--paper-results": {"NAME": GIVEN},
        "--arithmetic": {"NAME": RECORDED},
        "--postgres": {"NAME": RECORDED},
        "--without-fragile": {"NAME": ("all", "table-1")},
        "--solver": {"NAME": ("all", "table-1")},
        "--quick": {"NAME": SIMULATED},
        "--jobs": {"NAME": GIVEN, "--cluster": ABSENT},
        "--cluster": {"NAME": GIVEN},
    }
)
def reproduce(
    recorded: Recorded,
    name: Annotated[
        str | None, typer.Argument(help="What to reproduce, or `all`; without it, the list.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"Simulated: only {QUICK} trials per point, for a first look; the claims that "
            "then disagree say so.",
        ),
    ] = False,
    out: options.RunFolder = Path("runs"),
    jobs: options.Jobs = -1,
    cluster: options.Cluster = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Run an experiment of the paper and show it beside what the paper says."""
    if name is None:
        _list(json)
        return
    if name != "all" and name not in CATALOGUE:
        raise InputError(f"there is no experiment {name!r}; choose all, {', '.join(CATALOGUE)}")
    data = recorded.data
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: no such folder")
    require_drawing()
    published = read_paper_results(recorded.paper_results) if recorded.paper_results else ()
    with options.arithmetic_from(recorded.arithmetic, recorded.postgres) as chosen:
        settings = Settings(
            data,
            seed,
            chosen,
            options.solver_from(recorded.solver),
            sound=recorded.without_fragile,
            postgres=recorded.postgres,
            runner=Runner(out, jobs, cluster, QUICK if quick else None),
        )
        wanted = _possible(settings) if name == "all" else [CATALOGUE[name]]
        outcomes = {experiment.name: _run(experiment, settings) for experiment in wanted}
    if quick:
        outcomes = {name: _hurried(outcome) for name, outcome in outcomes.items()}
    comparisons = compare(outcomes, published)
    figures = draw_figures(outcomes, published, out / "figures")
    if name == "all":
        page = write_page(
            outcomes, comparisons, figures, data, out / "reproduction.html", FEW if quick else ""
        )
    if json:
        record = {key: _json(outcome) for key, outcome in outcomes.items()}
        record["comparisons"] = {"claims": [asdict(claim) for claim in comparisons]}
        console.print_json(record if name == "all" else record[name])
    else:
        for experiment in wanted:
            _show(experiment, outcomes[experiment.name], brief=name == "all")
        _show_claims(comparisons)
        if figures:
            console.say(f"Figures in {out / 'figures'}/")
        if name == "all":
            console.say(f"All of it on one page: {page}")
    for outcome in outcomes.values():
        for text in outcome.remarks:
            console.remark(text)
    if quick:
        console.remark(f"This is {FEW}; run it again without --quick for the figures.")


def _possible(settings: Settings) -> list[Experiment]:
    """Every experiment, less those on recorded answers where there are none."""
    left_out = [e.name for e in CATALOGUE.values() if e.answers == "recorded" and not settings.data]
    if left_out:
        console.remark(f"Without --data, left out: {', '.join(left_out)}")
    return [e for e in CATALOGUE.values() if e.name not in left_out]


def _run(experiment: Experiment, settings: Settings) -> Outcome:
    with console.progress(experiment.name) as report:
        return experiment.run(settings, report)


def _hurried(outcome: Outcome) -> Outcome:
    """The outcome of few trials, whose claims may disagree by chance alone."""
    claims = (
        claim if claim.agrees else replace(claim, why=f"{claim.why}; and this is {FEW}")
        for claim in outcome.claims
    )
    return replace(outcome, claims=tuple(claims))


def _json(outcome: Outcome) -> dict[str, object]:
    record: dict[str, object] = {outcome.kind: [dict(record) for record in outcome.records]}
    if outcome.claims:
        record["claims"] = [asdict(claim) for claim in outcome.claims]
    return record


def _show(experiment: Experiment, outcome: Outcome, brief: bool) -> None:
    console.say(f"The paper ({experiment.name}): {experiment.claim}")
    if not brief and len(outcome.records) <= MOST_ROWS:
        console.print_table(outcome.records, f"Ours, from {experiment.answers} answers")
    _show_claims(outcome.claims)


def _show_claims(claims: Sequence[Claim]) -> None:
    for claim in claims:
        verdict = "agrees" if claim.agrees else f"does not agree ({claim.why})"
        console.say(f"  {claim.text}. Paper: {claim.paper}. Ours: {claim.ours}: {verdict}.")


def _list(json: bool) -> None:
    entries = [
        {"name": e.name, "answers": e.answers, "the_paper_says": e.claim}
        for e in CATALOGUE.values()
    ]
    if json:
        console.print_json({"experiments": entries})
    else:
        console.print_table(entries, "What can be reproduced: countleak lab reproduce NAME, or all")
