"""SmartNoise SQL over a CSV file: every statement spends epsilon, noise is whole-number Laplace.

pip install -r smartnoise_sql.txt
"""

import re
from importlib.metadata import version

import pandas as pd
from questions import Counter, People, Question, arguments, serve
from snsql import Privacy, from_df

TYPES = {"int64": "int", "float64": "float"}
# SmartNoise looks for "status" with its quotes among the columns, and for status without.
QUOTED = re.compile(r"'(?:[^']|'')*'|\"([A-Za-z_]\w*)\"")


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0, help="spent by every question")
    parser.add_argument("--delta", type=float, default=1e-5, help="for --censor")
    parser.add_argument(
        "--censor",
        action="store_true",
        help="hide counts below the threshold that SmartNoise derives from epsilon and delta",
    )
    words = parser.parse_args()
    privacy = Privacy(epsilon=words.epsilon, delta=words.delta)

    def open_engine(people: People) -> Counter:
        key = people.id_column
        frame = pd.DataFrame(people.columns)
        columns = {name: {"type": TYPES.get(str(frame[name].dtype), "string")} for name in frame}
        columns[key]["private_id"] = True
        table = {**columns, "rows": len(frame), "censor_dims": words.censor}
        reader = from_df(frame, privacy=privacy, metadata={"": {"people": {"people": table}}})

        def count(question: Question) -> float | None:
            where = QUOTED.sub(lambda at: at[1] or at[0], question.where)
            _, *rows = reader.execute(
                f"SELECT COUNT(DISTINCT {key}) AS people FROM people.people WHERE {where}"
            )
            return float(rows[0][0]) if rows else None

        return count

    hides = f", delta {words.delta:g}, low counts censored" if words.censor else ""
    engine = f"smartnoise-sql {version('smartnoise-sql')}"
    serve(f"{engine}, epsilon {words.epsilon:g} per query{hides}", words.people, open_engine)


if __name__ == "__main__":
    main()
