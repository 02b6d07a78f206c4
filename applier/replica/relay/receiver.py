"""The receiver: takes the source's events one by one, writes them into the relay log, and moves its
own position.

queue_event of sql/rpl_slave.cc (5.6, 5.7) and rpl_replica.cc (8.0 to 9.7). Not everything is
written: the source's own set of previous GTIDs, heartbeats, stop events, and events of servers that
are to be ignored are not. Where the position moves all the same, a rotate event of server id 0
tells the applier.
"""

from __future__ import annotations

from dataclasses import replace

from applier.binlog.event_bytes import (
    Head,
    as_artificial_format,
    event_of,
    has_checksum,
    head_of,
    rotate_target,
    with_checksum,
)
from applier.binlog.events import Heartbeat, parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import (
    CHECKSUM_LENGTH,
    GTID_TYPES,
    HEADER_LENGTH,
    EventFlag,
    EventType,
    FormatDescription,
    parse_format_description,
)
from applier.binlog.transactions import TransactionTracker
from applier.errors import ReplicationError
from applier.replica.relay.relay_log import RelayLogWriter
from checkpoints.gtid import GtidSet, MariadbGtidSet
from checkpoints.info import SourceInfo
from checkpoints.position import Position
from checkpoints.repository import Repository
from checkpoints.sync_rules import Occasion

_HEARTBEATS = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
_META = frozenset({EventType.FORMAT_DESCRIPTION, EventType.ROTATE})


class Receiver:
    """Writes what comes. `info` is what is in memory: how far it has received; `repository` keeps
    it as its rules say.

    `retrieved` grows with each transaction that is here as a whole. `source_id` is the server id of
    the source itself.
    """

    def __init__(
        self,
        relay_log: RelayLogWriter,
        info: SourceInfo,
        repository: Repository[SourceInfo],
        *,
        retrieved: GtidSet,
        source_id: int = 0,
    ) -> None:
        self.relay_log = relay_log
        self.configuration = relay_log.configuration
        self.info = info
        self.repository = repository
        self.retrieved = retrieved
        self.domains = MariadbGtidSet()
        """MariaDB's Gtid_IO_Pos."""
        self.source_id = source_id
        self.ignored_end: Position | None = None
        """The end of events that were passed over and of which the relay log says nothing yet."""
        self._format: FormatDescription | None = None
        self._format_data = b""
        self._tracker = TransactionTracker(unpacked=False)
        self._has_seen_gtid = False
        """Since it connected, with MASTER_USE_GTID (gtid_event_seen)."""
        self.last_gtid: str | None = None
        """The GTID that was received last, as long as the process knows it or could read it from
        the relay logs."""

    @property
    def position(self) -> Position:
        """How far the source's log is received."""
        return self.info.source_position

    @property
    def in_transaction(self) -> bool:
        """A transaction has begun and its end is not here."""
        return self._tracker.in_transaction

    def complete_gtids(self) -> GtidSet:
        """What need not be sent any more, as far as the receiver knows."""
        again = self.last_gtid if self.configuration.rules.refetches_last_gtid else None
        return self.retrieved.subtract(GtidSet(again)) if again else self.retrieved

    def connect(self, source_id: int, uuid: str) -> None:
        """The dump is about to begin anew."""
        self.source_id = source_id
        self._tracker = TransactionTracker(unpacked=False)
        self._has_seen_gtid = False
        self._format, self._format_data = None, b""
        if uuid not in ("", self.info.uuid) and not self.configuration.rules.by_domains:
            self.info = replace(self.info, uuid=uuid)
            self.repository.flush(self.info, Occasion.CHANGE)

    def queue(self, data: bytes) -> None:
        """One event as the source sent it. Raises ReplicationError where the receiver stops.

        Behind each, whatever became of it, the record is flushed, and its count goes on:
        handle_slave_io calls flush_master_info, also where the event itself has just forced it (a
        5.7.29 with sync_master_info=10 was seen to).
        """
        self._take_in(data, head_of(data))
        if self.info.using_gtid == "No":
            self.repository.flush(self.info, Occasion.EVENT)

    def _take_in(self, data: bytes, head: Head) -> None:
        if head.type in _HEARTBEATS:
            self._heartbeat(data)
            return
        if head.type == EventType.STOP:
            return
        own = (
            head.server_id == self.configuration.server_id
            and not self.configuration.replicate_same_server_id
        )
        if own or self._ignored(head):
            self._pass_over(data, head, own=own)
        elif head.type == EventType.GTID_LIST:
            self._write(data, head, moves=max(0, head.log_pos - self.info.source_log_pos))
        elif head.type == EventType.PREVIOUS_GTIDS:
            self._move(len(data))
            self._tell_position(Occasion.CHANGE)
        elif head.type == EventType.ROTATE:
            self._rotate(data, head)
        else:
            self._write(data, head)

    def stop(self) -> None:
        """STOP REPLICA: the relay log says how far events were passed over; the position is
        kept."""
        if self.ignored_end is not None:
            self.relay_log.append_position(self.ignored_end)
            self.ignored_end = None
        self.repository.flush(self.info, Occasion.STOP)

    def _write(self, data: bytes, head: Head, moves: int | None = None) -> None:
        moves = len(data) if moves is None else moves
        if head.type == EventType.FORMAT_DESCRIPTION:
            moves = len(data) if head.log_pos else 0
            self._format, self._format_data = parse_format_description(data[HEADER_LENGTH:]), data
            self.relay_log.checksum = self._format.checksum == 1
        self.relay_log.append(data)
        self._move(moves)
        self.ignored_end = None
        self._track(data, head)
        if self.relay_log.too_long() and (
            self.configuration.rules.splits_transactions or not self.in_transaction
        ):
            self.relay_log.rotate(
                as_artificial_format(self._format_data) if self._format_data else None
            )
        begun = self._tracker.current if head.type in GTID_TYPES else None
        if (
            begun is not None
            and isinstance(begun.identity, Gtid)
            and self.configuration.rules.splits_transactions
        ):
            self.retrieved = self.retrieved.union(GtidSet(begun.gtid or ""))

    def _rotate(self, data: bytes, head: Head) -> None:
        """The source goes on in another file, and the relay log with it; the event itself stands at
        the head of the new one."""
        file, position = rotate_target(data, CHECKSUM_LENGTH if has_checksum(data) else 0)
        if self._is_other_log(file, head):
            self.relay_log.append_own_format()
        self.info = self.info.at(Position(file, position))
        self.relay_log.rotate()
        self.relay_log.append(
            with_checksum(data, wanted=self.relay_log.checksum) if head.timestamp == 0 else data
        )
        self.ignored_end = None

    def _is_other_log(self, file: str, head: Head) -> bool:
        """The dump goes on in a log that no rotate event announced."""
        return (
            self.configuration.rules.marks_other_log
            and bool(head.flags & EventFlag.ARTIFICIAL)
            and not self._has_seen_gtid
            and self.info.source_log_name not in ("", file)
        )

    def _track(self, data: bytes, head: Head) -> None:
        """Notes the boundaries of transactions; a GTID is received when its transaction is."""
        if self._format is None or head.type in _META:
            return
        event = event_of(
            data,
            file=self.info.source_log_name,
            position=0,
            header_length=self._format.header_length,
            checksum_length=self._format.checksum_length,
        )
        if head.type in GTID_TYPES:
            self._has_seen_gtid = self.info.using_gtid != "No"
        boundary = self._tracker.feed(event, self._format)
        if boundary is None or boundary.ended is None or not boundary.ended.complete:
            return
        identity = boundary.ended.identity
        if isinstance(identity, Gtid) and identity.text is not None:
            self.retrieved = self.retrieved.union(GtidSet(identity.text))
            self.last_gtid = identity.text
        elif isinstance(identity, MariadbGtidEvent) and self.info.asks_by_gtid:
            self.domains.add(identity.gtid)

    def _heartbeat(self, data: bytes) -> None:
        """Says how far the source has read; with auto-position that is taken over (it skips what we
        have)."""
        if self._format is None:
            return
        event = event_of(data, file="", position=0, checksum_length=self._format.checksum_length)
        heartbeat: Heartbeat = parse(event, self._format)
        file, position = heartbeat.file, heartbeat.position
        if file != self.info.source_log_name or position < self.info.source_log_pos:
            raise ReplicationError(
                1623,
                "Unexpected source's heartbeat data: heartbeat is not compatible with local info;"
                f" the event's data: log_file_name {file} log_pos {position}",
                file=self.info.source_log_name,
                position=self.info.source_log_pos,
                hint=(
                    "the source's log is shorter than what was received of it: set the replica up"
                    " again"
                ),
            )
        if self.info.enabled_auto_position and self.info.source_log_pos < position:
            self.info = self.info.at(Position(file, position))
            self._tell_position(
                Occasion.CHANGE if self.configuration.rules.heartbeat_flushes else Occasion.EVENT
            )

    def _pass_over(self, data: bytes, head: Head, *, own: bool) -> None:
        if own and head.type in _META:
            return
        self._move(len(data))
        self.ignored_end = self.position

    def _ignored(self, head: Head) -> bool:
        ignored = self.configuration.ignore_server_ids or self.info.ignored_server_ids
        return head.server_id in ignored and (
            head.server_id != self.source_id or head.type not in _META
        )

    def _tell_position(self, occasion: Occasion) -> None:
        """write_rotate_to_master_pos_into_relay_log: the applier learns the position from the relay
        log."""
        self.relay_log.append_position(self.position)
        self.ignored_end = None
        self.repository.flush(self.info, occasion)

    def _move(self, size: int) -> None:
        self.info = self.info.at(
            Position(self.info.source_log_name, self.info.source_log_pos + size)
        )
