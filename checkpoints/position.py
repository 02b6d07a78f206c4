"""A place in a log: file name and byte offset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """A place: file and byte in it. Files are compared by their numeric suffix, so binlog.1000000
    comes after binlog.999999."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def __lt__(self, other: Position) -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[str, int, int]:
        stem, _, suffix = self.file.rpartition(".")
        return (
            (stem, int(suffix), self.offset) if suffix.isdecimal() else (self.file, 0, self.offset)
        )
