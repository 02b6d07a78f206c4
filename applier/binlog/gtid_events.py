"""GTID events: MySQL's, with a tag or without, and MariaDB's.

Layouts: libs/mysql/binlog/event/control_events.cpp 9.7, sql/log_event.cc 5.6 to 8.0 and MariaDB
10.11.
"""

from __future__ import annotations

import struct
import uuid as uuid_module
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from applier.binlog.cursor import Cursor
from applier.binlog.header import Event, EventType, FormatDescription
from applier.binlog.xa import xid_text
from applier.error_codes import Code
from applier.errors import InputError
from checkpoints.gtid import MAX_NUMBER, MariadbGtid, is_tag

TIMESTAMP_FLAG = 1 << 55
VERSION_FLAG = 1 << 31
UNDEFINED_VERSION = 999999
_GTID_HEAD = struct.Struct("<B16sq").unpack
_GTID_CLOCK = struct.Struct("<qq").unpack


@dataclass(frozen=True, slots=True)
class Gtid:
    """GTID, ANONYMOUS_GTID (uuid None) and GTID_TAGGED. Timestamps in microseconds, 0 where the log
    has none."""

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
    is_half_alter: ClassVar[bool] = False
    """Only MariaDB logs an ALTER TABLE in two parts."""

    @property
    def text(self) -> str | None:
        """As GTID_NEXT takes it; None for an anonymous transaction."""
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
    GROUP_COMMIT_ID = 0x02
    TRANSACTIONAL = 0x04
    """It can be rolled back."""
    ALLOW_PARALLEL = 0x08
    """skip_parallel_replication was off."""
    WAITED = 0x10
    """It waited for a lock on the source."""
    START_ALTER, ROLLBACK_ALTER = 0x02, 0x08
    """Of `flags_extra` (`FL_START_ALTER_E1` and `FL_ROLLBACK_ALTER_E1`, sql/log_event.h of MariaDB
    10.8 and later)."""
    DDL = 0x20
    PREPARED_XA = 0x40
    COMPLETED_XA = 0x80

    @property
    def text(self) -> str:
        """Domain, server and sequence number: "0-1-42"."""
        return str(self.gtid)

    @property
    def is_standalone(self) -> bool:
        """No COMMIT or XID follows."""
        return bool(self.flags & self.STANDALONE)

    @property
    def prepares_xa(self) -> bool:
        """It begins an XA transaction, up to its PREPARE."""
        return bool(self.flags & self.PREPARED_XA)

    @property
    def is_half_alter(self) -> bool:
        """An ALTER TABLE of binlog_alter_two_phase that only begins, or is given up; the one that
        is done is logged whole again."""
        return bool(self.flags_extra & (self.START_ALTER | self.ROLLBACK_ALTER))


def parse_gtid(cursor: Cursor, event: Event, _fde: FormatDescription) -> Gtid:
    """GTID and ANONYMOUS_GTID. What stands behind the number came with later versions, one field
    behind the other."""
    flags, uuid, number = _GTID_HEAD(cursor.take(25))
    name = None if event.type == EventType.ANONYMOUS_GTID else _uuid_text(uuid)
    if name is not None:
        _check_number(number)
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
        name,
        number,
        "",
        flags,
        last_committed,
        sequence_number,
        immediate,
        original,
        length,
        immediate_version,
        original_version,
        ticket,
    )


def plain_gtid(event: Event) -> tuple[bytes, int]:
    """(UUID, number) of a GTID event without a tag, for loops that need no more of it. Raises
    InputError."""
    at = event.body
    if event.end - at < 25:
        raise InputError(
            "a Gtid event is too short",
            code=Code.BAD_EVENT,
            file=event.file,
            position=event.position,
        )
    number = int.from_bytes(event.buffer[at + 17 : at + 25], "little")
    _check_number(number)
    return event.buffer[at + 1 : at + 17], number


def _check_number(number: int) -> None:
    """Gtid_event refuses others, too (control_events.cpp 9.7: MIN_GNO, MAX_GNO)."""
    if not 1 <= number <= MAX_NUMBER:
        raise InputError(
            f"a GTID event has the transaction number {number}, which is not valid",
            code=Code.BAD_EVENT,
        )


def gtid_text(event: Event) -> str:
    """The GTID of a GTID event without a tag as text."""
    uuid, number = plain_gtid(event)
    return f"{_uuid_text(uuid)}:{number}"


@lru_cache(maxsize=64)
def _uuid_text(raw: bytes) -> str:
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parse_gtid_tagged(cursor: Cursor, _event: Event, _fde: FormatDescription) -> Gtid:
    """One mysql::serialization message: version, size, last non-ignorable field, then (id, value)
    pairs in order. Raises InputError."""
    start = cursor.at
    if cursor.varlen() != 1:
        raise InputError(
            "unknown serialization format of a tagged GTID event", code=Code.UNKNOWN_FORMAT
        )
    end = start + cursor.varlen()
    if end > cursor.end:
        raise InputError("a tagged GTID event claims more bytes than it has", code=Code.BAD_EVENT)
    if cursor.varlen() > 12:
        raise InputError(
            "a tagged GTID event has fields that must not be ignored and are not known",
            code=Code.UNKNOWN_FORMAT,
        )
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
    _check_number(fields.get(2, 0))
    if not is_tag(fields.get(3, "")):
        raise InputError("a GTID event has a tag that is not valid", code=Code.BAD_EVENT)
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


def parse_mariadb_gtid(cursor: Cursor, event: Event, _fde: FormatDescription) -> MariadbGtidEvent:
    """MariaDB's, sql/log_event.cc 10.11."""
    sequence, domain, flags = cursor.u64(), cursor.u32(), cursor.u8()
    commit_id = cursor.u64() if flags & 0x02 else None
    xid = None
    if flags & (MariadbGtidEvent.PREPARED_XA | MariadbGtidEvent.COMPLETED_XA):
        format_id, global_length, branch_length = cursor.u32(), cursor.u8(), cursor.u8()
        xid = xid_text(format_id, cursor.take(global_length), cursor.take(branch_length))
    extra = cursor.u8() if cursor.left else 0
    return MariadbGtidEvent(
        MariadbGtid(domain, event.server_id, sequence), flags, commit_id, xid, extra
    )
