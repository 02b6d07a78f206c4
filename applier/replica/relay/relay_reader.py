"""Relay logs as the applier reads them: one event after the other, from file to file, up to where
the receiver is.

A source without checksums sends, from the middle of a log, a changed format description with the
checksum of the unchanged one, and no replica looks at it (event_checksum_test: not where the
algorithm is OFF).

A relay log has two format descriptions, the own and the source's; each governs what follows it. A
start inside a file looks at its head first (init_relay_log_pos, read_fdle). A file that is not the
last one must be whole: what cannot be read there stops the applier with error 1594. Behind its end
comes the next file, even when the position was further (as after a crash that lost the file's end).

Without checksums it is the fields of an event that show damage: one that cannot be made of its
bytes is 1594, too (Log_event::read_log_event, is_valid; seen of 5.6.24 and 5.7.29).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator

from applier.binlog.events import parse
from applier.binlog.header import (
    CHECKSUM_LENGTH,
    HEADER,
    HEADER_LENGTH,
    KNOWN_TYPES,
    MAGIC,
    ROWS_TYPES,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    an_event,
    parse_format_description,
)
from applier.binlog.reader import CRC_RESIDUE
from applier.binlog.rows import parse_rows_head
from applier.binlog.table_map import read_table_map
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.replica.relay.relay_event import RelayEvent
from applier.replica.relay.relay_index import RelayLogIndex
from checkpoints.disk import Disk, plain, read_file
from checkpoints.position import Position

READ_FAILURE = (
    "Relay log read failure: Could not parse relay log event entry. The possible reasons are: the"
    " source's binary log is corrupted, the replica's relay log is corrupted, a network problem, or"
    " a bug. {problem}"
)
EMPTY = "the file is empty"
NO_MAGIC = "it is not a relay log: it does not start with fe 62 69 6e"
START_AGAIN = (
    "start again from the source: relay_log_recovery=1, or CHANGE REPLICATION SOURCE TO the"
    " position that is applied"
)
ROTATED = frozenset({EventType.FORMAT_DESCRIPTION, EventType.ROTATE})
FRAME = ROTATED | {EventType.PREVIOUS_GTIDS}
FIRST_EVENT = len(MAGIC)
MOST_OFFSET = (1 << 63) - 1


def _rows_head(event: Event, description: FormatDescription) -> None:
    head = parse_rows_head(event, description)
    if not head.columns()[0]:
        raise InputError("a rows event has no columns", code=Code.BAD_ROWS)


_FIELDS: dict[int, Callable[[Event, FormatDescription], object]] = {
    **dict.fromkeys(ROWS_TYPES, _rows_head),
    EventType.TABLE_MAP: read_table_map,
}
"""What reads the fields of an event that `parse` leaves as they are."""
_GARBLED = (Code.BAD_EVENT, Code.BAD_TABLE_MAP, Code.BAD_ROWS, Code.UNKNOWN_FORMAT)


class RelayLogReader:
    """Reads from `position` on. `position` is where the next event begins, in a file that the index
    names."""

    def __init__(self, disk: Disk, index: RelayLogIndex) -> None:
        self._disk = disk
        self._index = index
        self.position = Position("", 0)
        self.content = b""
        self.format: FormatDescription | None = None
        self._format_data = b""
        self._may_have_grown = True
        self._line = 0
        """The line of the index that names the file, counted with those that went."""

    def seek(self, position: Position, head: Container[int] = FRAME) -> None:
        """Goes to a position and reads the head of its file, the events of the types in `head`.
        Raises ReplicationError 1594, or InputError naming the files there are."""
        self._open(position.file)
        at = FIRST_EVENT
        while at < position.offset:
            found = self._event_at(at)
            if found is None or found.event.type not in head:
                break
            at += len(found.data)
        self.position = Position(position.file, max(FIRST_EVENT, position.offset))

    def read(self) -> RelayEvent | None:
        """The next event of this file; None at its end."""
        found = self._event_at(self.position.offset)
        if found is not None:
            self.position = found.end
        return found

    def peek(self) -> RelayEvent | None:
        """The next event of this file without going on; None at its end."""
        before = self.format, self._format_data
        found = self._event_at(self.position.offset)
        self.format, self._format_data = before
        return found

    def following_file(self) -> str | None:
        """The file after this one; None for the one that is written, though an older line of the
        index has its name, too.

        That is so where the newest relay log went missing: the next one gets its number
        (find_uniq_filename, is_active). Raises ReplicationError 1594 where the index ends before
        the file that is written.
        """
        names = self._index.names
        newest = self._index.newest or (names[-1] if names else None)
        if self.position.file == newest:
            return None
        at = self._line + 1 - self._index.removed
        if at < len(names):
            return names[at]
        name, offset = self.position.file, self.position.offset
        raise self._failure(name, offset, "error switching to the next log")

    def move_on(self, following: str | None = None) -> bool:
        """To the beginning of the next file, if there is one; `following` names it when this one is
        not in the index any more."""
        following = following or self.following_file()
        if following is not None:
            self._open(following, self._line + 1)
        return following is not None

    def _open(self, name: str, line: int | None = None) -> None:
        self._load(name)
        index = self._index
        self._line = index.names.index(name) + index.removed if line is None else line
        self.format, self._format_data = None, b""
        self.position = Position(name, FIRST_EVENT)

    def _load(self, name: str) -> None:
        """Reads the file; only the newest one grows afterwards."""
        self._may_have_grown = bool(self._index.names) and self._index.names[-1] == name
        self.content = self._read(name)

    def _read(self, name: str) -> bytes:
        content = None if name not in self._index.names else read_file(self._disk, name)
        if content is None:
            raise InputError(
                f"the relay log {name or 'without a name'} is not there; there are"
                f" {', '.join(self._index.names) or 'none'}",
                code=Code.RELAY_LOG,
                file=plain(name) if name else None,
                hint=START_AGAIN,
            )
        if not content:
            raise self._failure(name, 0, EMPTY)
        if not content.startswith(MAGIC[: len(content)]):
            raise self._failure(name, 0, NO_MAGIC)
        return content

    def _event_at(self, offset: int) -> RelayEvent | None:
        """The event at an offset; None behind the last one."""
        name = self.position.file
        if offset > MOST_OFFSET:
            raise self._failure(name, offset, "no file reaches this position")
        if offset >= len(self.content) and self._may_have_grown:
            self._load(name)
        content = self.content
        if offset >= len(content):
            return None
        left = len(content) - offset
        length = (
            int.from_bytes(content[offset + 9 : offset + 13], "little")
            if left >= HEADER_LENGTH
            else 0
        )
        if left < HEADER_LENGTH or length > left:
            raise self._failure(name, offset, "the file ends inside an event")
        if length < HEADER_LENGTH:
            raise self._failure(name, offset, f"an event claims a length of {length} bytes")
        return self._known(content[offset : offset + length], name, offset)

    def _known(self, data: bytes, name: str, offset: int) -> RelayEvent:
        """The same bytes at the same place behind the same format description are the same event:
        it is checked once."""
        known = self._index.known
        if known is None:
            return self._checked(data, name, offset)
        key = name, offset, data, self._format_data
        found = known.events.get(key)
        if found is None:
            found = known.events[key] = self._checked(data, name, offset)
        self.format, self._format_data = found.format, found.format_data
        return found

    def _checked(self, data: bytes, name: str, offset: int) -> RelayEvent:
        header = HEADER.unpack_from(data)
        type_code, start, end = (
            header[1],
            Position(name, offset),
            Position(name, offset + len(data)),
        )
        event = Event(plain(name), offset, header, data, HEADER_LENGTH, len(data))
        if type_code == EventType.FORMAT_DESCRIPTION:
            self._describe(data, name, offset)
            event.end -= CHECKSUM_LENGTH
        description = self.format
        if description is None:
            raise self._failure(
                name, offset, f"{an_event(event.name)} stands before the format description event"
            )
        if type_code != EventType.FORMAT_DESCRIPTION:
            event.body = description.header_length
            event.end -= description.checksum_length
            if description.checksum_length and zlib.crc32(data) != CRC_RESIDUE:
                what = f"the checksum of {an_event(event.name)} is wrong"
                raise self._failure(name, offset, what)
        if type_code not in KNOWN_TYPES and not event.flags & EventFlag.IGNORABLE:
            raise self._failure(name, offset, f"unknown event type {type_code}")
        if not description.checksum_length:
            self._look_at_fields(event, description, name, offset)
        return RelayEvent(event, data, start, end, description, self._format_data)

    def _look_at_fields(
        self, event: Event, description: FormatDescription, name: str, offset: int
    ) -> None:
        try:
            _FIELDS.get(event.type, parse)(event, description)
        except InputError as error:
            if error.code in _GARBLED:
                raise self._failure(name, offset, error.message) from None

    def _describe(self, data: bytes, name: str, offset: int) -> None:
        try:
            description = parse_format_description(data[HEADER_LENGTH:])
        except InputError as error:
            raise self._failure(name, offset, error.message) from None
        if description.checksum_length and zlib.crc32(data) != CRC_RESIDUE:
            raise self._failure(
                name, offset, "the checksum of the format description event is wrong"
            )
        self.format, self._format_data = description, data

    def _failure(self, name: str, offset: int, problem: str) -> ReplicationError:
        return ReplicationError(
            1594,
            READ_FAILURE.format(problem=problem),
            file=plain(name),
            position=offset,
            hint=START_AGAIN,
        )


def relay_events(disk: Disk, index: RelayLogIndex, name: str) -> Iterator[RelayEvent]:
    """The events of one relay log. Raises as RelayLogReader does."""
    reader = RelayLogReader(disk, index)
    reader.seek(Position(name, FIRST_EVENT))
    while (relay := reader.read()) is not None:
        yield relay
