"""What may be left on a disk after a crash of the machine.

Since its last fsync a file has a list of changes that are only in the page cache. A crash leaves
some of them: as a rule the first few, perhaps a part of the next one, and whichever few in one file
have nothing to do with how many in another. A file system may moreover have made the file longer
before the data came (the new bytes are zeros then), or have written a later block of the file
before an earlier one. Names are changes too: created, renamed, removed; a journal keeps their
order.

`Medium` says which of these a disk does; its default is the disk that promises nothing but POSIX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from checkpoints.crash import CrashKind, tears
from checkpoints.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Medium:
    """The habits of a disk and its file system."""

    sector_bytes: int = 1
    """What is written as a whole or not at all. 512 or 4096 on disks of today; 1 trusts nothing."""
    block_bytes: int = 4096
    """What the page cache writes back as one."""
    reorders_within_files: bool = True
    """A later block of a file may be there without an earlier one."""
    extends_with_zeros: bool = True
    """A file may be longer than its data: what has not come reads as zeros (XFS, ext4 with
    data=writeback)."""
    fsync_names: bool = True
    """fsync of a file makes its own name durable, and every older change of a name (ext4, XFS,
    btrfs); POSIX wants the folder's fsync."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that are written at an offset."""

    offset: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Carries it out; a gap before it is filled with zeros."""
        if self.offset > len(content):
            content.extend(bytes(self.offset - len(content)))
        content[self.offset : self.offset + len(self.data)] = self.data

    def blocks(self, block_bytes: int) -> range:
        """The numbers of the blocks that it touches."""
        return range(
            self.offset // block_bytes,
            (self.offset + max(1, len(self.data)) - 1) // block_bytes + 1,
        )


@dataclass(frozen=True, slots=True)
class Truncate:
    """A file that is cut, or filled up with zeros, to `size` bytes."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Carries it out."""
        if self.size > len(content):
            content.extend(bytes(self.size - len(content)))
        del content[self.size :]


Change = Write | Truncate


@dataclass(frozen=True, slots=True)
class FileRemains:
    """What is left of a file's changes: the first `changes`, and `torn` bytes of the next, or zeros
    for it; but nothing of block `hole`."""

    changes: int = 0
    hole: int | None = None
    torn: int = 0
    zeros: bool = False

    def apply(self, durable: bytes, changes: Sequence[Change], block_bytes: int) -> bytes:
        """The content of the file. Raises CheckpointError for a torn change that is no write."""
        content = bytearray(durable)
        for change in changes[: self.changes]:
            change.apply(content)
        if self.hole is not None:
            start, end = self.hole * block_bytes, min(len(content), (self.hole + 1) * block_bytes)
            content[start:end] = durable[start:end].ljust(end - start, b"\0")
        if self.torn or self.zeros:
            following = changes[self.changes]
            if not isinstance(following, Write):
                raise CheckpointError(f"change {self.changes} is not a write and cannot be torn")
            if self.zeros:
                Truncate(max(len(content), following.offset + len(following.data))).apply(content)
            Write(following.offset, following.data[: self.torn]).apply(content)
        return bytes(content)

    def size(self, durable: int, changes: Sequence[Change]) -> int:
        """The size of the file when whole changes are kept."""
        for change in changes[: self.changes]:
            durable = (
                max(durable, change.offset + len(change.data))
                if isinstance(change, Write)
                else change.size
            )
        return durable

    def __str__(self) -> str:
        hole = "" if self.hole is None else f"-{self.hole}"
        return (
            f"{self.changes}{hole}"
            + (f"+{self.torn}" if self.torn else "")
            + ("z" if self.zeros else "")
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """From its text. Raises CheckpointError."""
        found = re.fullmatch(r"(\d+)(?:-(\d+))?(?:\+(\d+))?(z?)", text)
        if found is None:
            raise CheckpointError(
                f"{text!r} is not an outcome of a file",
                hint='write it as "3", "3+17", "3-1" or "3z"',
            )
        return cls(
            int(found[1]), int(found[2]) if found[2] else None, int(found[3] or 0), bool(found[4])
        )


def choices(changes: Sequence[Change], medium: Medium, size: int) -> Iterator[FileRemains]:
    """Everything that may be left of a file's changes, from nothing to all. `size` is the file's
    durable size."""
    content_size = size
    for count in range(len(changes) + 1):
        yield FileRemains(count)
        if medium.reorders_within_files:
            for hole in _blocks_that_may_be_missing(changes[:count], medium.block_bytes):
                yield FileRemains(count, hole)
        if count < len(changes):
            following = changes[count]
            if isinstance(following, Write):
                end = following.offset + len(following.data)
                for torn in tears(following.offset, len(following.data), medium.sector_bytes):
                    yield FileRemains(count, torn=torn)
                if medium.extends_with_zeros and end > content_size:
                    yield FileRemains(count, zeros=True)
                content_size = max(content_size, end)
            else:
                content_size = following.size


def edges(changes: Sequence[Change], medium: Medium, size: int) -> Iterator[FileRemains]:
    """Nothing, all, and all ways in which the last change alone may be missing: what `choices` has
    at its two ends."""
    last = len(changes)
    yield FileRemains(0)
    if last > 1:
        yield FileRemains(last - 1)
    for kept in choices(
        changes[-1:], medium, FileRemains(last - 1).size(size, changes) if changes else size
    ):
        if kept.torn or kept.zeros:
            yield FileRemains(last - 1, torn=kept.torn, zeros=kept.zeros)
    if medium.reorders_within_files:
        for hole in _blocks_that_may_be_missing(changes, medium.block_bytes)[:1]:
            yield FileRemains(last, hole)
    if changes:
        yield FileRemains(last)


def _blocks_that_may_be_missing(changes: Sequence[Change], block_bytes: int) -> list[int]:
    """The blocks that may not be written back yet though others are: not when there is only one,
    nor when the file was cut since."""
    writes = [change for change in changes if isinstance(change, Write)]
    blocks = sorted({block for write in writes for block in write.blocks(block_bytes)})
    return blocks if len(blocks) > 1 and len(writes) == len(changes) else []


@dataclass(frozen=True)
class CrashOutcome:
    """One state that a crash may leave: of the names, the first `names` changes; of each file (by
    its number on the disk) what is kept."""

    kind: CrashKind
    names: int = 0
    files: Mapping[int, FileRemains] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kind is CrashKind.PROCESS:
            return str(self.kind)
        return " ".join(
            [
                str(self.kind),
                f"names={self.names}",
                *(f"{file}={kept}" for file, kept in sorted(self.files.items())),
            ]
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The outcome that was shown as this text. Raises CheckpointError."""
        kind, *words = text.split() or [""]
        if kind == CrashKind.PROCESS and not words:
            return cls(CrashKind.PROCESS)
        pairs = dict(word.partition("=")[::2] for word in words)
        numbers = [name for name in pairs if name != "names"]
        if (
            kind != CrashKind.OS
            or not pairs.get("names", "").isdecimal()
            or not all(map(str.isdecimal, numbers))
        ):
            raise CheckpointError(
                f"{text!r} is not an outcome of a crash",
                hint='write it as "process" or "os names=1 2=0 3=4+17"',
            )
        return cls(
            CrashKind.OS,
            int(pairs["names"]),
            {int(number): FileRemains.parse(pairs[number]) for number in numbers},
        )
