import numpy as np
import pytest
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.several import Manners

import countleak as cl
from countleak.audit.targets.rest import RestTarget
from tests.diffix.conftest import salt_number
from tests.diffix.server.conftest import TOKEN

SECRET = cl.Bit("status = 'C'")
COUNTS = Counts("loans", "client_id", SECRET)


@pytest.fixture
def queries(bank):
    return cl.digit_queries(bank.between(2000, 2999).ids).take(np.arange(0, 3500, 50))


@pytest.mark.parametrize("connections", [1, 3])
def test_rest_gives_the_bits_of_the_engine(served, bank, queries, connections):
    target = RestTarget(served.rest, "bank", COUNTS, TOKEN, Manners(connections))
    found = cl.ask(queries, target)
    expected = cl.ask(queries, cl.Diffix(bank, SECRET, salt=salt_number(0)))
    assert np.array_equal(found.values, expected.values, equal_nan=True)
    few = cl.random_subsets(bank.ids[:3], 4, np.random.default_rng(1), "client_id")
    assert not cl.ask(few, target).released.any()


def test_faults_are_one_line_and_show_no_token(served, queries):
    cases = [
        (RestTarget(served.rest, "absent", COUNTS), "no data source of that name"),
        (RestTarget(served.rest, "bank", COUNTS, "a-wrong-token"), "token is missing or not known"),
        (RestTarget(f"{served.rest}/elsewhere", "bank", COUNTS, TOKEN), "status 404"),
        (RestTarget("http://127.0.0.1:1", "bank", COUNTS, TOKEN), "refused"),
        (RestTarget(served.rest, "bank", Counts("absent", "client_id")), "ask about `loans`"),
    ]
    for target, words in cases:
        with pytest.raises(cl.TargetError, match=words) as caught:
            cl.ask(queries, target)
        told = f"{caught.value}{target}{target!r}"
        assert "\n" not in str(caught.value)
        assert TOKEN not in told
        assert "a-wrong-token" not in told


@pytest.mark.parametrize(
    ("address", "token", "words"),
    [
        ("ftp://127.0.0.1", None, "cannot be read"),
        ("http://", None, "cannot be read"),
        ("http://me:hush@127.0.0.1", None, "holds no secrets"),
        ("http://db.example", "a token", "use https"),
    ],
)
def test_addresses_that_cannot_be_asked(address, token, words):
    with pytest.raises(cl.InputError, match=words) as caught:
        RestTarget(address, "bank", COUNTS, token)
    assert "hush" not in str(caught.value)


def test_which_addresses_are_this_machine():
    for address, local in (("http://[::1]:80", True), ("https://db.example", False)):
        assert RestTarget(address, "bank", COUNTS).is_local is local
