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


class Connections:
    """When the last statement of each connection ended, within one file.

    A connection runs one statement at a time, and the moment at which one ended is the server's
    (`began` + `exec_time`) whatever TIMESTAMP its client had set. So none took longer than the time
    since the one before it ended, or since the server was started. `server_began`: 0 where the file
    does not say it.
    """

    def __init__(self, server_began: int) -> None:
        self._server_began = server_began
        self._ended: dict[int, int] = {}

    def most_seconds(self, connection: int, began: int, seconds: int) -> int:
        """The longest that this statement can have taken: `seconds`, or less. To be asked once for
        each statement, in the order of the file."""
        ended = began + seconds
        before = self._ended.get(connection, self._server_began)
        self._ended[connection] = ended
        return max(min(seconds, ended - before), 0)


def on_source(seconds: int, most_seconds: int, statements: int, transaction: Transaction) -> int:
    """How long so many statements took, to the second: `most_seconds` of all `Connections`, or
    `seconds` without what the replica that wrote the log was behind. 8.0.1 and later say that: both
    commit times are in the log (a source of 5.7 has none)."""
    original = transaction.original_commit_timestamp
    late = transaction.immediate_commit_timestamp - original if original else 0
    return max(round(seconds - statements * late / 1e6), 0) if late else most_seconds


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
