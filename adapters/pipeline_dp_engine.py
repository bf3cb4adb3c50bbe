"""PipelineDP's DPEngine over a CSV file: one pipeline per question, Laplace noise.

pip install -r pipeline_dp_engine.txt
"""

from importlib.metadata import version

import pipeline_dp
from questions import Counter, People, Question, arguments, serve

MEANT = "meant"


def main() -> None:
    """Answer until there are no more questions."""
    parser = arguments(__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0, help="spent by every question")
    words = parser.parse_args()
    # One row per person, in one partition that everybody knows of.
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row,
        partition_extractor=lambda row: MEANT,
        value_extractor=lambda row: 0,
    )

    def open_engine(people: People) -> Counter:
        def count(question: Question) -> float:
            accountant = pipeline_dp.NaiveBudgetAccountant(words.epsilon, total_delta=0)
            engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
            result = engine.aggregate(
                list(question.rows), params, extractors, public_partitions=[MEANT]
            )
            accountant.compute_budgets()
            ((_, metrics),) = result
            return float(metrics.privacy_id_count)

        return count

    engine = f"pipeline-dp {version('pipeline-dp')}"
    serve(f"{engine}, epsilon {words.epsilon:g} per query", words.people, open_engine)


if __name__ == "__main__":
    main()
