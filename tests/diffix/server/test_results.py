"""Values on the wire, against what a real PostgreSQL sends and takes."""

import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.diffix.server.errors import Failure
from countleak.diffix.server.parameters import read_value as read
from countleak.diffix.server.results import (
    BINARY_FORMAT,
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TEXT_FORMAT,
    TEXTS,
)
from countleak.diffix.server.results import write_value as write

VALUES = [
    (True, BOOL),
    (False, BOOL),
    (-5, INT4),
    (2**40, INT8),
    ("a, \"b\" \\ 'c' ü", TEXT),
    ("", TEXT),
    (0.1, FLOAT8),
    (-1e300, FLOAT8),
    (12.0, FLOAT8),
    (["a", None, 'b"\\', "c,d"], TEXTS),
    ([], TEXTS),
]


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=str)
@pytest.mark.parametrize("format", [TEXT_FORMAT, BINARY_FORMAT])
def test_a_value_is_written_so_that_postgresql_reads_it(postgres, value, kind, format):
    connection = postgres.connection.pgconn
    result = connection.exec_params(
        f"SELECT $1 IS NOT DISTINCT FROM CAST($2 AS {kind.name})".encode(),
        [write(value, kind, format), _literal(value)],
        [kind.oid, 25],
        [format, TEXT_FORMAT],
    )
    assert result.get_value(0, 0) == b"t", result.error_message


def _literal(value):
    if isinstance(value, list):
        escaped = [
            "NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for v in value
        ]
        return f"{{{','.join(escaped)}}}".encode()
    return str(value).encode()


@pytest.mark.parametrize("kind", ["int2", "int4", "int8", "numeric", "float4", "float8", "text"])
@pytest.mark.parametrize("text", ["0", "-1", "12345", "-32768"])
def test_what_postgresql_sends_is_read(postgres, kind, text):
    connection = postgres.connection.pgconn
    for format in (TEXT_FORMAT, BINARY_FORMAT):
        result = connection.exec_params(
            f"SELECT CAST($1 AS {kind})".encode(), [text.encode()], [25], result_format=format
        )
        found = read(result.get_value(0, 0), result.ftype(0), format)
        assert found == (text if kind == "text" else Decimal(text))


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1e12, max_value=1e12)
)
def test_a_binary_numeric_is_read_as_psycopg_writes_it(number):
    from psycopg.types.numeric import DecimalBinaryDumper

    written = bytes(DecimalBinaryDumper(Decimal).dump(number))
    assert read(written, 1700, BINARY_FORMAT) == number


def test_null_is_null():
    assert write(None, INT8, BINARY_FORMAT) is None
    assert read(None, 20, TEXT_FORMAT) is None


@pytest.mark.parametrize(
    ("raw", "oid", "format"),
    [
        (b"x", 20, TEXT_FORMAT),
        (b"\0", 20, BINARY_FORMAT),
        (b"nan", 701, TEXT_FORMAT),
        (b"1e999999999", 1700, TEXT_FORMAT),
        (b"1e-999999999", 1700, TEXT_FORMAT),
        (struct.pack("!d", float("inf")), 701, BINARY_FORMAT),
        (b"\xff", 25, TEXT_FORMAT),
        (struct.pack("!HhHH", 0, 0, 0xC000, 0), 1700, BINARY_FORMAT),
        (b"maybe", 16, TEXT_FORMAT),
        (b"\0" * 8, 1082, BINARY_FORMAT),
    ],
)
def test_what_is_no_value_of_its_type_is_refused(raw, oid, format):
    with pytest.raises(Failure):
        read(raw, oid, format)


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(Failure, match="does not fit the type bigint"):
        write(2**70, INT8, BINARY_FORMAT)
