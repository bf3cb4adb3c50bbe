"""OpenDP's Context over a CSV file: every count spends epsilon of a total, then it refuses.

pip install -r opendp_context.txt
"""

from importlib.metadata import version

import opendp.prelude as dp
import polars as pl
from opendp.mod import OpenDPException
from questions import Counter, People, Question, Refused, arguments, serve


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0, help="spent by every question")
    parser.add_argument("--total", type=float, default=100.0, help="epsilon of all questions")
    words = parser.parse_args()
    dp.enable_features("contrib")

    def open_engine(people: People) -> Counter:
        key = pl.col(people.id_column)
        context = dp.Context.compositor(
            data=pl.LazyFrame(people.columns),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=words.total),
        )

        def count(question: Question) -> float:
            # OpenDP rejects lists of ids; a map from ids to whether they are meant it takes.
            meant = [True] * len(question.members)
            query = context.query(epsilon=words.epsilon).filter(
                key.replace_strict(question.members, meant, default=False)
            )
            if question.held is not None:
                query = query.filter(pl.sql_expr(question.held))
            try:
                released = query.select(dp.len(signed=True)).release()
            except OpenDPException as error:
                raise Refused(error.message) from None
            return float(released.collect().item())

        return count

    engine = f"opendp {version('opendp')}"
    spends = f"epsilon {words.epsilon:g} per query of {words.total:g}"
    serve(f"{engine}, {spends}", words.people, open_engine)


if __name__ == "__main__":
    main()
