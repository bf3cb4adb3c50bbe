"""`countleak lab`: the paper's experiments, maps of one's own, and measurements against peers."""

from countleak.cli.verbs import make_group

SPEED, ACCURACY = "countleak.cli.lab.speed", "countleak.cli.lab.accuracy"

lab = make_group(
    "lab",
    "Reproduce the paper, draw maps of your own, and measure countleak against its peers.",
    {
        "reproduce": (
            "countleak.cli.lab.reproduce",
            "Run an experiment of the paper and show it beside what the paper says.",
        ),
        "sweep": (
            "countleak.cli.lab.sweep",
            "Run a grid of simulated attacks of your own and draw the map.",
        ),
        "bench": (
            "countleak.cli.lab",
            "Measure countleak against named peers, side by side in one run.",
        ),
    },
)

bench = make_group(
    "bench",
    "Measure countleak against named peers, side by side in one run.",
    {
        "solvers": (
            SPEED,
            "Time the program from problem to certified solution, against all solvers.",
        ),
        "batch": (
            SPEED,
            "Time many answer vectors to one set of queries: one by one, and in one call.",
        ),
        "first-call": (
            SPEED,
            "Time the first solution in a fresh process: imports and the cached code included.",
        ),
        "sweep": (
            SPEED,
            "Time a sweep on several numbers of cores: throughput, overhead per trial, total cost.",
        ),
        "diffix": (
            SPEED,
            "Time the rebuilt Diffix: the attack on a bank, and questions over many rows.",
        ),
        "serve": (
            SPEED,
            "Time digit queries through the server, in process, and on a plain PostgreSQL.",
        ),
        "ask": (
            SPEED,
            "Time countleak beside a plain loop that asks the same questions of the same server.",
        ),
        "timing": (
            SPEED,
            "Tell suppressed groups from empty sets by the time the rebuilt Diffix takes.",
        ),
        "decoders": (
            ACCURACY,
            "Compare the decoders' accuracy, calibration and speed with each other and the limits.",
        ),
        "honesty": (
            "countleak.cli.lab.honesty",
            "Check that expectations, claims and proofs are true on systems nobody tuned for.",
        ),
        "questions": (
            ACCURACY,
            "Count the queries that choosing them saves, against random order from the same pool.",
        ),
        "budget": (
            ACCURACY,
            "Compare the accuracy `countleak budget` predicts with simulated attacks.",
        ),
        "categories": (
            ACCURACY,
            "Decode all four loan statuses together, and one by one: accuracy beside the baseline.",
        ),
        "exact": (
            ACCURACY,
            "Find how few exact counts are enough to solve for everyone, and to prove it.",
        ),
        "scale": (
            "countleak.cli.lab.scale",
            "Measure time, memory and accuracy from a thousand people upwards, beside its peers.",
        ),
        "tables": (
            "countleak.cli.lab.tables",
            "Measure what published tables give away together, beside the tools that check them.",
        ),
        "log": (
            "countleak.cli.lab.log",
            "Time the leak meter on a long log, and count the trackers it catches and its false "
            "alarms.",
        ),
    },
    listed={
        "Speed": (
            "solvers",
            "batch",
            "first-call",
            "sweep",
            "diffix",
            "serve",
            "ask",
            "timing",
            "scale",
        ),
        "Accuracy": ("decoders", "honesty", "questions", "budget", "categories", "exact"),
        "Published tables": ("tables",),
        "Query logs": ("log",),
    },
)
