"""What a replay does when its connections are lost: it waits, longer each time, connects again, and
goes on behind what is committed.

    lost -> wait -> connect -> end what the server still holds of ours -> lock -> position -> go on
                 <- not yet -

Nothing is remembered of what was under way: the position was committed with the data, or not at
all, and says which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from applier.errors import BinlagError, ReplicationError
from applier.logs import logger
from applier.mysql.client.connection import NotReached, Server, ServerLost
from applier.mysql.client.safety import ReadOnly
from applier.mysql.positions.checkpoint import MOST_WORKERS, lock_name

_LOG = logger("replay")
RECONNECT_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
LOOK_SECONDS = 0.1
"""How often a pause looks whether the user wants an end."""
READ_ONLY = frozenset({1290, 1836, 3032})
"""The server lets nobody write for now: --read-only, running read-only, offline mode. That is how a
failover begins."""
FULL = frozenset({1040, 1203})
"""Too many connections, of all or of this user."""


def is_passing(error: BinlagError) -> bool:
    """Whether another connection, to the same server or the one that is promoted, may not meet this
    error."""
    if isinstance(error, ServerLost):
        return not error.is_final
    return isinstance(error, NotReached) or (
        isinstance(error, ReplicationError) and error.number in READ_ONLY
    )


def is_not_yet(error: BinlagError) -> bool:
    """The same of an error that comes while a lost connection is made again."""
    return (
        is_passing(error)
        or isinstance(error, ReadOnly)
        or (isinstance(error, ReplicationError) and error.number in FULL)
    )


@dataclass
class Patience:
    """How long a replay tries again. The time begins with a loss, and again once something was
    committed since."""

    seconds: float
    stopped: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    tries: int = 0
    """Since the connection was lost."""
    _deadline: float | None = field(default=None, init=False)
    _pause: float = field(default=FIRST_PAUSE_SECONDS, init=False)

    def is_over(self) -> bool:
        """Whether there is no time for another try."""
        return (
            self.seconds <= 0
            or (self._deadline is not None and self.clock() >= self._deadline)
            or self.stopped()
        )

    def wait(self) -> bool:
        """Pauses before the next try. False when the time is over, or the user wants an end."""
        if self.is_over():
            return False
        now = self.clock()
        if self._deadline is None:
            self._deadline = now + self.seconds
        end = min(now + self._pause, self._deadline)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        while (left := end - self.clock()) > 0 and not self.stopped():
            self.sleep(min(left, LOOK_SECONDS))
        self.tries += 1
        return not self.stopped()

    def renew(self) -> None:
        """Something was committed."""
        self._deadline, self._pause = None, FIRST_PAUSE_SECONDS


@dataclass
class Sessions:
    """The server's sessions of a replay, as long as nobody has seen their end. A network that is
    cut ends them on one side only."""

    replay: str
    _begun: dict[int, float] = field(default_factory=dict)
    """Number -> when it began, by this machine's clock."""

    def add(self, server: Server) -> None:
        """One more."""
        self._begun[server.number] = time.monotonic()

    def end(self, server: Server) -> None:
        """Ends those that hold locks of the replay on the server. What they have not committed is
        rolled back.

        A server that was started since then has none of them: its sessions with these numbers are
        others'.
        """
        up_seconds = float(server.texts("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1] or 0)
        held = ", ".join(
            f"IS_USED_LOCK('{lock_name(self.replay, worker)}')"
            for worker in range(MOST_WORKERS + 1)
        )
        holders = {int(number) for number in server.texts(f"SELECT {held}")[0] if number}
        for number in self._still(holders, up_seconds):
            _LOG.info(
                "ending a session of ours that the server still holds", extra={"session": number}
            )
            with suppress(ReplicationError):  # it ended meanwhile
                server.execute(f"KILL {number}")
        self._begun.clear()

    def _still(self, holders: Iterable[int], up_seconds: float) -> list[int]:
        now = time.monotonic()
        return [
            number
            for number in holders
            if number in self._begun and up_seconds > now - self._begun[number]
        ]
