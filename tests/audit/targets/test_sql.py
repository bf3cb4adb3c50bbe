from dataclasses import replace

import numpy as np
import pytest
from countleak.audit.targets.counts import DIFFIX, PLAIN, Counts

import countleak as cl

SECRET = cl.Bit("status = 'C'")
IDS = np.array([2003, 2500, 2999])


def test_a_range_is_written_as_the_system_takes_it():
    queries = cl.digit_queries(IDS, primes=1)
    snapped = Counts("loans", "client_id", SECRET, DIFFIX).statement(queries, 0)
    assert snapped == cl.Diffix(cl.generated_bank(7), SECRET).statement(queries, 0)
    assert snapped.endswith("AND status = 'C' AND client_id BETWEEN 2000 and 3000")
    plain = Counts("loans", "client_id", None, PLAIN).statement(queries, 0)
    assert plain.endswith("0.5)) AND client_id BETWEEN 2003 and 2999")


@pytest.mark.parametrize("families", ["digits", "subsets"])
def test_planned_queries_are_harmless(families):
    rng = np.random.default_rng(0)
    queries = {
        "digits": cl.digit_queries(IDS),
        "subsets": cl.random_subsets(np.arange(1000), 9, rng, "client_id"),
    }[families]
    counts = Counts("loans", "client_id", SECRET)
    for at in range(len(queries)):
        assert counts.harmless(queries, at) == counts.statement(queries, at)


@pytest.mark.parametrize(
    "where",
    [
        "1 = 1; DROP TABLE loans; SELECT 1 WHERE 1 = 1",
        "pg_sleep(100) = 1",
        "client_id IN (SELECT client_id FROM loans)",
        "client_id = 1 UNION SELECT password FROM users WHERE 1 = 1",
        "nextval('s') = 1",
        "floor(client_id) = 1 FOR UPDATE --",
        "client_id = 1 /* ",
        "status = E'\\'; DELETE FROM loans; --'",
        "lo_import('/etc/passwd') = \"x\"",
        "",
    ],
)
def test_a_file_of_queries_cannot_smuggle_in_anything_else(where):
    planned = cl.digit_queries(IDS, primes=1).take(np.arange(1))
    smuggled = replace(planned, where=(where,))
    with pytest.raises(cl.CountleakError):
        Counts("loans", "client_id", SECRET).harmless(smuggled, 0)


def test_names_that_are_no_names_are_refused():
    for table, column in (("loans; DROP TABLE loans", "id"), ("loans", "id) FROM x"), ("", "id")):
        with pytest.raises(cl.InputError, match="cannot stand in SQL"):
            Counts(table, column)
