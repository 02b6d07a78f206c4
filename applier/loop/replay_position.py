"""Where a replay stands: behind which event, in which log of the source, with which GTIDs."""

from __future__ import annotations

from applier.binlog.boundaries import PLAIN_GTID
from applier.binlog.gtid_events import MariadbGtidEvent, plain_gtid
from applier.binlog.header import Event, EventFlag
from applier.loop.open_transaction import OpenTransaction
from applier.result import ReplayResult
from checkpoints.gtid import GtidSet


class ReplayPosition:
    """The position in a `ReplayResult`. Only events outside of `transaction` move it, and its
    end."""

    __slots__ = ("in_relay_log", "result", "transaction")

    def __init__(self, result: ReplayResult, transaction: OpenTransaction) -> None:
        self.result = result
        self.transaction = transaction
        self.in_relay_log = False

    def end(self, event: Event) -> None:
        """The event that ends the transaction, which is over then. One that was left out counts,
        too: its GTID is behind us."""
        transaction, result = self.transaction, self.result
        first = transaction.first
        if first is not None and first.type == PLAIN_GTID:
            result.executed.add_plain(*plain_gtid(first))
        elif isinstance(transaction.identity, MariadbGtidEvent):
            result.executed.add(transaction.identity.gtid)
        elif transaction.gtid is not None:
            result.executed.add(GtidSet(transaction.gtid))
        transaction.end()
        result.last_file = event.file
        result.last_position = event.position + (event.length if event.inner_index < 0 else 0)
        result.source_position = event.log_pos

    def rotate(self, event: Event) -> None:
        """In a relay log: the source's log that what follows is of, and where it is there."""
        of_source = not event.flags & EventFlag.RELAY_LOG
        if self.in_relay_log and of_source and self.transaction.first is None:
            data = event.data
            self.result.source_file = data[8:].decode("utf-8", "surrogateescape")
            self.result.source_position = int.from_bytes(data[:8], "little")

    def pass_by(self, event: Event) -> None:
        """An event that belongs to no transaction moves the position as well."""
        if self.in_relay_log and event.log_pos and self.transaction.first is None:
            self.result.source_position = event.log_pos
