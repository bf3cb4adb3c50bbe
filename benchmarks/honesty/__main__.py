"""`python -m benchmarks.honesty`: whether decoders are honest on systems nobody tuned them for."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from benchmarks.clusters import Interval
from benchmarks.honesty.battery import SYSTEMS, system_named
from benchmarks.honesty.trials import AUTO, DECODERS, measure_honesty
from benchmarks.honesty.verdicts import Row, Verdict, conclude, judge
from benchmarks.start import main
from countleak.cli import console, options
from countleak.shares import rounded

FAILED = 1
MARK = "!"


def honesty(
    only: Annotated[
        list[str] | None, typer.Option(help="Run this system only; repeat for several.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Worlds per system.", min=2)] = 20,
    jobs: options.Jobs = 2,
    json: options.Json = False,
) -> None:
    """Check that expectations, claims and proofs are true on systems nobody tuned for."""
    systems = [system_named(name) for name in dict.fromkeys(only)] if only else [*SYSTEMS.values()]
    rows = []
    with console.progress("honesty") as report:
        for each in measure_honesty(systems, trials, jobs, report):
            rows.append(judge(each))
            console.remark(_line(rows[-1]))
    verdict = conclude(rows)
    if json:
        records = [_record(row) for row in rows]
        console.print_json({"trials": trials, "rows": records, "verdict": asdict(verdict)})
    else:
        _show(rows, verdict, trials)
    if verdict.failures:
        raise typer.Exit(FAILED)


def _line(row: Row) -> str:
    """A row that is done, in a line for whoever watches."""
    failing = ", ".join(dict.fromkeys(failure.figure for failure in row.failures))
    seconds = sum(row.seconds.values())
    return (
        f"{row.system}: {f'fails ({failing})' if failing else 'passes'}, {seconds:.1f} s per world"
    )


def _record(row: Row) -> dict[str, Any]:
    return {**asdict(row), "failures": [asdict(failure) for failure in row.failures]}


def _show(rows: list[Row], verdict: Verdict, trials: int) -> None:
    console.print_table(
        [_cells(row) for row in rows],
        f"Share right, and how honest auto is about it ({trials} simulated worlds per system)",
    )
    for row in rows:
        for failure in row.failures:
            console.say(f"{MARK} {row.system}: {failure.reason}")
    for row in rows:
        for reason, worlds in row.reasons.items():
            console.say(f"{row.system}: probabilities withdrawn in {worlds} worlds: {reason}")
        for decoder, errors in row.without_result.items():
            for error, worlds in errors.items():
                console.say(f"{row.system}: no result of {decoder} in {worlds} worlds: {error}")
    console.say(
        f"{verdict.rows - len(verdict.failing)} of {verdict.rows} systems pass; probabilities "
        f"withdrawn in {len(verdict.withdrawn)}; {verdict.proven} proven, "
        f"{verdict.proven_wrong} of them wrong."
    )
    console.say("; ".join(verdict.failures) + "." if verdict.failures else "All pass.")


def _cells(row: Row) -> dict[str, str]:
    failing = {failure.figure for failure in row.failures}

    def marked(text: str, figure: str) -> str:
        return f"{text}{MARK}" if figure in failing else text

    shares = {name: _share(row.accuracy.get(name)) for name in DECODERS}
    shares[AUTO] = marked(shares[AUTO], AUTO)
    gap = "-" if row.gap is None else f"{row.gap.estimate:+.3f}".replace("0.", ".", 1)
    return {
        "system": row.system,
        "guess": _short(row.baseline),
        **shares,
        "gap": marked(gap, "gap"),
        "cal": "-" if row.calibration_error is None else _short(row.calibration_error),
        **{
            f"at {claims.level:.0%}": marked(
                f"{claims.made} {_share(claims.precision)}", f"{claims.level:.0%}"
            )
            for claims in row.claims
        },
        "off": marked(str(row.withdrawn), "withdrawn"),
        "proven": marked(str(row.proven), "proven"),
        "s": f"{row.seconds.get(AUTO, 0.0):.1f}",
    }


def _share(interval: Interval | None) -> str:
    return "-" if interval is None else _short(interval.estimate)


def _short(share: float) -> str:
    """Three digits; only all is 1.000."""
    return rounded(share).removeprefix("0")


if __name__ == "__main__":
    main("honesty")
