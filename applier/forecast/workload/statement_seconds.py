"""How long the statements in a log's text ran on their source, of which exec_time tells.

A server counts exec_time from the time of its session (`Query_log_event`, sql/log_event.cc). A
replica's applier sets that to the time of the event, so in a log that a replica wrote it includes
how far behind the replica was; a client sets it with SET TIMESTAMP.
"""

from __future__ import annotations

from applier.binlog.header import Event
from applier.binlog.transactions import Transaction

LONG_BEFORE = 3600
"""Seconds that a statement began before its file: longer, and whether it did is in doubt."""
IN_DOUBT = (
    "a statement began more than an hour before its file, or its client had set TIMESTAMP: then it"
    " took less time than the log says"
)


def on_source(seconds: int, statements: int, transaction: Transaction) -> int:
    """`seconds` of so many statements without what the replica that wrote the log was behind, to
    the second. 8.0.1 and later say it: both commit times are in the log (a source of 5.7 has
    none)."""
    if not transaction.original_commit_timestamp:
        return seconds
    late = transaction.immediate_commit_timestamp - transaction.original_commit_timestamp
    return max(round(seconds - statements * late / 1e6), 0)


def doubt(
    transaction: Transaction, last: Event, writer: int | None, file_begins: int
) -> str | None:
    """What is to be said of the time of a transaction's statements. `last`: its last event;
    `writer`: the server_id of the file's server, where it is known; `file_begins`: when it began
    the file."""
    if writer is not None and transaction.server_id != writer:
        if transaction.original_commit_timestamp:
            return None
        return (
            f"server_id {writer}, a replica, wrote the log of server_id {transaction.server_id}:"
            " the time of statements includes what it was behind"
        )
    return IN_DOUBT if last.timestamp + LONG_BEFORE < file_begins else None
