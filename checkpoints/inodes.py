"""The files and the names of a disk with the changes that are only in the page cache."""

from __future__ import annotations

from dataclasses import dataclass, field

from checkpoints.outcomes import Change, FileRemains


@dataclass(eq=False)
class Inode:
    """A file: what programs see, what was there at the last fsync, and the changes since."""

    number: int
    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)
    digests: dict[FileRemains | None, bytes] = field(default_factory=dict)
    """What may be left of it as it stands -> digest of the content; None: what programs see."""

    def change(self, change: Change) -> None:
        """Carries a change out in the page cache."""
        change.apply(self.cached)
        self.pending.append(change)
        self.digests.clear()

    def take_back(self, size: int, offset: int, old: bytes) -> None:
        """Undoes the last change, which wrote over `old` at an offset and made the file no smaller
        than `size`."""
        self.pending.pop()
        self.cached[offset : offset + len(old)] = old
        del self.cached[size:]
        self.digests.clear()

    def keep(self, content: bytes) -> None:
        """What is pending is on the disk now, or never gets there: `content` is what is durable."""
        self.durable = content
        self.pending.clear()
        self.digests.clear()


@dataclass(frozen=True)
class NameChange:
    """`inode` gets `name`, which None takes away; a rename takes away the `old` one in the same
    step."""

    name: str
    inode: Inode | None
    old: str | None = None

    def apply(self, names: dict[str, Inode]) -> None:
        """Carries it out on the names of a folder."""
        if self.old is not None:
            names.pop(self.old, None)
        if self.inode is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.inode
