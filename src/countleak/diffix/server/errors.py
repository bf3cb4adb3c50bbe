"""What a client is told when a statement fails: a PostgreSQL state and one line."""

from countleak.errors import Refused, TargetError

REFUSED = "0A000"
UNKNOWN_NAME = "42704"
BAD_VALUE = "22023"
TOO_MUCH = "54000"
TOO_MANY_CONNECTIONS = "53300"
TOO_BUSY = "53400"
NO_MEMORY = "53200"
TOO_DEEP = "54001"
INTERNAL = "XX000"
CANCELLED = "57014"
PROTOCOL = "08P01"
IN_FAILED_TRANSACTION = "25P02"
NO_DATABASE = "3D000"
NOT_AUTHENTICATED = "28P01"
NO_STATEMENT = "26000"
NO_PORTAL = "34000"
SHUTTING_DOWN = "57P01"
STOPPING = "terminating connection: the server is stopping"
CANNOT_COMPUTE = "58000"


class Failure(TargetError):
    """A statement or a connection that fails, with the state that PostgreSQL gives such a case."""

    def __init__(self, state: str, text: str):
        super().__init__(text)
        self.state = state


def state_of(error: TargetError) -> str:
    """The PostgreSQL state of an error."""
    if isinstance(error, Failure):
        return error.state
    return REFUSED if isinstance(error, Refused) else CANNOT_COMPUTE


def one_line(text: str, longest: int = 500) -> str:
    """What a client wrote as one line of plain characters, cut where it is long."""
    words = " ".join(text[: 2 * longest].split())
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in words)
    return line if len(line) <= longest else f"{line[:longest]}..."
