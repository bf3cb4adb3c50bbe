"""How the servers of the tests load their tables, in processes of their own."""

import gc
import os
import re
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from countleak.audit.people import People
from countleak.diffix.engine import Engine
from countleak.diffix.server.loading import Columns, Remote
from countleak.errors import Refused
from tests.diffix.conftest import salt_number


def bank_columns(bank: People) -> Columns:
    columns = {bank.id_column: bank.ids, **bank.columns}
    return Columns(columns, "loans", bank.id_column, "18.1", salt_number(0))


def bank_on_postgres(address: str, seconds: int = 31) -> Remote:
    return Remote(address, {"loans": "client_id"}, "18.1", salt_number(0), seconds)


@dataclass(frozen=True)
class Hostile:
    """A database whose engine does what a statement of the worst kind would, when it is asked to.

    The statements themselves are as long and as deep as the limits let them be; what is tested
    with this is that nothing depends on those limits having foreseen everything.
    """

    load: Columns

    def __call__(self, stack: ExitStack) -> Engine:
        engine = self.load(stack)
        return _HostileEngine(engine.database, engine.release, engine.salt)

    @staticmethod
    def asking(way: str) -> str:
        return f"SELECT count(*) FROM loans WHERE status = '{way}'"


class _HostileEngine(Engine):
    def ask(self, question):
        ways = re.findall(r"Constant\(value='([^']*)'\)", str(question.conditions))
        match ways[0] if ways else "":
            case "in DuckDB":
                self.database.rows("SELECT count(*) FROM range(1000000000000) WHERE range % 7 = 3")
            case "in Python":
                while True:
                    pass
            case "in C":
                # Nothing in this looks whether a signal came.
                sum(iter(int, 1))
            case "deaf":
                while True:
                    with suppress(BaseException):
                        while True:
                            pass
            case "killing":
                os.kill(os.getpid(), signal.SIGKILL)
            case "failing":
                return 1 // 0
            case "nested":
                return self.ask(question)
            case "frozen":
                raise Refused(f"objects that the collector leaves alone: {gc.get_freeze_count()}")
            case "in memory":
                return bytearray(4 * 10**9)
        return super().ask(question)
