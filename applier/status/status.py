"""SHOW REPLICA STATUS, SHOW SLAVE STATUS: which columns a version has, in its order, and what goes
into them.

Columns as real 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18 give them; 8.0 and 8.4 as in
show_slave_status_metadata() (sql/rpl_replica.cc).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from applier.status.failure import NO_FAILURE
from applier.status.view import CONNECTING, OFF, ON, ReplicaView, Thread
from lookup.versions import rules_for

Row = dict[str, Any]
"""Column -> value, in the server's order; None is NULL."""

_ALL = (
    "Replica_IO_State Source_Host Source_User Source_Port Connect_Retry Source_Log_File"
    " Read_Source_Log_Pos Relay_Log_File Relay_Log_Pos Relay_Source_Log_File Replica_IO_Running"
    " Replica_SQL_Running Replicate_Do_DB Replicate_Ignore_DB Replicate_Do_Table"
    " Replicate_Ignore_Table Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table Last_Errno"
    " Last_Error Skip_Counter Exec_Source_Log_Pos Relay_Log_Space Until_Condition Until_Log_File"
    " Until_Log_Pos Source_SSL_Allowed Source_SSL_CA_File Source_SSL_CA_Path Source_SSL_Cert"
    " Source_SSL_Cipher Source_SSL_Key Seconds_Behind_Source Source_SSL_Verify_Server_Cert"
    " Last_IO_Errno Last_IO_Error Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids"
    " Source_Server_Id"
).split()
_MYSQL = (
    "Source_UUID Source_Info_File SQL_Delay SQL_Remaining_Delay Replica_SQL_Running_State"
    " Source_Retry_Count Source_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp"
    " Source_SSL_Crl Source_SSL_Crlpath Retrieved_Gtid_Set Executed_Gtid_Set Auto_Position"
).split()
_FROM_57 = "Replicate_Rewrite_DB Channel_Name Source_TLS_Version".split()
_FROM_80 = "Source_public_key_path Get_Source_public_key Network_Namespace".split()
_MARIADB = (
    "Source_SSL_Crl Source_SSL_Crlpath Using_Gtid Gtid_IO_Pos Replicate_Do_Domain_Ids"
    " Replicate_Ignore_Domain_Ids Parallel_Mode SQL_Delay SQL_Remaining_Delay"
    " Replica_SQL_Running_State Replica_DDL_Groups Replica_Non_Transactional_Groups"
    " Replica_Transactional_Groups Replicate_Rewrite_DB"
).split()
COLUMNS: dict[str, tuple[str, ...]] = {
    "5.6": (*_ALL, *_MYSQL),
    "5.7": (*_ALL, *_MYSQL, *_FROM_57),
    "8.0": (*_ALL, *_MYSQL, *_FROM_57, *_FROM_80),
    "8.4": (*_ALL, *_MYSQL, *_FROM_57, *_FROM_80),
    "9.7": (*_ALL, *_MYSQL, *_FROM_57, *_FROM_80),
    "mariadb": (*_ALL, *_MARIADB),
}
"""Version -> columns by today's names."""
OLD_NAMES_ONLY = frozenset({"5.6", "5.7", "mariadb"})
NEW_NAMES_ONLY = frozenset({"8.4", "9.7"})
NO_TIME = ""


def old_name(column: str) -> str:
    """The column's name in SHOW SLAVE STATUS."""
    if column.startswith(("Replicate_", "Replicate")):
        return column
    name = column.replace("Source", "Master").replace("Replica_", "Slave_")
    return name.replace("Get_Master", "Get_master")


def column_names(version: str, *, old_names: bool | None = None) -> tuple[str, ...]:
    """What the statement of a version has. `old_names`: SHOW SLAVE STATUS; None: the version's own.

    Raises ValueError for SHOW SLAVE STATUS after 8.0, which has none, and for SHOW REPLICA STATUS
    before.
    """
    name = rules_for(version).name
    if old_names is None:
        old_names = name in OLD_NAMES_ONLY
    if old_names and name in NEW_NAMES_ONLY:
        raise ValueError(f"{name} has no SHOW SLAVE STATUS")
    if not old_names and name in OLD_NAMES_ONLY and name != "mariadb":
        raise ValueError(f"{name} has no SHOW REPLICA STATUS")
    return tuple(old_name(column) if old_names else column for column in COLUMNS[name])


def show_status(view: ReplicaView, *, old_names: bool | None = None) -> Row:
    """One row of SHOW REPLICA STATUS. What the view does not know is None."""
    names = column_names(view.version, old_names=old_names)
    facts = _facts(view)
    return {
        shown: facts.get(column)
        for shown, column in zip(names, COLUMNS[rules_for(view.version).name], strict=True)
    }


def _facts(view: ReplicaView) -> Mapping[str, Any]:
    """By today's names."""
    return {
        "Channel_Name": view.channel,
        "Seconds_Behind_Source": view.seconds_behind,
        "SQL_Remaining_Delay": view.remaining_delay,
        "SQL_Delay": view.delay if view.relay is None else view.relay.sql_delay,
        "Relay_Log_Space": view.relay_log_bytes,
        "Source_Server_Id": view.source_server_id,
        "Source_Info_File": view.info_repository,
        "Retrieved_Gtid_Set": view.retrieved,
        "Executed_Gtid_Set": view.executed,
        "Gtid_IO_Pos": view.retrieved,
        **_threads(view),
        **_connection(view),
        **_positions(view),
    }


def _threads(view: ReplicaView) -> Row:
    receiver, applier = view.receiver, view.applier
    failed = next(
        (
            thread.failure
            for thread in view.workers
            if thread.failure is not None and thread.failure.number
        ),
        applier.failure,
    )
    facts: Row = {
        "Replica_IO_State": receiver.stage,
        "Replica_IO_Running": {ON: "Yes", OFF: "No", CONNECTING: "Connecting", None: None}[
            receiver.state
        ],
        "Replica_SQL_Running": {ON: "Yes", OFF: "No", None: None}[applier.state],
        "Replica_SQL_Running_State": applier.stage,
    }
    for prefix, failure in (("Last_IO", receiver.failure), ("Last_SQL", failed), ("Last", failed)):
        if failure is not None:
            facts[f"{prefix}_Errno"] = failure.number
            facts[f"{prefix}_Error"] = failure.message
            facts[f"{prefix}_Error_Timestamp"] = short_time(failure.time)
    return facts


def _connection(view: ReplicaView) -> Row:
    source = view.source
    if source is None:
        return {}
    return {
        "Source_Host": source.host,
        "Source_User": source.user_name,
        "Source_Port": source.port,
        "Connect_Retry": source.connect_retry,
        "Source_SSL_Allowed": _yes(source.enabled_ssl),
        "Source_SSL_CA_File": source.ssl_ca,
        "Source_SSL_CA_Path": source.ssl_capath,
        "Source_SSL_Cert": source.ssl_cert,
        "Source_SSL_Cipher": source.ssl_cipher,
        "Source_SSL_Key": source.ssl_key,
        "Source_SSL_Verify_Server_Cert": _yes(source.ssl_verify_server_cert),
        "Source_SSL_Crl": source.ssl_crl,
        "Source_SSL_Crlpath": source.ssl_crlpath,
        "Source_TLS_Version": source.tls_version,
        "Source_public_key_path": source.public_key_path,
        "Get_Source_public_key": int(source.get_public_key),
        "Network_Namespace": source.network_namespace,
        "Source_UUID": source.uuid,
        "Source_Retry_Count": source.retry_count,
        "Source_Bind": source.bind,
        "Auto_Position": int(source.enabled_auto_position),
        "Using_Gtid": source.using_gtid,
        "Replicate_Do_Domain_Ids": ", ".join(map(str, source.do_domain_ids)),
        "Replicate_Ignore_Domain_Ids": ", ".join(map(str, source.ignore_domain_ids)),
        "Replicate_Ignore_Server_Ids": ",".join(map(str, source.ignored_server_ids)),
        "Source_Log_File": source.source_log_name,
        "Read_Source_Log_Pos": source.source_log_pos,
    }


def _positions(view: ReplicaView) -> Row:
    facts: Row = {}
    if view.source is None and view.source_file is not None:
        facts |= {"Source_Log_File": view.source_file, "Read_Source_Log_Pos": view.read_position}
    if view.relay is not None:
        facts |= {
            "Relay_Log_File": view.relay.relay_log_name.rpartition("/")[2],
            "Relay_Log_Pos": view.relay.relay_log_pos,
            "Relay_Source_Log_File": view.relay.source_log_name,
            "Exec_Source_Log_Pos": view.relay.source_log_pos,
        }
    elif view.executed_file is not None:
        facts |= {
            "Relay_Source_Log_File": view.executed_file,
            "Exec_Source_Log_Pos": view.executed_position,
        }
    return facts


def short_time(moment: float | None) -> str:
    """As Last_SQL_Error_Timestamp: 261121 08:40:00, in UTC; empty when unset."""
    return (
        NO_TIME
        if moment is None
        else datetime.fromtimestamp(moment, UTC).strftime("%y%m%d %H:%M:%S")
    )


def _yes(value: bool) -> str:
    return "Yes" if value else "No"


def stopped() -> Thread:
    """A thread that does not run and met no error."""
    return Thread(OFF, "", NO_FAILURE)
