"""People served by Diffix in a process of its own, for as long as they are needed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from countleak.audit.people import People
from countleak.diffix.salt import Salt
from countleak.errors import InputError, TargetError
from countleak.files import replacing

DATABASE, TABLE, USER = "bank", "loans", "analyst"
# What a server gets to say goodbye to its clients before it is killed.
GRACE_SECONDS = 10


@dataclass(frozen=True)
class Addresses:
    """Where a server answers: over PostgreSQL's protocol, and over REST."""

    postgres: str
    rest: str


@contextmanager
def serve_people(people: People, folder: Path, salt: Salt, release: str) -> Iterator[Addresses]:
    """The addresses of a server over a DuckDB file of those people; it ends with the block.

    The files it is served from stay in ``folder``: `countleak serve FOLDER/server.toml` serves
    them again.
    """
    write_files(people, folder, salt, release)
    command = [sys.executable, "-m", "countleak.cli", "serve", str(folder / "server.toml")]
    command += ["--port", "0", "--rest-port", "0", "--json"]
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as errors:
        # In a session of its own, so that Ctrl-C reaches it through us and after its clients.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        ports = {}
        for _ in range(2):
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                said = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
                raise TargetError(f"the server did not start: {' '.join(said)} (see {log})")
            heard = json.loads(line)
            ports[heard["listener"]] = heard["port"]
        yield Addresses(
            f"postgresql://{USER}@127.0.0.1:{ports['PostgreSQL']}/{DATABASE}",
            f"http://127.0.0.1:{ports['REST']}",
        )
    finally:
        _end(process)


def write_files(people: People, folder: Path, salt: Salt, release: str) -> None:
    """Write the people's DuckDB file, the salt for its owner only, and what is served to whom."""
    if len(people.key) > 1:
        raise InputError("Diffix knows people by one column, not by a composite key")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "bank.duckdb"
    data.unlink(missing_ok=True)
    columns = people.all_columns
    with duckdb.connect(str(data)) as connection:
        connection.register(
            "people",
            {name: v.astype(object) if v.dtype.kind == "U" else v for name, v in columns.items()},
        )
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM people")
    secret = folder / "server.salt"
    secret.touch(mode=0o600)
    secret.chmod(0o600)
    secret.write_bytes(salt.secret + b"\n")
    with replacing(folder / "server.toml") as file:
        file.write(
            f'release = "{release}"\nsalt_file = "server.salt"\n\n'
            f'[databases.{DATABASE}]\nfile = "{data.name}"\n'
            # A TOML string is written as a JSON string is.
            f"tables = {{ {TABLE} = {json.dumps(people.key[0])} }}\n\n"
            f"# Let in without a password, from this machine only.\n[users.{USER}]\ntrust = true\n"
        )


def _end(process: "subprocess.Popen[str]") -> None:
    """Stop a server as its operator would, and wait until it is gone."""
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
