"""The coordinator's queue of groups (GAQ) and the checkpoint that shortens it.

mta_checkpoint_routine() and Slave_committed_queue::move_queue_head() (sql/rpl_replica.cc,
rpl_rli_pdb.cc). Only a checkpoint moves the position that SHOW REPLICA STATUS shows and that
recovery starts from: to the low-water mark, the end of the done groups at the head. The coordinator
takes it between two events: one that waits for a worker takes none.
"""

from __future__ import annotations

from collections import deque
from math import ceil, inf

from applier.timing.seconds_behind import LastSourceTimestamp, Timeline


class GaqSlot:
    """A slot of the queue. `end` is when its worker is done with it, `stamp` the time of its last
    event once that was handed out."""

    __slots__ = ("end", "stamp")

    def __init__(self) -> None:
        self.end = inf
        self.stamp = 0


class Coordinator:
    """`now` is where the coordinator is in true time. `positions` counts the groups below the
    position that it shows."""

    def __init__(
        self, start: float, timestamp: LastSourceTimestamp, *, period: float, group: int
    ) -> None:
        self.now = start
        self.timestamp = timestamp
        self.queue: deque[GaqSlot] = deque()
        self.positions = Timeline()
        self.period = period or inf
        self.capacity = group
        self._last_checkpoint = start
        self._popped = 0

    def idle_until(self, moment: float) -> None:
        """Nothing to read before `moment`: a checkpoint each period, and 0 seconds behind as soon
        as no group is in work."""
        eof = self.now
        if eof - self._last_checkpoint >= self.period:
            self.checkpoint()
        while self.queue and self.now < moment:
            head = self.queue[0].end
            if head >= moment or self.period == inf:
                break
            self.now += max(1, ceil((head - self.now) / self.period)) * self.period
            if self.now < moment:
                self.checkpoint()
        if not self.queue and self.now < moment:
            self.timestamp.end_of_log(self.now)
        if moment == inf:
            return
        ticks = ceil((moment - eof) / self.period) - 1
        if ticks >= 1:
            self._last_checkpoint = max(self._last_checkpoint, eof + ticks * self.period)
        self.now = moment

    def read(self, stamp: int) -> None:
        """The next event is here: a checkpoint when it is time for one or the queue is full, then
        its time counts."""
        if len(self.queue) >= self.capacity:
            self.wait_for_head()
        elif self.now - self._last_checkpoint >= self.period:
            self.checkpoint()
        self.timestamp.read(self.now, stamp)

    def begin(self) -> GaqSlot:
        """The group's first event gets the last slot."""
        group = GaqSlot()
        self.queue.append(group)
        return group

    def checkpoint(self) -> None:
        """Takes the done groups off the head."""
        self._last_checkpoint = self.now
        queue, done, popped = self.queue, 0, 0
        while queue and queue[0].end <= self.now:
            done = queue.popleft().stamp
            popped += 1
        if popped:
            self._popped += popped
            self.positions.set(self.now, self._popped)
            self.timestamp.checkpoint(self.now, queue[0].stamp if queue else None, done)

    def wait_for_head(self) -> None:
        """A forced checkpoint: comes back with at least one group done."""
        self.now = max(self.now, self.queue[0].end)
        self.checkpoint()

    def wait_for_all_before(self) -> None:
        """Until the group begun last is the only one: a barrier, made of forced checkpoints."""
        while len(self.queue) > 1 and self.now < inf:
            self.wait_for_head()

    def wait_for_all(self) -> None:
        """The same between two groups."""
        while self.queue and self.now < inf:
            self.wait_for_head()

    def skip(self) -> float:
        """A group that no worker gets: it is done at once."""
        self.begin().end = self.now
        return self.now
