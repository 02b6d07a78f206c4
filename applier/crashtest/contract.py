"""What a system under test is: it runs on a disk, and it recovers on what a crash has left of that
disk.

The replica of this project is one such system; an applier, a consumer with a saved offset or a
small store of one's own is another. Everything that is to survive goes through the disk
(`checkpoints.disk.Disk`): what an object remembers dies with it, and each recovery is asked of a
new one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from checkpoints.disk import Disk


class CannotStart(Exception):
    """The system does not start, or stops before it has caught up. `number` is an error number,
    where there is one."""

    def __init__(self, message: str, *, number: int | None = None) -> None:
        super().__init__(message if number is None else f"error {number}: {message}")
        self.number = number


class RecoveryMistake(Exception):
    """`recover` raised what is no refusal to start: a mistake in the system itself, and no verdict
    on a crash. `place` is the crash, `again` a command that shows it again, where there is one."""

    def __init__(self, what: str, place: str, again: str | None = None) -> None:
        super().__init__(what, place, again)
        self.what = what
        self.place = place
        self.again = again

    def __str__(self) -> str:
        again = self.again or f'--crash "{self.place}"'
        return (
            f"{self.what} while recovering, which is a mistake, not a refusal to start; again:"
            f" {again}"
        )


@dataclass(frozen=True)
class State:
    """What a system holds when it has recovered and caught up with its source."""

    applied: tuple[Hashable, ...]
    """The ledger: every piece of work whose effect is there, as often as it is there. Kept with the
    effects: a position proves nothing."""
    content: Any = field(default=None, repr=False)
    """The data themselves, in a form that `==` compares. In a dict of table -> rows (a list), rows
    that are there twice are distinguished from lost ones."""


class System(Protocol):
    """A system under test. Runs must be the same each time: no clock, no chance but from a seed, no
    threads that race.

    One whose run never goes on behind an OSError may say so with an attribute `stops_on_error =
    True`: then an operation that fails is a crash before or inside of it, and needs no run of its
    own. One that knows what it raises when it refuses to start says so with `refusals`, exception
    classes: any other exception ends the exploration with a RecoveryMistake. Without it, any is a
    refusal. One that begins by cutting off what is not whole may say so with a method
    `what_counts(name)`, which returns None or a function from the content of a file of this name to
    the part that is kept: two disks that have the same there are recovered once.
    """

    def run(self, disk: Disk) -> Iterator[Hashable]:
        """Does all its work, from a disk with nothing on it; yields each piece when its user
        knows that it is done.

        It may be cut off at any operation of the disk. An OSError of the disk may be handled, or
        end the run as it would end the process.
        """
        ...

    def recover(self, disk: Disk) -> State:
        """Starts again on what is left and catches up: all work of the run is to be there once,
        whether acknowledged or not.

        Raises CannotStart, or whatever else keeps it from starting.
        """
        ...
