"""A statement that failed on the source is in the log with its error's number, and has to fail here
in the same way.

`Query_log_event::do_apply_event` (sql/log_event.cc, 5.7 to 9.7, and log_event_server.cc of MariaDB
10.11): what was done before the error is done here, too, since only a statement that changed
something for good is logged in spite of its error.
"""

from __future__ import annotations

from collections.abc import Callable

from applier.binlog.events import Query
from applier.errors import ReplicationError

INTERRUPTED = frozenset({1053, 1158, 1160, 1184, 1317})
"""Shutdown, lost connection, KILL: how far the statement came is not known
(`unexpected_error_code`)."""
CONCURRENCY = frozenset({1205, 1213, 1614})
"""Lock waits and deadlocks need not come again (`concurrency_error_code`)."""
OWN = frozenset({1235, 3001})
"""What is refused here, whatever the source's error was."""


def refuse_interrupted(query: Query, skips: Callable[[int], bool]) -> None:
    """Raises ReplicationError 3001 for a statement that was cut off on the source somewhere in the
    middle."""
    if query.error_code in INTERRUPTED and not skips(query.error_code):
        raise ReplicationError(
            3001,
            f"Query partially completed on the source (error on source: {query.error_code}) and was"
            f" aborted: {_text(query)}",
            hint=(
                f"compare its tables with the source's; --skip-errors {query.error_code} carries it"
                " out as a whole"
            ),
        )


def remaining_error(
    error: ReplicationError | None, query: Query, skips: Callable[[int], bool]
) -> ReplicationError | None:
    """What is left of the statement's error beside the one that the source had; None when they are
    the same."""
    expected, actual = query.error_code, 0 if error is None else error.number
    if (
        actual in OWN
        or expected == 0
        or expected in CONCURRENCY
        or skips(expected)
        or skips(actual)
    ):
        return error
    if expected == actual:
        return None
    return ReplicationError(
        3002,
        f"Query caused different errors on source and replica. Error on source: {expected}; "
        f"here: {'none' if error is None else f'{actual} {error.message}'}. Query: {_text(query)}",
        table=None if error is None else error.table,
    )


def _text(query: Query) -> str:
    return repr(query.sql[:100].decode("utf-8", "replace"))
