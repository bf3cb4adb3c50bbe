"""`countleak serve` as a newcomer runs it."""

import io
import json
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from countleak.diffix.server.users import Verifier
from tests.diffix.server.conftest import OR, OR_REFUSED, QUERY
from tests.diffix.server.process import serving


def say(psql, port, *commands, user="analyst", database="bank"):
    words = [word for command in commands for word in ("-c", command)]
    return subprocess.run(
        [psql, "-X", "-At", "-h", "127.0.0.1", "-p", str(port), "-U", user, *words, database],
        capture_output=True,
        text=True,
    )


def test_the_demo_answers_the_same_after_a_restart(psql, tmp_path):
    answers = []
    for stop in (signal.SIGTERM, signal.SIGINT):
        with serving(tmp_path, "--demo", stop=stop) as (port, rest, _):
            answers.append(say(psql, port, QUERY).stdout)
            refused = say(psql, port, OR)
            assert refused.stderr == f"ERROR:  {OR_REFUSED}\n"
            assert "connect as analyst" in say(psql, port, QUERY, user="nobody").stderr
            assert "there is bank" in say(psql, port, QUERY, database="nothing").stderr
            assert "client_id|bigint" in say(psql, port, r"\d loans").stdout
            given = {"query": {"statement": QUERY, "data_source_name": "bank"}}
            url = f"http://127.0.0.1:{rest}/api/queries"
            found = httpx.post(url, json=given).json()["query_id"]
            query = httpx.get(f"{url}/{found}?wait=10").json()["query"]
            assert f"{query['rows'][0]['row'][0]}\n" == answers[-1]
    assert answers[0] == answers[1]
    assert int(answers[0]) > 1
    assert (tmp_path / "demo" / "salt").stat().st_mode & 0o077 == 0
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert "analyst@bank: released: SELECT count(DISTINCT client_id)" in log
    assert log.rstrip().endswith("stopping")


CONFIGURATION = """
release = "18.1"
salt_file = "salt"

[limits]
rows = 2

[databases.shop]
file = "visits.csv"
tables = { visits = "uid" }

[users.auditor]
password_env = "AUDITOR_PASSWORD"
token_file = "token"
"""


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{number},{'north' if number % 3 else 'south'}\n" for number in range(300))
    (tmp_path / "visits.csv").write_text(f"uid,place\n{rows}")
    (tmp_path / "serve.toml").write_text(CONFIGURATION)
    (tmp_path / "token").write_text("the token of the auditor\n")
    (tmp_path / "token").chmod(0o600)
    return tmp_path


def test_a_file_says_what_is_served_to_whom(psql, folder, monkeypatch):
    monkeypatch.setenv("AUDITOR_PASSWORD", "a password of the auditor")
    with serving(folder, "serve.toml", "--json") as (port, rest, _):
        shown = subprocess.run(
            [
                *(psql, "-XAt", "-h", "127.0.0.1", "-p", str(port), "-U", "auditor", "shop"),
                *("-c", "SELECT place, count(*) FROM visits GROUP BY place"),
            ],
            capture_output=True,
            text=True,
            env={"PGPASSWORD": "a password of the auditor"},
        )
        assert re.fullmatch(r"north\|\d+\nsouth\|\d+\n", shown.stdout), shown
        sources = f"http://127.0.0.1:{rest}/api/data_sources"
        assert httpx.get(sources).status_code == 401
        header = {"auth-token": "the token of the auditor"}
        assert httpx.get(sources, headers=header).status_code == 200
    log = (folder / "log").read_text()
    assert "password of the auditor" not in log
    assert "token of the auditor" not in log


BAD = [
    (("--lab", "--demo"), "--lab"),
    (("--lab", "serve.toml"), "--lab"),
    (("--lab", "--host", "0.0.0.0"), "--lab"),
    (("--demo", "--lab-port", "1"), "--lab-port"),
    ((), "name a TOML file of what to serve, or pass --demo"),
    (("serve.toml", "--demo"), "name a TOML file of what to serve, or pass --demo"),
    (("absent.toml",), "absent.toml: no such file"),
    (("visits.csv",), "visits.csv: not TOML"),
    (("serve.toml",), "user auditor: the environment has no AUDITOR_PASSWORD"),
    (("--demo", "--host", "0.0.0.0"), "0.0.0.0 can be reached from other machines; pass --allow"),
    (("--demo", "--host", "0.0.0.0", "--allow-remote"), "user analyst has no password"),
    (("--demo", "--port", "70000"), "--port"),
    (("--demo", "--host", "no.such.host.invalid"), "can be reached from other machines"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD, ids=str)
def test_bad_input_is_one_line(run, folder, words, complaint):
    result = run("serve", *words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert complaint in result.err


SPOILT = [
    ('release = "18.1"', 'release = "99"', "there is no release '99'"),
    ("rows = 2", "rows = 0", "limits: rows must be above 0"),
    ("rows = 2", "rows = 'x'", "limits: rows is 'x', expected"),
    ("rows = 2", "rows = 2.5", "limits: rows is 2.5, expected a whole number"),
    ("rows = 2", "lines = 2", "limits: unknown key 'lines'; choose connections"),
    ('"visits.csv"', '"absent.csv"', "absent.csv: no such file"),
    ('{ visits = "uid" }', '{ visits = "nobody" }', "has no column 'nobody'"),
    ('{ visits = "uid" }', "{}", "declare tables = "),
    ('file = "visits.csv"', "", "name a file, or a url or url_env"),
    ('file = "visits.csv"', 'url_env = "NO_SUCH_URL"', "the environment has no NO_SUCH_URL"),
    ('password_env = "AUDITOR_PASSWORD"', 'password = "x"', "a password is not written in this"),
    ('password_env = "AUDITOR_PASSWORD"', 'verifier = "x"', "a verifier is written SCRAM-SHA-256$"),
    ('token_file = "token"', 'token_file = "absent"', "absent: no such file"),
    ('token_file = "token"', 'token_sha256 = "x"', "token_sha256 is 64 hexadecimal digits"),
    ('token_file = "token"', "trust = true", "is trusted and has a password or a token"),
    ('token_file = "token"', 'databases = ["x"]', "user auditor: there is no database 'x'"),
    ("[users.auditor]", "[users.auditor]\ncolour = 1", "user auditor: unknown key 'colour'"),
    ("[databases.shop]", "[databases.shop]\ncolour = 1", "database shop: unknown key 'colour'"),
    ("[limits]", "[colours]", "unknown key 'colours'"),
    ("[limits]", "[listen]\nhost = 1\n[limits]", "listen: host is 1, expected another type"),
    ("[limits]", "[listen]\nkey = 'x'\n[limits]", "name both or none"),
]


@pytest.mark.parametrize(("good", "bad", "complaint"), SPOILT, ids=str)
def test_a_bad_file_is_one_line(run, folder, monkeypatch, good, bad, complaint):
    monkeypatch.setenv("AUDITOR_PASSWORD", "secret of the auditor")
    assert good in CONFIGURATION
    (folder / "serve.toml").write_text(CONFIGURATION.replace(good, bad))
    result = run("serve", "serve.toml")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert complaint in result.err
    assert "secret of the auditor" not in result.err


def test_a_token_that_others_can_read_is_refused(run, folder, monkeypatch):
    monkeypatch.setenv("AUDITOR_PASSWORD", "x")
    (folder / "token").chmod(0o644)
    assert "others may read this token; run: chmod 600" in run("serve", "serve.toml").err


def test_a_missing_part_is_named():
    program = (
        "import sys; sys.modules['pygwire'] = None; sys.argv = ['countleak', 'serve', '--demo']; "
        "from countleak.cli import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install '.[server]'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_verifier_is_made_from_a_pipe(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a password\n"))
    result = run("serve", "--make-verifier")
    assert "a password" not in result.out
    assert str(Verifier.parse(result.out)) == result.out.strip()
    monkeypatch.setattr(sys, "stdin", io.StringIO("a password\n"))
    assert json.loads(run("serve", "--make-verifier", "--json").out)["verifier"].startswith("SCRAM")
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert "the password is empty" in run("serve", "--make-verifier").err


def test_a_port_of_the_lab_that_is_taken_is_named(run):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run("serve", "--lab", "--lab-port", port)
    assert result.code == 2
    assert f"cannot listen at 127.0.0.1:{port}" in result.err
    assert result.err.count("\n") == 1
