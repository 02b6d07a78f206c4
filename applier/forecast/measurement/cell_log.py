"""The log that a measured cell applies, made byte by byte."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import MAGIC, EventType
from applier.binlog.wire import BLOB, LONG, STRING, VARCHAR
from applier.forecast.measurement.measurement_grid import (
    DATABASE,
    MARK,
    TABLE,
    VALUE,
    Cell,
    Spent,
    statements_of,
)
from applier.mysql.statements.native import STANDARD_LENGTHS, STANDARD_VERSION
from applier.replica.versions import VERSIONS
from lookup.table_shape import NULLABLE_UNIQUE

SERVER_ID = 4_000_001
START_TIME = 1_700_000_000
STATEMENT_END = 1
AHEAD = 2
"""Transactions of a log with marks up to the first mark."""
TYPES = {
    "write": EventType.WRITE_ROWS,
    "update": EventType.UPDATE_ROWS,
    "delete": EventType.DELETE_ROWS,
}


class _Log:
    """A log that grows by one transaction at a time."""

    version, lengths = STANDARD_VERSION, STANDARD_LENGTHS

    def __init__(self, database: str) -> None:
        self.database = database.encode()
        self.parts = [MAGIC]
        self.size = len(MAGIC)
        self.transactions = 0
        self.put(
            EventType.FORMAT_DESCRIPTION,
            struct.pack("<H50sIB", 4, self.version.encode(), START_TIME, 19) + self.lengths + b"\1",
        )

    def put(self, kind: int, body: bytes) -> None:
        length = 19 + len(body) + 4
        self.size += length
        raw = struct.pack("<IBIIIH", START_TIME, kind, SERVER_ID, length, self.size, 0) + body
        self.parts += [raw, struct.pack("<I", zlib.crc32(raw))]

    def transaction(self, events: Iterable[tuple[int, bytes]], *, is_last: bool = False) -> None:
        """With what begins it and the commit around its events. The last one waits for all before
        it."""
        self.transactions += 1
        self.begin(is_last=is_last)
        for kind, body in events:
            self.put(kind, body)
        self.put(EventType.XID, struct.pack("<Q", self.transactions))

    def begin(self, *, is_last: bool) -> None:
        """A transaction without a GTID."""
        self.put(
            EventType.QUERY,
            struct.pack("<IIBHH", 7, 0, len(self.database), 0, 0) + self.database + b"\0BEGIN",
        )


class _GtidLog(_Log):
    """As MySQL 5.7 and later write it, `anonymous` with gtid_mode OFF."""

    def __init__(self, database: str, source: bytes, *, anonymous: bool) -> None:
        super().__init__(database)
        self.source, self.anonymous = source, anonymous
        self.put(EventType.PREVIOUS_GTIDS, bytes(8))

    def begin(self, *, is_last: bool) -> None:
        """Independent but for the first, as writesets (the default since 8.4) leave most: a
        dependent one waits for two threads to wake."""
        number = self.transactions
        clock = number - 1 if is_last else min(number - 1, 1), number
        uuid, named = (bytes(16), 0) if self.anonymous else (self.source, number)
        kind = EventType.ANONYMOUS_GTID if self.anonymous else EventType.GTID
        self.put(kind, struct.pack("<B16sqBqq", 1, uuid, named, 2, *clock))
        super().begin(is_last=is_last)


class _MariadbLog(_Log):
    """A replica of MariaDB writes the GTID of a transaction into a table with it; where there is
    none it writes a file."""

    version, lengths = VERSIONS["mariadb"].server_version, VERSIONS["mariadb"].post_header_lengths

    def begin(self, *, is_last: bool) -> None:
        """Its GTID event stands for the BEGIN. Commits keep the log's order whatever the mode."""
        flags = MariadbGtidEvent.TRANSACTIONAL | MariadbGtidEvent.ALLOW_PARALLEL
        self.put(EventType.MARIADB_GTID, struct.pack("<QIB6x", self.transactions, 0, flags))


def make_log(
    cell: Cell,
    *,
    gtids: bool | None = None,
    marks: bool = False,
    seed: int = 1,
    database: str = DATABASE,
    spent: Spent | None = None,
    mariadb: bool = False,
) -> bytes:
    """The cell's log. `gtids`: as a source with gtid_mode ON writes them, anonymous for False, none
    at all for None; `mariadb`: those of MariaDB.

    `marks`: two transactions insert 1 and 2 into the table `mark`, so that an onlooker sees when
    they are done: the last one, and the one behind a transaction of the cell's kind that is added
    ahead, opens the table and is not timed.
    """
    log = _log(database, gtids, random.Random(f"{seed}-{cell.name}").randbytes(16), mariadb)
    applied = replace(cell, transactions=cell.transactions + 1) if marks else cell
    for number, statements in enumerate(statements_of(applied, seed, spent)):
        if marks and number == 1:
            log.transaction(_mark(database, 1))
        log.transaction(
            event for events in statements for event in _statement(database, cell, events)
        )
    if marks:
        log.transaction(_mark(database, 2), is_last=True)
    return b"".join(log.parts)


def _log(database: str, gtids: bool | None, source: bytes, mariadb: bool) -> _Log:
    if mariadb:
        return _MariadbLog(database)
    return _Log(database) if gtids is None else _GtidLog(database, source, anonymous=not gtids)


def _statement(database: str, cell: Cell, events: list[list[int]]) -> Iterator[tuple[int, bytes]]:
    yield EventType.TABLE_MAP, _table_map(database, cell)
    for place, ids in enumerate(events, 1):
        yield TYPES[cell.kind], _rows(cell, ids, STATEMENT_END * (place == len(events)))


def _named(database: str, table: str) -> bytes:
    return (
        bytes([len(database)])
        + database.encode()
        + b"\0"
        + bytes([len(table)])
        + table.encode()
        + b"\0"
    )


def _mark(database: str, number: int) -> list[tuple[int, bytes]]:
    table_map = struct.pack("<IHH", 2, 0, 1) + _named(database, MARK) + b"\1\3\0\0"
    return [
        (EventType.TABLE_MAP, table_map),
        (EventType.WRITE_ROWS, struct.pack("<IHHHBBBi", 2, 0, 1, 2, 1, 1, 0, number)),
    ]


def _table_map(database: str, cell: Cell) -> bytes:
    width = 3 + cell.indexes + cell.columns
    nulls = ((1 << cell.columns) - 1 << 3 + cell.indexes) | (
        0b10 if cell.key == NULLABLE_UNIQUE else 0
    )
    filler_type, filler_metadata = (
        (BLOB, b"\4") if cell.is_blob else (STRING, bytes([0xFE, cell.filler]))
    )
    types = bytes([LONG, LONG, filler_type, *[LONG] * cell.indexes, *[VARCHAR] * cell.columns])
    metadata = filler_metadata + b"\x14\0" * cell.columns
    head = struct.pack("<IHH", 1, 0, 1) + _named(database, TABLE) + bytes([width])
    return (
        head
        + types
        + bytes([len(metadata)])
        + metadata
        + nulls.to_bytes((width + 7) // 8, "little")
    )


def _rows(cell: Cell, ids: list[int], flags: int) -> bytes:
    width = 3 + cell.indexes + cell.columns
    bitmap = ((1 << width) - 1).to_bytes((width + 7) // 8, "little")
    head = (
        struct.pack("<IHHH", 1, 0, flags, 2)
        + bytes([width])
        + bitmap * (2 if cell.kind == "update" else 1)
    )
    if cell.kind != "update":
        return head + b"".join(image(cell, row) for row in ids)
    return head + b"".join(image(cell, row) + image(cell, row, updated=True) for row in ids)


def image(cell: Cell, row: int, *, updated: bool = False) -> bytes:
    """The row image of one row, as it was filled or as an update leaves it."""
    filler, entry = (b"z" if updated else b"f") * cell.filler, cell.entry_of(row, updated=updated)
    nulls = bytes((3 + cell.indexes + cell.columns + 7) // 8)
    length = len(filler).to_bytes(4 if cell.is_blob else 1, "little")
    fixed = struct.pack("<ii", row, cell.value_of(row)) + length + filler
    return nulls + fixed + struct.pack("<i", entry) * cell.indexes + VALUE * cell.columns
