"""Proof of who asks: SCRAM and nothing else on the wire, tokens over HTTP, and no secret logged."""

import subprocess
from collections import Counter

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygwire import ConnectionPhase, messages
from scramp import ScramClient

from countleak.diffix.server.users import User, Users, Verifier, hash_token, scram_salt
from countleak.errors import InputError
from tests.diffix.server.conftest import PASSWORD, QUERY, TOKEN, make_server, running, served_bank
from tests.diffix.server.raw import error_of, raw

REFUSED = ("28P01", 'password authentication failed for user "guarded"')


def test_the_right_password_comes_in(server, psql):
    with server.connect(user="guarded", password=PASSWORD) as connection:
        assert connection.execute(QUERY).fetchone()[0] > 1
    shown = subprocess.run(
        [psql, "-X", "-At", "-c", "SELECT current_user", server.dsn(user="guarded")],
        capture_output=True,
        text=True,
        env={"PGPASSWORD": PASSWORD},
    )
    assert shown.stdout == "guarded\n"


@pytest.mark.parametrize(
    "password",
    ["wrong", PASSWORD[:-1], PASSWORD.upper() + "x", "ünïcode"],
    ids=["wrong", "shorter", "longer", "unicode"],
)
def test_a_wrong_password_stays_out(server, password):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        server.connect(user="guarded", password=password)


def test_no_password_stays_out(server):
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        server.connect(user="guarded")


def test_an_unknown_user_is_challenged_like_any_other(server):
    challenges = []
    for _ in range(2):
        with raw(server.port) as client:
            first, *_ = begin(client, "nobody")
            challenges.append(first)
    # The same salt twice: it does not tell that the user does not exist.
    assert challenges[0].split(",")[1:] == challenges[1].split(",")[1:]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        server.connect(user="nobody", password=PASSWORD)


def test_the_challenge_of_an_unknown_user_is_like_that_of_a_known_one():
    known = {
        "one": User("one", Verifier(b"s" * 16, b"k" * 32, b"k" * 32, 4096)),
        "two": User("two", Verifier(b"s" * 16, b"k" * 32, b"k" * 32, 4096)),
        "odd": User("odd", Verifier(b"s" * 24, b"k" * 32, b"k" * 32, 10_000)),
        "token": User("token", tokens=(hash_token("x"),)),
    }
    users = Users(known, b"secret")
    kinds = Counter()
    for number in range(3000):
        challenged = users.challenged(f"nobody {number}")
        # The same in another process, which has the same secret.
        assert challenged == Users(known, b"secret").challenged(f"nobody {number}")
        kinds[len(challenged.salt), challenged.iterations] += 1
    assert set(kinds) == {(16, 4096), (24, 10_000)}
    # As often as among the known, within four standard errors.
    assert abs(kinds[24, 10_000] / 3000 - 1 / 3) < 4 * (2 / 9 / 3000) ** 0.5
    assert len(users.challenged("token").salt) in (16, 24)
    assert Users({}).challenged("nobody").salt != Users({}).challenged("nobody").salt


def test_a_password_has_the_same_salt_after_a_restart():
    salts = [Verifier.of_password("x", scram_salt(b"secret", "me")).salt for _ in range(2)]
    assert salts[0] == salts[1]
    assert len(salts[0]) == len(Users({}).challenged("nobody").salt)
    assert salts[0] != scram_salt(b"secret", "you")


def test_a_user_sees_only_its_databases(server):
    for user, database in (("narrow", "bank"), ("analyst", "nothing")):
        with pytest.raises(psycopg.OperationalError, match=f'database "{database}" does not exist'):
            server.connect(database, user, password=PASSWORD)


def begin(client, user="guarded"):
    """Start a SCRAM exchange; the challenge, and scramp's client side."""
    client.start(user)
    assert isinstance(client.next(), messages.AuthenticationSASL)
    scram = ScramClient(["SCRAM-SHA-256"], "user", PASSWORD)
    client.send(messages.SASLInitialResponse("SCRAM-SHA-256", scram.get_client_first().encode()))
    challenge = client.next()
    assert isinstance(challenge, messages.AuthenticationSASLContinue)
    scram.set_server_first(challenge.data.decode())
    return challenge.data.decode(), scram


def test_a_replayed_proof_is_refused(server):
    with raw(server.port) as client:
        _, scram = begin(client)
        proof = scram.get_client_final().encode()
        client.send(messages.SASLResponse(proof))
        final = client.next()
        assert isinstance(final, messages.AuthenticationSASLFinal)
        scram.set_server_final(final.data.decode())
    with raw(server.port) as client:
        begin(client)
        client.send(messages.SASLResponse(proof))
        assert error_of(client.next()) == REFUSED
        assert client.next() is None


def test_a_password_in_the_clear_is_refused(server):
    with raw(server.port) as client:
        client.start("guarded")
        offered = client.next()
        assert isinstance(offered, messages.AuthenticationSASL)
        assert offered.mechanisms == ["SCRAM-SHA-256"]
        client.send(messages.PasswordMessage(PASSWORD))
        assert error_of(client.next())[0] in ("28P01", "08P01")
        assert client.next() is None
    assert not any(PASSWORD in line for line in server.lines)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", ""])
def test_another_mechanism_is_refused(server, mechanism):
    with raw(server.port) as client:
        client.start("guarded")
        client.next()
        client.send(messages.SASLInitialResponse(mechanism, f"\0guarded\0{PASSWORD}".encode()))
        assert error_of(client.next()) == REFUSED


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"p=tls-unique,,n=user,r=abc",
        b"y,a=other,n=user,r=abc",
        b"n,,m=1,n=user,r=abc",
        b"n,,n=\xff,r=abc",
        b"n,,n=user,r=abc," + b"x=1," * 2000,
    ],
)
def test_a_malformed_first_message_is_refused(server, first):
    with raw(server.port) as client:
        client.start("guarded")
        client.next()
        client.send(messages.SASLInitialResponse("SCRAM-SHA-256", first))
        assert error_of(client.next())[0] in ("28P01", "08P01")
        assert client.next() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda final: b"",
        lambda final: final[:-8],
        lambda final: final.replace(b"c=biws", b"c=eSws"),
        lambda final: final.replace(b",r=", b",r=x"),
        lambda final: final.partition(b",p=")[0],
        lambda final: final.partition(b",p=")[0] + b",p=" + b"A" * 43 + b"=",
        lambda final: final + b",p=" + b"A" * 43 + b"=",
        lambda final: b"\0" + final,
    ],
)
def test_a_malformed_proof_is_refused(server, change):
    with raw(server.port) as client:
        _, scram = begin(client)
        client.send(messages.SASLResponse(change(scram.get_client_final().encode())))
        assert error_of(client.next())[0] in ("28P01", "08P01")
        assert client.next() is None


def test_a_query_before_the_proof_is_refused(server):
    with raw(server.port) as client:
        client.start("guarded")
        client.next()
        client.send(messages.Query(QUERY))
        assert error_of(client.next())[0] in ("28P01", "08P01")
        client.phase(ConnectionPhase.READY)
        assert client.next() is None


def test_tokens(server):
    given = {"query": {"statement": QUERY, "data_source_name": "bank"}}
    api = f"{server.rest}/api/queries"
    accepted = httpx.post(api, json=given, headers={"auth-token": TOKEN})
    assert accepted.status_code == 200
    own = f"{api}/{accepted.json()['query_id']}"
    assert httpx.get(own, headers={"auth-token": TOKEN}).status_code == 200
    # Another user's query is nobody else's.
    assert httpx.get(own).status_code == 404
    for wrong in ("wrong", TOKEN[:-1], TOKEN.upper() + "x", ""):
        assert httpx.post(api, json=given, headers={"auth-token": wrong}).status_code == 401


def test_without_a_trusted_user_a_token_is_needed(bank):
    users = Users({"guarded": User("guarded", None, (hash_token(TOKEN),))})
    with running(make_server([served_bank(bank)], users=users)) as found:
        assert httpx.get(f"{found.rest}/api/data_sources").status_code == 401
        asked = httpx.get(f"{found.rest}/api/data_sources", headers={"auth-token": TOKEN})
        assert asked.status_code == 200
        # A user without a password has none that fits.
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            found.connect(user="guarded", password=TOKEN)


def test_no_secret_is_logged_or_shown(server):
    with server.connect(user="guarded", password=PASSWORD) as connection:
        connection.execute(QUERY)
    httpx.get(f"{server.rest}/api/data_sources", headers={"auth-token": TOKEN})
    from tests.diffix.server.conftest import USERS

    everything = "\n".join([*server.lines, repr(USERS), repr(USERS.by_name["guarded"])])
    verifier = USERS.by_name["guarded"].verifier
    for secret in (PASSWORD, TOKEN, verifier.stored_key.hex(), str(verifier.stored_key)):
        assert secret not in everything
    assert any("guarded@bank: released" in line for line in server.lines)


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1))
def test_a_verifier_is_read_as_it_was_written(password):
    verifier = Verifier.of_password(password)
    assert Verifier.parse(str(verifier)) == verifier


def test_the_verifier_of_a_real_postgresql_is_read(postgres):
    postgres.connection.execute("DROP ROLE IF EXISTS verified")
    postgres.connection.execute("SET password_encryption = 'scram-sha-256'")
    postgres.connection.execute("CREATE ROLE verified PASSWORD 'a password'")
    query = "SELECT rolpassword FROM pg_authid WHERE rolname = 'verified'"
    text = postgres.connection.execute(query).fetchone()[0]
    postgres.connection.execute("DROP ROLE verified")
    assert str(Verifier.parse(text)) == text


@pytest.mark.parametrize("text", ["", "md5abc", "SCRAM-SHA-256$1:a$b:c", "SCRAM-SHA-256$4096:a$b"])
def test_anything_else_is_no_verifier(text):
    with pytest.raises(InputError, match="a verifier is written"):
        Verifier.parse(text)
