"""What time and the machine decide in a server with workers, decided here: which of them commits
next, and when a checkpoint is due."""

from __future__ import annotations

import random
from typing import Protocol


class Interleaving(Protocol):
    """What time and the machine decide in a server."""

    def next(self, runnable: int) -> int:
        """Which of the groups that may commit does so next: 0 is the oldest."""
        ...

    def checkpoint(self) -> bool:
        """Whether the coordinator's checkpoint period has elapsed since it was asked last."""
        ...

    @property
    def reads_ahead(self) -> bool:
        """Whether the coordinator hands out more while groups wait to be executed."""
        ...


class InOrder:
    """The oldest group first; a checkpoint only where it is forced. Implements `Interleaving`."""

    reads_ahead = True

    def next(self, runnable: int) -> int:
        return 0

    def checkpoint(self) -> bool:
        return False


class Eager(InOrder):
    """The workers are never behind the coordinator, nor is its low-water mark: a group is executed
    as soon as it was handed out, and a checkpoint follows. Implements `Interleaving`."""

    reads_ahead = False

    def checkpoint(self) -> bool:
        return True


class Shuffled:
    """Any group that may run, by a seed; a checkpoint after one group of `checkpoint_every` on
    average, never with 0.

    Implements `Interleaving`.
    """

    reads_ahead = True

    def __init__(self, seed: int, *, checkpoint_every: int = 8) -> None:
        self._random = random.Random(seed)
        self._checkpoint_every = checkpoint_every

    def next(self, runnable: int) -> int:
        return self._random.randrange(runnable)

    def checkpoint(self) -> bool:
        return bool(self._checkpoint_every) and self._random.randrange(self._checkpoint_every) == 0
