"""What a replay that follows relay logs is doing, for readers in another thread.

Each figure is set in one step and read on its own: no lock is needed, and one may be a transaction
older than another.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from applier.errors import BinlagError
from applier.status.failure import NO_FAILURE, ThreadFailure

if TYPE_CHECKING:
    from applier.binlog.follow import IndexedLogs
    from applier.binlog.header import Event
    from applier.mysql.feed import SourceTransaction

UNKNOWN = 1105
"""ER_UNKNOWN_ERROR: for errors that the server would not have."""


class Growing(Protocol):
    """The result of a replay while it grows: `ReplayResult`, `Outcome`. `transactions` are those
    that are committed."""

    transactions: int


def failure_of(error: BinlagError, number: int) -> ThreadFailure:
    """An error as a thread of a replica keeps its last one; `number` stands for what has none of
    the server's."""
    return ThreadFailure(getattr(error, "number", None) or number, error.message, time.time())


class ApplierProgress:
    """An applier of these logs. `timestamp`: of what it applies, by the source's clock, 0 before
    there is any."""

    def __init__(self, logs: IndexedLogs) -> None:
        self._logs = logs
        self._result: Growing | None = None
        self.running = True
        self.file = ""
        self.position = 0
        self.timestamp = 0
        self.failure: ThreadFailure = NO_FAILURE

    @property
    def idle(self) -> bool:
        """All that is in the relay logs is applied."""
        return self._logs.waiting

    @property
    def transactions(self) -> int:
        """Committed so far."""
        return 0 if self._result is None else self._result.transactions

    def began(self, result: Growing) -> None:
        """Takes the result that is going to grow."""
        self._result = result

    def took_event(self, event: Event) -> None:
        """What is applied next."""
        self.file, self.position = event.file, event.position
        # a rotate event of the receiver's own has none
        self.timestamp = event.timestamp or self.timestamp

    def took_transaction(self, source: SourceTransaction) -> None:
        """What was sent to a server."""
        self.file, self.position = source.end.file, source.end.offset
        first = source.opening or next(iter(source.events), None)
        self.timestamp = self.timestamp if first is None else first.timestamp or self.timestamp

    def fail(self, error: BinlagError | None) -> None:
        """Takes why it ends; None is no failure."""
        if error is not None:
            self.failure = failure_of(error, UNKNOWN)

    def ended(self) -> None:
        """It does not apply any more."""
        self.running = False
