"""What stands before every event: the common header, and the format description that governs how to
read the rest.

Binary log v4 (MySQL 5.0 to 9.7, MariaDB 5.5 to 10.11); libs/mysql/binlog/event/binlog_event.h and
control_events.cpp 9.7.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from applier.error_codes import Code
from applier.errors import InputError

MAGIC = b"\xfebin"
FIRST_EVENT = len(MAGIC)
"""Position of the first event of a log."""
ENCRYPTED_MAGIC = b"\xfdbin"
HEADER = struct.Struct("<IBIIIH")
"""timestamp, type, server id, event length, end position in the source's log, flags"""
HEADER_LENGTH = 19
CHECKSUM_LENGTH = 4


class EventType(IntEnum):
    """Event type codes; 160 and up are MariaDB's."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


SERVER_NAMES: dict[int, str] = {
    EventType.QUERY: "Query",
    EventType.START_V3: "Start_v3",
    EventType.STOP: "Stop",
    EventType.ROTATE: "Rotate",
    EventType.INTVAR: "Intvar",
    EventType.LOAD: "Load",
    EventType.SLAVE: "Slave",
    EventType.CREATE_FILE: "Create_file",
    EventType.APPEND_BLOCK: "Append_block",
    EventType.EXEC_LOAD: "Exec_load",
    EventType.DELETE_FILE: "Delete_file",
    EventType.NEW_LOAD: "New_load",
    EventType.RAND: "RAND",
    EventType.USER_VAR: "User var",
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.XID: "Xid",
    EventType.BEGIN_LOAD_QUERY: "Begin_load_query",
    EventType.EXECUTE_LOAD_QUERY: "Execute_load_query",
    EventType.TABLE_MAP: "Table_map",
    EventType.PRE_GA_WRITE_ROWS: "Write_rows_event_old",
    EventType.PRE_GA_UPDATE_ROWS: "Update_rows_event_old",
    EventType.PRE_GA_DELETE_ROWS: "Delete_rows_event_old",
    EventType.WRITE_ROWS_V1: "Write_rows_v1",
    EventType.UPDATE_ROWS_V1: "Update_rows_v1",
    EventType.DELETE_ROWS_V1: "Delete_rows_v1",
    EventType.INCIDENT: "Incident",
    EventType.HEARTBEAT: "Heartbeat",
    EventType.IGNORABLE: "Ignorable",
    EventType.ROWS_QUERY: "Rows_query",
    EventType.WRITE_ROWS: "Write_rows",
    EventType.UPDATE_ROWS: "Update_rows",
    EventType.DELETE_ROWS: "Delete_rows",
    EventType.GTID: "Gtid",
    EventType.ANONYMOUS_GTID: "Anonymous_Gtid",
    EventType.PREVIOUS_GTIDS: "Previous_gtids",
    EventType.TRANSACTION_CONTEXT: "Transaction_context",
    EventType.VIEW_CHANGE: "View_change",
    EventType.XA_PREPARE: "XA_prepare",
    EventType.PARTIAL_UPDATE_ROWS: "Update_rows_partial",
    EventType.TRANSACTION_PAYLOAD: "Transaction_payload",
    EventType.HEARTBEAT_V2: "Heartbeat",
    EventType.GTID_TAGGED: "Gtid_tagged_log_event",
    EventType.ANNOTATE_ROWS: "Annotate_rows",
    EventType.BINLOG_CHECKPOINT: "Binlog_checkpoint",
    EventType.MARIADB_GTID: "Gtid",
    EventType.GTID_LIST: "Gtid_list",
    EventType.START_ENCRYPTION: "Start_encryption",
    EventType.QUERY_COMPRESSED: "Query_compressed",
    EventType.WRITE_ROWS_COMPRESSED_V1: "Write_rows_compressed_v1",
    EventType.UPDATE_ROWS_COMPRESSED_V1: "Update_rows_compressed_v1",
    EventType.DELETE_ROWS_COMPRESSED_V1: "Delete_rows_compressed_v1",
    EventType.WRITE_ROWS_COMPRESSED: "Write_rows_compressed",
    EventType.UPDATE_ROWS_COMPRESSED: "Update_rows_compressed",
    EventType.DELETE_ROWS_COMPRESSED: "Delete_rows_compressed",
}
"""Names as SHOW BINLOG EVENTS prints them."""

COMPRESSED: dict[int, EventType] = {
    EventType.QUERY_COMPRESSED: EventType.QUERY,
    EventType.WRITE_ROWS_COMPRESSED_V1: EventType.WRITE_ROWS_V1,
    EventType.UPDATE_ROWS_COMPRESSED_V1: EventType.UPDATE_ROWS_V1,
    EventType.DELETE_ROWS_COMPRESSED_V1: EventType.DELETE_ROWS_V1,
    EventType.WRITE_ROWS_COMPRESSED: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_COMPRESSED: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_COMPRESSED: EventType.DELETE_ROWS,
}
"""MariaDB's compressed events -> the plain event they hold."""

KNOWN_TYPES = frozenset(int(member) for member in EventType) - {0}
ROWS_TYPES = frozenset(range(23, 26)) | frozenset(range(30, 33)) | {EventType.PARTIAL_UPDATE_ROWS}
GTID_TYPES = frozenset(
    {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID}
)


class EventFlag(IntFlag):
    """Flags of the common header (sql/log_event.h 9.7)."""

    IN_USE = 0x1
    THREAD_SPECIFIC = 0x4
    SUPPRESS_USE = 0x8
    ARTIFICIAL = 0x20
    RELAY_LOG = 0x40
    IGNORABLE = 0x80
    NO_FILTER = 0x100
    MTS_ISOLATE = 0x200


Header = tuple[int, int, int, int, int, int]
"""timestamp, type, server id, event length, end position in the source's log, flags"""


class Event:
    """One event, its body not yet read: `buffer[body:end]` holds what follows the header and comes
    before the checksum.

    `position` is the offset of the event in `file`, `log_pos` the end position the source wrote.
    `stored_type` differs from `type` for MariaDB's compressed events, whose buffer is the
    decompressed body. Millions of these are made: what the header says stays in its tuple until
    somebody asks.
    """

    __slots__ = ("body", "buffer", "end", "file", "header", "position", "type")

    inner_index: int = -1
    """Place in a compressed transaction, from 0 on; -1 outside of one."""

    def __init__(
        self, file: str, position: int, header: Header, buffer: bytes, body: int, end: int
    ) -> None:
        self.file = file
        self.position = position
        self.header = header
        self.type = header[1]
        self.buffer = buffer
        self.body = body
        self.end = end

    @property
    def timestamp(self) -> int:
        """Seconds since 1970."""
        return self.header[0]

    @property
    def stored_type(self) -> int:
        """The type's number as it stands in the log."""
        return self.header[1]

    @property
    def server_id(self) -> int:
        """The server that wrote the event first."""
        return self.header[2]

    @property
    def length(self) -> int:
        """Bytes of the event in the log, header and checksum included."""
        return self.header[3]

    @property
    def log_pos(self) -> int:
        """Where the event ends in its source's log, in bytes; 0 for one that is in no log."""
        return self.header[4]

    @property
    def flags(self) -> int:
        """EventFlag bits."""
        return self.header[5]

    @property
    def data(self) -> bytes:
        """The body, copied."""
        return self.buffer[self.body : self.end]

    @property
    def name(self) -> str:
        """The type as SHOW BINLOG EVENTS names it."""
        return SERVER_NAMES.get(self.stored_type, f"Unknown({self.stored_type})")

    def __repr__(self) -> str:
        return f"<{self.name} {self.file}:{self.position}>"


class InnerEvent(Event):
    """An event out of a compressed transaction. `position` and `log_pos` are those of the payload
    event."""

    __slots__ = ("inner_index",)

    def __init__(self, payload: Event, header: Header, buffer: bytes, inner_index: int) -> None:
        super().__init__(payload.file, payload.position, header, buffer, 0, len(buffer))
        self.inner_index = inner_index


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The event that says how the others are laid out. `checksum`: 0 none, 1 CRC32, None before
    5.6.1."""

    binlog_version: int
    server_version: str
    created: int
    header_length: int
    post_header_lengths: bytes
    checksum: int | None

    @property
    def checksum_length(self) -> int:
        """Bytes behind each event."""
        return CHECKSUM_LENGTH if self.checksum == 1 else 0

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB wrote the log."""
        return "mariadb" in self.server_version.lower()

    def post_header_length(self, event_type: int) -> int:
        """Bytes of the fixed part of an event's body; 0 for a type the source did not know."""
        return (
            self.post_header_lengths[event_type - 1]
            if 0 < event_type <= len(self.post_header_lengths)
            else 0
        )


def an_event(name: str) -> str:
    """An event of this type, as messages call it: "an Update_rows event"."""
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name} event"


def version_number(server_version: str) -> int:
    """A server version as one number (5.7.29 -> 50729); 0 for any other text
    (`do_server_version_split`)."""
    parts = server_version.split("-", 1)[0].split(".")
    numbers = []
    for part in parts[:3]:
        digits = part[
            : next((at for at, char in enumerate(part) if not "0" <= char <= "9"), len(part))
        ]
        if not digits or int(digits) > 255:
            return 0
        numbers.append(int(digits))
    if len(numbers) < 3:
        return 0
    return numbers[0] * 10000 + numbers[1] * 100 + numbers[2]


MOST_TYPES_WITHOUT_CHECKSUM = 30
"""Servers from before event checksums knew at most 27 event types: with more, the version is not
what was written."""


def parse_format_description(body: bytes) -> FormatDescription:
    """`body` is everything behind the header, with the checksum that this event has from 5.6.1 on
    whatever the algorithm.

    Raises InputError.
    """
    if len(body) < 57:
        raise InputError(
            f"the format description event is too short ({len(body)} bytes)", code=Code.BAD_FORMAT
        )
    binlog_version, raw_version, created, header_length = struct.unpack_from("<H50sIB", body)
    server_version = raw_version.split(b"\0")[0].decode("latin-1")
    if binlog_version != 4:
        raise InputError(
            f"binary log version {binlog_version} is not supported",
            code=Code.UNKNOWN_FORMAT,
            hint="give logs of MySQL 5.0 or later",
        )
    if header_length < HEADER_LENGTH:
        raise InputError(
            f"the format description says that headers have {header_length} bytes",
            code=Code.BAD_FORMAT,
        )
    number = version_number(server_version)
    has_checksum = number >= 50601 or (number >= 50300 and "mariadb" in server_version.lower())
    if not has_checksum:
        if len(body) - 57 > MOST_TYPES_WITHOUT_CHECKSUM:
            problem = f"the format description does not fit its server version {server_version!r}"
            raise InputError(
                problem, code=Code.BAD_FORMAT, hint="the file is damaged; copy it again"
            )
        return FormatDescription(4, server_version, created, header_length, body[57:], None)
    if len(body) < 57 + 1 + CHECKSUM_LENGTH:
        raise InputError(
            "the format description event is too short for its version", code=Code.BAD_FORMAT
        )
    checksum = body[-5]
    if checksum not in (0, 1):
        raise InputError(f"unknown checksum algorithm {checksum}", code=Code.UNKNOWN_FORMAT)
    return FormatDescription(4, server_version, created, header_length, body[57:-5], checksum)
