"""What the events say: one frozen dataclass per event type, and `parse` that makes it.

Layouts: libs/mysql/binlog/event/*.cpp 9.7, sql/log_event.cc 5.6 to 9.7, sql/log_event.cc MariaDB 10.11. Table maps and rows
have modules of their own.
"""

from __future__ import annotations

import struct
import uuid as uuid_module
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from applier.binlog.cursor import Cursor
from applier.binlog.header import Event, EventType, FormatDescription, parse_format_description
from applier.binlog.payload import parse_payload_header
from applier.binlog.status_vars import StatusVariables, parse_status_variables
from applier.error_codes import Code
from applier.errors import InputError
from checkpoints.gtid import GtidError, GtidSet, MariadbGtid

TIMESTAMP_FLAG = 1 << 55
VERSION_FLAG = 1 << 31
UNDEFINED_VERSION = 999999
_GTID_HEAD = struct.Struct("<B16sq").unpack
_GTID_CLOCK = struct.Struct("<qq").unpack


@dataclass(frozen=True, slots=True)
class Gtid:
    """GTID, ANONYMOUS_GTID (uuid None) and GTID_TAGGED. Timestamps in microseconds, 0 where the log has none."""

    uuid: str | None
    number: int
    tag: str = ""
    flags: int = 0
    last_committed: int = 0
    sequence_number: int = 0
    immediate_commit_timestamp: int = 0
    original_commit_timestamp: int = 0
    transaction_length: int = 0
    immediate_server_version: int = UNDEFINED_VERSION
    original_server_version: int = UNDEFINED_VERSION
    commit_group_ticket: int = 0

    @property
    def text(self) -> str | None:
        if self.uuid is None:
            return None
        return f"{self.uuid}:{self.tag + ':' if self.tag else ''}{self.number}"


@dataclass(frozen=True, slots=True)
class MariadbGtidEvent:
    """MariaDB's GTID event. `xid` is set for a prepared or completed XA transaction."""

    gtid: MariadbGtid
    flags: int
    commit_id: int | None = None
    xid: str | None = None
    flags_extra: int = 0

    STANDALONE = 0x01
    DDL = 0x20
    PREPARED_XA = 0x40
    COMPLETED_XA = 0x80

    @property
    def text(self) -> str:
        return str(self.gtid)

    @property
    def is_standalone(self) -> bool:
        """No COMMIT or XID follows."""
        return bool(self.flags & self.STANDALONE)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement. `sql` and `database` are bytes in the client's character set."""

    thread_id: int
    execution_seconds: int
    database: bytes
    error_code: int
    variables: StatusVariables
    sql: bytes


@dataclass(frozen=True, slots=True)
class ExecuteLoadQuery:
    """The LOAD DATA statement that uses file `file_id`; its file name stands at [name_start, name_end) of the statement."""

    query: Query
    file_id: int
    name_start: int
    name_end: int
    duplicate_handling: int


@dataclass(frozen=True, slots=True)
class Xid:
    xid: int


@dataclass(frozen=True, slots=True)
class XaPrepare:
    one_phase: bool
    format_id: int
    global_id: bytes
    branch_id: bytes

    @property
    def text(self) -> str:
        return f"X'{self.global_id.hex()}',X'{self.branch_id.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class Intvar:
    """Type 1: LAST_INSERT_ID, 2: INSERT_ID."""

    type: int
    value: int


@dataclass(frozen=True, slots=True)
class Rand:
    seed1: int
    seed2: int


@dataclass(frozen=True, slots=True)
class UserVar:
    """`value` is None for NULL, else the raw bytes; `type`: 0 string, 1 real, 2 integer, 4 decimal."""

    name: bytes
    value: bytes | None
    type: int = 0
    collation: int = 0
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Rotate:
    position: int
    file: str


@dataclass(frozen=True, slots=True)
class PreviousGtids:
    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class GtidList:
    gtids: tuple[MariadbGtid, ...]
    flags: int


@dataclass(frozen=True, slots=True)
class LoadBlock:
    """BEGIN_LOAD_QUERY and APPEND_BLOCK: a piece of a LOAD DATA file."""

    file_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DeleteFile:
    file_id: int


@dataclass(frozen=True, slots=True)
class Incident:
    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    file: str
    position: int


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The statement behind the rows events that follow (ROWS_QUERY, ANNOTATE_ROWS)."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    file: str


@dataclass(frozen=True, slots=True)
class ViewChange:
    view_id: str
    sequence_number: int
    certification: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class TransactionContext:
    server_uuid: str
    thread_id: int
    gtid_specified: bool
    snapshot: bytes
    write_set: tuple[bytes, ...]
    read_set: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    compression: int
    uncompressed_size: int
    payload_size: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """An event that needs no fields here, or whose layout nobody uses any more; `data` is its body."""

    data: bytes


Parsed = Any


def _gtid(cursor: Cursor, event: Event, _fde: FormatDescription) -> Gtid:
    flags, uuid, number = _GTID_HEAD(cursor.take(25))
    name = None if event.type == EventType.ANONYMOUS_GTID else _uuid_text(uuid)
    if cursor.left < 17 or cursor.u8() != 2:
        return Gtid(name, number, flags=flags)
    last_committed, sequence_number = _GTID_CLOCK(cursor.take(16))
    immediate = original = length = ticket = 0
    immediate_version = original_version = UNDEFINED_VERSION
    if cursor.left >= 7:
        immediate = original = cursor.unsigned(7)
        if immediate & TIMESTAMP_FLAG:
            immediate &= ~TIMESTAMP_FLAG
            original = cursor.unsigned(7)
    if cursor.left:
        length = cursor.packed()
    if cursor.left >= 4:
        immediate_version = original_version = cursor.u32()
        if immediate_version & VERSION_FLAG:
            immediate_version &= ~VERSION_FLAG
            original_version = cursor.u32()
    if cursor.left >= 8:
        ticket = cursor.u64()
    return Gtid(
        name, number, "", flags, last_committed, sequence_number, immediate, original, length, immediate_version, original_version, ticket
    )


def gtid_text(event: Event) -> str:
    """The GTID of a GTID event alone, for loops that need no more of it."""
    at = event.body
    if event.end - at < 25:
        raise InputError("a Gtid event is too short", code=Code.BAD_EVENT, file=event.file, position=event.position)
    return f"{_uuid_text(event.buffer[at + 1 : at + 17])}:{int.from_bytes(event.buffer[at + 17 : at + 25], 'little')}"


@lru_cache(maxsize=64)
def _uuid_text(raw: bytes) -> str:
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _gtid_tagged(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Gtid:
    """One mysql::serialization message: version, size, last non-ignorable field, then (id, value) pairs in order."""
    start = cursor.at
    if cursor.varlen() != 1:
        raise InputError("unknown serialization format of a tagged GTID event", code=Code.UNKNOWN_FORMAT)
    end = start + cursor.varlen()
    if end > cursor.end:
        raise InputError("a tagged GTID event claims more bytes than it has", code=Code.BAD_EVENT)
    if cursor.varlen() > 12:
        raise InputError("a tagged GTID event has fields that must not be ignored and are not known", code=Code.UNKNOWN_FORMAT)
    fields: dict[int, Any] = {}
    while cursor.at < end:
        field = cursor.varlen()
        if field == 1:
            fields[1] = bytes(cursor.varlen() & 0xFF for _ in range(16))
        elif field == 3:
            fields[3] = cursor.take(cursor.varlen()).decode("ascii", "replace")
        elif field in (2, 4, 5):
            fields[field] = cursor.varlen_signed()
        elif field in (0, 6, 7, 8, 9, 10, 11):
            fields[field] = cursor.varlen()
        else:
            break
    immediate, version = fields.get(6, 0), fields.get(9, UNDEFINED_VERSION)
    return Gtid(
        str(uuid_module.UUID(bytes=fields.get(1, bytes(16)))),
        fields.get(2, 0),
        fields.get(3, ""),
        fields.get(0, 0),
        fields.get(4, 0),
        fields.get(5, 0),
        immediate,
        fields.get(7, immediate),
        fields.get(8, 0),
        version,
        fields.get(10, version),
        fields.get(11, 0),
    )


def _mariadb_gtid(cursor: Cursor, event: Event, _fde: FormatDescription) -> MariadbGtidEvent:
    sequence, domain, flags = cursor.u64(), cursor.u32(), cursor.u8()
    commit_id = cursor.u64() if flags & 0x02 else None
    xid = None
    if flags & (MariadbGtidEvent.PREPARED_XA | MariadbGtidEvent.COMPLETED_XA):
        format_id, global_length, branch_length = cursor.u32(), cursor.u8(), cursor.u8()
        xid = XaPrepare(False, format_id, cursor.take(global_length), cursor.take(branch_length)).text
    extra = cursor.u8() if cursor.left else 0
    return MariadbGtidEvent(MariadbGtid(domain, event.server_id, sequence), flags, commit_id, xid, extra)


def _query_head(cursor: Cursor, post_header: int) -> tuple[int, int, int, int, int]:
    thread_id, seconds, database_length, error_code = cursor.u32(), cursor.u32(), cursor.u8(), cursor.u16()
    status_length = cursor.u16() if post_header >= 13 else 0
    return thread_id, seconds, database_length, error_code, status_length


def _query_tail(cursor: Cursor, head: tuple[int, int, int, int, int]) -> Query:
    thread_id, seconds, database_length, error_code, status_length = head
    variables = parse_status_variables(cursor.take(status_length))
    database = cursor.take(database_length)
    cursor.skip(1)
    return Query(thread_id, seconds, database, error_code, variables, cursor.rest())


def _query(cursor: Cursor, event: Event, fde: FormatDescription) -> Query:
    post_header = fde.post_header_length(EventType.QUERY) or 13
    head = _query_head(cursor, post_header)
    cursor.skip(max(post_header - 13, 0))
    return _query_tail(cursor, head)


def _execute_load_query(cursor: Cursor, _event: Event, fde: FormatDescription) -> ExecuteLoadQuery:
    head = _query_head(cursor, 13)
    file_id, name_start, name_end, duplicates = cursor.u32(), cursor.u32(), cursor.u32(), cursor.u8()
    return ExecuteLoadQuery(_query_tail(cursor, head), file_id, name_start, name_end, duplicates)


def _xid(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Xid:
    return Xid(cursor.u64())


def _xa_prepare(cursor: Cursor, _event: Event, _fde: FormatDescription) -> XaPrepare:
    one_phase, format_id, global_length, branch_length = cursor.u8(), cursor.u32(), cursor.u32(), cursor.u32()
    if global_length > 64 or branch_length > 64:
        raise InputError("an XA identifier is longer than 64 bytes", code=Code.BAD_EVENT)
    return XaPrepare(bool(one_phase), format_id, cursor.take(global_length), cursor.take(branch_length))


def _intvar(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Intvar:
    return Intvar(cursor.u8(), cursor.u64())


def _rand(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Rand:
    return Rand(cursor.u64(), cursor.u64())


def _user_var(cursor: Cursor, _event: Event, _fde: FormatDescription) -> UserVar:
    name = cursor.take(cursor.u32())
    if cursor.u8():
        return UserVar(name, None)
    kind, collation = cursor.u8(), cursor.u32()
    value = cursor.take(cursor.u32())
    return UserVar(name, value, kind, collation, bool(cursor.u8() & 1) if cursor.left else False)


def _rotate(cursor: Cursor, _event: Event, fde: FormatDescription) -> Rotate:
    position = cursor.u64() if fde.post_header_length(EventType.ROTATE) or cursor.left >= 8 else 4
    return Rotate(position, cursor.rest().decode("utf-8", "surrogateescape"))


def _previous_gtids(cursor: Cursor, _event: Event, _fde: FormatDescription) -> PreviousGtids:
    try:
        return PreviousGtids(GtidSet.decode(cursor.rest()))
    except GtidError as error:
        raise InputError(f"the set of previous GTIDs cannot be read: {error}", code=Code.BAD_EVENT) from None


def _gtid_list(cursor: Cursor, _event: Event, _fde: FormatDescription) -> GtidList:
    head = cursor.u32()
    count = head & 0x0FFFFFFF
    if count * 16 > cursor.left:
        raise InputError(f"a GTID list claims {count} entries", code=Code.BAD_EVENT)
    gtids = tuple(MariadbGtid(cursor.u32(), cursor.u32(), cursor.u64()) for _ in range(count))
    return GtidList(gtids, head >> 28)


def _load_block(cursor: Cursor, _event: Event, _fde: FormatDescription) -> LoadBlock:
    return LoadBlock(cursor.u32(), cursor.rest())


def _delete_file(cursor: Cursor, _event: Event, _fde: FormatDescription) -> DeleteFile:
    return DeleteFile(cursor.u32())


def _incident(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Incident:
    number = cursor.u16()
    return Incident(number, cursor.take(cursor.u8()).decode("utf-8", "replace") if cursor.left else "")


def _heartbeat(cursor: Cursor, event: Event, _fde: FormatDescription) -> Heartbeat:
    return Heartbeat(cursor.rest().decode("utf-8", "surrogateescape"), event.log_pos)


def _heartbeat_v2(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Heartbeat:
    file, position = "", 0
    while cursor.left and (field := cursor.packed()):
        value = Cursor(cursor.take(cursor.packed()))
        if field == 1:
            file = value.rest().decode("utf-8", "surrogateescape")
        elif field == 2:
            position = value.packed()
    return Heartbeat(file, position)


def _rows_query(cursor: Cursor, event: Event, _fde: FormatDescription) -> RowsQuery:
    if event.type == EventType.ROWS_QUERY:
        cursor.skip(1)
    return RowsQuery(cursor.rest())


def _binlog_checkpoint(cursor: Cursor, _event: Event, _fde: FormatDescription) -> BinlogCheckpoint:
    return BinlogCheckpoint(cursor.take(cursor.u32()).decode("utf-8", "surrogateescape"))


def _view_change(cursor: Cursor, _event: Event, _fde: FormatDescription) -> ViewChange:
    view_id = cursor.take(40).split(b"\0")[0].decode("latin-1")
    number, count = cursor.u64(), cursor.u32()
    certification = {}
    for _ in range(count):
        key = cursor.take(cursor.u16()).decode("latin-1")
        certification[key] = cursor.take(cursor.u32())
    return ViewChange(view_id, number, certification)


def _transaction_context(cursor: Cursor, _event: Event, _fde: FormatDescription) -> TransactionContext:
    uuid_length, thread_id, specified = cursor.u8(), cursor.u32(), cursor.u8()
    snapshot_length, writes, reads = cursor.u32(), cursor.u32(), cursor.u32()
    uuid = cursor.take(uuid_length).decode("latin-1")
    snapshot = cursor.take(snapshot_length)
    if (writes + reads) * 2 > cursor.left:
        raise InputError("a transaction context claims more items than it holds", code=Code.BAD_EVENT)
    items = [cursor.take(cursor.u16()) for _ in range(writes + reads)]
    return TransactionContext(uuid, thread_id, bool(specified), snapshot, tuple(items[:writes]), tuple(items[writes:]))


def _payload(_cursor: Cursor, event: Event, _fde: FormatDescription) -> Payload:
    header = parse_payload_header(event)
    return Payload(header.compression, header.uncompressed_size, header.payload_size)


def _format_description(cursor: Cursor, event: Event, fde: FormatDescription) -> FormatDescription:
    trailer = 0 if fde.checksum is None else 4
    return parse_format_description(event.buffer[event.body : event.end + trailer])


def _opaque(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Opaque:
    return Opaque(cursor.rest())


Parser = Callable[[Cursor, Event, FormatDescription], Parsed]

PARSERS: dict[int, Parser] = {
    EventType.FORMAT_DESCRIPTION: _format_description,
    EventType.GTID: _gtid,
    EventType.ANONYMOUS_GTID: _gtid,
    EventType.GTID_TAGGED: _gtid_tagged,
    EventType.MARIADB_GTID: _mariadb_gtid,
    EventType.QUERY: _query,
    EventType.EXECUTE_LOAD_QUERY: _execute_load_query,
    EventType.XID: _xid,
    EventType.XA_PREPARE: _xa_prepare,
    EventType.INTVAR: _intvar,
    EventType.RAND: _rand,
    EventType.USER_VAR: _user_var,
    EventType.ROTATE: _rotate,
    EventType.PREVIOUS_GTIDS: _previous_gtids,
    EventType.GTID_LIST: _gtid_list,
    EventType.BEGIN_LOAD_QUERY: _load_block,
    EventType.APPEND_BLOCK: _load_block,
    EventType.DELETE_FILE: _delete_file,
    EventType.EXEC_LOAD: _delete_file,
    EventType.INCIDENT: _incident,
    EventType.HEARTBEAT: _heartbeat,
    EventType.HEARTBEAT_V2: _heartbeat_v2,
    EventType.ROWS_QUERY: _rows_query,
    EventType.ANNOTATE_ROWS: _rows_query,
    EventType.BINLOG_CHECKPOINT: _binlog_checkpoint,
    EventType.VIEW_CHANGE: _view_change,
    EventType.TRANSACTION_CONTEXT: _transaction_context,
    EventType.TRANSACTION_PAYLOAD: _payload,
}
"""How each event type is read; the types that are not here have no fields of interest (STOP, IGNORABLE, START_V3, ...)."""


def parse(event: Event, fde: FormatDescription) -> Parsed:
    """The event's dataclass. Raises InputError, with the event's place, when a field runs out of the event."""
    cursor = Cursor(event.buffer, event.body, event.end)
    try:
        return PARSERS.get(event.type, _opaque)(cursor, event, fde)
    except InputError as error:
        error.message = f"a {event.name} event cannot be read: {error.message}"
        error.locate(file=event.file, position=event.position)
        raise
    except struct.error as error:
        raise InputError(
            f"a {event.name} event cannot be read: {error}", code=Code.BAD_EVENT, file=event.file, position=event.position
        ) from None
