"""How long work reports how far it has come."""

from collections.abc import Callable

# Called with the steps done and their total.
Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Report nothing."""
