"""`countleak lab sweep`: a map of one's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, options
from countleak.cli.option_rules import ABSENT, check_applies, needs
from countleak.errors import InputError
from countleak.lab.experiments.cells import cells
from countleak.lab.experiments.runner import Runner
from countleak.lab.experiments.sweep import FIELDS, Sweep, check_values, read_sweep
from countleak.lab.experiments.trials import Setting
from countleak.lab.figures.sweeps import draw_curves, draw_map

# Checked once the file and the flags are put together.
OF_A_GRID = {"--multiplier": {"--decoder": ("dini-*",)}}


@dataclass(frozen=True)
class Grid:
    """The grid: a field with several values is an axis of it."""

    n: Annotated[str | None, typer.Option(help="People, a list like 50,100.")] = None
    queries: Annotated[str | None, typer.Option(help="Queries, a list like 200,400,800.")] = None
    sigma: Annotated[
        str | None,
        typer.Option(
            help="Noise in people, a list like 1,2,4 (uniform: its bound; round: its base)."
        ),
    ] = None
    family: Annotated[str | None, typer.Option(help="digits, subsets, signs, or several.")] = None
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="diffix, gaussian, laplace, uniform, round, or several; or module:Class of your "
            "own, from the current folder."
        ),
    ] = None
    decoder: Annotated[
        str | None,
        typer.Option(
            help="auto, lp (the paper's, also called dmt), ls, bayes, robust, bounded, "
            "dini-vertex, dini-centre, dmt-integer, or several; or module:Class of your own."
        ),
    ] = None
    multiplier: Annotated[str | None, typer.Option(help="DiNi's B, a list like 2.5,3.")] = None
    trials: Annotated[int | None, typer.Option(help="Trials per cell (10).", min=1)] = None

    def over(self, planned: Sweep) -> Sweep:
        """The sweep of a file with these values in place of its own."""
        texts = {name: getattr(self, name) for name in FIELDS if hasattr(self, name)}
        given = {name: _values(name, text) for name, text in texts.items() if text is not None}
        values = {**planned.values, **check_values(given, "flags")}
        flags = {f"--{name}": value for name, value in {"decoder": "dmt", **values}.items()}
        check_applies(OF_A_GRID, [f"--{name}" for name in given], flags)
        return Sweep(planned.name, values, planned.repeats if self.trials is None else self.trials)


@needs({"--jobs": {"--cluster": ABSENT}})
def sweep(
    grid: Grid,
    file: Annotated[
        Path | None, typer.Argument(help="TOML file with the grid; flags below override it.")
    ] = None,
    out: options.RunFolder = Path("runs"),
    jobs: options.Jobs = -1,
    cluster: options.Cluster = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Run a grid of simulated attacks of your own and draw the map."""
    planned = grid.over(read_sweep(file) if file else Sweep("sweep", {}))
    if not planned.axes:
        raise InputError(
            "the grid is a single point; give several values of one field at least, like "
            "--sigma 1,2,4"
        )
    require_drawing()
    with console.progress(planned.name) as report:
        results = Runner(out, jobs, cluster).run(planned.trials(), Setting(seed), report)
    records = [cell.record() for cell in cells(results, planned.axes)]
    figure = _draw(planned, records, out / "figures")
    if json:
        console.print_json({"rows": records, "figure": str(figure) if figure else None})
    else:
        console.print_table(records, f"{planned.name}, from simulated answers")
        if figure:
            console.say(f"Picture: {figure} (.png, .html beside it)")
        console.say(f"Trials: {out / 'trials.jsonl'}")


def _values(name: str, text: str) -> list[Any]:
    kind = FIELDS[name]
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} {text!r}: write a list like 1,2,4") from None


def _draw(planned: Sweep, records: list[dict[str, Any]], folder: Path) -> Path | None:
    """A heat map of noise against queries where both vary, else a curve along the first axis."""
    stem, title = folder / planned.name, f"{planned.name}: {planned.fixed}"
    # Sigma is drawn under the name of what it is.
    axes = [planned.size if axis == "sigma" else axis for axis in planned.axes]
    rows = [
        {planned.size if key == "sigma" else key: value for key, value in record.items()}
        for record in records
    ]
    order = ["queries", "n", planned.size, "multiplier"]
    numeric = [axis for axis in axes if axis in order]
    if len(axes) == len(numeric) == 2:
        across, up = sorted(numeric, key=order.index)
        draw_map(rows, across, up, title, stem)
    elif numeric and len(axes) <= 2:
        series = next((axis for axis in axes if axis != numeric[0]), None)
        named = rows if series else [{**row, "sweep": planned.name} for row in rows]
        draw_curves(named, [], numeric[0], series or "sweep", (), title, stem)
    else:
        return None
    return folder / f"{planned.name}.svg"
