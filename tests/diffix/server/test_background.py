import socket
from urllib.parse import urlsplit

import pytest

from countleak.diffix.server.background import serve_columns
from countleak.errors import TargetError
from tests.diffix.conftest import salt_number


def columns_of(people):
    return {people.id_column: people.ids, **people.columns}


def listens(address):
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname, parts.port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_server_ends_with_its_block_whatever_happens(bank, tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        serve_columns(columns_of(bank), "client_id", tmp_path, salt_number(0), "18.1") as served,
    ):
        assert listens(served.postgres)
        assert listens(served.rest)
        raise KeyboardInterrupt
    assert not listens(served.postgres)
    assert not listens(served.rest)
    assert (tmp_path / "server.salt").stat().st_mode & 0o777 == 0o600
    assert "countleak: stopping\n" in (tmp_path / "server.log").read_text()


def test_a_server_that_does_not_start_says_why(bank, tmp_path):
    with (
        pytest.raises(TargetError, match=r"did not start: countleak: .*there is no release"),
        serve_columns(columns_of(bank), "client_id", tmp_path, salt_number(0), "19.1"),
    ):
        pass
