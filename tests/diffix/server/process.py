"""`countleak serve` in a process of its own."""

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from countleak.audit.people import People, generated_bank
from countleak.cli.serve import DEMO_SALT
from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt, salt_file


@contextmanager
def serving(folder: Path, *words: object, stop=signal.SIGTERM):
    """The ports of a server that runs in ``folder``, and its process; then it is stopped."""
    command = [Path(sys.executable).parent / "countleak", "serve", "--port", "0"]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [*command, "--rest-port", "0", *map(str, words)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            first, second = process.stdout.readline(), process.stdout.readline()
            if "--json" in words:
                yield json.loads(first)["port"], json.loads(second)["port"], process
            else:
                port = re.fullmatch(r"PostgreSQL on 127\.0\.0\.1:(\d+)\n", first)
                rest = re.fullmatch(r"REST on http://127\.0\.0\.1:(\d+)\n", second)
                assert port and rest, (first, second)
                yield int(port[1]), int(rest[1]), process
        finally:
            process.send_signal(stop)
            code = process.wait(30)
            process.stdout.close()
        assert code == 0


def demo_engine(folder: Path) -> Engine:
    """The engine of the demo, in this process: the same people, the same salt."""
    return salted_engine(generated_bank(7), salt_file(folder / DEMO_SALT))


def salted_engine(people: People, salt: Salt) -> Engine:
    """An engine over these people, in this process."""
    columns = {people.id_column: people.ids, **people.columns}
    duck = Duck.of_columns(columns, salt, table="loans", user=people.id_column)
    return Engine(duck, release_of("18.1"), salt)
