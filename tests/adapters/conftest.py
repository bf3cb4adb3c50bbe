"""The command line, as its own tests run it."""

import pytest

from tests.cli.conftest import run

__all__ = ["run"]


@pytest.fixture(scope="module", autouse=True)
def brief_decoders(briefly):
    """No test here is about how well a decoder does."""
