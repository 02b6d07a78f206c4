"""What a server start makes of what is on disk: relay_log_recovery, the GTIDs that were received, a
partial transaction at the end.

init_recovery, recover_relay_log and init_gtid_sets of sql/rpl_slave.cc and binlog.cc (5.6, 5.7),
rpl_replica.cc and rpl_relay_log_sanitizer.cc (8.0 to 9.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from applier.binlog.event_bytes import rotate_target
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid
from applier.binlog.header import GTID_TYPES, MAGIC, EventType
from applier.binlog.transactions import MEMBER_TYPES
from applier.errors import NOT_SUPPORTED, InputError, ReplicationError
from applier.replica.relay.relay_group import RelayGroup
from applier.replica.relay.relay_index import RelayLogIndex
from applier.replica.relay.relay_reader import (
    FIRST_EVENT,
    NO_MAGIC,
    START_AGAIN,
    RelayLogReader,
    relay_events,
)
from applier.replica.versions import ReplicaRules
from checkpoints.disk import Disk, digest, plain, read_file
from checkpoints.gtid import GtidSet
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.position import Position

UNINITIALIZED = "Replica failed to initialize relay log info structure from the repository"
FORBIDDEN_BY_GAPS = (
    "--relay-log-recovery cannot be executed when the replica was stopped with an error or killed"
    " in MTS mode; consider using RESET REPLICA or restart the server with --relay-log-recovery = 0"
    " followed by START REPLICA UNTIL SQL_AFTER_MTS_GAPS"
)
SINCE_GAPS = (
    "start with relay_log_recovery=0 and fill the gaps (UNTIL SQL_AFTER_MTS_GAPS), then restart"
    " with 1"
)
FILL_AGAIN = (
    "fix what stopped it and restart the server, which then fills the gaps, or give the relay logs"
    " up: RESET REPLICA"
)


READ_FAILED, NOT_INITIALIZED = 1594, 1872
WORDS_OF = {
    NOT_INITIALIZED: UNINITIALIZED,
    1593: "Error initializing relay log position: I/O error reading event at position 4",
    13117: "I/O error reading the header from the binary log",
}
"""Number -> what the server says of a head that cannot be read."""
UNREADABLE = {
    RelayLogInfo: (NOT_INITIALIZED, UNINITIALIZED),
    SourceInfo: (
        1201,
        (
            "Could not initialize connection metadata structure; more error messages can be found"
            " in the MySQL error log"
        ),
    ),
}
"""Record -> what START REPLICA says of one that cannot be read: ER_SLAVE_RLI_INIT_REPOSITORY,
ER_MASTER_INFO (5.7.29)."""


@contextmanager
def relay_logs_read(rules: ReplicaRules, *, starts: bool = False) -> Iterator[None]:
    """A relay log that cannot be read has the version's own error number; `starts` as START REPLICA
    finds it."""
    try:
        yield
    except ReplicationError as error:
        number = _number_of(error, rules, starts)
        if number == error.number:
            raise
        words = f"{WORDS_OF[number]}: {error.message}" if number in WORDS_OF else error.message
        raise ReplicationError(
            number, words, file=error.file, position=error.position, hint=START_AGAIN
        ) from None


def _number_of(error: ReplicationError, rules: ReplicaRules, starts: bool) -> int:
    if error.number != READ_FAILED:
        return error.number
    if NO_MAGIC in error.message:
        return rules.cut_head_error
    if error.position == 0:
        return rules.empty_relay_log_error if starts else rules.read_error
    if starts:
        return rules.unreadable_head_error
    return rules.cut_head_error if error.position == FIRST_EVENT else rules.read_error


def not_initialized(reason: str, hint: str, file: str | None = None) -> ReplicationError:
    """Error 1872 as START REPLICA gives it; the reason goes to a server's error log."""
    return ReplicationError(NOT_INITIALIZED, f"{UNINITIALIZED}: {reason}", file=file, hint=hint)


def check_target(disk: Disk, index: RelayLogIndex, name: str) -> None:
    """The applier's relay log must be there, and in the index. Raises ReplicationError."""
    if name not in index.names or plain(name) not in disk.names():
        raise not_initialized(
            "Could not find target log file mentioned in relay log info in the index file: "
            f"{name}; there are {', '.join(index.names)}",
            START_AGAIN,
            name.removeprefix("./") or None,
        )


def check_magic(disk: Disk, name: str) -> None:
    """A relay log that the server opens when it starts begins as a log does. Raises
    ReplicationError 1872 (5.7.29: of one that is empty, shorter than four bytes, or begins
    otherwise)."""
    if not (read_file(disk, name) or b"").startswith(MAGIC):
        raise not_initialized(f"{plain(name)}: {NO_MAGIC}", START_AGAIN, plain(name))


def check_all_there(disk: Disk, index: RelayLogIndex) -> None:
    """The server adds up the sizes of all that the index names (count_relay_log_space, 5.6 to 9.7
    and MariaDB; seen of 5.7.29). Raises ReplicationError."""
    there = disk.names()
    names = [name.removeprefix("./") for name in index.names]
    missing = next((name for name in names if name not in there), None)
    if missing is not None:
        raise not_initialized(
            f"log {missing} listed in the index, but failed to stat", START_AGAIN, missing
        )


@contextmanager
def nothing_initialized(hint: str = START_AGAIN) -> Iterator[None]:
    """What stops the applier while the server starts is in its error log; START REPLICA says 1872
    then (5.7.29, 9.7.4)."""
    try:
        yield
    except ReplicationError as error:
        if error.number == NOT_SUPPORTED:
            raise
        raise not_initialized(f"{error.label}: {error.message}", hint, error.file) from error


@contextmanager
def uninitialized(rules: ReplicaRules) -> Iterator[None]:
    """What fails while the server reads its records and relay logs has the version's own error
    number at START REPLICA."""
    try:
        yield
    except ReplicationError as error:
        number = rules.uninitialized_error
        if error.number != NOT_INITIALIZED or number == NOT_INITIALIZED:
            raise
        raise ReplicationError(number, error.message, file=error.file, hint=error.hint) from None


def received_gtids(disk: Disk, index: RelayLogIndex, rules: ReplicaRules) -> tuple[GtidSet, str]:
    """Retrieved_Gtid_Set from the relay logs: what each file says was there before, and what is in
    it as a whole; of 5.6, what begins in it (read_gtids_from_binlog has no boundary parser there;
    seen of 5.6.24). And the last of them.

    A file that cannot be read to its end counts as far as it can: the applier will meet the damage.
    """
    if index.known is None:
        return _scan_gtids(disk, index, rules)
    contents = tuple(digest(read_file(disk, name)) for name in index.names)
    found = index.known.received.get(contents)
    if found is None:
        found = index.known.received[contents] = _scan_gtids(disk, index, rules)
    retrieved, last = found
    return retrieved.union(GtidSet()), last


def _scan_gtids(disk: Disk, index: RelayLogIndex, rules: ReplicaRules) -> tuple[GtidSet, str]:
    retrieved, group, last = GtidSet(), RelayGroup(), ""
    for name in index.names:
        try:
            for relay in relay_events(disk, index, name):
                if relay.event.type == EventType.PREVIOUS_GTIDS:
                    retrieved = GtidSet.decode(relay.event.data)
                    continue
                if relay.event.type not in MEMBER_TYPES:
                    continue
                whole = group.add(relay)
                first = relay if rules.splits_transactions else whole[0] if whole else None
                if first is None or first.event.type not in GTID_TYPES:
                    continue
                gtid = parse(first.event, first.format)
                if isinstance(gtid, Gtid) and gtid.uuid is not None:
                    retrieved.add(gtid.uuid, gtid.number, gtid.tag)
                    last = gtid.text or ""
        except (ReplicationError, InputError):
            continue
    return retrieved, last


def first_source_position(disk: Disk, index: RelayLogIndex) -> Position | None:
    """Where the relay logs begin in the source's log: at their first rotate event that is the
    source's. Raises ReplicationError 1872 for one before it that does not begin as a log does
    (find_first_relay_log_with_rotate_from_master; seen of 5.6.24, 5.7.29 and 9.7.4)."""
    for name in index.names:
        check_magic(disk, name)
        try:
            for relay in relay_events(disk, index, name):
                if relay.event.type == EventType.ROTATE and not relay.own:
                    return Position(*rotate_target(relay.data, relay.format.checksum_length))
        except (ReplicationError, InputError) as error:
            raise not_initialized(error.message, START_AGAIN, plain(name)) from None
    return None


def recovered(info: RelayLogInfo, new_relay_log: str) -> tuple[RelayLogInfo, Position]:
    """recover_relay_log: what was received and not applied is dropped. The applier's record, and
    where the receiver goes on."""
    source = Position(info.source_log_name, max(FIRST_EVENT, info.source_log_pos))
    return info.at(Position(new_relay_log, FIRST_EVENT), info.source_position), source


@dataclass(frozen=True, slots=True)
class Sanitized:
    """What the end of the relay logs was cut to. `source` is where the receiver goes on; None: it
    keeps its position.

    Its file is "" where the relay log was left for its size or by FLUSH, so that no rotate event of
    the source is in it: the receiver goes on in the log that its record names.
    """

    file: str
    size: int
    source: Position | None


def sanitized(disk: Disk, index: RelayLogIndex, info: RelayLogInfo, source: SourceInfo) -> Position:
    """Cuts the relay logs behind their last boundary; returns where the receiver goes on.

    Where they tell no place in the source's log, that is where the applier is, but for relay logs
    that cannot be opened (Relay_log_sanitizer::update_source_position; seen of 9.7.4).
    """
    there = disk.names()
    if index.names and plain(index.names[-1]) not in there:
        _leave_out_missing(disk, index)
        return source.source_position
    found = _last_boundary(disk, index)
    if found is not None:
        _cut_behind(found, disk, index)
        at = found.source or info.source_position
    elif info.source_log_name and all(_opens(disk, index, name) for name in index.names):
        at = Position(info.source_log_name, max(FIRST_EVENT, info.source_log_pos))
    else:
        at = source.source_position
    named = at if at.file else Position(source.source_log_name, at.offset)
    return named if named.file else source.source_position


def _leave_out_missing(disk: Disk, index: RelayLogIndex) -> None:
    """Where the newest relay logs are gone, the index ends at the last one with a boundary, and
    nothing else is looked over (Log_sanitizer::process_logs; seen of 9.7.4)."""
    there = disk.names()
    for name in reversed(index.names):
        if plain(name) in there and _last_boundary_of(disk, index, name) is not None:
            index.remove_after(name)
            return


def _opens(disk: Disk, index: RelayLogIndex, name: str) -> bool:
    try:
        RelayLogReader(disk, index).seek(Position(name, FIRST_EVENT))
    except (ReplicationError, InputError):
        return False
    return True


def _last_boundary(disk: Disk, index: RelayLogIndex) -> Sanitized | None:
    """The last place in the relay logs where no transaction is open, looked for from the newest
    file on; None when there is none.

    Where a file begins inside a transaction, it tells nothing before a rotate event of the source
    or the first end of a group, XA PREPARE excepted (process_xa_prepare_event). One that cannot be
    opened ends the search, and nothing is cut ("Skipping log sanitization", seen of 9.7.4).
    """
    for name in reversed(index.names):
        if not _opens(disk, index, name):
            return None
        found = _last_boundary_of(disk, index, name)
        if found is not None:
            return found
    return None


def _cut_behind(found: Sanitized, disk: Disk, index: RelayLogIndex) -> None:
    """Newer relay logs go, whatever they hold, and what is open at the end of this one."""
    index.remove_after(found.file)
    file = disk.open(found.file)
    try:
        if file.size() > found.size:
            file.truncate(found.size)
    finally:
        file.close()


def _last_boundary_of(disk: Disk, index: RelayLogIndex, name: str) -> Sanitized | None:
    group = RelayGroup()
    source: Position | None = None
    file, found = "", None
    try:
        for relay in relay_events(disk, index, name):
            if relay.event.type == EventType.ROTATE and not relay.own and not group.is_open:
                source = Position(*rotate_target(relay.data, relay.format.checksum_length))
                file = source.file
                found = Sanitized(name, relay.end.offset, source)
            elif (
                relay.event.type in MEMBER_TYPES
                and group.add(relay) is not None
                and (found is not None or relay.event.type != EventType.XA_PREPARE)
            ):
                source = Position(file, relay.event.log_pos) if relay.event.log_pos else source
                found = Sanitized(name, relay.end.offset, source)
            elif found is not None and not group.is_open:
                found = Sanitized(name, relay.end.offset, source)
    except (ReplicationError, InputError):
        pass
    return found
