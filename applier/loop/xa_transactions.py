"""XA transactions of a replay: what is prepared, and what its COMMIT or ROLLBACK ends."""

from __future__ import annotations

from applier.binlog.boundaries import StatementRole, statement_of
from applier.binlog.events import XaPrepare
from applier.binlog.gtid_events import MariadbGtidEvent
from applier.binlog.header import Event
from applier.binlog.xa import check_xid, plain_xid, prepared_xid
from applier.errors import ReplicationError
from applier.loop.open_transaction import OpenTransaction
from applier.result import ReplayResult
from applier.tables.catalog import Tables
from applier.tables.engine import Change

NOT_STARTED = (
    "Error in Xid_log_event: Commit could not be completed, 'XAER_RMFAIL: The command cannot be"
    " executed when global transaction is in the NON-EXISTING state'"
)


class XaTransactions:
    """The changes of each prepared transaction, by its identifier in the form of `plain_xid`.

    They are in the tables and in no journal: a COMMIT leaves them there, a ROLLBACK takes them
    back.
    """

    __slots__ = ("knows_all", "prepared", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.prepared: dict[str, list[Change]] = {}
        self.knows_all = False
        """All that is prepared is in `prepared`, and an end of another is an error. A log may begin
        behind a PREPARE."""

    def prepare(self, parsed: XaPrepare, transaction: OpenTransaction) -> None:
        """XA PREPARE, or XA COMMIT … ONE PHASE, which prepares nothing, as one that is skipped.

        Raises ReplicationError 1399 where no XA START is before it, as where a source sends it
        again (trans_xa_prepare; seen of 5.7.29).
        """
        if self.knows_all and transaction.xid is None and not transaction.skipped:
            raise ReplicationError(1399, NOT_STARTED)
        if not parsed.one_phase and not transaction.skipped:
            self.prepared[plain_xid(parsed.text)] = self.tables.detach()

    def begin(self, identity: MariadbGtidEvent, transaction: OpenTransaction) -> None:
        """The GTID event of MariaDB that begins a transaction to be prepared: it is an XA START.

        Raises ReplicationError 1440 for an identifier that is prepared already: a crash came
        between the PREPARE and the row of gtid_slave_pos (Xid_apply_log_event::do_apply_event,
        10.11).
        """
        xid = prepared_xid(transaction.xid or "", self.prepared)
        if identity.prepares_xa and self.knows_all and not transaction.skipped:
            check_xid(True, xid, f"XA START {transaction.xid}".encode(), self.prepared)

    def carry_out(self, role: StatementRole, event: Event, transaction: OpenTransaction) -> None:
        """XA START, COMMIT and ROLLBACK; the last two end what was prepared.

        Raises ReplicationError 1397 or 1440 for an identifier that does not fit.
        """
        xid = prepared_xid(transaction.xid or "", self.prepared)
        if self.knows_all and not transaction.skipped:
            check_xid(role is StatementRole.XA_START, xid, statement_of(event), self.prepared)
        if role is StatementRole.XA_COMMIT:
            self.prepared.pop(xid, None)
        elif role is StatementRole.XA_ROLLBACK:
            self.tables.roll_back_detached(self.prepared.pop(xid, []))

    def leave_out(self, result: ReplayResult) -> None:
        """The end of the log: what is still prepared is not in the tables."""
        for xid, changes in reversed(self.prepared.items()):
            try:
                self.tables.roll_back_detached(changes)
            except ReplicationError as error:
                result.error = result.error or error
                error.locate(file=result.last_file, position=result.last_position)
            else:
                result.note(
                    f"XA transaction {xid} is prepared and neither committed nor rolled back: its"
                    " rows are left out"
                )
