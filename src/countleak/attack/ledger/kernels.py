"""The compiled loop of the propagation: what every row leaves of its cells."""

import numpy as np

from countleak.attack.solvers.machine import compiled


@compiled()
def sweep(starts, members, row_low, row_high, low, high, most_sweeps):
    """Shrink ``low`` and ``high`` in place by every row in turn; False where nothing is left.

    Row i adds up the cells ``members[starts[i]:starts[i + 1]]``.
    """
    for _ in range(most_sweeps):
        moved = False
        for row in range(row_low.size):
            start, end = starts[row], starts[row + 1]
            least, most, open_cells = 0.0, 0.0, 0
            for at in range(start, end):
                least += low[members[at]]
                if high[members[at]] == np.inf:
                    open_cells += 1
                else:
                    most += high[members[at]]
            if least > row_high[row] or (open_cells == 0 and most < row_low[row]):
                return False
            for at in range(start, end):
                cell = members[at]
                spare = row_high[row] - least + low[cell]
                others_open = open_cells - (1 if high[cell] == np.inf else 0)
                wanted = 0.0
                if others_open == 0:
                    others = most if high[cell] == np.inf else most - high[cell]
                    wanted = row_low[row] - others
                if spare < high[cell]:
                    if high[cell] == np.inf:
                        open_cells -= 1
                        most += spare
                    else:
                        most += spare - high[cell]
                    high[cell] = spare
                    moved = True
                if wanted > low[cell]:
                    least += wanted - low[cell]
                    low[cell] = wanted
                    moved = True
                if low[cell] > high[cell]:
                    return False
        if not moved:
            break
    return True
