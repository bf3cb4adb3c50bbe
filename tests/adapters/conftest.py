"""The command line, as its own tests run it."""

from tests.cli.conftest import run

__all__ = ["run"]
