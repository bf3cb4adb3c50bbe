"""`countleak lab bench scale`: how far the attack goes."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, options
from countleak.lab.bench.scale import exponent, leaks, measure
from countleak.lab.figures.scale import draw_leaks, draw_scale
from countleak.shares import percent


def scale(
    sizes: Annotated[
        str, typer.Option(help="People, a list like 1000,10000; as many counts of each.")
    ] = "1000,2000,4000,8000,16000,32000,65536,131072",
    limit: Annotated[
        float,
        typer.Option(help="Seconds of processor time that a run may take; a method ends there."),
    ] = 180.0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw time and memory to this file (.svg or .png).")
    ] = None,
    law: Annotated[
        Path | None,
        typer.Option(help="Draw the noise that still leaks 95% against people to this file."),
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure time, memory and accuracy from a thousand people upwards, beside its peers."""
    people = [options.whole_from(part, "--sizes") for part in sizes.split(",")]
    for path in (picture, law):
        if path:
            require_drawing(path)
    with console.progress("bench scale") as report:
        rows = measure(people, limit, seed, report)
    found = []
    if law:
        with console.progress("bench scale, noise") as report:
            found = leaks(max(people), seed, report)
        draw_leaks(found, law)
    if picture:
        draw_scale(rows, picture)
    if json:
        console.print_json(
            {"rows": [asdict(row) for row in rows], "leaks": [asdict(leak) for leak in found]}
        )
        return
    console.print_table(
        [
            {
                "method": row.method,
                "n = m": row.n,
                "noise SD": f"{row.sigma:.1f}",
                "processor s": f"{row.seconds:.2f}",
                "clock s": f"{row.elapsed:.2f}",
                "MiB": f"{row.memory:.0f}",
                "right": percent(row.accuracy),
                "95% interval": " to ".join(percent(end) for end in row.interval),
                "predicted": "" if row.predicted is None else percent(row.predicted),
                "expected": "" if row.expected is None else percent(row.expected),
            }
            for row in rows
        ],
        "Hashed subsets, simulated; predicted by state evolution, expected by own probabilities",
    )
    for method in dict.fromkeys(row.method for row in rows):
        times, memory = (exponent(rows, method, what) for what in ("seconds", "memory"))
        if times is not None and memory is not None:
            console.say(f"{method}: time ~ n^{times:.2f}, memory ~ n^{memory:.2f}")
    for leak in found:
        tried = "" if leak.attained is None else f"; simulated: {percent(leak.attained)}"
        console.say(f"{leak.n} people: noise of SD {leak.sigma:.3g} leaks 95%{tried}")
