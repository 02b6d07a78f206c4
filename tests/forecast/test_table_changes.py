"""The changes of a table out of a log, without Spark: values, ranges, whole transactions, table
maps that change."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from applier.binlog import wire
from applier.errors import InputError, UsageError
from applier.forecast.workload.ranges import ranges
from applier.forecast.workload.table_changes import changes, column_schema, whole_transactions
from tests.binlog.build import UUID_TEXT, gtid, int_image, log, query, rows, table_map, write, xid

BEGIN = query(b"BEGIN")
OTHER = [table_map(2, table=b"other"), rows(30, int_image(9), 2)]
STAMP = bytes.fromhex("0102030405060000")[:7]


def transaction(number: int, *events: tuple[int, bytes]) -> list[tuple[int, bytes]]:
    return [gtid(number, rest=STAMP), BEGIN, table_map(), *events, xid()]


def content(count: int = 4) -> bytes:
    def change(number: int) -> list[tuple[int, bytes]]:
        update = rows(31, int_image(number) + b"\1")
        return [
            rows(30, int_image(number) * 2),
            *OTHER,
            table_map(),
            update,
            rows(32, int_image(7)),
        ]

    parts = [transaction(number, *change(number)) for number in range(1, count + 1)]
    return log(*(event for part in parts for event in part))


def read(path: Path, size: int = 1 << 20) -> list[dict[str, Any]]:
    columns = column_schema([str(path)], "d.t")
    return [
        row
        for part in ranges([str(path)], size)
        for batch in changes(part, "d.t", columns)
        for row in batch.to_pylist()
    ]


def test_images_before_and_after(tmp_path: Path) -> None:
    found = read(write(tmp_path, content(2)))
    assert [(row["type"], row["before"], row["after"]) for row in found[:4]] == [
        ("insert", None, {"@1": 1}), ("insert", None, {"@1": 1}),
        ("update", {"@1": 1}, {"@1": None}), ("delete", {"@1": 7}, None),
    ]  # fmt: skip
    assert [row["gtid"] for row in found] == [f"{UUID_TEXT}:1"] * 4 + [f"{UUID_TEXT}:2"] * 4
    assert {int(row["commit_time"].timestamp() * 1_000_000) for row in found} == {
        int.from_bytes(STAMP, "little")
    }
    assert {row["file"] for row in found} == {"binlog.000001"}
    assert len({(row["position"], row["event"], row["row"]) for row in found}) == len(found)


def test_ranges_hold_each_change_once(tmp_path: Path) -> None:
    path = write(tmp_path, content(40))
    assert len(ranges([str(path)], 700)) > 5
    assert read(path, 700) == read(path)


def test_whole_transactions_only(tmp_path: Path) -> None:
    """Wherever a file that is being written ends: the same position as of the transactions that are
    there."""
    whole = content(2)
    path, end = (
        write(tmp_path, whole),
        whole_transactions(str(write(tmp_path, content(1), "binlog.000002")), None),
    )
    assert whole_transactions(str(path), None) == whole_transactions(str(path), end) == len(whole)
    for size in range(len(content(1)), len(whole), 7):
        assert whole_transactions(str(write(tmp_path, whole[:size])), None) == end


def test_columns_that_come_and_change(tmp_path: Path) -> None:
    """A later table map gives what it has; values that the first one's type cannot hold are an
    error with its place."""
    short, wide = (
        table_map(3, types=bytes([wire.SHORT])),
        table_map(4, types=bytes([wire.LONG, wire.LONG])),
    )
    narrow, broad = (
        rows(30, b"\0" + struct.pack("<h", -5), 3),
        rows(30, b"\0" + struct.pack("<ii", 3, 4), 4, 2),
    )
    more = [gtid(8), BEGIN, short, narrow, wide, broad, xid()]
    assert [
        row["after"]
        for row in read(write(tmp_path, log(*transaction(1, rows(30, int_image(1))), *more)))
    ] == [
        {"@1": 1},
        {"@1": -5},
        {"@1": 3},
    ]
    text = table_map(5, types=bytes([wire.VARCHAR]), metadata=struct.pack("<H", 10))
    odd = [gtid(9), BEGIN, text, rows(30, b"\0\1x", 5), xid()]
    with pytest.raises(InputError, match="column @1 has become one of binary") as caught:
        read(write(tmp_path, log(*transaction(1, rows(30, int_image(1))), *odd)))
    assert (caught.value.file, caught.value.table) == ("binlog.000001", "d.t")
    assert caught.value.position is not None


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no rows of the table d\.nowhere"):
        column_schema([str(write(tmp_path, content()))], "d.nowhere")
