"""What a replica is crash-tested with: the binary logs of a source, the tables before them, and the
tables after them.

Captured logs are taken as they are. Generated ones hold the mix that told right from wrong on real
servers (INSERT with a key, INSERT into a table without one, UPDATE, DELETE): a transaction that is
executed twice stops with 1062 or 1032, or leaves a row too many.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from applier.binlog.event_bytes import format_body, make_event, rotate_body
from applier.binlog.header import MAGIC, EventType
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.replay_loop import replay
from applier.replica.source import BinlogFiles
from applier.replica.versions import replica_rules
from applier.schema_source import load_schema
from applier.tables.catalog import Tables
from applier.tables.dump import dump_lines
from checkpoints.gtid import GtidSet

SOURCE_UUID = "5eed0000-c4a5-11ee-8000-000000000001"
SOURCE_ID = 1
EPOCH = 1_700_000_000
"""When the generated source lived."""
INNODB, MYISAM = "InnoDB", "MyISAM"
_INSERT, _UPDATE, _DELETE = EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS
_INT, _FULL_ROWS = 3, 1


@dataclass(frozen=True)
class Workload:
    """The logs of a source (name -> content, in order) and what they begin with."""

    files: dict[str, bytes]
    schema: Tables = field(repr=False)
    version: str
    gtids: bool
    """Its transactions have GTIDs."""
    name: str = "generated"

    def source(self) -> BinlogFiles:
        """The source that has these logs."""
        return BinlogFiles(self.files, uuid=SOURCE_UUID)

    @cached_property
    def expected(self) -> dict[str, list[bytes]]:
        """The rows of each table behind the last event, as `binlag replay` leaves them: no replica
        has a hand in it.

        Raises InputError for a log that cannot be replayed even so.
        """
        with self._on_disk() as paths:
            return content_of(_replayed(paths, self.schema, self.version))

    @cached_property
    def names(self) -> dict[bytes, str]:
        """The bytes of an event -> where its transaction stands in the source's log. Not of the
        first event only: behind a crash, one that comes twice may begin a group."""
        with self._on_disk() as paths:
            found = list(group(LogReader(paths)))
        names: dict[bytes, str] = {}
        for transaction in found:
            content, at = self.files[transaction.file], transaction.start
            name = f"{transaction.file}:{at}"
            end = (
                transaction.end if transaction.end_file in ("", transaction.file) else len(content)
            )
            while at < end:
                event = content[at : at + int.from_bytes(content[at + 9 : at + 13], "little")]
                names[event] = name if event not in names else f"{names[event]} or {name}"
                at += len(event)
        return names

    @contextmanager
    def _on_disk(self) -> Iterator[list[Path]]:
        with TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in self.files]
            for path, content in zip(paths, self.files.values(), strict=True):
                path.write_bytes(content)
            yield paths


def _replayed(paths: Sequence[str | os.PathLike[str]], schema: Tables, version: str) -> Tables:
    tables = schema.copy()
    error = replay(paths, tables, keep_events=False, server=version).error
    if error is not None:
        raise InputError(
            f"the log cannot be replayed even without a crash: error {error.number}:"
            f" {error.message}",
            code=Code.FAILS_WITHOUT_CRASH,
            file=error.file,
            position=error.position,
            table=error.table,
            hint=error.next_step,
        )
    return tables


def content_of(tables: Tables) -> dict[str, list[bytes]]:
    """Table -> its rows as text, sorted."""
    return {table.definition.full_name: dump_lines(table) for table in tables}


def captured(paths: Sequence[str | os.PathLike[str]], schema: str | None, version: str) -> Workload:
    """Logs of a real source. Raises InputError for what cannot be read or replayed, with its place
    in these logs: a replica names its relay logs."""
    source = BinlogFiles.read(list(paths))
    tables = load_schema(schema, server=version) if schema else Tables()
    _replayed(paths, tables, version)
    first = next(iter(source.files.values()))
    gtids = any(first[at + 4] == EventType.GTID for at in _event_starts(first))
    return Workload(source.files, tables, version, gtids, Path(paths[0]).name)


def _event_starts(content: bytes) -> list[int]:
    found, at = [], len(MAGIC)
    while at + 13 <= len(content):
        found.append(at)
        at += max(19, int.from_bytes(content[at + 9 : at + 13], "little"))
    return found


def with_engine(schema: Tables, engine: str) -> Tables:
    """The same empty or filled tables in another storage engine."""
    import dataclasses

    changed = schema.copy()
    for table in list(changed):
        twin = dataclasses.replace(table.definition, engine=engine)
        fresh = changed.create(twin)
        fresh.load(table.stored_rows())
    return changed


def generated(
    transactions: int,
    *,
    version: str = "8.0",
    gtids: bool = True,
    seed: int = 1,
    engine: str = INNODB,
    databases: int = 2,
    files: int = 2,
) -> Workload:
    """A source of `databases` databases with one table with a primary key and one without any key
    in each. Raises UsageError for none."""
    if transactions < 1 or databases < 1:
        raise UsageError(
            f"{transactions} transactions in {databases} databases",
            code=Code.OPTION_VALUE,
            hint="give at least one of each",
        )
    maker = _Maker(version, gtids, random.Random(seed), databases, engine)
    each = -(-transactions // max(1, min(files, transactions)))
    while maker.done < transactions:
        maker.begin_file()
        for _ in range(min(each, transactions - maker.done)):
            maker.transaction()
        if maker.done < transactions:
            maker.rotate()
    return Workload(maker.files, maker.schema(), version, gtids, f"generated:{seed}")


class _Maker:
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
        parts = []
        for database in self.databases:
            parts.append(
                f"CREATE DATABASE {database}; CREATE TABLE {database}.t (id INT NOT NULL PRIMARY"
                f" KEY, v INT) ENGINE={self.engine};CREATE TABLE {database}.log (v INT)"
                f" ENGINE={self.engine}; INSERT INTO {database}.t VALUES (1, 0), (2, 0);"
            )
        return load_schema("\n".join(parts), server=self.version)

    def begin_file(self) -> None:
        self._name = f"binlog.{len(self.files) + 1:06d}"
        self.files[self._name] = MAGIC
        self._sequence, self._last_of = 0, {}
        self._add(
            EventType.FORMAT_DESCRIPTION,
            format_body(self.rules.server_version, self.rules.post_header_lengths),
        )
        if self.gtids or self.rules.previous_gtids:
            self._add(
                EventType.PREVIOUS_GTIDS,
                GtidSet(
                    f"{SOURCE_UUID}:1-{self.done}" if self.gtids and self.done else ""
                ).encode(),
            )

    def rotate(self) -> None:
        self._add(EventType.ROTATE, rotate_body(f"binlog.{len(self.files) + 1:06d}", len(MAGIC)))

    def transaction(self) -> None:
        self.done += 1
        self._sequence += 1
        database = self.chance.choice(self.databases)
        self._gtid(self._last_of.get(database, 0))
        self._last_of[database] = self._sequence
        self._query(database, b"BEGIN")
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
        self._add(
            kind, table_id + struct.pack("<HH", _FULL_ROWS, 2) + bytes([width]) + bitmap + images
        )

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


def _image(*values: int) -> bytes:
    """A row image of INT columns."""
    return b"\0" + struct.pack(f"<{len(values)}i", *values)
