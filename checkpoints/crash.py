"""Where a run can be cut off: numbered operations of a disk, crash points around and inside them,
and faults.

A crash point is named by the number of the operation, so that the same run with the same point ends
in the same place. `before` and `after` of neighbouring operations leave the same disk but not the
same promises: between the two the program may have reported that its data are safe.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from checkpoints.errors import CheckpointError


class CrashKind(StrEnum):
    """What ends: the process alone, as by kill -9, or the machine with all that was only in its
    memory."""

    PROCESS = "process"
    OS = "os"


class CrashMoment(StrEnum):
    """When a crash comes, seen from the operation it belongs to. INSIDE leaves a write half
    done."""

    BEFORE = "before"
    INSIDE = "inside"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Operation:
    """One change that was asked of a disk. Reading is no operation."""

    number: int
    action: str
    """create, write, truncate, fsync, rename, remove or fsync names"""
    name: str
    offset: int = 0
    size: int = 0
    grows: int = 0
    """Bytes of a write that need room: all of an append; of one that overwrites, what goes beyond
    the blocks that the file has."""

    def __str__(self) -> str:
        extent = f" {self.size} bytes at {self.offset}" if self.action == "write" else ""
        return f"{self.number} {self.action} {self.name}{extent}".rstrip()


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Before, after or inside an operation; inside a write, `byte` bytes of it are done."""

    operation: int
    moment: CrashMoment
    byte: int = 0

    def __str__(self) -> str:
        return f"{self.operation} {self.moment}" + (
            f" {self.byte}" if self.moment is CrashMoment.INSIDE else ""
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The point that was shown as this text. Raises CheckpointError."""
        words = text.split()
        try:
            point = cls(int(words[0]), CrashMoment(words[1]), *map(int, words[2:]))
        except (IndexError, TypeError, ValueError):
            point = None
        if point is None or str(point) != " ".join(words):
            raise CheckpointError(
                f"{text!r} is not a crash point",
                hint='write it as "17 before", "17 after" or "17 inside 12"',
            )
        return point


@dataclass(frozen=True, slots=True)
class Fault:
    """An operation that fails. Of a write, `done` bytes are done before it does."""

    operation: int
    number: int = errno.EIO
    done: int = 0


class Crashed(BaseException):
    """The simulated machine or process is gone. No Exception, so that no error handler of the
    program lives on after its own death."""

    def __init__(self, point: CrashPoint | None) -> None:
        super().__init__(
            f"crashed at {point}"
            if point
            else "this disk has crashed before; go on with the disk of an outcome"
        )
        self.point = point


def tears(offset: int, size: int, sector_bytes: int) -> tuple[int, ...]:
    """How many bytes of a write may be done when it is cut off inside.

    A disk that writes whole sectors tears at their borders only. With sectors of one byte every
    place is possible; three stand for all: after the first byte, in the middle, before the last.
    """
    if sector_bytes == 1:
        return tuple(sorted({1, size // 2, size - 1} & set(range(1, size))))
    first = sector_bytes - offset % sector_bytes
    return tuple(range(first, size, sector_bytes))


def crash_points(operations: Iterable[Operation], *, sector_bytes: int = 1) -> Iterator[CrashPoint]:
    """Every point at which a run with these operations can be cut off, in the order of the run."""
    for operation in operations:
        yield CrashPoint(operation.number, CrashMoment.BEFORE)
        if operation.action == "write":
            for byte in tears(operation.offset, operation.size, sector_bytes):
                yield CrashPoint(operation.number, CrashMoment.INSIDE, byte)
        yield CrashPoint(operation.number, CrashMoment.AFTER)
