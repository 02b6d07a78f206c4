"""Which transactions the applier executes: server ids, sql_replica_skip_counter, GTIDs that were
executed, UNTIL.

Rules of shall_skip() and continue_group() (sql/log_event.cc), queue_event() (sql/rpl_replica.cc)
and sql/rpl_replica_until_options.cc, 9.7; 5.6 to 8.0 differ in nothing that shows here. Groups are
judged as wholes: that is what the server's counting of events comes to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.gtid import GtidError, GtidSet
from checkpoints.position import Position


class AdmissionVerdict(Enum):
    """What becomes of a transaction."""

    EXECUTE = "execute"
    NOT_RECEIVED = "not received"
    """The receiver leaves it out of the relay log."""
    SKIP = "skip"
    """Read and left out by the coordinator; the position moves on."""
    EMPTY = "empty"
    """Its GTID was executed: it goes its way without changes."""
    STOP = "stop"
    """UNTIL is reached before it."""


class Group(Protocol):
    """A transaction, as far as this is about it."""

    @property
    def server_id(self) -> int:
        """The server that wrote it first."""

    @property
    def gtid(self) -> str | None:
        """Its GTID as text; None without one."""

    @property
    def events(self) -> int:
        """How many events it has."""

    @property
    def file(self) -> str:
        """The relay log that it stands in."""

    @property
    def position(self) -> int:
        """Where it begins there, in bytes."""

    @property
    def end(self) -> int:
        """Where it ends there, in bytes."""


def _identity(gtid: str) -> tuple[str, int, str] | None:
    """(uuid, number, tag) of a GTID's text; None for one that is not MySQL's."""
    uuid, _, rest = gtid.partition(":")
    tag, _, number = rest.rpartition(":")
    return (uuid.lower(), int(number), tag) if number.isdigit() and uuid.count("-") == 4 else None


def contains(gtids: GtidSet, gtid: str | None) -> bool:
    """Whether a transaction of that GTID (None: anonymous) is in a set."""
    identity = _identity(gtid) if gtid else None
    return identity is not None and gtids.contains(*identity)


@dataclass(frozen=True, slots=True)
class Until:
    """START REPLICA UNTIL: `position` of SOURCE_LOG_FILE and _POS or of RELAY_LOG_FILE and _POS, or
    GTIDs.

    Coordinates are those of the log that is read. `after` tells SQL_AFTER_GTIDS from
    SQL_BEFORE_GTIDS.
    """

    position: Position | None = None
    gtids: GtidSet | None = None
    after: bool = False

    def __post_init__(self) -> None:
        if (self.position is None) == (self.gtids is None):
            raise UsageError("UNTIL takes a position or a set of GTIDs", code=Code.OPTION_VALUE)

    @classmethod
    def parse(cls, text: str) -> Until:
        """`FILE:POSITION`, `before:GTIDS` or `after:GTIDS`. Raises UsageError."""
        word, _, rest = text.partition(":")
        try:
            if word.lower() in ("before", "after") and rest.strip():
                return cls(gtids=GtidSet(rest), after=word.lower() == "after")
        except GtidError as error:
            raise UsageError(f"--until {text}: {error}", code=Code.GTID_SET) from None
        file, _, offset = text.rpartition(":")
        if not file or not offset.isdigit():
            raise UsageError(
                f"--until {text}: FILE:POSITION, before:GTIDS or after:GTIDS",
                code=Code.OPTION_VALUE,
            )
        return cls(Position(file, int(offset)))

    def reached_at_start(self, executed: GtidSet) -> bool:
        """SQL_BEFORE_GTIDS: one of them is executed; SQL_AFTER_GTIDS: all are."""
        if self.gtids is None:
            return False
        return (
            self.gtids.issubset(executed)
            if self.after
            else self.gtids.subtract(executed) != self.gtids
        )

    def reached_before(self, group: Group, executed: GtidSet) -> bool:
        """Never inside a group: a position in the middle of a transaction takes effect behind
        it."""
        if self.position is not None:
            return not Position(group.file, group.position) < self.position
        assert self.gtids is not None
        if self.after:
            return self.gtids.issubset(executed)
        return contains(self.gtids, group.gtid)

    def reached_after(self, executed: GtidSet) -> bool:
        """SQL_AFTER_GTIDS is over when all of them are executed; the rest is looked at before each
        transaction."""
        return self.after and self.gtids is not None and self.gtids.issubset(executed)


class Admission:
    """Judges transactions in the log's order and remembers what passed.

    `own_server_id` is None when a server's own events are executed (replicate_same_server_id).
    `skip_counter` counts events, but never ends inside a transaction: 1 skips a whole one, and any
    rest is taken to the next.
    """

    def __init__(
        self,
        own_server_id: int | None = None,
        ignored_server_ids: frozenset[int] = frozenset(),
        skip_counter: int = 0,
        executed: GtidSet | None = None,
        until: Until | None = None,
    ) -> None:
        if executed is not None and skip_counter:
            raise UsageError(
                "sql_replica_skip_counter can not be set when the server is running with gtid_mode"
                " = ON",
                code=Code.CONFIGURATION,
                hint="for each transaction to skip, execute an empty one with its GTID",
            )
        self.own_server_id = own_server_id
        self.ignored_server_ids = ignored_server_ids
        self.skip_counter = skip_counter
        self.executed = executed.union(GtidSet()) if executed is not None else GtidSet()
        self.until = until
        self.over = until is not None and until.reached_at_start(self.executed)
        """UNTIL was reached before the start."""

    def judge(self, group: Group) -> AdmissionVerdict:
        """A transaction that is received moves the GTID set and the counter."""
        if group.server_id in self.ignored_server_ids or group.server_id == self.own_server_id:
            return AdmissionVerdict.NOT_RECEIVED
        if self.until is not None and self.until.reached_before(group, self.executed):
            return AdmissionVerdict.STOP
        if self.skip_counter:
            self.skip_counter = max(self.skip_counter - group.events, 0)
            return AdmissionVerdict.SKIP
        identity = _identity(group.gtid) if group.gtid else None
        if identity is not None:
            if self.executed.contains(*identity):
                return AdmissionVerdict.EMPTY
            self.executed.add(*identity)
        return AdmissionVerdict.EXECUTE

    @property
    def finished(self) -> bool:
        """Whether UNTIL is reached behind the transaction judged last."""
        return self.until is not None and self.until.reached_after(self.executed)
