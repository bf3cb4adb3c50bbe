"""Any program as a target: it reads a question per line and answers with a line, in any order.

The protocol is in docs/protocol.md. The program is a process group of its own, without a shell; it
is started when it is first asked, asked by as many connections as there may be questions in flight,
and killed with its group at the end. It is not trusted: lines are bounded, every wait has a limit.
"""

import re
import shlex
import weakref
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.secrets import Number
from countleak.attack.transcript import Answers
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.pool import Connection, ask_all
from countleak.audit.targets.program import Program, ProgramError, Silent
from countleak.audit.targets.sql import Parts, SqlQuestions
from countleak.errors import KEPT, InputError, NoCount, Refused, TargetError
from countleak.foreign import clean, first_line, without

PROTOCOL = 1
SCHEME = "cmd:"
LONGEST_NAME = 100
# The password in an address. Shorter words of a command are numbers, and stand in many a text.
PASSWORD, SHORTEST_SECRET = re.compile("://[^:@/]*:(.+)@"), 4


class CommandTarget:
    """Counts that a program answers, over lines of JSON; ``command`` is split as a shell splits it.

    ``columns`` says what is known of the table: the kind of each column, by name.
    """

    is_local = True

    def __init__(
        self,
        command: str | Sequence[str],
        questions: SqlQuestions,
        limits: RequestLimits | None = None,
        columns: Mapping[str, str] | None = None,
    ):
        """Ask ``questions`` of a program, which is started by ``start`` or the first question."""
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:
            raise InputError(f"the command cannot be read ({error}); check its quotes") from None
        if not words or not words[0] or any("\0" in word for word in words):
            raise InputError("name the program that answers, like cmd:python my_engine.py")
        self.words, self.questions, self.columns = tuple(words), questions, columns
        self.limits = limits or RequestLimits()
        self._program: Program | None = None
        self._name = ""
        self._lock = Lock()

    def __str__(self) -> str:
        # What follows an option or looks like an address may be a secret.
        shown = [shlex.quote(word) for word in self.words[: self._hidden]]
        dots = ["..."] if self._hidden < len(self.words) else []
        name = f" ({self._name})" if self._name else ""
        return clean(f"{SCHEME}{' '.join([*shown, *dots])}{name}")

    @property
    def _hidden(self) -> int:
        """From which word on the command is hidden: the first option or address."""
        odd = (
            at
            for at, word in enumerate(self.words)
            if word.startswith("-") or set("@=") & set(word) or "://" in word
        )
        return next(odd, len(self.words))

    def said(self, text: str) -> str:
        """What the program said, in one clean line without the hidden words of the command."""
        values = [
            part
            for word in self.words[self._hidden :]
            for part in (word, word.partition("=")[2], *PASSWORD.findall(word))
            if len(part) >= SHORTEST_SECRET and not part.startswith("--")
        ]
        return first_line(without(text, *values))

    def start(self) -> None:
        """Start the program, unless it runs, and hear what it calls itself."""
        with self._lock:
            if self._program is None:
                try:
                    program = Program(self.words)
                except OSError as error:
                    words = error.strerror or type(error).__name__
                    raise TargetError(f"{self}: it cannot be started ({words})") from None
                # It holds on to nothing of this target, so both may go when this one does.
                self._finalizer = weakref.finalize(self, program.close)
                try:
                    self._name = self._greet(program)
                except BaseException:
                    self._finalizer()
                    raise
                self._program = program

    def close(self) -> None:
        """Kill the program and all that it started, if it runs."""
        with self._lock:
            if self._program is not None:
                self._program = None
                self._finalizer()

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Put the questions to the program; batches as answers come."""
        questions = self.questions.asked_in_parts(queries, positions)
        return ask_all(self.connect, questions, self.limits)

    def connect(self) -> Connection[Parts]:
        """A way to ask the program, one question at a time."""
        self.start()
        assert self._program is not None
        return _Connection(self, self._program)

    def exchange(self, program: Program, message: dict[str, Any]) -> dict[str, Any]:
        """The program's reply to a message, whose id it gives."""
        try:
            return program.exchange(message, self.limits.patience)
        except Silent:
            overdue = self.limits.overdue()
            raise TargetError(f"{self}: {overdue}") from None
        except ProgramError as error:
            raise TargetError(f"{self}: {self.said(str(error))}; {KEPT}") from None

    def read(self, reply: Mapping[str, Any]) -> float | None:
        """The count in a reply; None where it was suppressed."""
        if isinstance(reply.get("refused"), str):
            raise Refused(self.said(reply["refused"]))
        if isinstance(reply.get("error"), str):
            raise TargetError(f"{self}: {self.said(reply['error'])}")
        if reply.get("suppressed") is True:
            return None
        if reply.get("value") is None:
            raise NoCount("the answer has no value; check that it counts")
        return self.questions.count_of(reply["value"])

    def _greet(self, program: Program) -> str:
        questions = self.questions
        number = questions.secret if isinstance(questions.secret, Number) else None
        reply = self.exchange(
            program,
            {
                "id": 0,
                "protocol": PROTOCOL,
                "table": questions.table,
                "key": list(questions.key),
                "secret": None if questions.secret is None else str(questions.secret),
                "sum": None if number is None else number.column,
                "dialect": questions.dialect,
                "columns": None if self.columns is None else dict(self.columns),
            },
        )
        if isinstance(reply.get("error"), str):
            raise TargetError(f"{self}: {self.said(reply['error'])}")
        if reply.get("protocol") != PROTOCOL:
            raise TargetError(
                f"{self}: it does not speak version {PROTOCOL} of the protocol; it must answer the "
                f'first line with {{"id": 0, "protocol": {PROTOCOL}, "name": "..."}}'
            )
        name = reply.get("name")
        return first_line(name)[:LONGEST_NAME] if isinstance(name, str) and name.strip() else ""


class _Connection:
    """A way to ask the program."""

    def __init__(self, target: CommandTarget, program: Program):
        self._target, self._program = target, program

    def ask(self, statement: Parts) -> float | None:
        message = {
            "id": self._program.number(),
            "sql": statement.sql,
            "where": statement.where,
            "members": statement.members,
            "held": statement.held,
        }
        return self._target.read(self._target.exchange(self._program, message))

    def close(self) -> None:
        """The program stays, for the questions that follow may share its budget."""
