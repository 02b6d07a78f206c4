"""What a run does to its disk, as one digest: two runs that have the same one are crashed alike.

Every operation of the disk and every byte written goes into it, in order, and every piece of work
where it is acknowledged. Reading leaves no trace: a crash does not show it.
"""

from __future__ import annotations

import hashlib

from applier.crashtest.contract import System
from checkpoints.disk import Disk, DiskFile
from checkpoints.simulated_disk import SimulatedDisk


def trace(system: System, disk: SimulatedDisk) -> bytes:
    """Runs the system to its end; the digest of the files that it began with and of all that it
    did."""
    traced = TracedDisk(disk)
    traced.note("files", disk.contents())
    for work in system.run(traced):
        traced.note("acknowledged", work)
    return traced.digest.digest()


class TracedDisk:
    """A disk that notes what changes it. Implements `checkpoints.disk.Disk`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.digest = hashlib.blake2b(digest_size=16)

    def note(self, *what: object) -> None:
        """Takes a change into the digest."""
        self.digest.update(repr(what).encode())

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        if create:
            self.note("create", name)
        return _TracedFile(self, self._disk.open(name, create=create))

    def names(self) -> tuple[str, ...]:
        return self._disk.names()

    def rename(self, old: str, new: str) -> None:
        self.note("rename", old, new)
        self._disk.rename(old, new)

    def remove(self, name: str) -> None:
        self.note("remove", name)
        self._disk.remove(name)

    def fsync_names(self) -> None:
        self.note("fsync names")
        self._disk.fsync_names()


class _TracedFile:
    def __init__(self, disk: TracedDisk, file: DiskFile) -> None:
        self._disk = disk
        self._file = file

    @property
    def name(self) -> str:
        return self._file.name

    def size(self) -> int:
        return self._file.size()

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        return self._file.read(offset, size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self._disk.note("write", self.name, offset, bytes(data))
        self._file.write(offset, data)

    def truncate(self, size: int) -> None:
        self._disk.note("truncate", self.name, size)
        self._file.truncate(size)

    def fsync(self) -> None:
        self._disk.note("fsync", self.name)
        self._file.fsync()

    def close(self) -> None:
        self._file.close()
