"""`countleak serve`: Diffix behind PostgreSQL's protocol and REST, or the lab's pages."""

import asyncio
import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.audit.people import generated_bank
from countleak.cli import console, options
from countleak.cli.option_rules import ABSENT, GIVEN, needs
from countleak.errors import InputError, MissingExtra

DEMO_SALT = Path("demo") / "salt"
LAB_PORT = 8050


@needs(
    {
        "--salt-file": {"--demo": GIVEN},
        "--lab-port": {"--lab": GIVEN},
        "--lab": {"--make-verifier": ABSENT},
        **{
            option: {"--make-verifier": ABSENT, "--lab": ABSENT}
            for option in ("FILE", "--demo", "--host", "--port", "--rest-port", "--allow-remote")
        },
    }
)
def serve(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="TOML file with databases, tables and users; see docs/server.md."
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Serve a generated bank to `analyst`, without a password."),
    ] = False,
    lab: Annotated[
        bool,
        typer.Option(
            "--lab", help="Serve pages to this machine's browser: ask Diffix, attack it, map it."
        ),
    ] = False,
    lab_port: Annotated[
        int, typer.Option(help="--lab: its port; 0 for any.", min=0, max=65535)
    ] = LAB_PORT,
    host: Annotated[
        str | None, typer.Option(help="Address to listen at (127.0.0.1, or the file's).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", help="PostgreSQL's port (5433); 0 for any.", min=0, max=65535),
    ] = None,
    rest_port: Annotated[
        int | None, typer.Option(help="REST's port (8033); 0 for any.", min=0, max=65535)
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen where other machines can reach it.")
    ] = False,
    salt_file: Annotated[
        Path,
        typer.Option(help="--demo: file of the secret behind the noise; made where there is none."),
    ] = DEMO_SALT,
    make_verifier: Annotated[
        bool,
        typer.Option(
            "--make-verifier",
            help="Read a password (from the terminal or a pipe) and print its SCRAM verifier.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Serve Diffix over a database to psql, drivers and HTTP clients."""
    try:
        from countleak.diffix.server.configuration import demo as demo_server
        from countleak.diffix.server.configuration import from_file
        from countleak.diffix.server.options import Listening
        from countleak.diffix.server.users import Verifier
    except ModuleNotFoundError:
        raise MissingExtra("a server", "server") from None

    if make_verifier:
        verifier = str(Verifier.of_password(_password()))
        if json:
            console.print_json({"verifier": verifier})
        else:
            console.say(verifier)
        return
    if lab:
        _serve_lab(lab_port, json)
        return
    if (file is None) == (not demo):
        raise InputError("name a TOML file of what to serve, or pass --demo or --lab")
    given = {"host": host, "postgres_port": port, "rest_port": rest_port}
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if file is not None:
        server = from_file(file, changed)
    else:
        bank = generated_bank(seed=7)
        server = demo_server(bank.all_columns, bank.key[0], Listening(**changed), salt_file)
    if not (allow_remote or server.listening.is_loopback):
        raise InputError(
            f"{server.listening.host} can be reached from other machines; pass --allow-remote "
            "if it should"
        )
    server.listening.check(server.users)
    asyncio.run(server.serve(_announce_json if json else _announce))


def _serve_lab(port: int, json: bool) -> None:
    try:
        from countleak.lab_page.server import serve as serve_lab
    except ModuleNotFoundError:
        raise MissingExtra("the lab", "server") from None
    asyncio.run(serve_lab(port, _announce_json if json else _announce))


def _announce(protocol: str, host: str, port: int) -> None:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # What a browser opens is written as an address that a terminal lets one click.
    written = f"http://{address}" if protocol in ("REST", "Lab") else address
    console.say(f"{protocol} on {written}")
    sys.stdout.flush()


def _announce_json(protocol: str, host: str, port: int) -> None:
    console.print_json({"listener": protocol, "host": host, "port": port})
    sys.stdout.flush()


def _password() -> str:
    text = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not text:
        raise InputError("the password is empty; type one, or pipe one in")
    return text
