"""The kernel that unpacks a replication stream: packets in, the events of the source's log out, one
after the other.

It follows transactions as `applier.binlog.transactions.TransactionTracker` does and stops before
each packet that Python has to look at: an event that is not a member of a plain transaction, one
out of step with the source's log, a wrong checksum, an answer that is not an event, a packet of 16
MiB or more.
"""

from __future__ import annotations

from applier.binlog.columnar.control import (
    GtidRun,
    GtidRunKind,
    Stream,
    StreamClass,
    StreamState,
    StreamStatus,
)
from applier.binlog.columnar.crc_kernel import crc32
from applier.binlog.columnar.memory import copy_bytes, kernel, load1, load2, load4, load8, store8

PACKET_HEAD = 4
LARGEST_PACKET = 0xFFFFFF
"""A packet of this length goes on in the next one."""
HEADER = 19
ARTIFICIAL = 0x20
OFFSET_MASK = 0xFFFFFFFF
"""log_pos has four bytes."""
STANDALONE, XA_FLAGS = 0x01, 0xC0
"""Flags of MariaDB's GTID event: a group of one statement; XA PREPARE and the end of one
(sql/log_event.h 10.11)."""
QUERY_EVENT, ANONYMOUS_GTID = 2, 34
BEGIN, COMMIT = 0x4E49474542, 0x54494D4D4F43
"""The letters, little-endian."""
UPPER_CASE = 0xDFDFDFDFDFDF


@kernel
def text_of(event: int, end: int) -> int:
    """Address of the statement of a QUERY event; 0 where it does not fit into the event."""
    body = event + HEADER
    if body + 13 > end:
        return 0
    start = body + 14 + load1(body + 8) + load2(body + 11)
    return start if start <= end else 0


@kernel
def is_word(start: int, end: int, word: int, length: int, mask: int) -> bool:
    """Whether the statement is this word of five or six letters."""
    if end - start != length:
        return False
    letters = load4(start) | load1(start + 4) << 32
    if length == 6:
        letters |= load1(start + 5) << 40
    return letters & mask == word


@kernel
def after_query(state: int, start: int, end: int) -> int:
    """The state behind a statement; -1 where Python has to read it: XA, savepoints, ROLLBACK, what
    has no letter in front."""
    if start == 0 or start == end:
        return -1
    if is_word(start, end, BEGIN, 5, 0xFFFFFFFFFF):
        return -1 if state == StreamState.BODY else StreamState.BODY + 0
    first = load1(start) | 0x20
    if first < 0x61 or first > 0x7A or first == 0x78:
        return -1
    if state != StreamState.BODY:
        return StreamState.ENDED + 0
    if is_word(start, end, COMMIT, 6, UPPER_CASE):
        return StreamState.ENDED + 0
    return -1 if first == 0x63 or first == 0x72 else StreamState.BODY + 0


@kernel
def after(event: int, end: int, category: int, state: int) -> int:
    """The state behind an event of a class; -1 where Python has to look."""
    if category == StreamClass.QUIET:
        return -1 if state == StreamState.NONE else state
    if category == StreamClass.GTID:
        return (
            StreamState.HEAD + 0 if state == StreamState.NONE and end - event >= HEADER + 25 else -1
        )
    if category == StreamClass.MARIADB_GTID:
        if state != StreamState.NONE or end - event < HEADER + 13:
            return -1
        flags = load1(event + HEADER + 12)
        if flags & XA_FLAGS:
            return -1
        return StreamState.HEAD + 0 if flags & STANDALONE else StreamState.BODY + 0
    if category == StreamClass.QUERY:
        return after_query(state, text_of(event, end), end)
    if category == StreamClass.XID:
        return StreamState.ENDED + 0 if state == StreamState.BODY else -1
    return -1


@kernel
def note_gtid(control: int, event: int) -> bool:
    """Notes the GTID of a transaction that is whole. False: there is no room for another run."""
    count = load8(control + 8 * Stream.RUNS_COUNT)
    run = load8(control + 8 * Stream.RUNS) + 8 * GtidRun.SIZE_OF_ENTRY * count
    last = run - 8 * GtidRun.SIZE_OF_ENTRY
    body = event + HEADER
    if load1(event + 4) == ANONYMOUS_GTID:
        return True
    if load1(event + 4) < 128:
        kind, low, high, number = (
            GtidRunKind.MYSQL + 0,
            load8(body + 1),
            load8(body + 9),
            load8(body + 17),
        )
    else:
        kind, low, high, number = (
            GtidRunKind.MARIADB + 0,
            load4(body + 8),
            load4(event + 5),
            load8(body),
        )
    if count > 0 and load8(last + 8 * GtidRun.KIND) == kind:
        same = load8(last + 8 * GtidRun.LOW) == low and load8(last + 8 * GtidRun.HIGH) == high
        if same and (kind == GtidRunKind.MARIADB or load8(last + 8 * GtidRun.LAST) == number - 1):
            store8(last + 8 * GtidRun.LAST, number)
            return True
    if count == load8(control + 8 * Stream.RUNS_CAPACITY):
        return False
    store8(run + 8 * GtidRun.KIND, kind)
    store8(run + 8 * GtidRun.LOW, low)
    store8(run + 8 * GtidRun.HIGH, high)
    store8(run + 8 * GtidRun.FIRST, number)
    store8(run + 8 * GtidRun.LAST, number)
    store8(control + 8 * Stream.RUNS_COUNT, count + 1)
    return True


@kernel
def is_plain(control: int, packet: int, length: int, offset: int) -> bool:
    """Whether the packet is an event that follows the one before it in the source's log, with a
    right checksum."""
    trailer = load8(control + 8 * Stream.TRAILER)
    size = length - 1
    event = packet + PACKET_HEAD + 1
    if length == LARGEST_PACKET or load1(event - 1) != 0 or size < HEADER + trailer:
        return False
    log_pos = load4(event + 13)
    if (
        load4(event + 9) != size
        or log_pos == 0
        or log_pos != (offset + size) & OFFSET_MASK
        or load2(event + 17) & ARTIFICIAL
    ):
        return False
    end = event + size - trailer
    return trailer == 0 or crc32(load8(control + 8 * Stream.CRC_TABLES), event, end) == load4(end)


@kernel
def unpack(control: int) -> int:
    """Goes on from POSITION; returns a StreamStatus."""
    buffer = load8(control + 8 * Stream.BUFFER)
    position = load8(control + 8 * Stream.POSITION)
    size = load8(control + 8 * Stream.SIZE)
    out = load8(control + 8 * Stream.OUT)
    written = load8(control + 8 * Stream.WRITTEN)
    offset = load8(control + 8 * Stream.OFFSET)
    state = load8(control + 8 * Stream.STATE)
    opening = load8(control + 8 * Stream.OPENING)
    second = load8(control + 8 * Stream.SECOND)
    events = load8(control + 8 * Stream.EVENTS)
    trailer = load8(control + 8 * Stream.TRAILER)
    status = StreamStatus.CUT + 0
    while position + PACKET_HEAD < size:
        packet = buffer + position
        length = load4(packet) & LARGEST_PACKET
        if position + PACKET_HEAD + length > size:
            break
        status = StreamStatus.LOOK + 0
        if not is_plain(control, packet, length, offset):
            break
        event, bytes_of_event = packet + PACKET_HEAD + 1, length - 1
        category = load1(load8(control + 8 * Stream.CLASSES) + load1(event + 4))
        following = after(event, event + bytes_of_event - trailer, category, state)
        if following < 0:
            break
        if following == StreamState.ENDED:
            if opening < 0:
                if state != StreamState.NONE:
                    store8(control + 8 * Stream.ENDED_INHERITED, 1)
            elif load1(out + opening + 4) != QUERY_EVENT and not note_gtid(control, out + opening):
                status = StreamStatus.FULL + 0
                break
            state, opening, second = StreamState.NONE + 0, -1, -1
        else:
            if state == StreamState.NONE:
                opening, second = written, -1
            elif following != state:
                second = written
            state = following
        copy_bytes(out + written, event, bytes_of_event)
        written += bytes_of_event
        offset += bytes_of_event
        position += PACKET_HEAD + length
        events += 1
        status = StreamStatus.CUT + 0
        if state == StreamState.NONE and written > load8(control + 8 * Stream.ROOM):
            status = StreamStatus.FULL + 0
            break
    store8(control + 8 * Stream.POSITION, position)
    store8(control + 8 * Stream.WRITTEN, written)
    store8(control + 8 * Stream.OFFSET, offset)
    store8(control + 8 * Stream.STATE, state)
    store8(control + 8 * Stream.OPENING, opening)
    store8(control + 8 * Stream.SECOND, second)
    store8(control + 8 * Stream.EVENTS, events)
    return status
