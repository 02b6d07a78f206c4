"""performance_schema.replication_*: which columns a version has, in its order, and what goes into
them.

Columns as real 5.7.29 and 9.7.4 give them; 8.0 and 8.4 have those of 9.7. Timestamps are in UTC;
one that the server never set is its 0000-00-00, one that we do not know is NULL. 5.6 has none of
these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from applier.status.failure import ThreadFailure
from applier.status.status import Row
from applier.status.view import Monitored, ReplicaView, Thread
from lookup.versions import rules_for

TRANSACTION_TIMES = ("ORIGINAL_COMMIT_TIMESTAMP", "IMMEDIATE_COMMIT_TIMESTAMP")
ERROR = ("LAST_ERROR_NUMBER", "LAST_ERROR_MESSAGE", "LAST_ERROR_TIMESTAMP")
TRANSIENT = (
    "LAST_TRANSIENT_ERROR_NUMBER",
    "LAST_TRANSIENT_ERROR_MESSAGE",
    "LAST_TRANSIENT_ERROR_TIMESTAMP",
)


def _transaction(prefix: str, work: str, *, ended: bool) -> tuple[str, ...]:
    times = (
        *TRANSACTION_TIMES,
        f"START_{work}_TIMESTAMP",
        *((f"END_{work}_TIMESTAMP",) if ended else ()),
    )
    return (prefix, *(f"{prefix}_{time}" for time in times))


def _retried(prefix: str) -> tuple[str, ...]:
    return (f"{prefix}_RETRIES_COUNT", *(f"{prefix}_{name}" for name in TRANSIENT))


_CONFIGURATION_57 = (
    "CHANNEL_NAME HOST PORT USER NETWORK_INTERFACE AUTO_POSITION SSL_ALLOWED SSL_CA_FILE"
    " SSL_CA_PATH SSL_CERTIFICATE SSL_CIPHER SSL_KEY SSL_VERIFY_SERVER_CERTIFICATE SSL_CRL_FILE"
    " SSL_CRL_PATH CONNECTION_RETRY_INTERVAL CONNECTION_RETRY_COUNT HEARTBEAT_INTERVAL TLS_VERSION"
).split()
_STATUS_57 = (
    "CHANNEL_NAME",
    "GROUP_NAME",
    "SOURCE_UUID",
    "THREAD_ID",
    "SERVICE_STATE",
    "COUNT_RECEIVED_HEARTBEATS",
    "LAST_HEARTBEAT_TIMESTAMP",
    "RECEIVED_TRANSACTION_SET",
    *ERROR,
)
Tables = dict[str, tuple[str, ...]]
TABLES_57: Tables = {
    "replication_connection_configuration": tuple(_CONFIGURATION_57),
    "replication_connection_status": _STATUS_57,
    "replication_applier_configuration": ("CHANNEL_NAME", "DESIRED_DELAY"),
    "replication_applier_status": (
        "CHANNEL_NAME",
        "SERVICE_STATE",
        "REMAINING_DELAY",
        "COUNT_TRANSACTIONS_RETRIES",
    ),
    "replication_applier_status_by_coordinator": (
        "CHANNEL_NAME",
        "THREAD_ID",
        "SERVICE_STATE",
        *ERROR,
    ),
    "replication_applier_status_by_worker": (
        "CHANNEL_NAME",
        "WORKER_ID",
        "THREAD_ID",
        "SERVICE_STATE",
        "LAST_SEEN_TRANSACTION",
        *ERROR,
    ),
}
TABLES_80: Tables = {
    "replication_connection_configuration": (
        *_CONFIGURATION_57,
        "PUBLIC_KEY_PATH",
        "GET_PUBLIC_KEY",
        "NETWORK_NAMESPACE",
        "COMPRESSION_ALGORITHM",
        "ZSTD_COMPRESSION_LEVEL",
        "TLS_CIPHERSUITES",
        "SOURCE_CONNECTION_AUTO_FAILOVER",
        "GTID_ONLY",
    ),
    "replication_connection_status": (
        *_STATUS_57,
        *_transaction("LAST_QUEUED_TRANSACTION", "QUEUE", ended=True),
        *_transaction("QUEUEING_TRANSACTION", "QUEUE", ended=False),
    ),
    "replication_applier_configuration": (
        "CHANNEL_NAME",
        "DESIRED_DELAY",
        "PRIVILEGE_CHECKS_USER",
        "REQUIRE_ROW_FORMAT",
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE",
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_VALUE",
    ),
    "replication_applier_status": TABLES_57["replication_applier_status"],
    "replication_applier_status_by_coordinator": (
        *TABLES_57["replication_applier_status_by_coordinator"],
        *_transaction("LAST_PROCESSED_TRANSACTION", "BUFFER", ended=True),
        *_transaction("PROCESSING_TRANSACTION", "BUFFER", ended=False),
    ),
    "replication_applier_status_by_worker": (
        "CHANNEL_NAME",
        "WORKER_ID",
        "THREAD_ID",
        "SERVICE_STATE",
        *ERROR,
        *_transaction("LAST_APPLIED_TRANSACTION", "APPLY", ended=True),
        *_transaction("APPLYING_TRANSACTION", "APPLY", ended=False),
        *_retried("LAST_APPLIED_TRANSACTION"),
        *_retried("APPLYING_TRANSACTION"),
    ),
    "replication_applier_filters": (
        "CHANNEL_NAME",
        "FILTER_NAME",
        "FILTER_RULE",
        "CONFIGURED_BY",
        "ACTIVE_SINCE",
        "COUNTER",
    ),
}
TABLES: dict[str, Tables] = {
    "5.6": {},
    "5.7": TABLES_57,
    "8.0": TABLES_80,
    "8.4": TABLES_80,
    "9.7": TABLES_80,
    "mariadb": {},
}
"""Version -> table -> columns. MariaDB's tables of these names are others."""
FRACTION = {"5.7": 0}
"""Digits behind the second; 6 where nothing is said."""

Facts = dict[str, object]


def performance_schema(view: ReplicaView) -> dict[str, list[Row]]:
    """The tables of the view's version with their rows."""
    name = rules_for(view.version).name
    digits = FRACTION.get(name, 6)
    rows: dict[str, Callable[[ReplicaView, int], list[Facts]]] = {
        "replication_connection_configuration": _connection_configuration,
        "replication_connection_status": _connection_status,
        "replication_applier_configuration": _applier_configuration,
        "replication_applier_status": _applier_status,
        "replication_applier_status_by_coordinator": _by_coordinator,
        "replication_applier_status_by_worker": _by_worker,
        "replication_applier_filters": _nothing,
    }
    return {
        table: [
            {column: facts.get(column) for column in columns} for facts in rows[table](view, digits)
        ]
        for table, columns in TABLES[name].items()
    }


def timestamp(moment: float | None, digits: int = 6) -> str:
    """A TIMESTAMP column in UTC; the server's zero date for one that is not set."""
    if not moment:
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    microseconds = round(moment * 1_000_000)
    text = datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{microseconds % 1_000_000:06d}" if digits else text


def _state(thread: Thread) -> Facts:
    return {"SERVICE_STATE": thread.state, "THREAD_ID": None}


def _error(failure: ThreadFailure | None, digits: int) -> Facts:
    if failure is None:
        return {}
    return dict(
        zip(ERROR, (failure.number, failure.message, timestamp(failure.time, digits)), strict=True)
    )


def _monitored(prefix: str, work: str, record: Monitored | None) -> Facts:
    if record is None:
        return {}
    return {
        prefix: record.gtid,
        f"{prefix}_ORIGINAL_COMMIT_TIMESTAMP": timestamp(record.original_commit),
        f"{prefix}_IMMEDIATE_COMMIT_TIMESTAMP": timestamp(record.immediate_commit),
        f"{prefix}_START_{work}_TIMESTAMP": timestamp(record.start),
        f"{prefix}_END_{work}_TIMESTAMP": timestamp(record.end),
        f"{prefix}_RETRIES_COUNT": record.retries,
        f"{prefix}_LAST_TRANSIENT_ERROR_NUMBER": record.transient.number,
        f"{prefix}_LAST_TRANSIENT_ERROR_MESSAGE": record.transient.message,
        f"{prefix}_LAST_TRANSIENT_ERROR_TIMESTAMP": timestamp(record.transient.time),
    }


def _connection_configuration(view: ReplicaView, digits: int) -> list[Facts]:
    source = view.source
    if source is None:
        return [{"CHANNEL_NAME": view.channel}]
    return [
        {
            "CHANNEL_NAME": view.channel,
            "HOST": source.host,
            "PORT": source.port,
            "USER": source.user_name,
            "NETWORK_INTERFACE": source.bind,
            "AUTO_POSITION": str(int(source.enabled_auto_position)),
            "SSL_ALLOWED": _yes(source.enabled_ssl),
            "SSL_CA_FILE": source.ssl_ca,
            "SSL_CA_PATH": source.ssl_capath,
            "SSL_CERTIFICATE": source.ssl_cert,
            "SSL_CIPHER": source.ssl_cipher,
            "SSL_KEY": source.ssl_key,
            "SSL_VERIFY_SERVER_CERTIFICATE": _yes(source.ssl_verify_server_cert),
            "SSL_CRL_FILE": source.ssl_crl,
            "SSL_CRL_PATH": source.ssl_crlpath,
            "CONNECTION_RETRY_INTERVAL": source.connect_retry,
            "CONNECTION_RETRY_COUNT": source.retry_count,
            "HEARTBEAT_INTERVAL": source.heartbeat_period,
            "TLS_VERSION": source.tls_version,
            "PUBLIC_KEY_PATH": source.public_key_path,
            "GET_PUBLIC_KEY": _yes(source.get_public_key),
            "NETWORK_NAMESPACE": source.network_namespace,
            "COMPRESSION_ALGORITHM": source.compression_algorithm,
            "ZSTD_COMPRESSION_LEVEL": source.zstd_compression_level,
            "TLS_CIPHERSUITES": source.tls_ciphersuites,
            "SOURCE_CONNECTION_AUTO_FAILOVER": str(int(source.connection_auto_failover)),
            "GTID_ONLY": str(int(source.gtid_only)),
        }
    ]


def _connection_status(view: ReplicaView, digits: int) -> list[Facts]:
    receiver = view.receiver
    return [
        {
            "CHANNEL_NAME": view.channel,
            "GROUP_NAME": "",
            "SOURCE_UUID": None if view.source is None else view.source.uuid,
            "RECEIVED_TRANSACTION_SET": view.retrieved,
            **_state(receiver),
            **_error(receiver.failure, digits),
            **_monitored("LAST_QUEUED_TRANSACTION", "QUEUE", receiver.last),
            **_monitored("QUEUEING_TRANSACTION", "QUEUE", receiver.current),
        }
    ]


def _applier_configuration(view: ReplicaView, digits: int) -> list[Facts]:
    relay = view.relay
    if relay is None:
        return [{"CHANNEL_NAME": view.channel, "DESIRED_DELAY": view.delay}]
    user = relay.privilege_checks_username
    return [
        {
            "CHANNEL_NAME": view.channel,
            "DESIRED_DELAY": relay.sql_delay,
            "PRIVILEGE_CHECKS_USER": (
                None if user is None else f"'{user}'@'{relay.privilege_checks_hostname}'"
            ),
            "REQUIRE_ROW_FORMAT": _yes(relay.require_row_format),
            "REQUIRE_TABLE_PRIMARY_KEY_CHECK": relay.require_table_primary_key_check,
            "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE": (
                relay.assign_gtids_to_anonymous_transactions_type
            ),
            "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_VALUE": (
                relay.assign_gtids_to_anonymous_transactions_value or None
            ),
        }
    ]


def _applier_status(view: ReplicaView, digits: int) -> list[Facts]:
    return [
        {
            "CHANNEL_NAME": view.channel,
            "SERVICE_STATE": view.applier.state,
            "REMAINING_DELAY": view.remaining_delay,
        }
    ]


def _by_coordinator(view: ReplicaView, digits: int) -> list[Facts]:
    """No row without workers."""
    if not view.workers:
        return []
    coordinator = view.applier
    return [
        {
            "CHANNEL_NAME": view.channel,
            **_state(coordinator),
            **_error(coordinator.failure, digits),
            **_monitored("LAST_PROCESSED_TRANSACTION", "BUFFER", coordinator.last),
            **_monitored("PROCESSING_TRANSACTION", "BUFFER", coordinator.current),
        }
    ]


def _by_worker(view: ReplicaView, digits: int) -> list[Facts]:
    """The single applier is worker 0."""
    workers = enumerate(view.workers, start=1) if view.workers else [(0, view.applier)]
    return [
        {
            "CHANNEL_NAME": view.channel,
            "WORKER_ID": number,
            "LAST_SEEN_TRANSACTION": _last_seen(worker),
            **_state(worker),
            **_error(worker.failure, digits),
            **_monitored("LAST_APPLIED_TRANSACTION", "APPLY", worker.last),
            **_monitored("APPLYING_TRANSACTION", "APPLY", worker.current),
        }
        for number, worker in workers
    ]


def _last_seen(worker: Thread) -> str | None:
    """5.7: the transaction it is at, else the last one."""
    if worker.current is not None and worker.current.gtid:
        return worker.current.gtid
    return None if worker.last is None else worker.last.gtid


def _nothing(view: ReplicaView, digits: int) -> list[Facts]:
    """Filters are in no file and in no log."""
    return []


def _yes(value: bool) -> str:
    return "YES" if value else "NO"
