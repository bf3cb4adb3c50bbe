"""How far the attack goes: time, memory and accuracy as the people grow in number.

Hashed subsets, as many counts as people, and normal noise of SD sqrt(n)/10, which leaves about the
same accuracy at every n. Each run is a process of its own, so that its memory is its own. Beside it
stand HiGHS, its PDLP and scipy's lsq_linear on the same answers, until one of them would take too
long.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from json import dumps, loads
from math import sqrt
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.gpu import measure_gpu
from benchmarks.start import main, whole_from
from countleak.attack.decoders.auto import FEWEST_PASSED
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.solvers.amp import MessagePassing
from countleak.audit.budget.evolution import (
    Attack,
    LeastAbsolute,
    LeastSquares,
    Posterior,
    Recursion,
    fixed_point,
)
from countleak.audit.budget.inverse import sigma_for
from countleak.audit.report.drawing import MISSED, QUIET, RECOVERED, altair, require_drawing, save
from countleak.audit.scores import wilson
from countleak.audit.targets.simulated import Gaussian
from countleak.cli import console, options
from countleak.errors import NoPrediction, NoResult
from countleak.progress import Progress
from countleak.shares import percent

# The noise's SD is the square root of the people over this.
LAW = 10.0
# Time grows by less than the cube of the people: what would take longer than the limit is left out.
WORST_GROWTH = 3.0
# Seconds of processor time for imports, compiling and the answers.
SETTING_UP = 60
LEAKS, SIZES = 0.95, tuple(int(10 ** (k / 2)) for k in range(4, 15))
PREDICTED, LAW_LINE = "95% leak, by state evolution", "a multiple of the square root of n"
ROOT = Path(__file__).parent.parent
ALONE = "import sys; from benchmarks.scale import run_alone; run_alone(*sys.argv[1:])"
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One method on ``n`` people and as many counts: ``seconds`` of processor time, memory in MiB.

    On several cores their seconds add up; ``elapsed`` are those by the clock, which on a busy
    machine say more about the others. ``predicted`` is by state evolution, ``expected`` by the
    method's own probabilities, each missing where there is none; ``interval`` is Wilson's.
    """

    method: str
    n: int
    sigma: float
    seconds: float
    elapsed: float
    memory: float
    accuracy: float
    interval: tuple[float, float]
    predicted: float | None
    expected: float | None


@dataclass(frozen=True)
class Leak:
    """The SD of noise at which ``n`` counts of random halves of n people leak 95%.

    ``attained`` is what message passing got right there, where it was tried.
    """

    n: int
    sigma: float
    attained: float | None = None


def _messages(rows: HashedRows, answers: Vector) -> Vector:
    passed = MessagePassing().solve(rows, answers)
    if not passed.settled:
        raise NoResult(passed.doubt)
    return passed.probability


def _box(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.solvers.box import BoxSquares

    return BoxSquares(1e-4).solve(rows, answers).x


def _first_order(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.solvers.pdhg import FirstOrder

    return _of(FirstOrder(1e-3).solve(rows, answers).x)


def _highs(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.programs import Problem
    from countleak.attack.solvers.highs import Highs

    return _of(Highs(time_limit=1e6).solve(Problem(rows.dense(), answers)).x)


def _highs_pdlp(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.programs import Problem
    from countleak.attack.solvers.highs import dual_program

    options = {"solver": "pdlp", "pdlp_optimality_tolerance": 1e-3, "threads": 1}
    model = dual_program(Problem(rows.dense(), answers), options)
    model.run()
    return np.array(model.getSolution().row_dual)


def _lsq_linear(rows: HashedRows, answers: Vector) -> Vector:
    from scipy.optimize import lsq_linear

    return np.asarray(lsq_linear(rows.dense().astype(np.float64), answers, (0, 1), tol=1e-4).x)


def _of(x: Vector | None) -> Vector:
    if x is None:
        raise NoResult("the program has no solution")
    return x


# What each attains by state evolution, where that is known.
METHODS: dict[str, tuple[Callable[[HashedRows, Vector], Vector], Recursion]] = {
    "message passing": (_messages, Posterior()),
    "least squares by products": (_box, LeastSquares()),
    "least residuals by products": (_first_order, LeastAbsolute()),
    "HiGHS": (_highs, LeastAbsolute()),
    "HiGHS PDLP": (_highs_pdlp, LeastAbsolute()),
    "scipy lsq_linear": (_lsq_linear, LeastSquares()),
}


def measure(
    sizes: Sequence[int], limit: float, seed: int, progress: Progress, methods: Sequence[str] = ()
) -> list[Row]:
    """Every method at every size, as long as it is expected to take ``limit`` s or less."""
    rows: list[Row] = []
    tasks = [(name, n) for name in methods or METHODS for n in sorted(sizes)]
    for done, (name, n) in enumerate(tasks):
        progress(done, len(tasks))
        last = max((row for row in rows if row.method == name), key=lambda r: r.n, default=None)
        missing = last is None and n > min(sizes)
        if missing or (last and last.seconds * (n / last.n) ** WORST_GROWTH > 10 * limit):
            continue
        if (row := _run(name, n, limit, seed)) is not None:
            rows.append(row)
    progress(len(tasks), len(tasks))
    return rows


def _run(name: str, n: int, limit: float, seed: int) -> Row | None:
    """One run in a process of its own; None if it took longer than ``limit``, or failed."""
    words = [sys.executable, "-c", ALONE, name, str(n), str(seed), str(int(limit) + SETTING_UP)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    if ended.returncode:
        return None
    record = loads(ended.stdout.splitlines()[-1])
    return Row(**{**record, "interval": tuple(record["interval"])})


def run_alone(name: str, n: str, seed: str, limit: str) -> None:
    """Write one run of a process that ends after ``limit`` seconds, as a line of JSON."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
    sys.stdout.write(dumps(asdict(run_here(name, int(n), int(seed)))) + "\n")


def run_here(name: str, n: int, seed: int) -> Row:
    """The same in this process."""
    method, recursion = METHODS[name]
    sigma = sqrt(n) / LAW
    rows, bits, answers = simulated(n, sigma, seed)
    # What Numba compiles, or reads from its cache, is no part of the measurement.
    small = simulated(200, sigma, seed)
    method(small[0].take(np.arange(180)), small[2][:180])
    begin, busy = perf_counter(), process_time()
    found = method(rows, answers)
    seconds, elapsed = process_time() - busy, perf_counter() - begin
    right = (found > 0.5) == bits
    expected = float(np.maximum(found, 1 - found).mean()) if name == "message passing" else None
    memory, predicted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, None
    with suppress(NoPrediction):
        predicted = fixed_point(Attack(n, n, Gaussian(sigma)), recursion).accuracy
    return Row(
        name, n, sigma, seconds, elapsed, memory, float(right.mean()), wilson(int(right.sum()), n),
        predicted, expected,
    )  # fmt: skip


def simulated(n: int, sigma: float, seed: int) -> tuple[HashedRows, Vector, Vector]:
    """n hashed subsets of n people, their bits, and noisy counts."""
    rng = np.random.default_rng([seed, n])
    rows = HashedRows(int(rng.integers(2**32)), np.arange(n), np.arange(n))
    bits = rng.integers(0, 2, n).astype(np.float64)
    return rows, bits, np.rint(rows.dot(bits) + rng.normal(0, sigma, n))


def leaks(largest: int, seed: int, progress: Progress) -> list[Leak]:
    """The noise that still leaks 95%, by state evolution; tried by message passing up to a size."""
    found: list[Leak] = []
    for n in SIZES:
        progress(len(found), len(SIZES))
        found.append(_leak(n, FEWEST_PASSED <= n <= largest, seed))
    progress(len(SIZES), len(SIZES))
    return found


def _leak(n: int, tried: bool, seed: int) -> Leak:
    sigma = sigma_for(Attack(n, n, Gaussian(1.0)), Posterior(), LEAKS)
    if not tried:
        return Leak(n, sigma)
    shares = []
    for world in range(max(1, 2000 // n)):
        rows, bits, answers = simulated(n, sigma, seed + world)
        # Settled or not: it is the bits that count here.
        found = MessagePassing().solve(rows, answers).probability
        shares.append(float(((found > 0.5) == bits).mean()))
    return Leak(n, sigma, float(np.mean(shares)))


def exponent(rows: Sequence[Row], method: str, what: str) -> float | None:
    """The k of seconds ~ n^k, or of memory, over its three largest sizes."""
    mine = [row for row in rows if row.method == method]
    points = [(row.n, getattr(row, what)) for row in mine][-3:]
    if len(points) < 2:
        return None
    n, values = np.array(points).T
    return float(np.polyfit(np.log(n), np.log(values), 1)[0])


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
    gpu: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Measure what the GPU does instead, up to so many people (16777216: 3 minutes).",
        ),
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure time, memory and accuracy from a thousand people upwards, beside its peers."""
    if gpu is not None:
        measure_gpu(gpu)
        return
    people = [whole_from(part, "--sizes") for part in sizes.split(",")]
    for path in (picture, law):
        if path:
            require_drawing(path)
    with console.progress("scale") as report:
        rows = measure(people, limit, seed, report)
    found = []
    if law:
        with console.progress("scale, noise") as report:
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


def draw_scale(rows: Sequence[Row], path: Path) -> None:
    """Draw each method's time and memory against people, on logarithmic scales."""
    alt = altair()
    panels = []
    for what, title in (("seconds", "seconds of processor time"), ("memory", "memory, MiB")):
        points = [
            {"n": row.n, "value": getattr(row, what), "method": _legend(rows, row.method)}
            for row in rows
        ]
        log = alt.Scale(type="log", nice=False)
        panels.append(
            alt.Chart(alt.Data(values=points))
            .mark_line(point=True, strokeWidth=2.5)
            .encode(
                x=alt.X("n:Q", scale=log, title="people, and as many counts"),
                y=alt.Y("value:Q", scale=log, title=title),
                color=alt.Color(
                    "method:N", title=None, sort=None, legend=alt.Legend(labelLimit=400)
                ),
            )
            .properties(width=300, height=280)
        )
    save(alt.hconcat(*panels).properties(title="From answers to secrets"), path)


def _legend(rows: Sequence[Row], method: str) -> str:
    k = exponent(rows, method, "seconds")
    return method if k is None else f"{method}, ~ n^{k:.1f}"


def draw_leaks(found: Sequence[Leak], path: Path) -> None:
    """Draw the noise at which 95% still leak against people, with the square-root law beside it."""
    alt = altair()
    log = alt.Scale(type="log", nice=False)
    last, layers = found[-1], []
    # The law lies under the line: they are hard to tell apart.
    for what, width, opacity in ((LAW_LINE, 9.0, 0.35), (PREDICTED, 2.5, 1.0)):
        values = [
            {
                "n": leak.n,
                "sigma": leak.sigma if what == PREDICTED else last.sigma * sqrt(leak.n / last.n),
                "what": what,
            }
            for leak in found
        ]
        layers.append(
            alt.Chart(alt.Data(values=values))
            .mark_line(strokeWidth=width, opacity=opacity)
            .encode(
                x=alt.X("n:Q", scale=log, title="people, and as many counts"),
                y=alt.Y("sigma:Q", scale=log, title="SD of the noise, in people"),
                color=alt.Color(
                    "what:N",
                    title=None,
                    scale=alt.Scale(domain=[PREDICTED, LAW_LINE], range=[RECOVERED, QUIET]),
                    legend=alt.Legend(
                        labelLimit=400, symbolType="stroke", symbolOpacity=1, orient="bottom"
                    ),
                ),
            )
        )
    tried = [
        {"n": leak.n, "sigma": leak.sigma, "share": f"{leak.attained:.1%}"}
        for leak in found
        if leak.attained is not None
    ]
    marks = alt.Chart(alt.Data(values=tried)).encode(
        x=alt.X("n:Q", scale=log), y=alt.Y("sigma:Q", scale=log)
    )
    points = marks.mark_point(filled=True, size=60, color=MISSED)
    shares = marks.mark_text(dy=-10, dx=-8, align="right", color=QUIET).encode(text="share:N")
    title = "Noise that still leaks 95%; dots: simulated, what message passing got right"
    save(alt.layer(*layers, points, shares).properties(width=460, height=320, title=title), path)


if __name__ == "__main__":
    main("scale")
