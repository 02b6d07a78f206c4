"""What the tests of the live receiver share: relay logs held against the log they came from, and a
receiver that is fed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from zlib import crc32

from applier.binlog.follow import IndexedLogs
from applier.binlog.header import Event, EventFlag, EventType
from applier.binlog.reader import CRC_RESIDUE, LogReader
from applier.binlog.transactions import group
from applier.mysql.client.url import Endpoint
from applier.receive.receive import LiveReceiver
from applier.receive.receive_folder import Folder, Start
from applier.receive.received import ReceiveOptions
from applier.replica.source import BinlogFiles
from checkpoints.position import Position

NOT_RECEIVED = frozenset({EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.STOP})
"""What a receiver writes otherwise, or not at all."""


def _raw(event: Event) -> bytes:
    start = event.position
    return bytes(event.buffer[start : start + event.length])


def _stored(paths: Sequence[str | Path]) -> Iterator[Event]:
    for event in LogReader(paths):
        if event.inner_index < 0 and event.type == event.stored_type:
            yield event


def source_events(paths: Sequence[Path], start: Position | None = None) -> list[bytes]:
    """The events of a source's log that a replica gets, byte for byte."""
    names = [path.name for path in paths]
    first = names.index(start.file) if start is not None else 0
    found = []
    for event in _stored(paths[first:]):
        behind = start is None or event.file != start.file or event.position >= start.offset
        if behind and event.type not in NOT_RECEIVED:
            found.append(_raw(event))
    return found


def relay_events(folder: Path) -> list[bytes]:
    """The events of relay logs that are the source's own."""
    found = []
    for event in _stored(IndexedLogs(folder)):
        own = event.flags & (EventFlag.RELAY_LOG | EventFlag.ARTIFICIAL) or event.server_id == 0
        if not own and event.type not in NOT_RECEIVED:
            found.append(_raw(event))
    return found


def transactions(paths: Sequence[str | Path]) -> list[str | None]:
    """The GTIDs of the transactions that are there to their end, in order."""
    return [transaction.gtid for transaction in group(LogReader(paths)) if transaction.complete]


class Offline:
    """A receiver without a network: events of binary log files, and the end of the process at any
    moment."""

    def __init__(
        self,
        folder: Path,
        logs: Sequence[Path],
        *,
        auto_position: bool = False,
        max_bytes: int = 1 << 30,
    ) -> None:
        self.path = folder
        self.source = BinlogFiles.read(list(logs))
        self.auto_position = auto_position
        self._start = Start(max_relay_log_bytes=max_bytes)

    def connect(self) -> tuple[LiveReceiver, Iterator[bytes]]:
        """Opens the folder as a start of the program does, and begins a dump where it says."""
        folder = Folder(self.path, self._start, auto_position=self.auto_position)
        receiver = LiveReceiver(
            Endpoint(), folder, ReceiveOptions(auto_position=self.auto_position)
        )
        progress = folder.progress
        dump = (
            self.source.dump_gtids(progress.gtids)
            if self.auto_position
            else self.source.dump(progress.file, progress.offset)
        )
        return receiver, takewhile(bool, dump)  # b"": nothing more for now

    def receive(self, events: int | None = None, torn_bytes: int = 0) -> int:
        """Takes so many events (None: all), and so many bytes of the next one; then the process is
        gone. Returns how many came."""
        receiver, dump = self.connect()
        count = 0
        try:
            for raw in dump:
                if count == events:
                    self._tear(receiver, raw[: min(torn_bytes, len(raw) - 1)])
                    break
                receiver.checksum_length = receiver.checksum_length or self._negotiated(raw)
                receiver.queue(raw)
                count += 1
        finally:
            receiver.folder.abandon()
        return count

    def _negotiated(self, raw: bytes) -> int:
        """As the source would say: a rotate event of its dump has a checksum if its log has."""
        return 4 if raw[4] == EventType.ROTATE and crc32(raw) == CRC_RESIDUE else 0

    def _tear(self, receiver: LiveReceiver, part: bytes) -> None:
        name = receiver.folder.writer.name
        if name and part:
            with (self.path / name).open("ab") as file:
                file.write(part)
