"""Everything `countleak reproduce` can run, in the order of the paper."""

from countleak.experiments import feasibility, precision, presence, table_1

CATALOGUE = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (table_1, precision, presence, feasibility)
}
