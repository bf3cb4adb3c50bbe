"""A table served by Diffix in a process of its own, for as long as it is needed."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from numpy.typing import NDArray

from countleak.diffix.salt import Salt
from countleak.errors import TargetError
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
def serve_columns(
    columns: Mapping[str, NDArray[Any]], user: str, folder: Path, salt: Salt, release: str
) -> Iterator[Addresses]:
    """The addresses of a server over a DuckDB file of these columns; it ends with the block.

    ``user`` is the column that names the user of a row.

    The files it is served from stay in ``folder``: `countleak serve FOLDER/server.toml` serves
    them again.
    """
    write_files(columns, user, folder, salt, release)
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
                reason = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
                raise TargetError(f"the server did not start: {' '.join(reason)} (see {log})")
            listener = json.loads(line)
            ports[listener["listener"]] = listener["port"]
        yield Addresses(
            f"postgresql://{USER}@127.0.0.1:{ports['PostgreSQL']}/{DATABASE}",
            f"http://127.0.0.1:{ports['REST']}",
        )
    finally:
        _end(process)


def write_files(
    columns: Mapping[str, NDArray[Any]], user: str, folder: Path, salt: Salt, release: str
) -> None:
    """Write the DuckDB file, the salt for its owner only, and what is served to whom."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "bank.duckdb"
    data.unlink(missing_ok=True)
    with duckdb.connect(str(data)) as connection:
        connection.register(
            "source",
            {name: v.astype(object) if v.dtype.kind == "U" else v for name, v in columns.items()},
        )
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM source")
    secret = folder / "server.salt"
    secret.touch(mode=0o600)
    secret.chmod(0o600)
    secret.write_bytes(salt.secret + b"\n")
    with replacing(folder / "server.toml") as file:
        file.write(
            f'release = "{release}"\nsalt_file = "server.salt"\n\n'
            f'[databases.{DATABASE}]\nfile = "{data.name}"\n'
            # A TOML string is written as a JSON string is.
            f"tables = {{ {TABLE} = {json.dumps(user)} }}\n\n"
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
