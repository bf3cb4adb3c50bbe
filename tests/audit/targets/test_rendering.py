import numpy as np
import pytest

from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.modular import modular_queries
from countleak.attack.queries.ranges import range_queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import parse_secret
from countleak.audit.targets.rendering import Statements
from countleak.audit.targets.sql import DIFFIX, PLAIN, CountSql, SqlQuestions

NUMBERS = np.arange(2000, 2040)
TEXTS = id_array([f"o'b {at}\\" for at in range(20)])
PAIRS = id_array([(at, f"x{at}") for at in range(10)])
RNG = np.random.default_rng(0)
POOLS = {
    "digits": digit_queries(NUMBERS, primes=3),
    "modular": modular_queries(NUMBERS, 50, RNG),
    "subsets": random_subsets(NUMBERS, 50, RNG),
    "texts": random_subsets(TEXTS, 50, RNG),
    "pairs": random_subsets(PAIRS, 20, RNG),
    "nobody": Queries(NUMBERS[:3], np.array([[1, 0, 1], [0, 0, 0]], np.int8), Subsets()),
    "ranges": range_queries(NUMBERS, {"age": NUMBERS % 50}, 20, RNG),
}
TEMPLATE = CountSql("SELECT noisy_count('{table}', '{condition}')")


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "tsql", "oracle", "duckdb"])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["select", "template"])
@pytest.mark.parametrize("secret", ["status = 'C'", "kind IN ('a', 'b''c')"])
def test_what_is_written_quickly_is_what_a_tree_gives(dialect, pool, template, secret):
    queries = POOLS[pool]
    key = ("id", "part") if pool == "pairs" else ("id",)
    system = DIFFIX if pool == "digits" else PLAIN
    named = parse_secret(secret)
    questions = SqlQuestions("my.loans", key, named, system, dialect, template)
    statements = Statements(questions, queries)
    for position in range(len(named.conditions) * len(queries)):
        assert statements.at(position) == questions.statement(queries, position)


def test_trees_are_built_once_where_only_numbers_or_ids_differ(monkeypatch):
    built = []
    statement = SqlQuestions.statement
    monkeypatch.setattr(
        SqlQuestions, "statement", lambda *given: built.append(1) or statement(*given)
    )
    for pool in ("digits", "modular", "subsets", "texts"):
        built.clear()
        questions = SqlQuestions("loans", ("id",), parse_secret("status = 'C'"), PLAIN)
        asked = list(questions.asked(POOLS[pool], np.arange(len(POOLS[pool]))))
        assert len(asked) == len(POOLS[pool])
        assert len(built) == 2
