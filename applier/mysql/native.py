"""Native mode: rows travel as the log's own events, in BINLOG statements, and the server's own applier carries them out.

A BINLOG statement (sql/sql_binlog.cc 5.6 to 9.7) takes events in base64: a format description first, then table maps and rows. It
forgets its table maps when it ends, so those of a statement stand in one literal with its rows; rows of many statements and
transactions may follow one another in it. It does not verify checksums and takes no events of any other kind.
"""

from __future__ import annotations

import struct
import zlib
from binascii import b2a_base64
from dataclasses import replace

from applier.binlog.header import CHECKSUM_LENGTH, HEADER, HEADER_LENGTH, ROWS_TYPES, Event, EventType, FormatDescription
from applier.binlog.rows import DUMMY_TABLE_IDS, STATEMENT_END
from applier.binlog.table_map import parse_table_map
from applier.errors import InputError
from applier.mysql.dialect import Dialect
from applier.mysql.feed import Format
from applier.mysql.pipeline import Statement
from applier.options import ReplayOptions

UPGRADED: dict[int, EventType] = {
    EventType.WRITE_ROWS_V1: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_V1: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_V1: EventType.DELETE_ROWS,
}
"""Rows events of version 1 -> 2, which has two bytes more in its head: the length of an extra header."""
STANDARD_VERSION = "5.7.44"
STANDARD_LENGTHS = bytes(
    (56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10, 42, 42, 0, 18, 52, 0, 10)
)
"""Lengths of the fixed parts of the event types from 1 on, for events that are written anew."""
AUTOMATIC_GTIDS = b"SET @@session.gtid_next='AUTOMATIC'"
FLAGS_OFFSET = 6
"""Of the flags in a rows event's body, behind a table id of six bytes."""
TABLE_ID_BYTES = 6


class NativeRows:
    """Gathers rows events and hands them out as BINLOG statements of about `limit` bytes of events each.

    `one_by_one` gives each rows event a statement of its own, so that a failure names it.
    """

    def __init__(self, dialect: Dialect, options: ReplayOptions, limit: int) -> None:
        self.options = options
        self.limit = limit
        self.one_by_one = False
        self._upgrade = not dialect.accepted.rows_v1
        self._has_gtids = "gtid_next" in dialect.variables
        self._plain = not (options.databases or options.tables or options.rewrite)
        self._described: bytes | None = None
        self._format: Format | None = None
        self._done: list[Statement] = []
        self._maps: dict[bytes, bytes | None] = {}
        """Of the statement that is being read: table id -> table map as it is shipped, None for a table that is not wanted."""
        self._map_events: dict[bytes, Event] = {}
        """Table id -> its table map as it stands in the log."""
        self._table: str | None = None
        self._literal: list[bytes] = []
        self._size = 0
        self._first: Event | None = None
        self._open = False
        """The last rows event of the literal does not end its statement."""

    def add(self, event: Event, format: Format) -> bool:
        """One event of a transaction; those that no table sees are left out. True when it is time for a `flush`."""
        if event.type == EventType.TABLE_MAP:
            self._add_map(event, format.fde)
        elif event.type in ROWS_TYPES:
            self._add_rows(event, format.fde)
            if self.one_by_one or self._size >= self.limit:
                self._cut()
                return True
        return False

    def flush(self) -> list[Statement]:
        """The statements that carry out what was added since the last time."""
        self._cut()
        done, self._done = self._done, []
        return done

    def forget(self) -> None:
        """Everything that was added, as after a failure; and that the server knows any format."""
        self.flush()
        self._maps.clear()
        self._described = self._format = None

    def describe(self, format: Format) -> list[Statement]:
        """What must be sent, outside of a transaction, before rows of this format are added.

        A format description leaves GTID_NEXT "not yet determined", as if a GTID event were to follow (5.7.6 and later).
        """
        if format is self._format:
            return []
        self._cut()
        self._format = format
        fde, event = format.fde, format.event
        if fde.post_header_length(EventType.TABLE_MAP) == 6:
            raise InputError(
                "rows events of MySQL before 5.1.4 cannot be shipped", file=event.file, position=event.position, hint="use --apply sql"
            )
        if self._upgrade and (fde.is_mariadb or not fde.post_header_length(EventType.WRITE_ROWS)):
            fde = replace(fde, server_version=STANDARD_VERSION, post_header_lengths=STANDARD_LENGTHS, checksum=fde.checksum or 0)
        body = description_body(fde)
        if body == self._described:
            return []
        self._described = body
        always = replace(fde, checksum=None if fde.checksum is None else 1)  # this event has one whatever the algorithm
        shipped = Statement(literal([packed(event.header, event.type, body, always, flags=0)]), event)
        return [shipped, Statement(AUTOMATIC_GTIDS)] if self._has_gtids else [shipped]

    # table maps and rows

    def _add_map(self, event: Event, fde: FormatDescription) -> None:
        table_id = event.buffer[event.body : event.body + TABLE_ID_BYTES]
        self._map_events[table_id] = event
        shipped = self._shipped(event, fde) if self._plain else self._chosen_map(event, fde)
        self._maps[table_id] = shipped
        if shipped is not None:
            self._append(event, shipped)

    def _chosen_map(self, event: Event, fde: FormatDescription) -> bytes | None:
        """The table map with the database's name on the target; None for a table that is not wanted."""
        table_map = parse_table_map(event.buffer, event.body, event.end, fde.post_header_length(EventType.TABLE_MAP))
        if not self.options.wants(table_map.database, table_map.table):
            return None
        new = self.options.rewrite.get(table_map.database)
        if new is None:
            return self._shipped(event, fde)
        start = event.body + fde.post_header_length(EventType.TABLE_MAP)
        name = new.encode("utf-8", "surrogateescape")
        behind = start + 1 + event.buffer[start]
        body = event.buffer[event.body : start] + bytes([len(name)]) + name + event.buffer[behind : event.end]
        return packed(event.header, event.type, body, fde)

    def _add_rows(self, event: Event, fde: FormatDescription) -> None:
        buffer, body = event.buffer, event.body
        ends = buffer[body + FLAGS_OFFSET] & STATEMENT_END
        table_id = buffer[body : body + TABLE_ID_BYTES]
        shipped = self._maps.get(table_id, b"")
        if shipped is None:
            if ends:
                self._close_statement(fde)
        elif not shipped and int.from_bytes(table_id, "little") not in DUMMY_TABLE_IDS:
            raise InputError(
                f"a {event.name} event speaks of table id {int.from_bytes(table_id, 'little')}, which no table map before it names",
                file=event.file,
                position=event.position,
                hint="start at the beginning of a transaction (binlag events lists them), not inside one",
            )
        else:
            if not self._literal:  # a long statement goes on: the server has forgotten its table maps
                for table_map in self._maps.values():
                    if table_map is not None:
                        self._append(event, table_map)
            self._append(event, self._shipped(event, fde))
            self._open = not ends
            if self.one_by_one:
                self._table = self._table_name(table_id)
        if ends:
            self._maps.clear()

    def _close_statement(self, fde: FormatDescription) -> None:
        """The event that ends the statement is left out: the last that is not ends it instead."""
        if self._open and self._literal:
            self._literal[-1] = with_statement_end(self._literal[-1], fde)
        self._open = False

    def _shipped(self, event: Event, fde: FormatDescription) -> bytes:
        """The event as it stands in the log, or written anew where it cannot be taken as it is."""
        if self._upgrade and event.type in UPGRADED:
            head = event.body + TABLE_ID_BYTES + 2
            body = event.buffer[event.body : head] + b"\x02\0" + event.buffer[head : event.end]
            return packed(event.header, UPGRADED[EventType(event.type)], body, fde)
        if event.inner_index < 0 and event.type == event.stored_type and fde.header_length == HEADER_LENGTH:
            return event.buffer[event.position : event.position + event.length]
        return packed(event.header, event.type, event.data, fde)

    def _append(self, event: Event, shipped: bytes) -> None:
        if not self._literal or (self.one_by_one and event.type != EventType.TABLE_MAP):
            self._first = event
        self._literal.append(shipped)
        self._size += len(shipped)

    def _cut(self) -> None:
        """Ends the literal."""
        if not self._literal:
            return
        assert self._format is not None
        self._close_statement(self._format.fde)
        self._done.append(Statement(literal(self._literal), self._first, self._table))
        self._literal, self._size, self._table = [], 0, None

    def _table_name(self, table_id: bytes) -> str | None:
        event = self._map_events.get(table_id)
        return None if event is None else parse_table_map(event.buffer, event.body, event.end, 8).full_name


def literal(events: list[bytes]) -> bytes:
    """BINLOG statement of these events, as one chunk of base64."""
    return b"BINLOG '" + b2a_base64(b"".join(events), newline=False) + b"'"


def packed(header: tuple[int, ...], type: int, body: bytes, fde: FormatDescription, flags: int | None = None) -> bytes:
    """An event written anew: a header of the standard length, the body, and the checksum that the description promises."""
    timestamp, _, server_id, _, log_pos, old_flags = header
    length = HEADER_LENGTH + len(body) + fde.checksum_length
    data = HEADER.pack(timestamp, type, server_id, length, log_pos, old_flags if flags is None else flags) + body
    return data + struct.pack("<I", zlib.crc32(data)) if fde.checksum_length else data


def with_statement_end(event: bytes, fde: FormatDescription) -> bytes:
    """A rows event that ends its statement."""
    changed = bytearray(event)
    changed[HEADER_LENGTH + FLAGS_OFFSET] |= STATEMENT_END
    if fde.checksum_length:
        content = bytes(changed[:-CHECKSUM_LENGTH])
        return content + struct.pack("<I", zlib.crc32(content))
    return bytes(changed)


def description_body(fde: FormatDescription) -> bytes:
    """The body of a format description event up to its checksum; headers have the standard length."""
    head = struct.pack("<H50sIB", 4, fde.server_version.encode("latin-1"), fde.created, HEADER_LENGTH)
    algorithm = b"" if fde.checksum is None else bytes([fde.checksum])
    return head + fde.post_header_lengths + algorithm
