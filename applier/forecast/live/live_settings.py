"""The settings of a live replica: its variables, and whether it runs on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from applier.errors import BinlagError
from applier.forecast.prices.conditions import KINDS, Live
from applier.mysql.client.connection import Server, connect
from applier.mysql.client.url import Endpoint

HERE = ("127.0.0.1", "::1", "localhost")
_STATUS = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
READS = (
    "SELECT COUNT_READ, SUM_TIMER_READ FROM performance_schema.file_summary_by_event_name "
    "WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_data_file'"
)
FEWEST_READS = 20_000
"""Fewer say little: a start reads the server's own dictionary, and everything else is busy then."""
SYNCED = {
    "wait/io/file/innodb/innodb_log_file": ("innodb_flush_log_at_trx_commit", "1"),
    "wait/io/file/sql/binlog": ("sync_binlog", "1"),
}
"""Log -> the variable, and its value, with which each commit syncs it. A log that is synced once a
second has more to write each time, and says nothing of a commit."""
_SYNCED = "', '".join(SYNCED)
SYNCS = (
    "SELECT EVENT_NAME, COUNT_MISC, SUM_TIMER_MISC FROM "
    f"performance_schema.file_summary_by_event_name WHERE EVENT_NAME IN ('{_SYNCED}')"
)
"""What is neither a read nor a write: next to all of it syncs, where there are many."""
FEWEST_SYNCS = 2_000
PICOSECOND = 1e-12
SOURCE_ID_PLACE = 39
"""Of Source_Server_Id in the status, from 5.6 to 9.7 and in MariaDB."""


def settings_of_server(endpoint: Endpoint) -> Live:
    """What a server says of itself. Raises InputError when it cannot be reached.

    Where it refuses the question, `refused` says so and nothing is known.
    """
    is_here = endpoint.socket is not None or endpoint.host in HERE
    with closing(connect(endpoint)) as server:
        try:
            asked = {
                name
                for kind in KINDS.values()
                for name in (*kind.variables, kind.needs, kind.times)
            }
            names = ", ".join(f"'{name}'" for name in sorted(filter(None, asked)))
            rows = server.texts(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        except BinlagError as error:
            text = f"the replica does not tell its settings ({error}); the version's are assumed"
            return Live(server.version, {}, is_here, refused=text)
        variables = {str(name): str(value) for name, value in rows}
        return Live(
            server.version,
            variables,
            is_here,
            _source_id(server),
            read_seconds=read_seconds(server),
            sync_seconds=sync_seconds(server, variables),
        )


def read_seconds(server: Server) -> float | None:
    """What a read of InnoDB's data files has taken on average since the server's start.

    None where it read little, or where its performance schema is off or not for this account.
    """
    return _mean_seconds(_timed(server, READS), FEWEST_READS)


def sync_seconds(server: Server, variables: Mapping[str, str]) -> float | None:
    """What a sync of the logs that each commit syncs has taken on average since the server's start;
    None where there were few, or where nobody says. `variables`: the server's, by name."""
    synced = {log for log, (name, value) in SYNCED.items() if variables.get(name) == value}
    rows = [numbers for log, *numbers in _timed(server, SYNCS) if log in synced]
    return _mean_seconds(rows, FEWEST_SYNCS)


def _timed(server: Server, query: str) -> list[Sequence[object]]:
    """What its performance schema says; nothing where it is off or not for this account."""
    try:
        return list(server.texts(query))
    except BinlagError:
        return []


def _mean_seconds(rows: Iterable[Sequence[object]], fewest: int) -> float | None:
    """Of rows of a count and the picoseconds that it took; None for fewer than these."""
    count = picoseconds = 0
    for number, timed in rows:
        count += int(str(number))
        picoseconds += int(str(timed))
    return picoseconds / count * PICOSECOND if count >= fewest and picoseconds else None


def _source_id(server: Server) -> int | None:
    """The server_id of its source; None where it has none, or does not say."""
    for statement in _STATUS:
        try:
            rows = server.texts(statement)
        except BinlagError:
            continue
        if not rows:
            return None
        text = str(rows[0][SOURCE_ID_PLACE])
        return int(text) if text.isdigit() and int(text) else None
    return None
