"""A disk in memory that never fails: what a restart works on behind the crash.

It does what `checkpoints.simulated_disk` does on a disk without crash points and faults, and keeps
no history of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from checkpoints.disk import plain


class MemoryDisk:
    """One folder of files; whatever is written is there. Implements `disk.Disk`."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._files = {plain(name): bytearray(content) for name, content in (files or {}).items()}

    def open(self, name: str, *, create: bool = False) -> MemoryFile:
        name = plain(name)
        if create:
            self._files.setdefault(name, bytearray())
        return MemoryFile(name, self._existing(name))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._files))

    def rename(self, old: str, new: str) -> None:
        content = self._existing(plain(old))
        del self._files[plain(old)]
        self._files[plain(new)] = content

    def remove(self, name: str) -> None:
        self._existing(plain(name))
        del self._files[plain(name)]

    def fsync_names(self) -> None:
        """Nothing to do: names are kept."""

    def contents(self) -> dict[str, bytes]:
        """File name -> what is in it."""
        return {name: bytes(self._files[name]) for name in self.names()}

    def _existing(self, name: str) -> bytearray:
        if name not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._files[name]


class MemoryFile:
    """An open file; it goes on when its name is taken away. Implements `disk.DiskFile`."""

    def __init__(self, name: str, content: bytearray) -> None:
        self._name = name
        self._content = content

    @property
    def name(self) -> str:
        return self._name

    def size(self) -> int:
        return len(self._content)

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        return bytes(self._content[offset : None if size is None else offset + size])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        if data:
            self._content.extend(bytes(max(0, offset - len(self._content))))
            self._content[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        self._content.extend(bytes(max(0, size - len(self._content))))
        del self._content[size:]

    def fsync(self) -> None:
        """Nothing to do: data are kept."""

    def close(self) -> None:
        """Nothing to do: nothing is held."""
