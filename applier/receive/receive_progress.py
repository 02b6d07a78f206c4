"""Where a receiver is: the place in the source's log behind the last event it has, and the
transactions that it has whole.

The same bookkeeping serves the live stream and the relay logs: after a crash the relay logs are
read again, and what they say is where the receiver goes on. Nothing else needs to be true for that
no event is lost or doubled: an event is received when it is in the relay log.
"""

from __future__ import annotations

from uuid import UUID

from applier.binlog.event_bytes import event_of
from applier.binlog.events import parse
from applier.binlog.gtid_events import Gtid, MariadbGtidEvent
from applier.binlog.header import (
    HEADER_LENGTH,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    an_event,
    parse_format_description,
)
from applier.binlog.transactions import QUIET_TYPES, Transaction, TransactionTracker
from applier.error_codes import Code
from applier.errors import InputError
from applier.receive.dump_stream import Unpacked
from checkpoints.gtid import GtidSet, MariadbGtid, MariadbGtidSet
from checkpoints.position import Position

_WRAP = 1 << 32
"""log_pos has four bytes: it begins anew in a log of more than 4 GiB."""
OUT_OF_STEP_HINT = (
    "start again in a new folder; if it happens again, keep both logs: this is an error in binlag"
    " or in the source"
)


class Progress:
    """`take` every event in order. `position` is in the source's log; "" before the first rotate
    event has named a log."""

    def __init__(self) -> None:
        self.file = ""
        self.offset = 4
        self.gtids = GtidSet()
        """MySQL's: the transactions received to their end, and what the first relay log says was
        there before."""
        self.domains = MariadbGtidSet()
        """MariaDB's: the last transaction of each domain."""
        self.format: FormatDescription | None = None
        """The source's own."""
        self.format_event = b""
        self.source_server_id = 0
        self.knows_domains = False
        """The source has listed all domains since the beginning."""
        self.first: Transaction | None = None
        """The first group of events; `begin` is False when it began before the first event that was
        taken."""
        self._tracker = TransactionTracker(unpacked=False)

    @property
    def position(self) -> Position:
        """Up to where all was taken."""
        return Position(self.file, self.offset)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._tracker.in_transaction

    @property
    def checksum_length(self) -> int:
        """Bytes behind each event."""
        return self.format.checksum_length if self.format is not None else 0

    def take(self, event: Event) -> None:
        """Moves behind an event. Raises InputError when its own position says that something
        between is missing."""
        type_code = event.type
        if type_code == EventType.ROTATE:
            target = parse(event, self._format())
            self.file, self.offset = target.file, target.position
            return
        if type_code == EventType.FORMAT_DESCRIPTION:
            self._new_format(event)
            return
        self.offset = self.end_of(event)
        if type_code == EventType.GTID_LIST:
            self._listed(event)
        elif (
            not (type_code in QUIET_TYPES and self._tracker.current is not None)
            or type_code == EventType.TRANSACTION_PAYLOAD
        ):
            self._group(event)

    @property
    def transaction_state(self) -> int:
        """That of the tracker."""
        return self._tracker.state

    def leap(self, unpacked: Unpacked) -> None:
        """Moves behind many events at once, which follow each other without a gap."""
        if unpacked.ended:
            ended = self._tracker.finish()
            assert ended is not None
            self._received(ended)
        for uuid, first, last in unpacked.runs:
            self.gtids.add_interval((str(UUID(bytes=uuid)), ""), first, last + 1)
        for domain, server_id, number in unpacked.domains:
            self.domains.add(MariadbGtid(domain, server_id, number))
        for raw in unpacked.opening:
            self._tracker.feed(
                event_of(
                    raw, file=self.file, position=self.offset, checksum_length=self.checksum_length
                ),
                self._format(),
            )
        self.offset = unpacked.offset

    def end_of(self, event: Event) -> int:
        """Where the source's log goes on behind an event. What the source leaves out (GTIDs that we
        have) is jumped over.

        Raises InputError for an event that ends before the one before it.
        """
        expected, log_pos = self.offset + event.length, event.log_pos
        if log_pos == expected % _WRAP and log_pos:
            return expected
        if log_pos == 0:
            return self.offset
        if event.flags & EventFlag.ARTIFICIAL:
            expected = self.offset
        missing = (log_pos - expected) % _WRAP
        if missing > _WRAP // 2:
            raise InputError(
                f"{an_event(event.name)} of the source ends at {log_pos}, before the expected"
                f" {expected}",
                code=Code.SOURCE_GAP,
                file=self.file,
                position=self.offset,
                hint=OUT_OF_STEP_HINT,
            )
        return expected + missing

    def _format(self) -> FormatDescription:
        return self.format or FormatDescription(4, "", 0, HEADER_LENGTH, bytes([0, 13, 0, 8]), 0)

    def _new_format(self, event: Event) -> None:
        start = event.body - HEADER_LENGTH
        raw = bytes(event.buffer[start : start + event.length])
        format_description = parse_format_description(raw[HEADER_LENGTH:])
        artificial = event.log_pos == 0 or event.flags & EventFlag.ARTIFICIAL
        if not artificial:
            self.offset += event.length
        self.format, self.format_event, self.source_server_id = (
            format_description,
            raw,
            event.server_id,
        )

    def _listed(self, event: Event) -> None:
        for gtid in parse(event, self._format()).gtids:
            if gtid not in self.domains:
                self.domains.add(gtid)
        self.knows_domains = True

    def _group(self, event: Event) -> None:
        boundary = self._tracker.feed(event, self._format())
        if boundary is not None and self.first is None:
            self.first = boundary.began
        if boundary is not None and boundary.ended is not None and boundary.ended.complete:
            self._received(boundary.ended)

    def _received(self, transaction: Transaction) -> None:
        identity = transaction.identity
        if isinstance(identity, Gtid) and identity.uuid is not None:
            self.gtids.add(identity.uuid, identity.number, identity.tag)
        elif isinstance(identity, MariadbGtidEvent):
            self.domains.add(identity.gtid)
