"""The limits hold over encrypted connections too, and answers are those of the engine."""

import numpy as np
import pytest

from countleak.attack.queries.digits import digit_queries
from countleak.attack.secrets import Bit
from countleak.audit.run import ask
from countleak.audit.targets import libpq
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import TargetError
from tests.diffix.conftest import salt_number
from tests.diffix.server.conftest import PASSWORD, TOKEN, make_server, running, served_bank
from tests.diffix.server.test_wire import make_certificate

SECRET = Bit("status = 'C'")
QUESTIONS = SqlQuestions("loans", ("client_id",), SECRET)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(bank, certificate):
    path, key = certificate
    with running(make_server([served_bank(bank)], certificate=path, key=key)) as found:
        yield found


@pytest.fixture
def queries(bank):
    return digit_queries(bank.between(2000, 2999).ids).take(np.arange(0, 3500, 100))


@pytest.fixture
def over_tls(secure, certificate):
    return (
        f"postgresql://guarded:{PASSWORD}@127.0.0.1:{secure.port}/bank?sslmode=verify-ca"
        f"&channel_binding=require&sslrootcert={certificate[0]}"
    )


def test_both_ways_give_the_bits_of_the_engine(
    over_tls, secure, certificate, bank, queries, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    expected = ask(queries, Diffix(bank, SECRET, salt=salt_number(0))).values
    https = secure.rest.replace("http:", "https:")
    for target in (
        PostgresTarget(over_tls, QUESTIONS, RequestLimits(2)),
        RestTarget(https, "bank", QUESTIONS, TOKEN, RequestLimits(2)),
    ):
        assert np.array_equal(ask(queries, target).values, expected, equal_nan=True)


def test_what_is_sent_is_counted_before_it_is_decrypted(over_tls, monkeypatch):
    connection = PostgresTarget(over_tls, QUESTIONS).connect()
    monkeypatch.setattr(libpq, "MOST", 20)
    with pytest.raises(TargetError, match="far more than an answer"):
        connection.ask("SELECT count(*) FROM loans")
    connection.close()


def test_a_certificate_that_nobody_knows_is_one_line(secure, queries):
    https = secure.rest.replace("http:", "https:")
    with pytest.raises(TargetError, match="certificate verify failed") as caught:
        ask(queries, RestTarget(https, "bank", QUESTIONS, TOKEN))
    assert str(caught.value).isprintable()
