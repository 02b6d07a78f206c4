"""What the replica of each server version does its own way: one row per version.

Relay logs of real 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18 gave the format descriptions and the
heads; the rest is sql/rpl_slave.cc, rpl_rli.cc and binlog.cc (5.6, 5.7), rpl_replica.cc, rpl_rli.cc
and rpl_relay_log_sanitizer.cc (8.0 to 9.7), slave.cc, rpl_mi.cc, rpl_rli.cc and sql_repl.cc
(MariaDB 10.11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from applier.server_versions import asked_rules
from lookup.versions import MARIADB

_LENGTHS_56: Final = bytes.fromhex(
    "380d0008001200040404041200005c00041a08000000080808020000000a0a0a191900"
)
_LENGTHS_57: Final = bytes.fromhex(
    "380d0008001200040404041200005f00041a08000000080808020000000a0a0a2a2a00123400"
)
_LENGTHS_80: Final = bytes.fromhex(
    "000d0008000000000400040000006200041a08000000080808020000000a0a0a2a2a001234000a2800"
)
_LENGTHS_MARIADB: Final = (
    bytes.fromhex(
        "380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a"
    )
    + bytes(119)
    + bytes.fromhex("041304000d0808080a0a0a")
)
"""Its own event types begin with 160."""
_LENGTHS_84: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)


@dataclass(frozen=True, slots=True)
class ReplicaRules:
    """A server version as a replica."""

    name: str
    server_version: str
    """What its own format description says when nobody names a version."""
    post_header_lengths: bytes
    previous_gtids: bool
    """Relay logs say which GTIDs were received before even when there are none (5.6: only with
    gtid_mode=ON)."""
    previous_gtids_at_start: bool
    """So does the one that a server start begins (5.6: never, though its CHANGE MASTER and its
    receiver write them)."""
    previous_gtids_flags: int
    """RELAY_LOG, and IGNORABLE from 5.7 on."""
    rotates_know_their_place: bool
    """A rotate event that stands for what was not written has its end in the relay log as log_pos;
    0 from 8.0 on."""
    splits_transactions: bool
    """max_relay_log_size is obeyed inside a transaction, too (5.6 has no boundary parser), and a
    GTID counts as received as soon as its event is."""
    gaps_forbid_recovery: bool
    """relay_log_recovery=1 refuses to start while the workers left gaps (5.6: error 1872); later
    versions fill them first."""
    gaps_matter_to_recovery: bool
    """relay_log_recovery=1 looks for gaps even with GTID auto-position, where the source sends
    again what is missing."""
    gaps_matter_to_start: bool
    """So does START REPLICA without relay_log_recovery."""
    heartbeat_flushes: bool
    """A position taken from a heartbeat is forced into the receiver's record."""
    rotate_flushes: bool
    """A rotate event of the source forces the applier's record
    (Rotate_log_event::do_update_pos)."""
    purges_inside_groups: bool
    """Applied relay logs go at the end of a file even where a group goes on in the next one."""
    refetches_last_gtid: bool
    """The GTID received last is asked for again with auto-position: its transaction may not be
    whole (5.6)."""
    reset_keeps_connection: bool
    """RESET REPLICA leaves the receiver's record, without a position; up to 5.7 it goes like the
    others."""
    recovery_forgets_workers: bool
    """Where it does not look for them, it records that there were no workers (5.7.29 with
    auto-position)."""
    heartbeat_period_seconds: float
    """What CHANGE REPLICATION SOURCE records when nobody names one: half of slave_net_timeout, 3600
    s up to 5.6, 60 s later."""
    info_repository: str
    """The default of relay_log_info_repository and master_info_repository."""
    sanitizes: bool
    """A partial transaction at the end of the relay logs is cut off at the start (8.4 on, without
    relay_log_recovery)."""
    atomic_ddl: bool
    """DDL commits together with the position."""
    xa_prepare_is_durable: bool
    """XA PREPARE waits for the redo log. 5.7 writes its own binary log first and does not wait:
    kill -9 right behind it leaves the GTID and no prepared transaction (5.7.29)."""
    workers_finish_queues: bool
    """Where the coordinator cannot read on between two groups, workers execute all that they were
    given, and inside of a group nothing more (5.6.24). Later versions finish the groups that are
    begun, and those before them (set_max_updated_index_on_stop, 5.7; seen of 5.7.29)."""
    read_error: int
    """The applier comes to an event that it cannot read (1594; from 8.0 on errors that only logs
    show have numbers of their own: 13121, ER_SERVER_REPLICA_RELAY_LOG_READ_FAILURE, seen of
    9.7.4)."""
    empty_relay_log_error: int
    """START REPLICA on a relay log of zero bytes (5.7.29: 1872, ER_SLAVE_RLI_INIT_REPOSITORY;
    9.7.4: 13117)."""
    cut_head_error: int
    """A relay log that is come to ends inside its format description, or does not begin as a log
    does (9.7.4: 13117)."""
    unreadable_head_error: int
    """START REPLICA goes to a place inside a relay log, and of the events at its head one cannot be
    read (init_relay_log_pos; 5.7.29: 1593, ER_SLAVE_FATAL_ERROR; 9.7.4: 13117)."""

    opens_relay_log: bool = False
    """The server opens the applier's relay log when it starts, and looks for its first four bytes
    (init_relay_log_pos, up to 5.7 and in MariaDB; seen of 5.7.29 and 10.11.18). Later the applier's
    thread opens it, behind the search for gaps."""
    uninitialized_error: int = 1872
    """START REPLICA where the server could not read its records and relay logs when it started
    (MariaDB: 1201, ER_MASTER_INFO)."""
    reset_needs_records: bool = False
    """Where the server could not read records or relay logs, RESET REPLICA leaves them as they are,
    and CHANGE REPLICATION SOURCE TO fails, too (seen of 5.6.24)."""
    normalizes_names: bool = True
    """A relay log that the index or a record names without "./" is the same file
    (normalize_binlog_name; seen of 5.7.29 and 9.7.4, not of 5.6.24)."""
    by_domains: bool = False
    """MariaDB: what is applied is the last GTID of each domain, in mysql.gtid_slave_pos, whatever
    MASTER_USE_GTID says; there is no gtid_mode, and no transaction is passed over for its GTID.
    With MASTER_USE_GTID, START REPLICA deletes the relay logs and asks for all that is not applied;
    the records are not written for each event and each group (start_slave_threads, handle_slave_io
    and stmt_done)."""
    flushes_between_files: bool = False
    """The applier's record is written where it goes on in the next relay log, without
    relay_log_purge, too (next_event)."""
    places_at_start: bool = False
    """A server start gives an applier without a record its place; otherwise START REPLICA does."""
    start_flushes: bool = False
    """A server start writes both records again (init_master_info of MariaDB)."""
    head_ends_at_gtids: bool = False
    """START REPLICA inside a relay log looks at its head up to the first event that is neither a
    format description nor a rotate event, and misses the source's format description behind the
    event of earlier GTIDs: what a source without checksums sent is 1594 (seen of 5.6.24)."""
    marks_other_log: bool = False
    """Where a dump begins in another log than the receiver was in, a format description of the
    replica's own, with the flag of an open file, ends the relay log: the source may have crashed
    (queue_event of MariaDB)."""


_R56: Final = ReplicaRules(
    name="5.6",
    server_version="5.6.24-log",
    post_header_lengths=_LENGTHS_56,
    previous_gtids=False,
    previous_gtids_at_start=False,
    previous_gtids_flags=0x40,
    rotates_know_their_place=True,
    splits_transactions=True,
    gaps_forbid_recovery=True,
    gaps_matter_to_recovery=True,
    gaps_matter_to_start=True,
    heartbeat_flushes=True,
    rotate_flushes=False,
    purges_inside_groups=True,
    refetches_last_gtid=True,
    reset_keeps_connection=False,
    recovery_forgets_workers=False,
    heartbeat_period_seconds=1800.0,
    info_repository="FILE",
    sanitizes=False,
    atomic_ddl=False,
    xa_prepare_is_durable=True,
    workers_finish_queues=True,
    read_error=1594,
    empty_relay_log_error=1872,
    cut_head_error=1594,
    unreadable_head_error=1593,
    opens_relay_log=True,
    head_ends_at_gtids=True,
    normalizes_names=False,
    reset_needs_records=True,
)
_R57: Final = replace(
    _R56,
    name="5.7",
    head_ends_at_gtids=False,
    normalizes_names=True,
    reset_needs_records=False,
    server_version="5.7.29-log",
    post_header_lengths=_LENGTHS_57,
    previous_gtids=True,
    previous_gtids_at_start=True,
    previous_gtids_flags=0xC0,
    splits_transactions=False,
    gaps_forbid_recovery=False,
    gaps_matter_to_recovery=False,
    heartbeat_flushes=False,
    refetches_last_gtid=False,
    recovery_forgets_workers=True,
    xa_prepare_is_durable=False,
    workers_finish_queues=False,
    heartbeat_period_seconds=30.0,
)
_R80: Final = replace(
    _R57,
    name="8.0",
    server_version="8.0.46",
    post_header_lengths=_LENGTHS_80,
    rotates_know_their_place=False,
    gaps_matter_to_start=False,
    rotate_flushes=True,
    reset_keeps_connection=True,
    purges_inside_groups=False,
    recovery_forgets_workers=False,
    info_repository="TABLE",
    atomic_ddl=True,
    xa_prepare_is_durable=True,
    read_error=13121,
    empty_relay_log_error=13117,
    cut_head_error=13117,
    unreadable_head_error=13117,
    opens_relay_log=False,
)
_R84: Final = replace(
    _R80, name="8.4", server_version="8.4.9", post_header_lengths=_LENGTHS_84, sanitizes=True
)
_R97: Final = replace(_R84, name="9.7", server_version="9.7.4")
_MARIADB: Final = replace(
    _R56,
    name=MARIADB,
    head_ends_at_gtids=False,
    reset_needs_records=False,
    normalizes_names=False,
    server_version="10.11.18-MariaDB-log",
    post_header_lengths=_LENGTHS_MARIADB,
    gaps_forbid_recovery=False,
    gaps_matter_to_recovery=False,
    heartbeat_flushes=False,
    rotate_flushes=True,
    refetches_last_gtid=False,
    heartbeat_period_seconds=30.0,
    uninitialized_error=1201,
    opens_relay_log=True,
    by_domains=True,
    flushes_between_files=True,
    places_at_start=True,
    start_flushes=True,
    marks_other_log=True,
)
VERSIONS: Final[dict[str, ReplicaRules]] = {
    rules.name: rules for rules in (_R56, _R57, _R80, _R84, _R97, _MARIADB)
}
"""8.4's event types are 9.7's: its source (libs/mysql/binlog/event) has version 1 rows events
obsolete, too."""


def replica_rules(server: str) -> ReplicaRules:
    """The rules of a version such as 5.7, 8.0.46, 9.7 or mariadb. Raises UsageError for one that is
    not known."""
    return VERSIONS[asked_rules(server, offered=VERSIONS).name]
