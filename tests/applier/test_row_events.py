"""Rows events of every column type, through a whole replay: what went into the images stands in the
tables."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.binlog.types import json
from tests.applier.logs import insert, log, replay_log, transaction
from tests.binlog.build import packed, rows, table_map, write


@dataclass(frozen=True)
class Kind:
    """A column type: its SQL, type code, metadata, and a strategy of (bytes in the image, value in
    Python)."""

    sql: str
    code: int
    metadata: bytes
    values: st.SearchStrategy[tuple[bytes, Any]]


def integers(sql: str, code: int, size: int, *, unsigned: bool = False) -> Kind:
    bits = 8 * size
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    values = st.integers(low, high).map(
        lambda number: (number.to_bytes(size, "little", signed=not unsigned), number)
    )
    return Kind(sql + (" UNSIGNED" if unsigned else ""), code, b"", values)


def prefixed(sql: str, code: int, metadata: bytes, width: int, most: int, *, text: bool) -> Kind:
    content = (
        st.text(st.characters(codec="utf-8", exclude_characters=" \0"), max_size=most)
        if text
        else st.binary(max_size=most)
    )

    def image(value: Any) -> tuple[bytes, Any]:
        data = value.encode() if text else value
        return len(data).to_bytes(width, "little") + data, value

    return Kind(sql, code, metadata, content.map(image))


def time_image(microseconds: int) -> tuple[bytes, timedelta]:
    """TIME(6), as written down in sql-common/my_time.cc: sign, hours, minutes, seconds,
    microseconds from 0x800000000000 on."""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    packed_time = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 24 | fraction
    value = 0x800000000000 + (-packed_time if microseconds < 0 else packed_time)
    return value.to_bytes(6, "big"), timedelta(microseconds=microseconds)


def datetime_image(moment: datetime) -> tuple[bytes, datetime]:
    whole = (
        ((moment.year * 13 + moment.month) << 5 | moment.day) << 17
        | moment.hour << 12
        | moment.minute << 6
        | moment.second
    )
    return (whole + 0x8000000000).to_bytes(5, "big") + moment.microsecond.to_bytes(3, "big"), moment


def decimal_image(number: int) -> tuple[bytes, Decimal]:
    """DECIMAL(9,0): four bytes, the sign bit turned, all bits turned when negative."""
    raw = abs(number).to_bytes(4, "big")
    if number < 0:
        raw = bytes(255 - byte for byte in raw)
    return bytes([raw[0] ^ 0x80]) + raw[1:], Decimal(number)


DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 40), 1 << 40)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def json_image(document: Any) -> tuple[bytes, str]:
    data = json.encode(document)
    return len(data).to_bytes(4, "little") + data, json.to_text(json.decode(data))


KINDS = (
    *(
        integers(sql, code, size, unsigned=unsigned)
        for sql, code, size in (
            ("TINYINT", 1, 1),
            ("SMALLINT", 2, 2),
            ("MEDIUMINT", 9, 3),
            ("INT", 3, 4),
            ("BIGINT", 8, 8),
        )
        for unsigned in (False, True)
    ),
    Kind(
        "FLOAT",
        4,
        b"\4",
        st.floats(width=32, allow_nan=False, allow_infinity=False).map(
            lambda value: (struct.pack("<f", value), value)
        ),
    ),
    Kind("DOUBLE", 5, b"\x08",
         st.floats(allow_nan=False,
                   allow_infinity=False).map(lambda value: (struct.pack("<d", value), value))),
    Kind("DECIMAL(9,0)", 246, b"\x09\0", st.integers(-999_999_999, 999_999_999).map(decimal_image)),
    Kind("YEAR", 13, b"", st.integers(1, 255).map(lambda value: (bytes([value]), 1900 + value))),
    Kind(
        "DATE",
        10,
        b"",
        st.dates(date(1, 1, 1)).map(
            lambda day: ((day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little"), day)
        ),
    ),
    Kind("TIME(6)", 19, b"\6", st.integers(-3_020_399_000_000, 3_020_399_000_000).map(time_image)),
    Kind("DATETIME(6)", 18, b"\6",
         st.datetimes(datetime(1, 1,
                               1)).map(lambda moment: datetime_image(moment.replace(fold=0)))),
    Kind(
        "TIMESTAMP NULL",
        17,
        b"\0",
        st.integers(1, (1 << 32) - 1).map(
            lambda value: (value.to_bytes(4, "big"), datetime.fromtimestamp(value, UTC))
        ),
    ),
    prefixed("VARCHAR(60) CHARSET utf8mb4", 15, b"\xf0\0", 1, 60, text=True),
    prefixed("VARCHAR(90) CHARSET utf8mb4", 15, b"\x68\1", 2, 90, text=True),
    prefixed("CHAR(60) CHARSET utf8mb4", 254, b"\xfe\xf0", 1, 60, text=True),
    prefixed("VARBINARY(200)", 15, b"\xc8\0", 1, 200, text=False),
    prefixed("TINYBLOB", 252, b"\1", 1, 200, text=False),
    prefixed("BLOB", 252, b"\2", 2, 200, text=False),
    prefixed("MEDIUMTEXT CHARSET utf8mb4", 252, b"\3", 3, 90, text=True),
    prefixed("LONGBLOB", 252, b"\4", 4, 200, text=False),
    prefixed("GEOMETRY", 255, b"\4", 4, 60, text=False),
    Kind("BIT(11)", 16, b"\3\1",
         st.integers(0, 2047).map(lambda value: (value.to_bytes(2, "big"), value))),
    Kind("ENUM('p','q','r')", 254, b"\xf7\1",
         st.integers(1, 3).map(lambda value: (bytes([value]), "pqr"[value - 1]))),
    Kind(
        "SET('p','q','r')",
        254,
        b"\xf8\1",
        st.integers(0, 7).map(
            lambda mask: (bytes([mask]), ",".join("pqr"[at] for at in range(3) if mask >> at & 1))
        ),
    ),
    Kind("JSON", 245, b"\4", DOCUMENTS.map(json_image)),
)  # fmt: skip


@st.composite
def tables_with_rows(draw: st.DrawFn) -> tuple[list[Kind], list[list[tuple[bytes, Any] | None]]]:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12))
    row = st.tuples(*(st.none() | kind.values for kind in kinds)).map(list)
    return kinds, draw(st.lists(row, min_size=1, max_size=4))


def image(row: list[tuple[bytes, Any] | None]) -> bytes:
    nulls = sum(1 << at for at, value in enumerate(row) if value is None)
    return nulls.to_bytes((len(row) + 7) // 8, "little") + b"".join(
        value[0] for value in row if value is not None
    )


def values(row: list[tuple[bytes, Any] | None]) -> tuple[Any, ...]:
    return tuple(None if value is None else value[1] for value in row)


def nullable_map(kinds: list[Kind]) -> tuple[int, bytes]:
    kind, body = table_map(
        types=bytes(each.code for each in kinds), metadata=b"".join(each.metadata for each in kinds)
    )
    return kind, body[: -((len(kinds) + 7) // 8)] + b"\xff" * ((len(kinds) + 7) // 8)


OWN_KEY = "k INT NOT NULL AUTO_INCREMENT PRIMARY KEY"


@settings(max_examples=80)
@given(
    tables_with_rows(),
    st.sampled_from([(None, ""), (None, OWN_KEY), ("5.7", ""), ("5.7", OWN_KEY), ("mariadb", "")]),
)
def test_every_type_in_and_out(
    made: tuple[list[Kind], list[list[Any]]], side: tuple[str | None, str]
) -> None:
    """Inserted, changed into the first row, and deleted again; a key at the right that only the
    replica has keeps its own values."""
    kinds, wanted = made
    server, key = side
    width = len(kinds)
    columns = ", ".join(
        [f"c{at} {kind.sql}" for at, kind in enumerate(kinds)] + ([key] if key else [])
    )
    mapped = nullable_map(kinds)
    written = transaction(1, mapped, rows(30, b"".join(map(image, wanted)), width=width))
    changed = transaction(
        2, mapped, rows(31, b"".join(image(row) + image(wanted[0]) for row in wanted), width=width)
    )
    removed = transaction(3, mapped, rows(32, image(wanted[0]) * len(wanted), width=width))
    with tempfile.TemporaryDirectory() as folder:
        tables = applier.load_schema(f"CREATE TABLE d.t ({columns});")
        end = width if key else None
        for part, expected in (
            (written, [values(row) for row in wanted]),
            (changed, [values(wanted[0])] * len(wanted)),
            (removed, []),
        ):
            result = applier.replay([write(Path(folder), log(*part))], into=tables, server=server)
            assert result.error is None, result.error
            found = tables["d.t"].rows()
            assert [repr(row[:end]) for row in found] == [repr(row) for row in expected]
            if key and found:
                assert [row[-1] for row in found] == list(range(1, len(found) + 1))


def test_a_vector(tmp_path: Path) -> None:
    raw = struct.pack("<3f", 1.0, -2.5, 0.0)
    content = log(
        *transaction(
            1,
            table_map(types=b"\xf2", metadata=b"\4"),
            rows(30, b"\0" + struct.pack("<I", 12) + raw),
        ),
        version="9.7.0",
    )
    tables, result = replay_log(tmp_path, content, "CREATE TABLE d.t (v VECTOR(3));")
    assert result.error is None
    assert tables["d.t"].rows() == [(raw,)]


# generated invisible primary keys


def hidden_key_log(*, flag: bool, width: int, image: bytes) -> bytes:
    kind, body = table_map(types=b"\x08\x03"[-width:])
    return log(
        *transaction(
            1,
            (kind, body[:6] + struct.pack("<H", 5 if flag else 1) + body[8:]),
            rows(30, image, width=width),
        ),
        version="9.7.0",
    )


HIDDEN = (
    "CREATE TABLE d.t (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE, a INT, "
    "PRIMARY KEY (my_row_id));"
)
PLAIN = "CREATE TABLE d.t (a INT);"


@pytest.mark.parametrize(
    ("flag", "schema", "found"),
    [
        (True, HIDDEN, [(40, 7)]),
        (True, PLAIN, [(7,)]),
        (False, HIDDEN, [(1, 7)]),
        (False, PLAIN, [(7,)]),
    ],
)
def test_a_generated_invisible_key_on_one_side_or_both(
    tmp_path: Path, flag: bool, schema: str, found: list[tuple[int, ...]]
) -> None:
    content = hidden_key_log(
        flag=flag,
        width=1 + flag,
        image=b"\0" + (struct.pack("<q", 40) if flag else b"") + struct.pack("<i", 7),
    )
    tables, result = replay_log(tmp_path, content, schema)
    assert result.error is None
    assert tables["d.t"].rows() == found


# partial updates of JSON


def partial_update(document: Any, options: bytes, after: bytes) -> list[tuple[int, bytes]]:
    before = json.encode(document)
    key = struct.pack("<i", 1)
    mapped = table_map(types=b"\x03\xf5", metadata=b"\4")
    pair = b"\0" + key + len(before).to_bytes(4, "little") + before + options + b"\0" + key + after
    inserted = rows(30, b"\0" + key + len(before).to_bytes(4, "little") + before, width=2)
    return [*transaction(1, mapped, inserted), *transaction(2, mapped, rows(39, pair, width=2))]


def change(path: bytes, value: Any) -> bytes:
    data = json.encode(value)
    return b"\0" + packed(len(path)) + path + packed(len(data)) + data


JSON_TABLE = "CREATE TABLE d.t (id INT PRIMARY KEY, j JSON);"


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


@pytest.mark.parametrize(
    ("options", "after", "found"),
    [
        (b"\1\1", sized(change(b"$.a", 5)), '{"a": 5, "b": [1]}'),
        (b"\1\1", sized(change(b"$.b[0]", "x") + change(b"$.a", None)), '{"a": null, "b": ["x"]}'),
        (b"\1\1", sized(b""), '{"a": 1, "b": [1]}'),
        (b"\1\0", sized(json.encode({"z": 1})), '{"z": 1}'),
        (b"\0", sized(json.encode([2])), "[2]"),
    ],
)
def test_partial_updates(tmp_path: Path, options: bytes, after: bytes, found: str) -> None:
    tables, result = replay_log(
        tmp_path, log(*partial_update({"a": 1, "b": [1]}, options, after)), JSON_TABLE
    )
    assert result.error is None, result.error
    assert tables["d.t"].rows() == [(1, found)]


@pytest.mark.parametrize(
    ("options", "after", "says"),
    [
        (b"\1\1", sized(change(b"$.zz", 5)), "3648"),
        (b"\2\1", sized(b""), "unknown options"),
        (b"\1\1", sized(b"\0\5$"), "runs past"),
        (b"\1\1", sized(change(b"$[", 1)), "names no single value"),
        (b"\1\1", b"\xff\0\0\0", "runs past"),
    ],
)
def test_partial_updates_that_cannot_be_applied(
    tmp_path: Path, options: bytes, after: bytes, says: str
) -> None:
    content = log(*partial_update({"a": 1}, options, after))
    tables = applier.load_schema(JSON_TABLE)
    try:
        result = applier.replay([write(tmp_path, content)], into=tables)
        error: applier.BinlagError | None = result.error
    except applier.InputError as refused:
        error = refused
    assert error is not None
    assert says in str(error)
    assert (error.table, error.position is not None, error.file is not None) == ("d.t", True, True)
    assert tables["d.t"].rows() == [(1, '{"a": 1}')]


MOMENTS = """CREATE TABLE d.t (id INT PRIMARY KEY, n INT DEFAULT 7,
    at DATETIME DEFAULT CURRENT_TIMESTAMP, day DATE DEFAULT (CURRENT_DATE), two INT DEFAULT (1 + 1),
    zero TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);"""


def test_columns_of_the_replica_whose_default_is_of_the_moment(tmp_path: Path) -> None:
    """They get the event's time in the replica's own time zone (seen on 9.7.4 and 5.7.29); MariaDB
    10.11.18 leaves NULL or zero."""
    content = log(*insert(1, 1))
    tables, result = replay_log(tmp_path, content, MOMENTS, server="9.7")
    assert result.error is None
    with pytest.raises(applier.ReplicationError, match="no log tells the moment"):
        tables["d.t"].rows()
    tables, result = replay_log(
        tmp_path, content, applier.load_schema(MOMENTS, server="mariadb"), server="mariadb"
    )
    assert (result.error, tables["d.t"].rows()) == (
        None,
        [(1, 7, None, None, 2, "0000-00-00 00:00:00")],
    )
