import hashlib
import secrets
import struct
from fractions import Fraction

import pytest

from countleak.diffix.salt import Salt, canonical, salt_file
from countleak.diffix.sql.statement import Column, Kind, Table
from countleak.errors import InputError


def test_a_salt_file_is_made_once_at_random_and_for_its_owner_only(tmp_path):
    first, second = salt_file(tmp_path / "a" / "salt"), salt_file(tmp_path / "b")
    assert first != second
    assert salt_file(tmp_path / "a" / "salt") == first
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    (tmp_path / "b").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        salt_file(tmp_path / "b")


def test_a_salt_that_can_be_guessed_is_refused():
    with pytest.raises(InputError, match="can be guessed"):
        Salt(b"short")


def test_a_salt_is_not_in_its_repr():
    assert "secret" not in repr(Salt(b"secret secret"))


def test_elements_are_apart_by_role_and_hashes_are_sha256():
    salt, table = Salt(b"0123456789"), Table("t", "u", {"u": Kind.WHOLE})
    assert salt.element("value", "5") != salt.element("column", "5")
    column = Column("u", Kind.WHOLE)
    key = hashlib.sha256(b"0123456789\0value\0t\0u").hexdigest()
    expected = hashlib.sha256(f"{key}42".encode()).hexdigest()[:16]
    assert f"{salt.value(table, column, Fraction(42)):016x}" == expected


def test_numbers_have_one_spelling():
    assert canonical(Kind.WHOLE, Fraction(5)) == canonical(Kind.WHOLE, 5.0) == "5"
    bits = "".join(f"{byte:08b}" for byte in struct.pack(">d", 0.1))
    assert canonical(Kind.NUMBER, Fraction("0.1")) == bits
    assert canonical(Kind.NUMBER, -0.0) == canonical(Kind.NUMBER, 0.0)


def test_a_salt_that_could_not_be_written_leaves_no_file(tmp_path, monkeypatch):
    def full(count):
        raise OSError("no space left on device")

    monkeypatch.setattr(secrets, "token_hex", full)
    with pytest.raises(OSError, match="no space"):
        salt_file(tmp_path / "salt")
    assert not list(tmp_path.iterdir())
