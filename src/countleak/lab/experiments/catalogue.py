"""What `countleak lab reproduce` can run, in the order of the paper, and what goes beyond it."""

from countleak.lab.experiments import (
    beyond,
    feasibility,
    figure_1,
    figure_2,
    figure_3,
    precision,
    presence,
    table_1,
)

CATALOGUE = {
    experiment.name: experiment
    for experiment in (
        table_1.EXPERIMENT,
        precision.EXPERIMENT,
        presence.EXPERIMENT,
        figure_1.EXPERIMENT,
        figure_2.EXPERIMENT,
        figure_3.EXPERIMENT,
        feasibility.EXPERIMENT,
        *beyond.EXPERIMENTS,
    )
}
