import numpy as np
import pytest

import countleak as cl
from countleak.attack.queries.tables import table_queries
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.families import Known, families_for, family_queries, statements
from countleak.audit.findings import Findings, Tried
from countleak.audit.people import People
from countleak.audit.probe import probe
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError, NoResult, TargetError
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load, url

KNOWN = ("amount", "duration")


@pytest.fixture(scope="module")
def plain(postgres, bank):
    """The bank's loans in a plain PostgreSQL."""
    postgres.connection.execute("DROP TABLE IF EXISTS probed")
    load(postgres.connection, "probed", bank.all_columns)
    questions = SqlQuestions("probed", bank.key, None, PLAIN)
    yield PostgresTarget(url(postgres), questions)
    postgres.connection.execute("DROP TABLE probed")


def by_family(findings):
    return {each.family: each for each in findings.tried}


def test_a_plain_database_answers_everything_without_noise(plain, bank):
    findings = probe(plain, bank, KNOWN)
    assert {name for name, each in by_family(findings).items() if each.refused is None} == {
        "modular", "subsets", "tables", "ranges", "digits",
    }  # fmt: skip
    assert by_family(findings)["tables"].functions == ("floor", "width_bucket", "round", "")
    assert {each.noise for each in findings.tried if each.family != "digits"} == {0.0}
    assert not findings.is_noisy
    assert (findings.hidden, findings.base, findings.fractions) == (None, None, False)
    # Of families without noise, the one whose statements are shortest.
    assert findings.best.family == "modular"


@pytest.mark.parametrize(
    ("release", "family", "sigma"),
    # Two layers of SD 1; a range of ids, two layers of SD 2; lists of hundreds of ids.
    [
        ("tables", "tables", (0.5, 3.0)),
        ("18.1", "digits", (1.0, 5.0)),
        ("18.3", "subsets", (9, 99)),
    ],
)
def test_what_a_front_answers_with_the_least_noise_is_proposed(bank, release, family, sigma):
    system = cl.Diffix(bank, "status = 'C'", release, salt_number(0))
    findings = probe(system, bank, KNOWN)
    assert findings.best.family == family
    assert sigma[0] < findings.best.noise < sigma[1]
    assert findings.best.sticky
    assert 2 <= findings.hidden <= 8
    assert findings.hidden_as == ("left out of tables" if family == "tables" else "not answered")
    # Nobody's secret was asked about, and the target is as it was.
    assert all("status" not in each.statement for each in findings.tried)
    assert system.questions.secret == cl.Bit("status = 'C'")


def test_few_tables_are_proposed_only_where_nothing_else_is_answered():
    tables = Tried("tables", "SELECT 1", noise=1.0, too_few=True)
    digits = Tried("digits", "SELECT 2", noise=4.0)
    no = Tried("subsets", "SELECT 3", refused="no lists")
    rest = (9, None, False, None, None)
    assert Findings((tables, digits, no), *rest).best is digits
    assert Findings((tables, no), *rest).best is tables
    with pytest.raises(NoResult, match=r"no family of questions \(subsets: no lists\)"):
        _ = Findings((no,), *rest).best


def test_a_system_that_cannot_be_reached_is_no_finding(bank):
    questions = SqlQuestions("loans", bank.key, None, PLAIN)
    nobody = PostgresTarget("postgresql://nobody@127.0.0.1:1/none", questions)
    with pytest.raises(TargetError, match="check the address"):
        probe(nobody, bank)
    with pytest.raises(InputError, match="takes SQL"):
        probe(cl.Simulated(bank, "status = 'C'", cl.Gaussian(1.0)), bank)


def test_families_that_people_have():
    ids = cl.queries.ids.id_array(["a", "b", "c", "d"])
    texts = People(ids, {"age": np.array([1, 2, 3, 4])}, "name")
    assert families_for(texts, Known()) == ("subsets",)
    assert families_for(texts, Known(("age",))) == ("subsets", "tables", "ranges")
    with pytest.raises(InputError, match="name known columns"):
        family_queries("tables", texts, None, np.random.default_rng(0), Known())


def test_cells_of_a_table_are_one_statement(bank):
    queries = table_queries(bank.ids, bank.columns, [("duration",), ("status", "duration")])
    assert statements(queries) == 2
    assert statements(queries.take(np.array([0]))) == 1
    # About several values each table is asked for once per value.
    answers = Answers(np.array([0, 1, len(queries)]), np.zeros(3), np.ones(3, np.bool_))
    assert statements(Transcript.of(queries, answers, ("A", "B"))) == 2
    digits = cl.digit_queries(bank.ids, primes=1)
    assert statements(digits) == 140
