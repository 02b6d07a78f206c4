"""A file of records that only grows: each has its length and its checksum, and what follows a
record that is not whole does not count.

The redo log, the binary log and the data of non-transactional tables are such files here.
"""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from checkpoints.disk import Disk, digest

_HEAD = struct.Struct("<II")


@dataclass
class Parsed:
    """What was read before: recoveries read the same files and the same records again and again."""

    files: dict[bytes | None, tuple[tuple[Any, ...], int]] = field(default_factory=dict)
    """Digest of a file -> its records and where they end."""
    records: dict[bytes, Any] = field(default_factory=dict)
    """Bytes of a record -> the record, which nobody changes."""

    def whole(self, content: bytes) -> tuple[tuple[Any, ...], int]:
        """The records at the beginning of a file that are whole, and where they end."""
        key = digest(content)
        found = self.files.get(key)
        if found is None:
            records = list(whole_records(content, self.records))
            found = self.files[key] = (
                tuple(record for record, _ in records),
                (records[-1][1] if records else 0),
            )
        return found


def framed(record: Any) -> bytes:
    """A record as it stands in a file."""
    payload = pickle.dumps(record, protocol=5)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def whole_records(data: bytes, known: dict[bytes, Any]) -> Iterator[tuple[Any, int]]:
    """The records at the beginning of a file that are whole, each with the offset of its end."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if not length or len(payload) < length or zlib.crc32(payload) != checksum:
            return
        at += _HEAD.size + length
        if payload not in known:
            known[payload] = pickle.loads(payload)
        yield known[payload], at


class RecordFile:
    """One such file. `append` keeps records in the process, as a log buffer does; `write` hands
    them to the system; `sync` to the disk."""

    def __init__(self, disk: Disk, name: str, known: Parsed | None = None) -> None:
        self._file = disk.open(name, create=True)
        self._buffer = bytearray()
        content = self._file.read()
        self.records, self.size = (known or Parsed()).whole(content)
        if len(content) > self.size:
            self._file.truncate(self.size)

    def append(self, record: Any) -> None:
        """Adds a record, which stays in the process."""
        self._buffer += framed(record)

    def write(self) -> None:
        """Hands over what was appended: it survives the process, not the machine."""
        if self._buffer:
            self._file.write(self.size, bytes(self._buffer))
            self.size += len(self._buffer)
            self._buffer.clear()

    def sync(self) -> None:
        """Writes, and makes it durable."""
        self.write()
        self._file.fsync()
