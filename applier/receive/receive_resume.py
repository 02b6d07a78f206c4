"""What the relay logs of an earlier run say about where to go on.

The last file is read from its beginning, and older ones as long as something is missing that only
they know: the log of the source, the beginning of a transaction that went on in the next file,
MariaDB's list of domains. A killed receiver leaves half an event at most. A crashed machine leaves
more: zeros or old bytes where pages were not written, a newest file without a head. What is behind
the last whole event of the newest file is cut off, and the source sends it again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from applier.binlog.events import parse
from applier.binlog.header import (
    CHECKSUM_LENGTH,
    HEADER,
    HEADER_LENGTH,
    MAGIC,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    parse_format_description,
    version_number,
)
from applier.binlog.reader import CRC_RESIDUE, open_log
from applier.error_codes import Code
from applier.errors import InputError
from applier.receive.receive_progress import Progress

ALL_GROUPS_NAMED = 50705
LOG_POS = slice(13, 17)
"""Of an event's header; that of a format description from the middle of a log is 0."""
_HINT = "receive into a new folder; replay what is good of the old one"


@dataclass(frozen=True, slots=True)
class Found:
    """What the relay logs hold. `size` is how much of the last one is whole events, `server_id` is
    the receiver's own."""

    progress: Progress
    size: int
    server_id: int


class _RelayLog:
    """The whole events of one file, with the checksums that hold for them. The newest file ends at
    the first that is damaged."""

    def __init__(self, path: Path, *, is_newest: bool) -> None:
        self.path = path
        self.data = open_log(path)
        self.is_newest = is_newest
        self.size = 0
        """Offset behind the last whole event."""

    def __iter__(self) -> Iterator[tuple[Event, FormatDescription]]:
        data, end, position = self.data, len(self.data), len(MAGIC)
        format_description: FormatDescription | None = None
        while position + HEADER_LENGTH <= end:
            header = HEADER.unpack_from(data, position)
            if position + header[3] > end:
                break
            if header[3] < HEADER_LENGTH:
                if self.is_newest:
                    break
                raise InputError(
                    "an event without a length",
                    code=Code.RELAY_LOG,
                    file=self.path.name,
                    position=position,
                    hint=_HINT,
                )
            if header[1] == EventType.FORMAT_DESCRIPTION:
                format_description = parse_format_description(
                    data[position + HEADER_LENGTH : position + header[3]]
                )
            if self.is_newest and not _is_intact(
                data[position : position + header[3]], format_description
            ):
                break
            if format_description is None:
                raise InputError(
                    "the file does not begin with a format description",
                    code=Code.RELAY_LOG,
                    file=self.path.name,
                    position=position,
                    hint=_HINT,
                )
            stop = position + header[3] - format_description.checksum_length
            yield (
                Event(self.path.name, position, header, data, position + HEADER_LENGTH, stop),
                format_description,
            )
            position += header[3]
            self.size = position


def _is_intact(raw: bytes, format_description: FormatDescription | None) -> bool:
    """Whether the event's checksum is right. Without one, nothing tells: a source without
    checksums sends a wrong one with its format description from the middle of a log, but no zeros,
    which a page that was not written has."""
    if format_description is None:
        return False
    if format_description.checksum_length or zlib.crc32(raw) == CRC_RESIDUE:
        return zlib.crc32(raw) == CRC_RESIDUE
    is_format = raw[4] == EventType.FORMAT_DESCRIPTION
    return not is_format or (any(raw[-CHECKSUM_LENGTH:]) and not any(raw[LOG_POS]))


def has_head(path: Path) -> bool:
    """Whether a relay log is there and begins with a whole format description: the machine may
    crash before it is on disk."""
    if not path.exists():
        return False
    try:
        return next(iter(_RelayLog(path, is_newest=True)), None) is not None
    except InputError as error:
        if error.code in (
            Code.NOT_A_LOG,
            Code.BAD_FORMAT,
            Code.UNKNOWN_FORMAT,
        ):
            return False
        raise


def find(paths: Sequence[Path], *, by_domains: bool) -> Found | None:
    """Reads the relay logs, oldest first, as far back as needed; None when there are none.

    `progress.file` is "" when nothing of a source is in them. `by_domains`: MariaDB's GTIDs are
    wanted.
    """
    found: Found | None = None
    for start in range(len(paths) - 1, -1, -1):
        found = _read(paths[start:])
        progress = found.progress
        if (
            progress.file
            and _knows_its_beginning(progress)
            and (progress.knows_domains or not by_domains)
        ):
            break
    return found


def _knows_its_beginning(progress: Progress) -> bool:
    """Whether the first group that was read began there. Without any group, one may be open from
    before."""
    first, source = progress.first, progress.format
    if first is None or source is None or not first.begin:
        return False
    if first.identity is not None:
        return True
    # A statement alone, or one whose GTID stands in the relay log before? From 5.7 on and in
    # MariaDB all groups begin with a GTID event.
    return not (
        progress.gtids
        or source.is_mariadb
        or version_number(source.server_version) >= ALL_GROUPS_NAMED
    )


def _read(paths: Sequence[Path]) -> Found:
    progress, server_id, size = Progress(), 0, 0
    for path in paths:
        log = _RelayLog(path, is_newest=path == paths[-1])
        for event, format_description in log:
            if event.flags & EventFlag.RELAY_LOG:
                server_id = event.server_id
                if event.type == EventType.PREVIOUS_GTIDS:
                    progress.gtids = progress.gtids.union(parse(event, format_description).gtids)
            elif event.type == EventType.STOP:
                continue  # our own, of a clean end; the source's are not received
            elif progress.file or event.type in (EventType.ROTATE, EventType.FORMAT_DESCRIPTION):
                progress.take(event)
        size = log.size
    return Found(progress, size, server_id)
