"""diffprivlib's count_nonzero over a CSV file: every count spends epsilon of a total.

pip install -r diffprivlib_tools.txt
"""

from importlib.metadata import version

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.tools import count_nonzero
from diffprivlib.utils import BudgetError
from questions import Counter, People, Question, Refused, arguments, serve


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0, help="spent by every question")
    parser.add_argument(
        "--total", type=float, default=float("inf"), help="epsilon of all questions"
    )
    words = parser.parse_args()
    accountant = BudgetAccountant(epsilon=words.total, delta=0)

    def open_engine(people: People) -> Counter:
        size = len(people.columns[people.key[0]])

        def count(question: Question) -> float:
            meant = np.zeros(size, dtype=bool)
            meant[list(question.rows)] = True
            try:
                return float(count_nonzero(meant, epsilon=words.epsilon, accountant=accountant))
            except BudgetError as error:
                raise Refused(str(error)) from None

        return count

    engine = f"diffprivlib {version('diffprivlib')}"
    spends = f"epsilon {words.epsilon:g} per query of {words.total:g}"
    serve(f"{engine}, {spends}", words.people, open_engine)


if __name__ == "__main__":
    main()
