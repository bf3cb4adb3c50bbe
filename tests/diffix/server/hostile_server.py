"""A server in a process of its own, whose statements are as bad as can be: see ``Hostile``."""

import asyncio
import sys

from countleak.audit.people import generated_bank
from countleak.diffix.server.options import Limits, Listening
from countleak.diffix.server.server import Server
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import User, Users
from tests.diffix.server.loads import Hostile, bank_columns


def announce(protocol: str, host: str, port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    limits = Limits(drain_seconds=float(sys.argv[1]))
    users = Users({name: User(name, trusted=True) for name in ("analyst", "other")})
    served = Served("bank", Hostile(bank_columns(generated_bank(7))), limits, users.by_name)
    listening = Listening(postgres_port=0, rest_port=0)
    asyncio.run(Server([served], users, listening, limits).serve(announce))
