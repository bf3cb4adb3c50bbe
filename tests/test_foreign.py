"""What others wrote: nothing that a terminal obeys is printed, and no password, however odd."""

import re
import tomllib
from contextlib import ExitStack
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from countleak.addresses import PostgresAddress
from countleak.attack.queries.arithmetic import numeric_server
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.sql import SqlQuestions
from countleak.cli.target_options import read_target
from countleak.diffix.databases.postgres import connect
from countleak.diffix.server.configuration import from_file
from countleak.errors import CountleakError
from countleak.foreign import BRIEF, brief, clean, clean_lines, first_line, without

QUESTIONS = SqlQuestions("loans", ("client_id",))
# Whatever part of a password is shown, one of these two is likely to be in it.
BEGIN, END = "Zq7", "7qZ"
ODD = st.text(
    st.one_of(st.sampled_from(" '\"\\/@:?#%&=+,;[]{}<>|^`~$*()!.-_\t\n\0é☃"), st.characters()),
    max_size=12,
)
FORMS = {
    "raw in an address": "postgresql://me:{}@127.0.0.1:1/bank",
    "encoded in an address": "postgresql://me:{quoted}@127.0.0.1:1/bank",
    "raw in a parameter": "postgresql://127.0.0.1:1/bank?user=me&password={}",
    "encoded in a parameter": "postgresql://127.0.0.1:1/bank?user=me&password={quoted}",
    "without its @": "postgresql://me:{}/bank",
    "without its host": "postgresql://me:{}@",
    "misspelt": "postgre://me:{}@127.0.0.1/bank",
    "http": "http://me:{}@127.0.0.1:1/bank",
    "pairs": "host=127.0.0.1 port=1 user=me password={}",
    "quoted pairs": "host=127.0.0.1 port=1 user=me password='{}'",
}


def check_hidden(said: str) -> None:
    assert BEGIN not in said, said
    assert END not in said, said
    assert said.isprintable()


def tried(act, *given) -> str:
    """What is said where something fails, or the text of what comes of it."""
    try:
        return str(act(*given))
    except CountleakError as error:
        return str(error)


def entered(manager) -> str:
    with manager:
        return "open"


@settings(max_examples=150, deadline=None)
@given(odd=ODD, form=st.sampled_from(sorted(FORMS)))
def test_no_part_of_a_password_is_ever_said(odd, form):
    # Then it is a whole address, whose host comes after the @.
    assume("@" not in odd or form != "without its @")
    password = f"{BEGIN}{odd}{END}"
    encoded = quote(password.encode("utf-8", "surrogatepass"), safe="")
    text = FORMS[form].format(password, quoted=encoded)
    for act in (
        lambda: PostgresTarget(text, QUESTIONS),
        lambda: PostgresTarget(text, QUESTIONS).connect(),
        lambda: RestTarget(text, "bank", QUESTIONS),
        lambda: read_target(text),
        lambda: entered(connect(text, table="loans", user="client_id")),
        lambda: entered(numeric_server(text)),
    ):
        check_hidden(tried(act))


@settings(max_examples=100, deadline=None)
@given(odd=ODD)
def test_a_server_that_repeats_a_password_is_not_repeated(odd):
    password = f"{BEGIN}{odd}{END}"
    encoded = quote(password.encode("utf-8", "surrogatepass"), safe="")
    for spelling in (password, encoded, repr(password), password.replace("'", "''")):
        said = first_line(without(f"no entry with {spelling} here", password))
        assert re.fullmatch(r"""no entry with ['"]?\*\*\*['"]? here""", said)
        check_hidden(said)


@pytest.mark.parametrize("key", ["url", "file"])
@pytest.mark.parametrize("password", ["my secret Zq7", "Zq7/7qZ", "Zq7@7qZ", "Zq7%zz"])
def test_a_configuration_shows_no_password(tmp_path, key, password):
    path = tmp_path / "server.toml"
    path.write_text(
        f'[databases.bank]\n{key} = "postgresql://me:{password}@127.0.0.1:1/x"\n'
        'tables = { loans = "client_id" }\n[users.analyst]\ntrust = true\n'
    )
    assert tomllib.loads(path.read_text())
    address = tomllib.loads(path.read_text())["databases"]["bank"][key]
    with ExitStack() as stack, pytest.raises(CountleakError) as caught:
        from_file(path, {})
        # The server takes the address as it is; whoever connects sees that it is none.
        stack.enter_context(connect(address, table="loans", user="client_id", seconds=1))
    check_hidden(str(caught.value))
    assert "my secret" not in str(caught.value)


def test_addresses_are_read_as_libpq_reads_them():
    address = PostgresAddress.read("postgresql://me:own%20one@127.0.0.1:5433/bank")
    assert address.info["password"] == "own one"
    assert str(address) == "postgresql://me@127.0.0.1:5433/bank"
    assert "own" not in repr(address)
    assert address.words("no 'own one', own%20one or own+one\nmore") == "no '***', *** or ***"
    assert psycopg.conninfo.conninfo_to_dict(address.text)["password"] == "own one"


@given(st.text())
def test_clean_text_is_one_line_that_no_terminal_obeys(text):
    assert clean(text).isprintable()
    assert all(part.isprintable() for part in re.split("[\n\t]", clean_lines(text)))
    assert clean(clean(text)) == clean(text)
    assert len(first_line(text)) <= 303


@given(st.text(max_size=3 * BRIEF))
def test_what_is_brief_is_one_short_line(text):
    line = brief(text)
    assert line.isprintable()
    assert len(line) <= BRIEF + 1
    assert line == text or len(text) > BRIEF or not text.isprintable()


@pytest.mark.parametrize(
    "words",
    [
        "no route to postgresql://me:Zq7-x@db/bank",
        "could not connect: host=db password=Zq7-x dbname=bank",
        "engine.py: error: unrecognized arguments: --token=Zq7-x --fast",
        "mysql+pymysql://:Zq7-x@db/bank, PWD=Zq7-x; timeout",
    ],
)
def test_what_looks_like_a_password_is_hidden_whoever_says_it(words):
    assert BEGIN not in first_line(words)
    assert first_line(words).replace("***", "Zq7-x") == words
    assert first_line("Access denied (using password: YES)").endswith("(using password: YES)")
