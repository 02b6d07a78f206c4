"""What a recovery has looked at: two disks that are the same there recover alike.

A recovery depends on nothing but the names on the disk and the files that it reads. So its result
is kept in a tree: a node is the file that is looked at next, a branch is what was found in it.
Whether a new disk has to be recovered at all is a walk from the root, in which the files that
nobody asks for do not count: after most crashes they are most of what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from checkpoints.disk import Disk, DiskFile, digest, plain
from checkpoints.simulated_disk import Left

T = TypeVar("T")
Files = Mapping[str, bytes]
"""Name -> digest of the content, as `checkpoints.simulated_disk.Left` has it."""
WhatCounts = Callable[[str], Callable[[bytes], bytes] | None]
"""As `System` may have it; None: all of the content."""


class WatchedDisk:
    """A disk that remembers which files were looked at, by the names they had at the start, in the
    order of the first look.

    Implements `checkpoints.disk.Disk`.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._original = {name: name for name in disk.names()}
        self.looked_at: list[str] = []

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        return _WatchedFile(
            self, self._disk.open(name, create=create), self._original.get(plain(name))
        )

    def names(self) -> tuple[str, ...]:
        return self._disk.names()

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(old, new)
        original = self._original.pop(plain(old), None)
        self._original.pop(plain(new), None)
        if original is not None:
            self._original[plain(new)] = original

    def remove(self, name: str) -> None:
        self._disk.remove(name)
        self._original.pop(plain(name), None)

    def fsync_names(self) -> None:
        self._disk.fsync_names()


class _WatchedFile:
    def __init__(self, disk: WatchedDisk, file: DiskFile, original: str | None) -> None:
        self._disk = disk
        self._file = file
        self._original = original

    @property
    def name(self) -> str:
        return self._file.name

    def _look(self) -> None:
        if self._original is not None and self._original not in self._disk.looked_at:
            self._disk.looked_at.append(self._original)

    def size(self) -> int:
        self._look()
        return self._file.size()

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        self._look()
        return self._file.read(offset, size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self._file.write(offset, data)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def fsync(self) -> None:
        self._file.fsync()

    def close(self) -> None:
        self._file.close()


@dataclass
class _Node(Generic[T]):
    """`file` is looked at next, unless the result is here: a later recovery may have needed less
    than the first one."""

    file: str | None = None
    branches: dict[bytes, _Node[T]] = field(default_factory=dict)
    result: Any = None


class RecoveryResults(Generic[T]):
    """Results by what they depend on."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, ...], _Node[T]] = {}
        self._counting: dict[tuple[str, bytes], bytes] = {}
        """Name and digest of the content -> digest of what counts of it."""

    def counting(self, left: Left, what_counts: WhatCounts) -> Files:
        """The files of a disk, each by what counts of its content."""
        files = {}
        for name, whole in left.files.items():
            found = self._counting.get((name, whole))
            if found is None:
                part = what_counts(name)
                found = whole if part is None else digest(part(left.contents()[name])) or b""
                self._counting[name, whole] = found
            files[name] = found
        return files

    def find(self, files: Files) -> T | None:
        """The result of a disk with these files; None when it is not known."""
        node = self._roots.get(tuple(files))
        while node is not None and node.result is None and node.file is not None:
            node = node.branches.get(files[node.file])
        return None if node is None else node.result

    def add(self, files: Files, looked_at: list[str], result: T) -> None:
        """Keeps a result that was got on a disk of these files, of which only `looked_at` mattered,
        in the order of the first look."""
        node = self._roots.setdefault(tuple(files), _Node())
        for name in looked_at:
            node.file = name
            node = node.branches.setdefault(files[name], _Node())
        node.result = result
