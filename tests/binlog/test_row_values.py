"""Row images from the table map alone: names, signs, labels and character sets where they are said,
guesses where not."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.images.row_values import RowValues
from applier.binlog.reader import LogReader
from applier.binlog.rows import read_rows
from applier.binlog.table_map import read_table_map
from applier.errors import InputError
from tests.binlog.build import log, rows, table_map, write


def decode(
    folder: Path, types: bytes, metadata: bytes, optional: bytes, image: bytes, kind: int = 30
) -> list[tuple[Any, Any]]:
    """(before, after) of the rows of one event."""
    map_type, map_body = table_map(types=types, metadata=metadata)
    reader = LogReader(
        [write(folder, log((map_type, map_body + optional), rows(kind, image, width=len(types))))]
    )
    values, found, table = RowValues(), [], None
    for event in reader:
        assert reader.format is not None
        if event.type == EventType.TABLE_MAP:
            table = read_table_map(event, reader.format)
        elif event.type in ROWS_TYPES:
            assert table is not None
            found += values.rows(event, read_rows(event, reader.format), table)
    return found


def optional(kind: int, data: bytes) -> bytes:
    return bytes([kind, len(data)]) + data


def test_without_metadata(tmp_path: Path) -> None:
    image = b"\0" + struct.pack("<i", -1) + b"\x02hi" + b"\x02\xff\xfe" + b"\x05"
    found = decode(tmp_path, b"\x03\x0f\x0f\xfe", b"\x10\0\x10\0\xf7\x01", b"", image)
    assert found == [(None, {"@1": -1, "@2": "hi", "@3": "0xFFFE", "@4": 5})]


def test_with_full_metadata(tmp_path: Path) -> None:
    told = (
        optional(1, b"\x80")
        + optional(3, bytes([8, 63]))
        + optional(4, b"\x01n\x01t\x01b\x01e\x01s")
        + optional(5, b"\x02\x01x\x01y")
        + optional(6, b"\x02\x01p\x01q")
    )
    image = b"\0" + b"\xff\xff\xff\xff" + b"\x01\xe9" + b"\x02\x00\xff" + b"\x02" + b"\x03"
    found = decode(tmp_path, b"\x03\x0f\x0f\xfe\xfe", b"\x10\0\x10\0\xf7\x01\xf8\x01", told, image)
    assert found == [(None, {"n": 4294967295, "t": "é", "b": "0x00FF", "e": "q", "s": "x,y"})]


@pytest.mark.parametrize(
    ("kind", "metadata", "raw", "shown"),
    [
        (13, b"", b"\x00", 0),
        (13, b"", b"\x7e", 2026),
        (16, b"\x02\x01", b"\x02\x01", 513),
        (4, b"\x04", struct.pack("<f", 0.5), 0.5),
        (5, b"\x08", struct.pack("<d", -1e300), -1e300),
        (246, b"\x05\x02", b"\x80\x7b\x2d", "123.45"),
        (10, b"", (21 | 11 << 5 | 2026 << 9).to_bytes(3, "little"), "2026-11-21"),
        (18, b"\0", b"\x80\0\0\0\0", "0000-00-00 00:00:00"),
        (17, b"\0", struct.pack(">I", 1_700_000_000), "2023-11-14 22:13:20"),
        (19, b"\0", b"\x7f\xff\xff", "-00:00:01"),
        (7, b"", struct.pack("<I", 1_700_000_000), "2023-11-14 22:13:20"),
        (12, b"", struct.pack("<Q", 20261121040506), "2026-11-21 04:05:06"),
        (11, b"", (-10203).to_bytes(3, "little", signed=True), "-01:02:03"),
        (245, b"\x04", struct.pack("<I", 3) + b"\x05\xff\xff", "-1"),
        (255, b"\x04", struct.pack("<I", 2) + b"\x00\xab", "0x00AB"),
        (242, b"\x04", struct.pack("<I", 4) + struct.pack("<f", 1), "0x0000803F"),
        (252, b"\x01", b"\x02ok", "ok"),
        (140, b"\x02", b"\x03\0\0hi", "hi"),
    ],
)
def test_types(tmp_path: Path, kind: int, metadata: bytes, raw: bytes, shown: object) -> None:
    assert decode(tmp_path, bytes([kind]), metadata, b"", b"\0" + raw + b"\x01") == [
        (None, {"@1": shown}),
        (None, {"@1": None}),
    ]


def test_update_and_delete(tmp_path: Path) -> None:
    one, two = b"\0" + struct.pack("<i", 1), b"\0" + struct.pack("<i", 2)
    assert decode(tmp_path, b"\x03", b"", b"", one + two + two + one, 31) == [
        ({"@1": 1}, {"@1": 2}),
        ({"@1": 2}, {"@1": 1}),
    ]
    assert decode(tmp_path, b"\x03", b"", b"", one, 32) == [({"@1": 1}, None)]


DIFFS = b"\x00\x03$.a\x03\x05\x07\x00\x01\x04$[0]\x03\x05\x01\x00\x01\x03$.c\x02\x04\x01\x02\x03$.b"


def test_partial_update(tmp_path: Path) -> None:
    document = b"\x05\x01\x00"
    before = b"\0" + struct.pack("<I", 3) + document
    changes = b"\x01\x01" + b"\0" + struct.pack("<I", len(DIFFS)) + DIFFS
    whole = b"\x00" + before
    found = decode(tmp_path, b"\xf5", b"\x04", b"", before + changes + before + whole, 39)
    text = (
        "JSON_REPLACE('$.a', 7) JSON_ARRAY_INSERT('$[0]', 1) JSON_INSERT('$.c', true) "
        "JSON_REMOVE('$.b')"
    )
    assert found == [({"@1": "1"}, {"@1": text}), ({"@1": "1"}, {"@1": "1"})]


def test_an_update_and_a_partial_one_of_one_shape(tmp_path: Path) -> None:
    image = b"\0" + struct.pack("<I", 3) + b"\x05\x01\x00"
    path = write(
        tmp_path,
        log(
            table_map(types=b"\xf5", metadata=b"\x04"),
            rows(31, image + image),
            rows(39, image + b"\0" + image),
        ),
    )
    values, found = RowValues(), []
    reader = LogReader([path])
    for event in reader:
        assert reader.format is not None
        if event.type == EventType.TABLE_MAP:
            mapped = read_table_map(event, reader.format)
        elif event.type in ROWS_TYPES:
            found.append(values.rows(event, read_rows(event, reader.format), mapped))
    assert found == [[({"@1": "1"}, {"@1": "1"})]] * 2


@pytest.mark.parametrize(
    ("types", "metadata", "image", "kind"),
    [
        (b"\x03", b"", b"\0\x01", 30),
        (b"\x0f", b"\x10\0", b"\0\x09abc", 30),
        (b"\x11", b"\x07", b"\0\0\0\0\0", 30),
        (b"\x63", b"", b"\0", 30),
        (b"\xf5", b"\x04", b"\0" + struct.pack("<I", 3) + b"\x00\xff\xff", 30),
        (b"\xf5", b"\x04", b"\0" + struct.pack("<I", 3) + b"\x05\x01\x00" + b"\x01", 39),
        (b"\xf5", b"\x04",
         b"\0" + struct.pack("<I", 3) + b"\x05\x01\x00" + b"\x02\0" + struct.pack("<I", 0), 39),
        (b"\xf5", b"\x04",
         b"\0" + struct.pack("<I", 3) + b"\x05\x01\x00" + b"\x01\x01\0\x05\0\0\0\x09\x03$.a", 39),
    ],
)  # fmt: skip
def test_damaged(tmp_path: Path, types: bytes, metadata: bytes, image: bytes, kind: int) -> None:
    with pytest.raises(InputError) as caught:
        decode(tmp_path, types, metadata, b"", image, kind)
    assert (caught.value.file, caught.value.table) == ("binlog.000001", "d.t")
