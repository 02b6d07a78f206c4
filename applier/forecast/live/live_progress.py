"""How far a live replica is: SHOW REPLICA STATUS, gtid_executed, and what its workers are at.

`performance_schema.replication_applier_status_by_worker` tells which transaction a worker applies
and since when from 8.0 on, and InnoDB how many rows that transaction has changed so far. 5.6, 5.7
and MariaDB tell neither: there the first transaction that is left stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.live.progress import ReplicaProgress, Underway
from applier.mysql.client.connection import Server, connect, said_well
from applier.mysql.client.driver import DictCursor
from applier.mysql.client.url import Endpoint
from checkpoints.gtid import GtidSet

OLD_WORDS = frozenset({"5.6", "5.7", "8.0", "mariadb"})
"""Servers that know SHOW SLAVE STATUS; 8.4 does not any more."""
NO_WORKERS = frozenset({"5.6", "5.7", "mariadb"})
_WORKERS = """
SELECT w.APPLYING_TRANSACTION,
       TIMESTAMPDIFF(MICROSECOND, w.APPLYING_TRANSACTION_START_APPLY_TIMESTAMP, NOW(6)) / 1e6,
       t.trx_rows_modified
FROM performance_schema.replication_applier_status_by_worker w
     LEFT JOIN performance_schema.threads p ON p.THREAD_ID = w.THREAD_ID
     LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.PROCESSLIST_ID
WHERE w.APPLYING_TRANSACTION <> '' AND w.CHANNEL_NAME = '{}'
"""
HINT = "give all logs of its source from the one that it executes on, or its own relay logs"


class OtherLogs(InputError):
    """The server is no replica, or one that applies other logs."""


def read_progress(endpoint: Endpoint, logs: Sequence[str]) -> ReplicaProgress:
    """Raises InputError for no server, OtherLogs for no replica or one of other logs."""
    server = connect(endpoint)
    try:
        return _read(server, {PurePath(log).name for log in logs})
    finally:
        server.close()


def _read(server: Server, names: set[str]) -> ReplicaProgress:
    channels = list(_channels(server))
    if not channels:
        what = f"{server.endpoint} is not a replica: SHOW REPLICA STATUS has no row"
        raise OtherLogs(what, code=Code.OTHER_LOGS, hint="name the replica with --replica")
    fitting = [
        one for one in channels if {one["Relay_Source_Log_File"], one["Relay_Log_File"]} & names
    ]
    if not fitting:
        one = channels[0]
        what = f"the replica executes {one['Relay_Source_Log_File'] or 'no log yet'} of its source"
        what += f", in its {one['Relay_Log_File']}; neither is among the logs given"
        raise OtherLogs(what, code=Code.OTHER_LOGS, hint=HINT)
    return _progress(server, fitting[0])


def _channels(server: Server) -> Iterator[dict[str, str]]:
    """SHOW REPLICA STATUS with today's words; NULL is ""."""
    word = "SLAVE" if server.rules_version in OLD_WORDS else "REPLICA"
    everything = "SHOW ALL SLAVES STATUS" if server.is_mariadb else f"SHOW {word} STATUS"
    with said_well(server.endpoint), server.driver.cursor(DictCursor) as cursor:
        cursor.execute(everything)
        for row in cursor.fetchall():
            yield {
                name.replace("Master", "Source").replace("Slave", "Replica"): _text(value)
                for name, value in row.items()
            }


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _progress(server: Server, row: Mapping[str, str]) -> ReplicaProgress:
    behind = row["Seconds_Behind_Source"]
    executed = "" if server.is_mariadb else server.value("SELECT @@GLOBAL.gtid_executed") or ""
    channel = row.get("Channel_Name", "").replace("'", "''")
    return ReplicaProgress(
        float(server.value("SELECT UNIX_TIMESTAMP(NOW(6))") or 0),
        (row["Relay_Source_Log_File"], int(row["Exec_Source_Log_Pos"] or 0)),
        (row["Relay_Log_File"], int(row["Relay_Log_Pos"] or 0)),
        (row["Source_Log_File"], int(row["Read_Source_Log_Pos"] or 0)),
        GtidSet(executed),
        float(behind) if behind else None,
        _stopped(row),
        _under_way(server, channel),
    )


def _stopped(row: Mapping[str, str]) -> str:
    if row["Replica_SQL_Running"] == "Yes":
        return ""
    number = row["Last_SQL_Errno"]
    return f"it stopped with error {number}" if number not in ("", "0") else "it is stopped"


def _under_way(server: Server, channel: str) -> list[Underway]:
    if server.rules_version in NO_WORKERS:
        return []
    rows = server.texts(_WORKERS.format(channel))
    found = [
        Underway(gtid or "", float(seconds or 0), None if modified is None else float(modified))
        for gtid, seconds, modified in rows
    ]
    return sorted(found, key=lambda one: -one.seconds)
