"""Parallel workers that are killed: what they store, and the log that they apply."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

from applier.binlog.event_bytes import format_body, make_event, rotate_body
from applier.binlog.header import MAGIC, EventType
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import Commit, MemoryStorage, RowChange
from applier.replica.versions import replica_rules
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules

DATABASES = ("d1", "d2", "d3", "d4")
CASES = 60 if os.environ.get("BINLAG_ALL_CASES") == "1" else 12
INT_COLUMN = bytes([3])
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


class Stopped(BaseException):
    """The process is killed right after a commit."""


@dataclass
class KillableStorage(MemoryStorage):
    """Counts commits and dies after the one that was asked for."""

    committed: list[int] = field(default_factory=list)
    kill_after: int = -1

    def commit(self, commit: Commit) -> None:
        super().commit(commit)
        self.committed += [_key(change) for change in commit.changes]
        if len(self.committed) == self.kill_after:
            self.kill_after = -1
            raise Stopped


def _key(change: RowChange) -> int:
    assert change.after is not None
    return int(change.after[0])


def storage() -> KillableStorage:
    tables = Tables()
    for database in DATABASES:
        tables.create(
            parse_create_table(
                f"CREATE TABLE {database}.t (id INT PRIMARY KEY) ENGINE=InnoDB",
                database,
                SchemaRules(),
            )
        )
    made = KillableStorage.__new__(KillableStorage)
    MemoryStorage.__init__(made, tables)
    made.committed, made.kill_after = [], -1
    return made


def source(groups: list[tuple[int, int]], version: str, rotate_at: int, gtids: bool) -> BinlogFiles:
    """A log in which group i inserts row i into one of the databases; (database, distance to the
    group it depends on)."""
    files: dict[str, bytes] = {}
    log = bytearray()

    def add(kind: EventType, body: bytes) -> None:
        log.extend(
            make_event(kind, body, timestamp=1, server_id=1, log_pos=len(log) + 19 + len(body) + 4)
        )

    def begin(number: int) -> None:
        nonlocal log
        log = bytearray(MAGIC)
        rules = replica_rules(version)
        add(
            EventType.FORMAT_DESCRIPTION,
            format_body(rules.server_version, rules.post_header_lengths),
        )
        if rules.previous_gtids or gtids:
            done = (
                struct.pack("<Q16sQQQ", 1, bytes.fromhex(UUID.replace("-", "")), 1, 1, number + 1)
                if number and gtids
                else bytes(8)
            )
            add(EventType.PREVIOUS_GTIDS, done)

    begin(0)
    first = 0
    for number, (database, distance) in enumerate(groups):
        if number and number == rotate_at:
            add(EventType.ROTATE, rotate_body("binlog.000002", 4))
            files["binlog.000001"] = bytes(log)
            begin(number)
            first = number
        place = number - first + 1
        if version != "5.6" or gtids:
            clock = (
                b""
                if version == "5.6"
                else struct.pack("<Bqq", 2, max(0, place - 1 - distance), place)
            )
            uuid = bytes.fromhex(UUID.replace("-", "")) if gtids else bytes(16)
            kind = EventType.GTID if gtids else EventType.ANONYMOUS_GTID
            add(kind, struct.pack("<B16sq", 0, uuid, number + 1 if gtids else 0) + clock)
        name = DATABASES[database].encode()
        add(EventType.QUERY, struct.pack("<IIBHH", 1, 0, len(name), 0, 0) + name + b"\0BEGIN")
        add(
            EventType.TABLE_MAP,
            struct.pack("<IHHB", 10 + database, 0, 1, len(name))
            + name
            + b"\0\x01t\0\x01"
            + INT_COLUMN
            + b"\0\0",
        )
        add(
            EventType.WRITE_ROWS,
            struct.pack("<IHHH", 10 + database, 0, 1, 2)
            + b"\x01\x01\x00"
            + struct.pack("<i", number),
        )
        add(EventType.XID, struct.pack("<Q", number))
    files["binlog.000002" if files else "binlog.000001"] = bytes(log)
    return BinlogFiles(files, uuid=UUID, server_id=1)


def rows(replica: Replica) -> list[int]:
    return sorted(row[0] for table in replica.tables for row in table.rows())
