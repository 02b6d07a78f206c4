"""The three records of where a replica stands, as values.

They change by `dataclasses.replace`; `checkpoints.info_files` and `checkpoints.info_rows` bring
them to and from disk. What each field is called there, and which server has it, is the table in
`checkpoints.fields`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self, TypeVar

from checkpoints import bitmap
from checkpoints.fields import RELAY_LOG_FIELDS, SOURCE_FIELDS, WORKER_FIELDS, Fields
from checkpoints.position import Position


class Record(Protocol):
    """What the three have in common."""

    fields: ClassVar[Fields]

    @property
    def channel_name(self) -> str:
        """The replication channel; "" is the default one."""


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class RelayLogInfo:
    """How far the applier is: the end of the last committed group, in the relay log and in the
    source's log."""

    fields: ClassVar[Fields] = RELAY_LOG_FIELDS

    relay_log_name: str = ""
    relay_log_pos: int = 4
    source_log_name: str = ""
    source_log_pos: int = 0
    sql_delay: int = 0
    number_of_workers: int = 0
    """How many workers ran last, so that recovery knows whose records to read."""
    id: int = 1
    channel_name: str = ""
    privilege_checks_username: str | None = None
    privilege_checks_hostname: str | None = None
    require_row_format: bool = False
    require_table_primary_key_check: str = "STREAM"
    assign_gtids_to_anonymous_transactions_type: str = "OFF"
    assign_gtids_to_anonymous_transactions_value: str = ""

    @property
    def relay_position(self) -> Position:
        """In the relay log."""
        return Position(self.relay_log_name, self.relay_log_pos)

    @property
    def source_position(self) -> Position:
        """In the source's log."""
        return Position(self.source_log_name, self.source_log_pos)

    def at(self, relay: Position, source: Position) -> Self:
        """The record after the applier has moved on; both positions always move together."""
        return replace(
            self,
            relay_log_name=relay.file,
            relay_log_pos=relay.offset,
            source_log_name=source.file,
            source_log_pos=source.offset,
        )


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """How far the receiver is in the source's log, and how it connects."""

    fields: ClassVar[Fields] = SOURCE_FIELDS

    source_log_name: str = ""
    source_log_pos: int = 4
    host: str = ""
    user_name: str = ""
    user_password: str = field(default="", repr=False)
    port: int = 3306
    connect_retry: int = 60
    enabled_ssl: bool = False
    ssl_ca: str = ""
    ssl_capath: str = ""
    ssl_cert: str = ""
    ssl_cipher: str = ""
    ssl_key: str = ""
    ssl_verify_server_cert: bool = False
    heartbeat_period: float = 30.0
    """Half of replica_net_timeout, which is 60 seconds from 5.7 on and was an hour before."""
    bind: str = ""
    ignored_server_ids: tuple[int, ...] = ()
    uuid: str = ""
    retry_count: int = 86400
    """10 from 8.4 on."""
    ssl_crl: str = ""
    ssl_crlpath: str = ""
    enabled_auto_position: bool = False
    channel_name: str = ""
    tls_version: str = ""
    public_key_path: str = ""
    get_public_key: bool = False
    network_namespace: str = ""
    compression_algorithm: str = "uncompressed"
    zstd_compression_level: int = 3
    tls_ciphersuites: str | None = None
    connection_auto_failover: bool = False
    gtid_only: bool = False
    using_gtid: str = "No"
    """MASTER_USE_GTID of MariaDB: No, Slave_Pos or Current_Pos."""
    do_domain_ids: tuple[int, ...] = ()
    ignore_domain_ids: tuple[int, ...] = ()

    @property
    def asks_by_gtid(self) -> bool:
        """The source is asked for what is missing, not for a place in its log."""
        return self.enabled_auto_position or self.using_gtid != "No"

    @property
    def source_position(self) -> Position:
        """Up to where the source's log was received."""
        return Position(self.source_log_name, self.source_log_pos)

    def at(self, source: Position) -> Self:
        """The record after the receiver has moved on."""
        return replace(self, source_log_name=source.file, source_log_pos=source.offset)


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """How far one worker is: its last group, and which groups since the checkpoint it has executed.
    `id` counts from 1."""

    fields: ClassVar[Fields] = WORKER_FIELDS

    id: int = 1
    relay_log_name: str = ""
    relay_log_pos: int = 0
    source_log_name: str = ""
    source_log_pos: int = 0
    checkpoint_relay_log_name: str = ""
    checkpoint_relay_log_pos: int = 0
    checkpoint_source_log_name: str = ""
    checkpoint_source_log_pos: int = 0
    checkpoint_seqno: int = 0
    checkpoint_group_bitmap: bytes = bitmap.empty()
    channel_name: str = ""

    @property
    def checkpoint_group_size(self) -> int:
        """Bytes of the bitmap."""
        return len(self.checkpoint_group_bitmap)

    @property
    def relay_position(self) -> Position:
        """The end of its last group, in the relay log."""
        return Position(self.relay_log_name, self.relay_log_pos)

    @property
    def source_position(self) -> Position:
        """The end of its last group, in the source's log."""
        return Position(self.source_log_name, self.source_log_pos)

    @property
    def executed_groups(self) -> tuple[int, ...]:
        """The groups since the checkpoint that this worker has executed."""
        return tuple(bitmap.groups(self.checkpoint_group_bitmap))
