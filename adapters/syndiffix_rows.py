"""SynDiffix over a CSV file: rows are made up once, and every question is put to those.

pip install -r syndiffix_rows.txt
"""

from importlib.metadata import version

import pandas as pd
from questions import Counter, People, Question, Table, arguments, serve
from syndiffix import Synthesizer
from syndiffix.common import AnonymizationParams


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--salt", default="0", help="of the noise: another one, other rows")
    words = parser.parse_args()

    def open_engine(people: People) -> Counter:
        params = AnonymizationParams(salt=words.salt.encode())
        made_up = Synthesizer(pd.DataFrame(people.columns), anonymization_params=params).sample()
        rows = Table({name: made_up[name].tolist() for name in made_up})

        def count(question: Question) -> float:
            return float(len(rows.matching(question.where)))

        return count

    engine = f"syndiffix {version('syndiffix')}"
    serve(f"{engine}, salt {words.salt}", words.people, open_engine)


if __name__ == "__main__":
    main()
