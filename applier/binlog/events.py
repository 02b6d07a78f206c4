"""What the events say: one named tuple per event type, and `parse` that makes it.

Layouts: libs/mysql/binlog/event/*.cpp 9.7, sql/log_event.cc 5.6 to 9.7, sql/log_event.cc MariaDB
10.11. Table maps and rows have modules of their own, and so have GTIDs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from applier.binlog.cursor import Cursor
from applier.binlog.gtid_events import parse_gtid, parse_gtid_tagged, parse_mariadb_gtid
from applier.binlog.header import (
    Event,
    EventType,
    FormatDescription,
    an_event,
    parse_format_description,
)
from applier.binlog.payload import parse_payload_header
from applier.binlog.status_vars import StatusVariables, parse_status_variables
from applier.binlog.xa import xid_text
from applier.error_codes import Code
from applier.errors import InputError
from checkpoints.gtid import GtidError, GtidSet, MariadbGtid


class Query(NamedTuple):
    """A statement. `sql` and `database` are bytes in the client's character set."""

    thread_id: int
    execution_seconds: int
    database: bytes
    error_code: int
    variables: StatusVariables
    sql: bytes


class ExecuteLoadQuery(NamedTuple):
    """The LOAD DATA statement that uses file `file_id`; its file name stands at [name_start,
    name_end) of the statement."""

    query: Query
    file_id: int
    name_start: int
    name_end: int
    duplicate_handling: int


class Xid(NamedTuple):
    """XID: the commit of a transaction, by InnoDB's number of it."""

    xid: int


class XaPrepare(NamedTuple):
    """XA_PREPARE. `one_phase`: XA COMMIT … ONE PHASE, so the transaction ends here."""

    one_phase: bool
    format_id: int
    global_id: bytes
    branch_id: bytes

    @property
    def text(self) -> str:
        """The identifier as XA statements name it."""
        return xid_text(self.format_id, self.global_id, self.branch_id)


class Intvar(NamedTuple):
    """Type 1: LAST_INSERT_ID, 2: INSERT_ID."""

    type: int
    value: int


class Rand(NamedTuple):
    """RAND: the seeds of RAND() in the statement that follows."""

    seed1: int
    seed2: int


class UserVar(NamedTuple):
    """`value` is None for NULL, else the raw bytes; `type`: 0 string, 1 real, 2 integer, 4
    decimal. `data_type`: what MariaDB calls the type of a shape, else empty; `is_mariadb`: of a
    log of MariaDB."""

    name: bytes
    value: bytes | None
    type: int = 0
    collation: int = 0
    unsigned: bool = False
    data_type: str = ""
    is_mariadb: bool = False


class Rotate(NamedTuple):
    """ROTATE: `file` goes on at `position`."""

    position: int
    file: str


class PreviousGtids(NamedTuple):
    """PREVIOUS_GTIDS: what was executed before this file."""

    gtids: GtidSet


class GtidList(NamedTuple):
    """MariaDB's GTID_LIST: the last GTID of each domain and server before this file."""

    gtids: tuple[MariadbGtid, ...]
    flags: int


class LoadBlock(NamedTuple):
    """BEGIN_LOAD_QUERY and APPEND_BLOCK: a piece of a LOAD DATA file."""

    file_id: int
    data: bytes


class DeleteFile(NamedTuple):
    """DELETE_FILE: LOAD DATA failed on the source, its file is not needed; EXEC_LOAD: it is
    complete."""

    file_id: int


class Incident(NamedTuple):
    """INCIDENT: the source lost events."""

    number: int
    message: str

    @property
    def name(self) -> str:
        """The server's word for the number."""
        return {0: "NOTHING", 1: "LOST_EVENTS"}.get(self.number, "UNKNOWN")


class Heartbeat(NamedTuple):
    """HEARTBEAT and HEARTBEAT_V2: where a source is that has nothing to send. Never in a file."""

    file: str
    position: int


class RowsQuery(NamedTuple):
    """The statement behind the rows events that follow (ROWS_QUERY, ANNOTATE_ROWS)."""

    sql: bytes


class BinlogCheckpoint(NamedTuple):
    """MariaDB's BINLOG_CHECKPOINT: the oldest log that a crashed source would need."""

    file: str


class ViewChange(NamedTuple):
    """VIEW_CHANGE of group replication: who is a member from here on."""

    view_id: str
    sequence_number: int
    certification: dict[str, bytes]


class TransactionContext(NamedTuple):
    """TRANSACTION_CONTEXT of group replication: what a transaction is certified by."""

    server_uuid: str
    thread_id: int
    gtid_specified: bool
    snapshot: bytes
    write_set: tuple[bytes, ...]
    read_set: tuple[bytes, ...]


class Payload(NamedTuple):
    """TRANSACTION_PAYLOAD: compressed events (sizes in bytes). `compression` 0 is zstd, 255
    none."""

    compression: int
    uncompressed_size: int
    payload_size: int


class OpaqueEvent(NamedTuple):
    """An event that needs no fields here, or whose layout nobody uses any more; `data` is its
    body."""

    data: bytes


Parsed = Any


def _query_head(cursor: Cursor, post_header: int) -> tuple[int, int, int, int, int]:
    thread_id = cursor.u32()
    seconds = cursor.u32()
    database_length = cursor.u8()
    error_code = cursor.u16()
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
    file_id = cursor.u32()
    name_start = cursor.u32()
    name_end = cursor.u32()
    duplicates = cursor.u8()
    return ExecuteLoadQuery(_query_tail(cursor, head), file_id, name_start, name_end, duplicates)


def _xid(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Xid:
    return Xid(cursor.u64())


def _xa_prepare(cursor: Cursor, _event: Event, _fde: FormatDescription) -> XaPrepare:
    one_phase = cursor.u8()
    format_id = cursor.u32()
    global_length = cursor.u32()
    branch_length = cursor.u32()
    if global_length > 64 or branch_length > 64:
        raise InputError("an XA identifier is longer than 64 bytes", code=Code.BAD_EVENT)
    return XaPrepare(
        bool(one_phase), format_id, cursor.take(global_length), cursor.take(branch_length)
    )


def _intvar(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Intvar:
    return Intvar(cursor.u8(), cursor.u64())


def _rand(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Rand:
    return Rand(cursor.u64(), cursor.u64())


_DATA_TYPE = 2
"""What stands in place of the flags where a type's name follows (Log_event_data_type 10.11)."""


def _user_var(cursor: Cursor, _event: Event, fde: FormatDescription) -> UserVar:
    name = cursor.take(cursor.u32())
    if cursor.u8():
        return UserVar(name, None, is_mariadb=fde.is_mariadb)
    kind, collation = cursor.u8(), cursor.u32()
    value = cursor.take(cursor.u32())
    flags = cursor.u8() if cursor.left else 0
    data_type = ""
    if flags == _DATA_TYPE and fde.is_mariadb:
        data_type = cursor.take(cursor.u8()).decode("ascii", "replace")
    return UserVar(name, value, kind, collation, bool(flags & 1), data_type, fde.is_mariadb)


def _rotate(cursor: Cursor, _event: Event, fde: FormatDescription) -> Rotate:
    position = cursor.u64() if fde.post_header_length(EventType.ROTATE) or cursor.left >= 8 else 4
    return Rotate(position, cursor.rest().decode("utf-8", "surrogateescape"))


def _previous_gtids(cursor: Cursor, _event: Event, _fde: FormatDescription) -> PreviousGtids:
    try:
        return PreviousGtids(GtidSet.decode(cursor.rest()))
    except GtidError as error:
        raise InputError(
            f"the set of previous GTIDs cannot be read: {error}", code=Code.BAD_EVENT
        ) from None


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
    return Incident(
        number, cursor.take(cursor.u8()).decode("utf-8", "replace") if cursor.left else ""
    )


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


def _transaction_context(
    cursor: Cursor, _event: Event, _fde: FormatDescription
) -> TransactionContext:
    uuid_length, thread_id, specified = cursor.u8(), cursor.u32(), cursor.u8()
    snapshot_length, writes, reads = cursor.u32(), cursor.u32(), cursor.u32()
    uuid = cursor.take(uuid_length).decode("latin-1")
    snapshot = cursor.take(snapshot_length)
    if (writes + reads) * 2 > cursor.left:
        raise InputError(
            "a transaction context claims more items than it holds", code=Code.BAD_EVENT
        )
    items = [cursor.take(cursor.u16()) for _ in range(writes + reads)]
    return TransactionContext(
        uuid, thread_id, bool(specified), snapshot, tuple(items[:writes]), tuple(items[writes:])
    )


def _payload(_cursor: Cursor, event: Event, _fde: FormatDescription) -> Payload:
    header = parse_payload_header(event)
    return Payload(header.compression, header.uncompressed_size, header.payload_size)


def _format_description(cursor: Cursor, event: Event, fde: FormatDescription) -> FormatDescription:
    trailer = 0 if fde.checksum is None else 4
    return parse_format_description(event.buffer[event.body : event.end + trailer])


def _opaque(cursor: Cursor, _event: Event, _fde: FormatDescription) -> OpaqueEvent:
    return OpaqueEvent(cursor.rest())


Parser = Callable[[Cursor, Event, FormatDescription], Parsed]

PARSERS: dict[int, Parser] = {
    EventType.FORMAT_DESCRIPTION: _format_description,
    EventType.GTID: parse_gtid,
    EventType.ANONYMOUS_GTID: parse_gtid,
    EventType.GTID_TAGGED: parse_gtid_tagged,
    EventType.MARIADB_GTID: parse_mariadb_gtid,
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
"""How each event type is read; the types that are not here have no fields of interest (STOP,
IGNORABLE, START_V3, ...)."""


def parse(event: Event, fde: FormatDescription) -> Parsed:
    """The event's dataclass. Raises InputError, with the event's place, when a field runs out of
    the event."""
    cursor = Cursor(event.buffer, event.body, event.end)
    try:
        return PARSERS.get(event.type, _opaque)(cursor, event, fde)
    except InputError as error:
        error.message = f"{an_event(event.name)} cannot be read: {error.message}"
        error.locate(file=event.file, position=event.position)
        raise
    except struct.error as error:
        raise InputError(
            f"{an_event(event.name)} cannot be read: {error}",
            code=Code.BAD_EVENT,
            file=event.file,
            position=event.position,
        ) from None
