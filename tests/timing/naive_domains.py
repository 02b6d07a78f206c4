"""MariaDB's workers once more, tick by tick and as literally as possible: the oracle of the
simulation.

Time is whole seconds. Nothing is computed ahead: groups count when they begin to commit, a group
waits for that count, and a thread goes back to the pool when its queue is empty
(sql/rpl_parallel.cc of MariaDB 10.11). Queues have no limit here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.binlog.gtid_events import MariadbGtidEvent as Marked
from applier.timing.clock import ClockConfiguration
from applier.timing.timed import TimedTransaction


@dataclass(eq=False)
class Group:
    number: int
    transaction: TimedTransaction
    domain: Domain
    wait_count: int
    waits_for_prior: bool
    prior: Group | None
    left: int
    started: int | None = None
    committing: bool = False
    committed: int | None = None


@dataclass(eq=False)
class Thread:
    queue: list[Group] = field(default_factory=list)
    owner: tuple[int, int] | None = None


@dataclass(eq=False)
class Domain:
    number: int
    places: list[Thread | None]
    at: int = -1
    multi_batch: bool = False
    force_switch: bool = False
    has_batch: bool = False
    last_commit_id: int = 0
    wait_count: int = 0
    queued: int = 0
    committing: int = 0
    last: Group | None = None


class NaiveDomains:
    """Run it with `run(until)`. `groups` know when they started and were committed; `shown` has
    what is subtracted from the clock, a value a tick, at its end (0: idle)."""

    def __init__(
        self, log: list[TimedTransaction], configuration: ClockConfiguration, start: int
    ) -> None:
        self.log, self.configuration, self.now = list(log), configuration, start
        self.threads = [Thread() for _ in range(configuration.worker_count)]
        self.domains: dict[int, Domain] = {}
        self.groups: list[Group] = []
        self.shown: list[int] = []
        self.latest, self.driver_at_end, self.workers_idle = 0, True, True
        self.in_hand: TimedTransaction | None = None

    def run(self, until: int) -> None:
        while self.now < until:
            while self._commit() or self._start() or self._finish_empty() or self._drive():
                pass
            self.shown.append(0 if not self.latest or self._is_idle() else self.latest)
            self.now += 1
            for thread in self.threads:
                if thread.queue and thread.queue[0].started is not None and thread.queue[0].left:
                    thread.queue[0].left -= 1

    def _is_idle(self) -> bool:
        if self.driver_at_end and not any(thread.queue for thread in self.threads):
            self.workers_idle = True
        return self.driver_at_end and self.workers_idle

    def _commit(self) -> bool:
        """Groups that are executed begin to commit, and are committed behind the one before
        them."""
        moved = False
        for thread in self.threads:
            group = thread.queue[0] if thread.queue else None
            if group is None or group.started is None or group.left:
                continue
            prior_done = group.prior is None or group.prior.committed is not None
            standalone = group.transaction.marks.is_standalone
            if not group.committing and (prior_done or not standalone):
                group.committing = moved = True
                group.domain.committing += 1
            if group.committing and prior_done:
                group.committed = self.now
                self.latest = max(self.latest, group.transaction.last_stamp)
                thread.queue.pop(0)
                moved = True
        return moved

    def _start(self) -> bool:
        moved = False
        for thread in self.threads:
            group = thread.queue[0] if thread.queue else None
            if (
                group is None
                or group.started is not None
                or group.wait_count > group.domain.committing
            ):
                continue
            if group.waits_for_prior and group.prior is not None and group.prior.committed is None:
                continue
            group.started, moved = self.now, True
        return moved

    def _finish_empty(self) -> bool:
        for thread in self.threads:
            if not thread.queue:
                thread.owner = None
        return False

    def _drive(self) -> bool:
        """One group is read and queued, if there is one and a thread for it."""
        if not self.log or self.log[0].commit > self.now:
            self.driver_at_end = True
            return False
        transaction = self.log[0]
        is_new, self.in_hand = self.in_hand is not transaction, transaction
        if is_new and (not self.latest or self._is_idle()):
            self.latest = max(self.latest, transaction.stamp)
            self.driver_at_end = self.workers_idle = False
        configuration, marks = self.configuration, transaction.marks
        one = configuration.by_position or configuration.scheduling == "minimal"
        number = 0 if one else marks.domain
        places = min(configuration.domain_workers or len(self.threads), len(self.threads))
        domain = self.domains.setdefault(number, Domain(number, [None] * places))
        at = (domain.at + 1) % places
        thread = domain.places[at]
        if thread is None or thread.owner != (number, at):
            thread = next((each for each in self.threads if each.owner is None), None)
            if thread is None:
                return False
            thread.owner, domain.places[at] = (number, at), thread
        domain.at = at
        self.log.pop(0)
        thread.queue.append(self._group(transaction, domain))
        return True

    def _group(self, transaction: TimedTransaction, domain: Domain) -> Group:
        marks, mode = transaction.marks, self.configuration.scheduling
        new_batch, waits, switch = True, False, bool(marks.flags & Marked.DDL)
        if domain.has_batch:
            same = marks.commit_id and domain.last_commit_id == marks.commit_id
            multi = domain.multi_batch or mode == "minimal" or not same or switch
            force = domain.force_switch or switch
            if not multi:
                new_batch = False
            elif mode in ("optimistic", "aggressive") and not force:
                new_batch = False
                waits = not marks.flags & Marked.TRANSACTIONAL
                if mode == "optimistic" and (
                    not marks.flags & Marked.ALLOW_PARALLEL or marks.flags & Marked.WAITED
                ):
                    waits = True
            domain.multi_batch, domain.force_switch = multi, force
        domain.last_commit_id = marks.commit_id
        if new_batch:
            domain.has_batch, domain.multi_batch, domain.force_switch, domain.wait_count = (
                True,
                False,
                switch,
                domain.queued,
            )
        group = Group(
            len(self.groups),
            transaction,
            domain,
            domain.wait_count,
            waits,
            domain.last,
            int(transaction.seconds),
        )
        domain.last, domain.queued = group, domain.queued + 1
        self.groups.append(group)
        return group
