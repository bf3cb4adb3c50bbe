"""`countleak lab`: the paper's experiments, and maps of one's own."""

from countleak.cli.verbs import make_group

lab = make_group(
    "lab",
    "Reproduce the paper, and draw maps of your own.",
    {
        "reproduce": (
            "countleak.cli.lab.reproduce",
            "Run an experiment of the paper and show it beside what the paper says.",
        ),
        "sweep": (
            "countleak.cli.lab.sweep",
            "Run a grid of simulated attacks of your own and draw the map.",
        ),
    },
)
