import numpy as np
import pytest

from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.audit.run import ask
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, TargetError
from tests.diffix.conftest import salt_number
from tests.diffix.server.conftest import TOKEN

SECRET = Bit("status = 'C'")
QUESTIONS = SqlQuestions("loans", ("client_id",), SECRET)


@pytest.fixture
def queries(bank):
    return digit_queries(bank.between(2000, 2999).ids).take(np.arange(0, 3500, 50))


@pytest.mark.parametrize("connections", [1, 3])
def test_rest_gives_the_bits_of_the_engine(served, bank, queries, connections):
    target = RestTarget(served.rest, "bank", QUESTIONS, TOKEN, RequestLimits(connections))
    found = ask(queries, target)
    expected = ask(queries, Diffix(bank, SECRET, salt=salt_number(0)))
    assert np.array_equal(found.values, expected.values, equal_nan=True)
    few = random_subsets(bank.ids[:3], 4, np.random.default_rng(1))
    assert not ask(few, target).released.any()


def test_faults_are_one_line_and_show_no_token(served, queries):
    cases = [
        (RestTarget(served.rest, "absent", QUESTIONS), "no data source of that name"),
        (
            RestTarget(served.rest, "bank", QUESTIONS, "a-wrong-token"),
            "token is missing or unknown to the server",
        ),
        (RestTarget(f"{served.rest}/elsewhere", "bank", QUESTIONS, TOKEN), "status 404"),
        (RestTarget("http://127.0.0.1:1", "bank", QUESTIONS, TOKEN), "refused"),
        (
            RestTarget(served.rest, "bank", SqlQuestions("absent", ("client_id",))),
            "ask about `loans`",
        ),
    ]
    for target, words in cases:
        with pytest.raises(TargetError, match=words) as caught:
            ask(queries, target)
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
    with pytest.raises(InputError, match=words) as caught:
        RestTarget(address, "bank", QUESTIONS, token)
    assert "hush" not in str(caught.value)


def test_which_addresses_are_this_machine():
    for address, local in (("http://[::1]:80", True), ("https://db.example", False)):
        assert RestTarget(address, "bank", QUESTIONS).is_local is local
