"""The ONS's cell key perturbation over a CSV file: one table per question, of those meant or not.

pip install -r cell_key_table.txt
"""

from importlib.metadata import version

import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
from cell_key_perturbation.utils.generate_record_key import generate_random_rkey
from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule
from questions import Counter, People, Question, arguments, serve

MEANT = "meant"


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--threshold", type=int, default=10, help="lower counts are hidden")
    parser.add_argument(
        "--ptable",
        help="CSV file of the perturbations: pcv, ckey, pvalue (default: the package's own, which "
        "rounds to multiples of 5)",
    )
    words = parser.parse_args()
    ptable = generate_ptable_10_5_rule() if words.ptable is None else pd.read_csv(words.ptable)

    def open_engine(people: People) -> Counter:
        keyed = generate_random_rkey(pd.DataFrame(people.columns), int(ptable["ckey"].max()))
        keyed[MEANT] = False

        def count(question: Question) -> float | None:
            rows = list(question.rows)
            if not rows:
                return None
            keyed[MEANT] = False
            keyed.loc[rows, MEANT] = True
            table = create_perturbed_table(
                keyed, ptable, [], [MEANT], "record_key", threshold=words.threshold
            )
            found = table.loc[table[MEANT], "count"].iloc[0]
            return None if pd.isna(found) else float(found)

        return count

    engine = f"cell-key-perturbation {version('cell-key-perturbation')}"
    ptable_name = words.ptable or "10-5 rule"
    serve(f"{engine}, {ptable_name}, threshold {words.threshold}", words.people, open_engine)


if __name__ == "__main__":
    main()
