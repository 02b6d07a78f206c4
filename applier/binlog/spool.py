"""Logs that cannot be mapped where they are, on a store or compressed: copied into a temporary file
as far as somebody reads.

The temporary file has no name, so it goes with what was mapped of it. Of a log on a store only the
ranges that are asked for are fetched, the rest is a hole; what is compressed is unpacked from its
beginning on.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Self

from applier.binlog.header import HEADER_LENGTH
from applier.remote import RemoteFile, address_of
from applier.sources import MAGIC_BYTES, open_source, packing

FIRST_BYTES, PIECE_BYTES = 64 << 10, 8 << 20
"""What is fetched at once: little at first, since many look at the head of a log only; then twice
as much each time."""
_LENGTH = slice(9, 13)
"""Where the header of an event says how long the event is."""


def is_spooled(path: str | os.PathLike[str]) -> bool:
    """Whether a log is on a store or compressed. False for one that cannot be opened: who opens it
    says so."""
    if address_of(path) is not None:
        return True
    try:
        with Path(path).open("rb") as file:
            return packing(file.read(MAGIC_BYTES)) is not None
    except OSError:
        return False


class Spool:
    """One log. Raises InputError that names the file when it cannot be read, or unpacked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from tempfile import TemporaryFile

        address = address_of(path)
        remote = None if address is None else RemoteFile(address)
        is_packed = remote is None or packing(remote.read_at(MAGIC_BYTES, 0)) is not None
        self._ranges = None if is_packed else remote
        self._stream = open_source(path) if is_packed else None
        self.size = None if is_packed or remote is None else remote.size
        """Bytes of the log; None until the end of a compressed one is reached."""
        self._file = TemporaryFile(prefix="binlag-log-")  # noqa: SIM115 - it lives as long as this object
        self._start = self._end = 0
        """The stretch that was fetched last."""
        self._piece = FIRST_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """What is mapped stays."""
        self._file.close()
        if self._stream is not None:
            self._stream.close()

    def fetch(self, start: int, stop: int | None = None) -> int:
        """Fetches from `start` to `stop` (None: to the end); where what is there now ends."""
        if self._ranges is not None and not self._start <= start <= self._end:
            self._start = self._end = start
        while self._end != self.size and (stop is None or self._end < stop):
            data = self._next()
            os.pwrite(self._file.fileno(), data, self._end)
            self._end += len(data)
            if not data:
                self.size = self._end
        return self._end

    def _next(self) -> bytes:
        size, self._piece = self._piece, min(2 * self._piece, PIECE_BYTES)
        if self._ranges is not None:
            return self._ranges.read_at(size, self._end)
        assert self._stream is not None
        return self._stream.read(size)

    def whole_events(self, position: int) -> int:
        """Fetches a piece; the offset behind its last whole event, or the end of the log if an
        event goes beyond that."""
        end, wanted = position, position + 1
        while True:
            there = self.fetch(position, wanted)
            header = (
                os.pread(self._file.fileno(), HEADER_LENGTH, end)
                if end + HEADER_LENGTH <= there
                else b""
            )
            # an impossible one is the reader's to complain of
            length = max(int.from_bytes(header[_LENGTH], "little"), HEADER_LENGTH)
            if end + length <= there:
                end += length
            elif there == self.size:
                return there
            elif end > position:
                return end
            else:
                wanted = end + length

    def mapped(self, size: int) -> bytes:
        """The first bytes of the log; those that nobody fetched are zero."""
        if not size:
            return b""
        return mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)  # type: ignore[return-value]
