"""Where a replay goes: the contract between the replay loop and what it fills.

Two of them: tables in memory (`applier.tables.target`) and a MySQL server. A target gets one transaction at a time, in the
order of the log, and answers with the errors that would stop a real replica.
"""

from __future__ import annotations

from typing import Protocol

from applier.binlog.header import Event, FormatDescription
from applier.binlog.rows import RowsHead
from applier.binlog.table_map import TableMap
from applier.result import RowsRecord


class Target(Protocol):
    """Carries out what the log says. Raises ReplicationError where a real applier stops; the caller rolls back then."""

    def apply_rows(self, event: Event, rows: RowsHead, table_map: TableMap, gtid: str | None) -> RowsRecord:
        """One rows event. A failure is raised after the record was made; it stands in `failed`."""

    def execute(self, event: Event, fde: FormatDescription) -> None:
        """One event that is neither rows nor the end of a transaction: a statement, or what a statement needs before it."""

    def commit(self) -> None:
        """The end of a transaction."""

    def rollback(self) -> None:
        """Takes back what transactional tables saw since the last commit."""
