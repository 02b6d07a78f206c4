"""Native mode: rows travel as the log's own events, in BINLOG statements, and the server's own
applier carries them out.

A BINLOG statement (sql/sql_binlog.cc 5.6 to 9.7) takes events in base64: a format description
first, then table maps and rows. It forgets its table maps when it ends, so those of a statement
stand in one literal with its rows; rows of many statements and transactions may follow one another
in it. It does not verify checksums and takes no events of any other kind.

For each statement the server opens its tables, locks them and ends the statement, which costs more
than a row or two. So statements that follow one another travel as one: all their table maps, then
all their rows as they stand in the log, the last of them ending it. Where the server would read a
whole table for each rows event, those are joined (`joining`).
"""

from __future__ import annotations

import struct
import zlib
from binascii import b2a_base64
from dataclasses import dataclass, field, replace

from applier.binlog.header import (
    HEADER,
    HEADER_LENGTH,
    ROWS_TYPES,
    Event,
    EventType,
    FormatDescription,
)
from applier.binlog.refusals import unknown_table
from applier.binlog.rows import DUMMY_TABLE_IDS, KINDS, STATEMENT_END, RowsHeads
from applier.binlog.selection.table_filter import SYSTEM_SCHEMAS
from applier.binlog.status_vars import StatusVariables
from applier.binlog.table_map import TableMap, read_table_map
from applier.error_codes import Code
from applier.errors import InputError
from applier.mysql.client.dialect import TargetDialect
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.feed import Format
from applier.mysql.statements.event_merger import FLAGS_AT, EventMerger
from applier.mysql.statements.target_tables import TargetTables
from applier.options import ReplayOptions

UPGRADED: dict[int, EventType] = {
    EventType.WRITE_ROWS_V1: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_V1: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_V1: EventType.DELETE_ROWS,
}
"""Rows events of version 1 -> 2, which has two bytes more in its head: the length of an extra
header."""
STANDARD_VERSION = "5.7.44"
STANDARD_LENGTHS = bytes(
    (
        56,
        13,
        0,
        8,
        0,
        18,
        0,
        4,
        4,
        4,
        4,
        18,
        0,
        0,
        95,
        0,
        4,
        26,
        8,
        0,
        0,
        0,
        8,
        8,
        8,
        2,
        0,
        0,
        0,
        10,
        10,
        10,
        42,
        42,
        0,
        18,
        52,
        0,
        10,
    )
)
"""Lengths of the fixed parts of the event types from 1 on, for events that are written anew."""


def set_gtid_next(value: str) -> bytes:
    """The literal names its character set: servers read its bytes as they come, and in a session of
    the log's whose collation_connection is UTF-16 or UTF-32 those are no GTID (1774, 1782)."""
    return f"SET @@session.gtid_next=_latin1'{value}'".encode()


AUTOMATIC_GTIDS = set_gtid_next("AUTOMATIC")
EVENT_BYTES = 768 << 10
"""Events in one BINLOG statement: a megabyte as base64. And statements of SQL mode that are sent
together."""
TABLE_ID_BYTES = 6
"""The flags of a rows event follow."""
UPDATES_AND_DELETES = frozenset(type for type, kind in KINDS.items() if kind != "write")
_SYSTEM_NAMES = frozenset(name.encode() for name in SYSTEM_SCHEMAS)
_FLAG_BYTES = [bytes([flags]) for flags in range(256)]


@dataclass(slots=True)
class StatementGroup:
    """Statements of the log that are carried out as one: their table maps first, then their rows,
    of which the last ends it.

    The server opens and locks the tables of a statement once. What decides how rows are carried out
    is the same for all of them: the flags of their events, and the second that inserts ran in (a
    default of a column that only the target has may depend on it).
    """

    flags: int
    second: int | None
    """None as long as there is nothing but updates and deletes."""
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    """Table id -> body of its table map."""
    names: set[bytes] = field(default_factory=set)
    maps: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    """Three pieces or more for each event: up to its flags, the low byte of them, the rest."""
    last_flags_at: int = 0
    scanned: dict[bytes, TableMap] = field(default_factory=dict)
    """Table id -> table map of those tables that the server scans for each rows event."""
    joined: EventMerger | None = None
    """The last event, if it is one of such a table."""

    def agrees(self, flags: int, second: int | None) -> bool:
        """Whether an event with these flags, of this second, may go with the others; None: its
        second does not matter."""
        return flags == self.flags and (
            second is None or self.second is None or second == self.second
        )


class NativeRows:
    """Gathers rows events and hands them out as BINLOG statements of about `limit` bytes of events
    each.

    `one_by_one` gives each rows event a statement of its own, so that a failure names it. `tables`
    are those of a server that hashes: rows events of a table that it would scan for each of them
    are joined.
    """

    looks_at_tables = False

    def __init__(
        self,
        dialect: TargetDialect,
        options: ReplayOptions,
        limit: int,
        tables: TargetTables | None = None,
    ) -> None:
        self.options = options
        self.limit = limit
        self.one_by_one = False
        self.source_session = StatusVariables()
        self._tables = tables
        self._heads: RowsHeads | None = None
        self._any_second = frozenset() if dialect.is_mariadb else UPDATES_AND_DELETES
        self._upgrade = not dialect.accepted.rows_v1
        self._has_gtids = "gtid_next" in dialect.variables
        self._plain = not (options.only or options.rewrite)
        self._described: bytes | None = None
        self._format: Format | None = None
        self._done: list[PipelineStatement] = []
        self._maps: dict[bytes, Event] = {}
        """Of the statement that is being read: table id -> its table map."""
        self._unwanted: set[bytes] = set()
        """Bodies of table maps whose tables are left out."""
        self._group: StatementGroup | None = None
        self._joined = False
        """All tables of the statement that is being read are in the group."""
        self._news = False
        self._literal: list[bytes] = []
        self._size = 0
        self._first: Event | None = None

    def add(self, event: Event, format: Format) -> bool:
        """One event of a transaction; those that no table sees are left out. True when it is time
        for a `flush`."""
        if event.type == EventType.TABLE_MAP:
            self._maps[event.buffer[event.body : event.body + TABLE_ID_BYTES]] = event
            self._joined = False
        elif event.type in ROWS_TYPES:
            table_map = self._add_rows(event, format.fde)
            if self.one_by_one or self._size >= self.limit:
                self._cut(_full_name(table_map, format.fde) if self.one_by_one else None)
                return True
        return False

    def flush(self) -> list[PipelineStatement]:
        """The statements that carry out what was added since the last time."""
        self._cut()
        done, self._done = self._done, []
        return done

    def forget_tables(self) -> None:
        """Implements `writer.RowsWriter`. Of tables only `TargetTables` knows, from a connection of
        its own."""

    def forget(self) -> None:
        """Everything that was added, as after a failure; and that the server knows any format."""
        self.flush()
        self._maps.clear()
        self._described = self._format = None

    def describe(self, format: Format) -> list[PipelineStatement]:
        """What must be sent, outside of a transaction, before rows of this format are added.

        A format description leaves GTID_NEXT "not yet determined", as if a GTID event were to
        follow (5.7.6 and later).

        Raises InputError for a format that BINLOG does not take.
        """
        if format is self._format:
            return []
        self._cut()
        self._format, self._heads = format, None
        fde, event = format.fde, format.event
        if fde.post_header_length(EventType.TABLE_MAP) == 6:
            raise InputError(
                "rows events of MySQL before 5.1.4 cannot be shipped",
                code=Code.CANNOT_SHIP,
                file=event.file,
                position=event.position,
                hint="use --apply sql",
            )
        if self._upgrade and (fde.is_mariadb or not fde.post_header_length(EventType.WRITE_ROWS)):
            fde = replace(
                fde,
                server_version=STANDARD_VERSION,
                post_header_lengths=STANDARD_LENGTHS,
                checksum=fde.checksum or 0,
            )
        body = description_body(fde)
        if body == self._described:
            return []
        self._described = body
        # this event has one whatever the algorithm
        always = replace(fde, checksum=None if fde.checksum is None else 1)
        shipped = PipelineStatement(
            literal([packed(event.header, event.type, body, always, flags=0)]), event
        )
        return [shipped, PipelineStatement(AUTOMATIC_GTIDS)] if self._has_gtids else [shipped]

    # table maps and rows

    def _add_rows(self, event: Event, fde: FormatDescription) -> Event | None:
        """Adds the event to the group, in which its statement's tables are from its first rows on.
        Returns its table map."""
        buffer, body = event.buffer, event.body
        flags = buffer[body + TABLE_ID_BYTES]
        table_id = buffer[body : body + TABLE_ID_BYTES]
        table_map = self._maps.get(table_id)
        if table_map is not None:
            second = None if event.type in self._any_second else event.timestamp
            others = flags & ~STATEMENT_END
            if not self._joined or self._group is None or not self._group.agrees(others, second):
                self._join(others, second, fde)
            assert self._group is not None
            if second is not None:
                self._group.second = second
            if table_id in self._group.bodies:
                self._append(event, others, table_id, fde)
        elif int.from_bytes(table_id, "little") not in DUMMY_TABLE_IDS:
            raise unknown_table(event, int.from_bytes(table_id, "little"))
        if flags & STATEMENT_END:
            self.end_statement()
        return table_map

    def end_statement(self) -> None:
        """Its table maps hold for no other one."""
        self._maps.clear()
        self._joined = False

    def _join(self, flags: int, second: int | None, fde: FormatDescription) -> None:
        """Takes the statement's tables into the group, or into a new one where they do not go
        together."""
        group, self._joined = self._group, True
        if group is None or not group.agrees(flags, second) or not self._fits(group, fde):
            self._close_group()
            group = self._group = StatementGroup(flags, second)
        elif not self._news:
            return
        for table_id, event in self._maps.items():
            body = event.buffer[event.body : event.end]
            if table_id in group.bodies or body in self._unwanted:
                continue
            shipped = self._shipped_map(event, fde)
            if shipped is None:
                self._unwanted.add(body)
                continue
            group.bodies[table_id] = body
            group.names.add(_name(body, fde))
            group.maps.append(shipped)
            self._size += len(shipped)
            self._note_scanned(group, table_id, event, fde)

    def _fits(self, group: StatementGroup, fde: FormatDescription) -> bool:
        """Whether no table of the statement is in the group in another form or under another
        number; `_news`: not all are in it."""
        bodies, self._news = group.bodies, False
        for table_id, event in self._maps.items():
            body = event.buffer[event.body : event.end]
            known = bodies.get(table_id)
            if known != body:
                if known is not None or _name(body, fde) in group.names:
                    return False
                self._news = True
        return True

    def _note_scanned(
        self, group: StatementGroup, table_id: bytes, event: Event, fde: FormatDescription
    ) -> None:
        if self._tables is None:
            return
        table_map = read_table_map(event, fde)
        database = self.options.rewrite.get(table_map.database, table_map.database)
        if self._tables.of(database, table_map.table).scanned:
            group.scanned[table_id] = table_map

    def _shipped_map(self, event: Event, fde: FormatDescription) -> bytes | None:
        """The table map with the database's name on the target; None for a table that is not
        wanted."""
        if self._plain and _database(event, fde) not in _SYSTEM_NAMES:
            return self._shipped(event, fde)
        table_map = read_table_map(event, fde)
        if not self.options.wants(table_map.database, table_map.table):
            return None
        new = self.options.rewrite.get(table_map.database)
        if new is None:
            return self._shipped(event, fde)
        start = event.body + fde.post_header_length(EventType.TABLE_MAP)
        name = new.encode("utf-8", "surrogateescape")
        behind = start + 1 + event.buffer[start]
        body = (
            event.buffer[event.body : start]
            + bytes([len(name)])
            + name
            + event.buffer[behind : event.end]
        )
        return packed(event.header, event.type, body, fde)

    def _shipped(self, event: Event, fde: FormatDescription) -> bytes:
        """The event as it stands in the log, or written anew where it cannot be taken as it is."""
        if self._upgrade and event.type in UPGRADED:
            head = event.body + TABLE_ID_BYTES + 2
            body = event.buffer[event.body : head] + b"\x02\0" + event.buffer[head : event.end]
            return packed(event.header, UPGRADED[EventType(event.type)], body, fde)
        if self._as_it_stands(event, fde):
            return event.buffer[event.position : event.position + event.length]
        return packed(event.header, event.type, event.data, fde)

    def _append(self, event: Event, flags: int, table_id: bytes, fde: FormatDescription) -> None:
        group = self._group
        assert group is not None
        if self._first is None:
            self._first = event
        if table_id in group.scanned and not self.one_by_one:
            self._append_scanned(group, event, flags, table_id, fde)
            return
        group.joined, group.last_flags_at = None, len(group.rows) + 1
        if self._as_it_stands(event, fde):
            buffer, start = event.buffer, event.position
            middle, length = start + FLAGS_AT, event.length
            group.rows += (
                buffer[start:middle],
                _FLAG_BYTES[flags],
                buffer[middle + 1 : start + length],
            )
            self._size += length
        else:
            shipped = self._shipped(event, fde)
            group.rows += (shipped[:FLAGS_AT], _FLAG_BYTES[flags], shipped[FLAGS_AT + 1 :])
            self._size += len(shipped)

    def _append_scanned(
        self,
        group: StatementGroup,
        event: Event,
        flags: int,
        table_id: bytes,
        fde: FormatDescription,
    ) -> None:
        """Joins the event to the one before it, or lets others join it."""
        if self._heads is None:
            self._heads = RowsHeads(fde)
        head, shipped = self._heads.of(event), self._shipped(event, fde)
        self._size += len(shipped)
        if group.joined is not None and group.joined.take(shipped, event, head):
            return
        group.last_flags_at = len(group.rows) + 1
        group.joined = EventMerger(
            group.rows,
            shipped,
            _FLAG_BYTES[flags],
            event,
            head,
            group.scanned[table_id],
            fde.checksum_length,
        )

    def _as_it_stands(self, event: Event, fde: FormatDescription) -> bool:
        """Whether the target takes the bytes of the log: not those out of a compressed event, nor
        an old form that it knows no more."""
        if event.inner_index >= 0 or event.type != event.stored_type:
            return False
        return fde.header_length == HEADER_LENGTH and not (self._upgrade and event.type in UPGRADED)

    def _close_group(self) -> None:
        group, self._group = self._group, None
        if group is not None and group.rows:
            group.rows[group.last_flags_at] = _FLAG_BYTES[
                group.rows[group.last_flags_at][0] | STATEMENT_END
            ]
            self._literal += group.maps
            self._literal += group.rows

    def _cut(self, table: str | None = None) -> None:
        """Ends the literal. A statement that goes on behind it brings its table maps anew: the
        server has forgotten them."""
        self._close_group()
        self._joined = False
        if self._literal:
            self._done.append(PipelineStatement(literal(self._literal), self._first, table))
        self._literal, self._size, self._first = [], 0, None


def _name(body: bytes, fde: FormatDescription) -> bytes:
    """Database and table of a table map, each with its length before it."""
    start = fde.post_header_length(EventType.TABLE_MAP)
    middle = start + 2 + body[start]
    return body[start : middle + 1 + body[middle]]


def _database(event: Event, fde: FormatDescription) -> bytes:
    start = event.body + fde.post_header_length(EventType.TABLE_MAP)
    return event.buffer[start + 1 : start + 1 + event.buffer[start]]


def _full_name(event: Event | None, fde: FormatDescription) -> str | None:
    if event is None:
        return None
    return read_table_map(event, fde).full_name


def literal(events: list[bytes]) -> bytes:
    """BINLOG statement of these events, as one chunk of base64."""
    return b"BINLOG '" + b2a_base64(b"".join(events), newline=False) + b"'"


def packed(
    header: tuple[int, ...],
    type: int,
    body: bytes,
    fde: FormatDescription,
    flags: int | None = None,
) -> bytes:
    """An event written anew: a header of the standard length, the body, and the checksum that the
    description promises."""
    timestamp, _, server_id, _, log_pos, old_flags = header
    length = HEADER_LENGTH + len(body) + fde.checksum_length
    data = (
        HEADER.pack(
            timestamp, type, server_id, length, log_pos, old_flags if flags is None else flags
        )
        + body
    )
    return data + struct.pack("<I", zlib.crc32(data)) if fde.checksum_length else data


def description_body(fde: FormatDescription) -> bytes:
    """The body of a format description event up to its checksum; headers have the standard
    length."""
    head = struct.pack(
        "<H50sIB", 4, fde.server_version.encode("latin-1"), fde.created, HEADER_LENGTH
    )
    algorithm = b"" if fde.checksum is None else bytes([fde.checksum])
    return head + fde.post_header_lengths + algorithm
