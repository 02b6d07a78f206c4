"""Writes the log of a generated source event by event: that of MySQL, and that of MariaDB."""

from __future__ import annotations

import random
import struct

from applier.binlog.event_bytes import format_body, make_event, rotate_body
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import MAGIC, EventType
from applier.replica.versions import replica_rules
from applier.schema_source import load_schema
from applier.tables.catalog import Tables
from checkpoints.gtid import GtidSet

SOURCE_UUID = "5eed0000-c4a5-11ee-8000-000000000001"
SOURCE_ID = 1
EPOCH = 1_700_000_000
"""When the generated source lived."""
INNODB, MYISAM = "InnoDB", "MyISAM"
_INSERT, _UPDATE, _DELETE = EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS
_VERSION_1 = {
    _INSERT: EventType.WRITE_ROWS_V1,
    _UPDATE: EventType.UPDATE_ROWS_V1,
    _DELETE: EventType.DELETE_ROWS_V1,
}
"""Rows events of MariaDB."""
_INT, _FULL_ROWS = 3, 1


class LogMaker:
    """Writes the log event by event and knows which rows there are."""

    def __init__(
        self, version: str, gtids: bool, chance: random.Random, databases: int, engine: str
    ) -> None:
        self.rules = replica_rules(version)
        self.version = version
        self.gtids = gtids
        self.chance = chance
        self.engine = engine
        self.databases = [f"d{number}" for number in range(1, databases + 1)]
        self.rows: dict[str, dict[int, int]] = {
            database: {1: 0, 2: 0} for database in self.databases
        }
        self.files: dict[str, bytes] = {}
        self.done = 0
        self._name = ""
        self._key = 2
        self._sequence = 0
        self._last_of: dict[str, int] = {}

    def schema(self) -> Tables:
        """The tables before the log, with the rows that `rows` begins with."""
        parts = []
        for database in self.databases:
            parts.append(
                f"CREATE DATABASE {database}; CREATE TABLE {database}.t (id INT NOT NULL PRIMARY"
                f" KEY, v INT) ENGINE={self.engine};CREATE TABLE {database}.log (v INT)"
                f" ENGINE={self.engine}; INSERT INTO {database}.t VALUES (1, 0), (2, 0);"
            )
        return load_schema("\n".join(parts), server=self.version)

    def begin_file(self) -> None:
        """The next file, with what stands at its head."""
        self._name = f"binlog.{len(self.files) + 1:06d}"
        self.files[self._name] = MAGIC
        self._sequence, self._last_of = 0, {}
        self._add(
            EventType.FORMAT_DESCRIPTION,
            format_body(self.rules.server_version, self.rules.post_header_lengths),
        )
        self._gtids_before()

    def rotate(self) -> None:
        """Ends a file that another one follows."""
        self._add(EventType.ROTATE, rotate_body(f"binlog.{len(self.files) + 1:06d}", len(MAGIC)))

    def transaction(self) -> None:
        """One or two changes in one of the databases."""
        self.done += 1
        self._sequence += 1
        database = self.chance.choice(self.databases)
        self._begin(database)
        for kind in self.chance.sample(
            (_INSERT, _INSERT, _UPDATE, _DELETE, None), k=self.chance.choice((1, 1, 2))
        ):
            self._change(database, kind)
        if self.engine == INNODB:
            self._add(EventType.XID, struct.pack("<Q", self.done))
        else:
            self._query(database, b"COMMIT")

    def _change(self, database: str, kind: EventType | None) -> None:
        rows, number = self.rows[database], self.done
        if kind is None:
            return self._rows(database, "log", _INSERT, _image(number))
        if kind is _INSERT or len(rows) < 2:
            self._key += 1
            rows[self._key] = number
            return self._rows(database, "t", _INSERT, _image(self._key, number))
        key = self.chance.choice(sorted(rows))
        before = _image(key, rows[key])
        if kind is _DELETE:
            del rows[key]
            return self._rows(database, "t", _DELETE, before)
        rows[key] = number
        return self._rows(database, "t", _UPDATE, before + _image(key, number))

    def _rows(self, database: str, table: str, kind: EventType, images: bytes) -> None:
        names, width = self.databases, 2 if table == "t" else 1
        table_id = struct.pack("<IH", 2 * names.index(database) + (table == "log") + 100, 0)
        name = b"".join(bytes([len(word)]) + word.encode() + b"\0" for word in (database, table))
        nullable = b"\x02" if table == "t" else b"\x01"
        self._add(
            EventType.TABLE_MAP,
            table_id
            + struct.pack("<H", 1)
            + name
            + bytes([width])
            + bytes([_INT] * width)
            + b"\0"
            + nullable,
        )
        bitmap = bytes([(1 << width) - 1]) * (2 if kind is _UPDATE else 1)
        self._rows_event(kind, table_id, bytes([width]) + bitmap + images)

    def _rows_event(self, kind: EventType, table_id: bytes, rest: bytes) -> None:
        self._add(kind, table_id + struct.pack("<HH", _FULL_ROWS, 2) + rest)

    def _gtids_before(self) -> None:
        """What a log says of those before it."""
        if self.gtids or self.rules.previous_gtids:
            before = f"{SOURCE_UUID}:1-{self.done}" if self.gtids and self.done else ""
            self._add(EventType.PREVIOUS_GTIDS, GtidSet(before).encode())

    def _begin(self, database: str) -> None:
        self._gtid(self._last_of.get(database, 0))
        self._last_of[database] = self._sequence
        self._query(database, b"BEGIN")

    def _gtid(self, last_committed: int) -> None:
        if not self.gtids and not self.rules.previous_gtids:
            return
        uuid, number = (
            (bytes.fromhex(SOURCE_UUID.replace("-", "")), self.done)
            if self.gtids
            else (bytes(16), 0)
        )
        clock = (
            struct.pack("<Bqq", 2, last_committed, self._sequence)
            if self.rules.previous_gtids
            else b""
        )
        self._add(
            EventType.GTID if self.gtids else EventType.ANONYMOUS_GTID,
            struct.pack("<B16sq", 0, uuid, number) + clock,
        )

    def _query(self, database: str, sql: bytes) -> None:
        self._add(
            EventType.QUERY,
            struct.pack("<IIBHH", 7, 0, len(database), 0, 0) + database.encode() + b"\0" + sql,
        )

    def _add(self, kind: EventType, body: bytes) -> None:
        content = self.files[self._name]
        end = len(content) + 19 + len(body) + 4
        self.files[self._name] = content + make_event(
            kind, body, timestamp=EPOCH + self.done, server_id=SOURCE_ID, log_pos=end
        )


class MariadbLogMaker(LogMaker):
    """The log of a MariaDB: a GTID event begins each transaction, and each database is a domain of
    its own."""

    def __init__(
        self, version: str, gtids: bool, chance: random.Random, databases: int, engine: str
    ) -> None:
        super().__init__(version, gtids, chance, databases, engine)
        self._last_number = dict.fromkeys(range(databases), 0)
        self._flags = MariadbGtidEvent.ALLOW_PARALLEL
        if engine == INNODB:
            self._flags |= MariadbGtidEvent.TRANSACTIONAL

    def _gtids_before(self) -> None:
        last = [(domain, number) for domain, number in self._last_number.items() if number]
        entries = (struct.pack("<IIQ", domain, SOURCE_ID, number) for domain, number in last)
        self._add(EventType.GTID_LIST, struct.pack("<I", len(last)) + b"".join(entries))

    def _begin(self, database: str) -> None:
        domain = self.databases.index(database)
        self._last_number[domain] += 1
        body = struct.pack("<QIB6x", self._last_number[domain], domain, self._flags)
        self._add(EventType.MARIADB_GTID, body)

    def _rows_event(self, kind: EventType, table_id: bytes, rest: bytes) -> None:
        self._add(_VERSION_1[kind], table_id + struct.pack("<H", _FULL_ROWS) + rest)


def _image(*values: int) -> bytes:
    """A row image of INT columns."""
    return b"\0" + struct.pack(f"<{len(values)}i", *values)
