"""A running server with the bank, open to `analyst` and to a token."""

import pytest

from tests.diffix.server.conftest import make_server, running, served_bank


@pytest.fixture(scope="session")
def served(bank):
    with running(make_server([served_bank(bank)])) as found:
        yield found


@pytest.fixture(scope="session")
def address(served) -> str:
    return f"postgresql://analyst@127.0.0.1:{served.port}/bank"
