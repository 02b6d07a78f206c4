"""What the replica asks of a disk: one Protocol, and the real disk behind it.

A disk is one folder of files, as a data directory is. Names are plain; the server's
"./relay.000001" means the same as "relay.000001". What is written can be read at once by everybody,
but only `fsync` makes it survive a crash of the machine: data by the file's, names (created,
renamed, removed) by the folder's. `checkpoints.simulated_disk` is the other implementation; it can
crash.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from checkpoints.errors import CheckpointError

FILE_MODE = 0o640
"""As the server creates its files (my_create with UMASK 0640)."""


class DiskFile(Protocol):
    """An open file. Whatever fails raises OSError; a write that fails may have written a part."""

    @property
    def name(self) -> str:
        """Within its folder."""

    def size(self) -> int:
        """In bytes."""

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """What is there, up to `size` bytes; all of the rest without it."""
        ...

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Overwrites in place; the file grows as needed and is never cut. Memory that a view shows
        may change afterwards: who keeps it, copies it."""
        ...

    def truncate(self, size: int) -> None:
        """Cuts the file, or fills it up with zeros, to this size in bytes."""

    def fsync(self) -> None:
        """Returns when all that was written to this file survives a crash of the machine."""
        ...

    def close(self) -> None:
        """No more is done with it; what was written is not made durable by this."""


class Disk(Protocol):
    """A folder of files."""

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        """Opens for reading and writing. `create` makes an empty file when there is none; without
        it that is FileNotFoundError."""
        ...

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Replaces `new` at once and as a whole."""
        ...

    def remove(self, name: str) -> None:
        """Takes a name away; files that are open go on."""

    def fsync_names(self) -> None:
        """Returns when all names survive a crash of the machine."""
        ...


def plain(name: str) -> str:
    """The name without the "./" that the server puts before it. Raises CheckpointError for a name
    with a folder in it."""
    bare = name.removeprefix("./")
    if not bare or bare in (".", "..") or "/" in bare or "\0" in bare:
        hint = "give a bare file name, with or without ./ before it"
        raise CheckpointError(f"{name!r} is not the name of a file in the folder", hint=hint)
    return bare


def read_file(disk: Disk, name: str) -> bytes | None:
    """The whole file, None when there is none."""
    if plain(name) not in disk.names():
        return None
    file = disk.open(name)
    try:
        return file.read()
    finally:
        file.close()


def digest(content: bytes | bytearray | None) -> bytes | None:
    """Stands for the content of a file (None: there is none) where many are to be remembered."""
    return None if content is None else hashlib.blake2b(content, digest_size=16).digest()


class RealDisk:
    """A folder of the machine. Implements `Disk`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def open(self, name: str, *, create: bool = False) -> RealFile:
        path = self.folder / plain(name)
        return RealFile(
            plain(name), os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), FILE_MODE)
        )

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.name for path in self.folder.iterdir() if path.is_file()))

    def rename(self, old: str, new: str) -> None:
        (self.folder / plain(old)).replace(self.folder / plain(new))

    def remove(self, name: str) -> None:
        (self.folder / plain(name)).unlink()

    def fsync_names(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class RealFile:
    """An open file of the machine; also a context manager. Implements `DiskFile`."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor

    @property
    def name(self) -> str:
        return self._name

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        wanted = max(0, self.size() - offset) if size is None else size
        parts = []
        while wanted and (part := os.pread(self._descriptor, wanted, offset)):
            parts.append(part)
            offset, wanted = offset + len(part), wanted - len(part)
        return b"".join(parts)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._descriptor, view, offset)
            view, offset = view[done:], offset + done

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def fsync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
