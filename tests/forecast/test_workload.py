"""What a log asks of a replica: counted per table, per transaction, and held against logs of real
servers."""

from __future__ import annotations

import json
import struct
from collections import Counter
from pathlib import Path

import pytest

from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.images.row_values import RowValues
from applier.binlog.reader import LogReader
from applier.binlog.rows import DUMMY_TABLE_IDS, RowsHeads
from applier.binlog.table_map import TableMap, parse_table_map
from applier.binlog.transactions import TransactionKind, group
from applier.errors import InputError
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.transaction_load import Applied, LoadShape, TransactionLoad
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import RULES
from tests.binlog.build import (
    UUID_TEXT,
    gtid,
    int_image,
    log,
    mariadb_gtid,
    packed,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.captures_support import captures, logs
from tests.forecast.workload import Workload, profile, summed

BEGIN, DDL = query(b"BEGIN"), query(b"CREATE TABLE t (a INT)")
WRITE, UPDATE, DELETE = 30, 31, 32
PAIR = b"\x03\x03"
"""Two INT columns."""


def images(*values: int) -> bytes:
    return b"".join(int_image(value) for value in values)


def pairs(*values: tuple[int, int]) -> bytes:
    return b"".join(b"\0" + struct.pack("<ii", *value) for value in values)


def loads(
    folder: Path, *events: tuple[int, bytes], version: str = "8.0.36", schema: Schema | None = None
) -> list[TransactionLoad]:
    return list(LoadReader([write(folder, log(*events, version=version))], schema=schema))


def test_a_transaction_says_what_it_changes(tmp_path: Path) -> None:
    first, second = loads(
        tmp_path,
        gtid(7, last=3, sequence=5), BEGIN, table_map(), rows(WRITE, images(1, 2, 3), flags=0),
        rows(WRITE, images(4)),
        table_map(2, table=b"u"), rows(DELETE, images(9), 2), xid(),
        gtid(8, last=5, sequence=6), DDL,
    )  # fmt: skip
    assert (first.gtid, first.last_committed, first.sequence_number) == (f"{UUID_TEXT}:7", 3, 5)
    assert (first.rows, first.rows_events, first.tables, first.complete) == (
        5,
        3,
        ("d.t", "d.u"),
        True,
    )
    parts = first.applied.values()
    assert [
        (
            one.target.table,
            one.target.kind,
            one.events,
            one.rows,
            one.row_bytes,
            one.statements,
            one.sizes,
        )
        for one in parts
    ] == [
        ("d.t", "write", 2, 4, 20, 1, {(3, 0): 1, (1, 0): 1}),
        ("d.u", "delete", 1, 1, 5, 1, {(1, 0): 1}),
    ]
    assert first.position + first.log_bytes == first.end == second.position
    assert (second.kind, second.statements, second.rows) == (TransactionKind.STATEMENT, 1, 0)
    assert first.as_dict()["tables"] == ["d.t", "d.u"]


def test_commit_times_are_taken_where_they_are_best(tmp_path: Path) -> None:
    stamp = (1_700_000_000_250_000).to_bytes(7, "little")
    precise, plain = loads(tmp_path, gtid(1, rest=stamp + b"\xfc\x10\x01"), DDL, gtid(2), DDL)
    assert precise.commit_time == 1_700_000_000.25
    assert plain.commit_time == 1_700_000_000.0


def test_every_size_and_kind_is_in_the_sum(tmp_path: Path) -> None:
    update = b"".join(pairs((n, n)) + pairs((n, -n)) for n in range(3))
    found = profile([write(tmp_path, log(
        gtid(1), BEGIN, table_map(types=PAIR), rows(UPDATE, update, width=2), xid(),
        gtid(2), BEGIN, table_map(types=PAIR), rows(UPDATE, pairs((1, 1), (2, 2)), width=2), xid(),
        gtid(3), BEGIN, table_map(types=PAIR), rows(DELETE, pairs((1, 1)), width=2), xid(),
        gtid(4), DDL,
    ))])  # fmt: skip
    assert (found.transactions, found.events, found.rows, found.statements) == (4, 3, 5, 1)
    updates, deletes = found.tables["d.t", "update"], found.tables["d.t", "delete"]
    assert (updates.transactions, updates.events, updates.rows, updates.row_bytes) == (2, 2, 4, 72)
    assert updates.rows_per_event.as_dict() == {
        "min": 1,
        "median": 1,
        "p95": 3,
        "max": 3,
        "mean": 2.0,
    }
    assert (deletes.rows, deletes.bytes_per_row, deletes.images) == (1, 9.0, {((0, 1), ()): 1})
    assert [named.position for named in found.worst_by_rows.list()] == sorted(
        named.position for named in found.worst_by_rows.list()
    )
    assert [named.rows for named in found.worst_by_rows.list()] == [3, 1, 1]
    assert found.table("d.t") == [updates, deletes]
    assert json.loads(json.dumps(found.as_dict()))["transactions"] == 4


def key_schema(*, unique: bool = False, version: str = "9.7") -> Schema:
    columns = (Column("a", "int", nullable=False), Column("b", "int"))
    definition = TableDefinition("d", "t", columns, (Key("k", (KeyPart(0),), unique=unique),))
    return Schema({"d.t": TableFacts(definition)}, RULES[version])


def test_distinct_values_of_the_key_that_a_replica_would_use(tmp_path: Path) -> None:
    events = [
        gtid(1), BEGIN, table_map(types=PAIR),
        rows(DELETE, pairs((1, 1), (1, 2), (2, 1), (1, 3)), width=2, flags=0),
        rows(DELETE, pairs((5, 1)), width=2), xid(),
    ]  # fmt: skip
    path = write(tmp_path, log(*events))
    plain = profile([path], schema=key_schema()).tables["d.t", "delete"]
    assert (plain.key, plain.distinct_values, plain.rows_per_value) == ("k", 3, 5 / 3)
    (load,) = LoadReader([path], schema=key_schema())
    assert [one.sizes for one in load.applied.values()] == [{(4, 2): 1, (1, 1): 1}]
    promoted = profile([path], schema=key_schema(unique=True)).tables["d.t", "delete"]
    assert (promoted.key, promoted.distinct_values) == (None, None)


def test_a_table_that_the_schema_lacks_is_said(tmp_path: Path) -> None:
    path = write(
        tmp_path, log(gtid(1), BEGIN, table_map(table=b"x"), rows(DELETE, images(1)), xid())
    )
    found = profile([path], schema=key_schema())
    assert found.notes == {"d.x is not in the schema: nothing is known of its keys": 1}
    assert found.rows == 1


def test_a_transaction_without_an_end_is_left_out_and_named(tmp_path: Path) -> None:
    path = write(
        tmp_path, log(gtid(1), DDL, gtid(2), BEGIN, table_map(), rows(DELETE, images(1, 2)))
    )
    found = profile([path])
    assert (found.transactions, found.rows) == (1, 0)
    assert found.incomplete is not None and found.incomplete.rows == 2
    place = f"binlog.000001:{found.incomplete.position}"
    assert list(found.notes) == [
        f"the transaction that starts at {place} is not complete; it is left out"
    ]


def test_an_empty_log(tmp_path: Path) -> None:
    found = profile([write(tmp_path, log())])
    assert (found.transactions, found.duration_seconds) == (0, 0.0)
    assert found.notes == {"the log holds no complete transaction": 1}
    assert found.worst_by_rows.list() == []


def test_a_clock_that_went_backwards_is_counted() -> None:
    times = (100.0, 105.0, 103.0, 104.0, 90.0)
    found = summed(TransactionLoad("f", at, commit_time=time) for at, time in enumerate(times))
    assert (found.steps_back, found.longest_step_back_seconds) == (2, 14.0)


def test_a_row_in_the_place_of_a_deleted_one_is_no_new_row() -> None:
    load = TransactionLoad("f", 4)
    for kind, count, keys in (("delete", 2, [7, 8]), ("write", 4, [9, 7])):
        shape = LoadShape("d.t", kind, 1, (0,), (0,))
        load.applied[shape] = Applied(shape, rows=count, keys=keys)
    elsewhere = LoadShape("d.u", "write", 1, (), (0,))
    load.applied[elsewhere] = Applied(elsewhere, rows=3, keys=[7, 8])
    assert load.new_rows == 4 / 2 + 3
    del load.applied[next(iter(load.applied))]
    assert load.new_rows == 4 + 3


def test_logs_without_begin_and_gtid(tmp_path: Path) -> None:
    """MariaDB's GTID stands for BEGIN; a log that was cut off in front has rows right away."""
    (maria,) = loads(
        tmp_path,
        mariadb_gtid(1),
        table_map(),
        rows(25, images(1, 2)),
        xid(),
        version="10.11.6-MariaDB",
    )
    assert (maria.rows, maria.gtid) == (2, "0-1-1")
    (cut,) = loads(tmp_path, table_map(), rows(WRITE, images(1)), xid())
    assert (cut.rows, cut.gtid, cut.complete) == (1, None, True)


def test_compressed_transactions(tmp_path: Path) -> None:
    inner = log(BEGIN, table_map(), rows(DELETE, images(1, 2, 3)), xid(), checksum=False)
    start = len(log(checksum=False))
    (load,) = loads(tmp_path, gtid(1), payload(inner[start:]))
    (applied,) = load.applied.values()
    assert (load.rows, applied.row_bytes) == (3, 15)
    assert load.log_bytes == load.end - load.position


def test_rows_for_no_table_map(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="table id 9") as raised:
        loads(tmp_path, gtid(1), BEGIN, table_map(), rows(DELETE, images(1), 9), xid())
    assert raised.value.position is not None
    assert loads(tmp_path, gtid(1), BEGIN, rows(DELETE, b"", 0xFFFFFF, width=0), xid())[0].rows == 0


@pytest.mark.parametrize("types", [b"\x03", b"\x0f"], ids=["fixed", "varying"])
def test_images_that_do_not_fit(tmp_path: Path, types: bytes) -> None:
    events = (
        gtid(1),
        BEGIN,
        table_map(types=types, metadata=b"\x10\0" if types == b"\x0f" else b""),
        rows(DELETE, b"\0\x05ab"),
        xid(),
    )
    with pytest.raises(InputError, match="past the end"):
        loads(tmp_path, *events)


def test_partial_updates_are_counted(tmp_path: Path) -> None:
    """In front of the after image stands which JSON columns hold changes."""
    before = b"\0" + struct.pack("<I", 2) + b"{}"
    after = packed(1) + b"\1" + b"\0" + struct.pack("<I", 3) + b"abc"
    (load,) = loads(
        tmp_path,
        gtid(1),
        BEGIN,
        table_map(types=b"\xf5", metadata=b"\4"),
        rows(39, (before + after) * 2),
        xid(),
    )
    assert load.rows == 2


def test_a_bit_stands_for_every_json_column_of_the_table(tmp_path: Path) -> None:
    """Also for those that the after image leaves out (`start_partial_bits_reader`,
    sql/rpl_record.cc 8.0)."""
    before = b"\0\0" + (struct.pack("<I", 2) + b"{}") * 9
    after = packed(1) + b"\1\0" + b"\0" + struct.pack("<I", 3) + b"abc"
    kind, whole = rows(39, (before + after) * 2, width=9)
    bitmap = b"\xff\x01"
    minimal = kind, whole.replace(bitmap + bitmap, bitmap + b"\1\0", 1)
    (load,) = loads(
        tmp_path, gtid(1), BEGIN, table_map(types=b"\xf5" * 9, metadata=b"\4" * 9), minimal, xid()
    )
    assert load.rows == 2


def test_unknown_options_of_a_partial_update(tmp_path: Path) -> None:
    before = b"\0" + struct.pack("<I", 2) + b"{}"
    events = (
        gtid(1),
        BEGIN,
        table_map(types=b"\xf5", metadata=b"\4"),
        rows(39, before + packed(2) + before),
        xid(),
    )
    with pytest.raises(InputError, match="unknown options"):
        loads(tmp_path, *events)


def test_parts_merge_into_the_whole(tmp_path: Path) -> None:
    events = [
        part
        for number in range(1, 9)
        for part in (
            gtid(number, sequence=number),
            BEGIN,
            table_map(),
            rows(DELETE, images(*range(number))),
            xid(),
        )
    ]
    path = write(tmp_path, log(*events))
    whole = profile([path])
    positions = [load.position for load in LoadReader([path])]
    merged = Workload()
    for start, stop in ((None, positions[3]), (positions[3], positions[6]), (positions[6], None)):
        merged.merge(profile([path], start_position=start, stop_position=stop))
    assert merged.as_dict() == whole.as_dict()


@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.name)
def test_logs_of_real_servers(capture: Path) -> None:
    """Rows as the decoder of values has them, transactions as the tracker has them; nothing is lost
    between them."""
    files = logs(capture)
    if not files:
        pytest.skip("no binary log of its own")
    found = summed(LoadReader(files))
    groups = [one for one in group(LogReader(files)) if one.complete]
    assert found.transactions == len(groups)
    events, decoded = decoded_rows(files)
    assert {place: load.events for place, load in found.tables.items()} == dict(events)
    assert {place: load.rows for place, load in found.tables.items() if load.rows} == dict(decoded)
    assert found.with_dependencies == sum(one.sequence_number > 0 for one in groups)


def decoded_rows(files: list[Path]) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """(events, rows) by table and kind, by decoding every value."""
    reader, values, maps = LogReader(files), RowValues(), dict[int, TableMap]()
    events, decoded = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for event in reader:
        assert reader.format is not None
        if event.type == EventType.FORMAT_DESCRIPTION:
            maps.clear()
        elif event.type == EventType.TABLE_MAP:
            table = parse_table_map(
                event.buffer,
                event.body,
                event.end,
                reader.format.post_header_length(EventType.TABLE_MAP),
            )
            maps[table.table_id] = table
        elif event.type in ROWS_TYPES:
            head = RowsHeads(reader.format).of(event)
            if head.table_id not in DUMMY_TABLE_IDS:
                place = (maps[head.table_id].full_name, head.kind)
                events[place] += 1
                decoded[place] += len(values.rows(event, head, maps[head.table_id]))
    return events, decoded
