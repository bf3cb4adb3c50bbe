"""Tables of a CSV file by the ONS's cell-key-perturbation, run in that package's own environment.

PEOPLE.csv PTABLE.csv THRESHOLD; each line asks for the table by a column, crossed with whether
another column has one of some values: {"id": 1, "by": "job", "column": "town", "values": ["T1"]}.
The reply has the counts of both halves by label, null where they are not shown. In place of a
PTABLE.csv, "own" is the table of perturbations that the package makes itself.
"""

import json
import os
import sys

import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
from cell_key_perturbation.utils.generate_record_key import generate_random_rkey
from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule

HALF = "half"


def main() -> None:
    """Answer until there are no more lines."""
    people, ptable_file, threshold = sys.argv[1:]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # The package prints what it does.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    own = ptable_file == "own"
    ptable = generate_ptable_10_5_rule() if own else pd.read_csv(ptable_file)
    keyed = generate_random_rkey(pd.read_csv(people), int(ptable["ckey"].max()))
    for line in sys.stdin:
        asked = json.loads(line)
        keyed[HALF] = keyed[asked["column"]].isin(asked["values"])
        table = create_perturbed_table(
            keyed, ptable, [], [asked["by"], HALF], "record_key", threshold=int(threshold)
        )
        halves: dict[str, dict[str, int | None]] = {"in": {}, "out": {}}
        for label, half, count in zip(table[asked["by"]], table[HALF], table["count"], strict=True):
            halves["in" if half else "out"][label] = None if pd.isna(count) else int(count)
        print(json.dumps({"id": asked["id"], **halves}), file=answers, flush=True)


if __name__ == "__main__":
    main()
