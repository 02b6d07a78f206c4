"""The files and the names of a disk with the changes that are only in the page cache."""

from __future__ import annotations

from dataclasses import dataclass, field

from checkpoints.outcomes import Change


@dataclass(eq=False)
class Inode:
    """A file: what programs see, what was there at the last fsync, and the changes since."""

    number: int
    cached: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        """Carries a change out in the page cache."""
        change.apply(self.cached)
        self.pending.append(change)


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
