"""Tables of integers, and the sessions that change them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Values = tuple[int, ...]
Found = list[tuple[bytes | None, ...]]
DEADLOCK = 1213
NUMBERED = "journal"
"""Each transaction of the log writes its number here: who carried it out is known by that."""


class Refused(Exception):
    """A statement failed with this error number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Waits(Exception):
    """A statement needs a lock that another session holds."""

    def __init__(self, key: object) -> None:
        super().__init__()
        self.key = key


@dataclass
class Table:
    """`unique` are the places of its unique columns, the first of them the primary key; none for a
    table without keys."""

    create: str
    number: int
    unique: tuple[int, ...] = ()
    rows: list[Values] = field(default_factory=list)


class Session:
    """One connection as the server sees it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.texts: deque[bytes] = deque()
        self.answers: deque[tuple[int, Found | None, bool] | int] = deque()
        """(rows matched, result, whether more follow), or the number of an error."""
        self.waits_for: object = None
        """The key of a lock."""
        self.open = False
        """Inside of a transaction."""
        self.undo: list[Callable[[], object]] = []
        self.writes: list[Callable[[], object]] = []
        """What a commit does: the replay's own tables."""
        self.position: tuple[str, ...] | None = None
        self.applied: list[int] = []
        self.user_locks: set[str] = set()
        self.gtid = ""
        self.idempotent = False
        self.row_count = 0
        self.speed = 1.0
        """Of its text: how likely it is to be the next one to be worked at."""
        self.ended = False
        """No client listens any more."""
        self.gone = False
