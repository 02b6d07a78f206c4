"""The live receiver: a dump of a real source into relay logs, over lost connections, restarts and
kills of either side.

    source --dump--> queue --> relay log --> master.info

An event is received when it is in the relay log, and where to go on is read from the relay logs;
master.info only tells others. `queue` has the rules of queue_event (sql/rpl_replica.cc 9.7): what
is written as it is, what is replaced by a rotate event that moves the position, and what is
dropped. Three things differ on purpose from a server (`applier.replica.relay.receiver` is like
one): a relay log is left when the source's log is, not a second time for the announcement of it; it
is synced then; and events with our own server id are kept.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from applier.binlog.event_bytes import (
    as_artificial_format,
    event_of,
    make_event,
    wrong_length,
)
from applier.binlog.events import parse
from applier.binlog.header import (
    HEADER,
    HEADER_LENGTH,
    Event,
    EventFlag,
    EventType,
    FormatDescription,
    an_event,
    parse_format_description,
)
from applier.binlog.reader import CRC_RESIDUE
from applier.binlog.transactions import MEMBER_TYPES
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.logs import logger
from applier.mysql.client.connection import NotReached, Server, ServerLost, connect
from applier.mysql.client.url import Endpoint
from applier.receive.applier_progress import failure_of
from applier.receive.dump_stream import Unpacker, compiled_unpacker
from applier.receive.protocol import (
    NON_BLOCKING,
    SEND_ANNOTATIONS,
    Dump,
    Request,
    SourceServer,
    dump_behind,
    dump_from,
    dump_without,
    greet,
    interrupt,
    register,
)
from applier.receive.receive_folder import Folder
from applier.receive.received import Received, ReceiveOptions, ReceiveWatch

_LOG = logger("receive")
HEARTBEAT_FAILURE, CHECKSUM_FAILURE, SOURCE_FATAL, NO_AUTO_POSITION = 1623, 1743, 1236, 1777
CANNOT_CONNECT, LOST = 2003, 2013
"""CR_CONN_HOST_ERROR, CR_SERVER_LOST: what Last_IO_Errno says of these."""
BUSY = frozenset({1040, 1203, 1226})
"""The source has no room for one more connection now."""
HEARTBEATS = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
FIRST_PAUSE_SECONDS = 1.0
_SLICE_SECONDS = 0.1
SINGLE_EVENTS = 100
"""The first ones go one by one: loading the kernel takes as long as some thousand of them."""
_TYPE = 4
"""The place of an event's type in its bytes."""
_FATAL_HINT = (
    "take a fresh dump, and receive from its position into a new folder; SHOW BINARY LOGS tells"
    " what the source still has"
)
_POSITION_HINT = (
    "give the position of an event: SHOW BINLOG EVENTS IN '{file}' on the source lists them;"
    " receive into a new folder"
)
_WRONG_POSITION = ("middle of event", "> file size", "impossible position", "bogus data")
"""Words of 1236 where the file is there and the position is not one of its events."""
_NO_FORMAT = FormatDescription(4, "", 0, HEADER_LENGTH, b"", 0)


class LiveReceiver:
    """One source, one folder of relay logs. `run` returns when it is stopped, or at the end of the
    log if that is wanted."""

    def __init__(
        self,
        endpoint: Endpoint,
        folder: Folder,
        options: ReceiveOptions,
        watch: ReceiveWatch | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self.options = options
        self.progress = folder.progress
        self.received = Received(self.progress.position)
        self._watch = watch or ReceiveWatch()
        self._stopped = False
        self._server: Server | None = None
        self.checksum_length = 0
        """Bytes behind each event of the stream, as negotiated and then as the source's format
        description says."""
        self._told = 0.0

    def stop(self) -> None:
        """From a signal handler or another thread: `run` returns behind the last whole event."""
        self._stopped = True
        server = self._server
        if server is not None:
            interrupt(server)

    def run(self) -> Received:
        """Receives. Raises BinlagError for what trying again does not mend; what was received is in
        the relay logs then."""
        for text in self.folder.notes:
            self._say(text, logging.WARNING)
        try:
            self._keep_receiving()
        except OSError as error:
            self.folder.abandon()
            hint = "make room, then start again: it goes on behind the last whole event"
            raise InputError(
                f"cannot write the relay log: {error.strerror}",
                code=Code.CANNOT_WRITE,
                file=str(Path(self.folder.path) / self.folder.writer.name),
                hint=hint,
            ) from None
        except BaseException as error:
            if isinstance(error, BinlagError):
                self._failed(error)
            self._end()
            raise
        self._end()
        return self.received

    def _end(self) -> None:
        self._tell(waiting=True)
        self.folder.close()
        progress, received = self.progress, self.received
        said = {
            "file": progress.file,
            "position": progress.offset,
            "events": received.events,
            "bytes": received.bytes,
        }
        _LOG.info("ended", extra=said)

    def _keep_receiving(self) -> None:
        """One connection after the other; the pause between them grows as long as nothing comes."""
        failures, pause = 0, FIRST_PAUSE_SECONDS
        while not self._stopped:
            before = self.progress.position
            error = self._try()
            if error is not None:
                self._failed(error)
            if error is None or self._stopped:
                return
            if self.progress.position != before:
                failures, pause = 0, FIRST_PAUSE_SECONDS
            failures += 1
            if failures > self.options.retries:
                raise error
            pause = min(pause, self.options.pause_seconds_max)
            said = {"number": self.received.failure.number, "tries": failures, "seconds": pause}
            self._say(f"{error.message}; trying again in {pause:g} s", logging.WARNING, **said)
            self._sleep(pause)
            pause *= 2

    def _failed(self, error: BinlagError) -> None:
        self.received.failure = failure_of(
            error, CANNOT_CONNECT if isinstance(error, NotReached) else LOST
        )

    def _try(self) -> BinlagError | None:
        """Receives over one connection. What another connection may mend is returned; None at the
        wanted end."""
        try:
            self._receive()
        except (ServerLost, NotReached) as error:
            if self._stopped or self.received.connections:
                return error
            raise
        except ReplicationError as error:
            if error.number in BUSY and self.received.connections:
                return error
            raise
        return (
            None
            if self.options.to_end
            else InputError(f"{self.endpoint} ended the dump", code=Code.DUMP_ENDED)
        )

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._stopped and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_SECONDS))

    # one connection

    def _receive(self) -> None:
        server = self._server = connect(self.endpoint)
        try:
            dump = self._begin(server)
            while not self._stopped:
                if dump.buffer.has_packet or dump.buffer.is_full:
                    self.take(dump)
                if dump.has_ended or self._stopped:
                    return
                waiting = not dump.has_more()
                if waiting or time.monotonic() - self._told > _SLICE_SECONDS:
                    self._tell(waiting=waiting)
                dump.fill()
        except ReplicationError as error:
            if error.number == SOURCE_FATAL:
                error.hint = self._fatal_hint(error.message)
                if self.progress.file:
                    error.locate(file=self.progress.file, position=self.progress.offset)
            raise
        finally:
            self._server, self.received.connected = None, False
            server.close()

    def _fatal_hint(self, message: str) -> str:
        """What to do where the source says no: another position of a file that it has, or another
        start."""
        if self.progress.file and any(words in message for words in _WRONG_POSITION):
            return _POSITION_HINT.format(file=self.progress.file)
        return _FATAL_HINT

    def take(self, dump: Dump) -> None:
        """All whole events that have come: plain transactions at once, others one by one."""
        while not self._stopped:
            self._leap(dump)
            raw = dump.event()
            if raw is not None:
                self.queue(raw)
            elif not self._copy(dump):
                return

    @cached_property
    def unpacker(self) -> Unpacker | None:
        """What takes plain transactions many at a time; None: all events go one by one."""
        return compiled_unpacker()

    def _leap(self, dump: Dump) -> None:
        """Writes the plain transactions that the buffer begins with."""
        progress, writer = self.progress, self.folder.writer
        if self.received.events < SINGLE_EVENTS or progress.format is None or not writer.name:
            return
        while self.unpacker is not None:
            unpacked = self.unpacker.take(
                dump.buffer,
                offset=progress.offset,
                trailer=self.checksum_length,
                state=progress.transaction_state,
                room=writer.max_size - writer.size,
            )
            if unpacked is None:
                return
            writer.append(unpacked.data, unpacked.events)
            progress.leap(unpacked)
            self.received.events += unpacked.events
            self.received.bytes += len(unpacked.data)
            self._split_if_long()

    def _split_if_long(self) -> None:
        if self.folder.writer.too_long() and not self.progress.in_transaction:
            self.folder.split(as_artificial_format(self.progress.format_event))

    def _begin(self, server: Server) -> Dump:
        options, own = self.options, self.folder.own
        source = greet(server, own, options.heartbeat_seconds)
        self.folder.check_source(source, auto_position=options.auto_position, note=self._say)
        register(server, own)
        request = self._request(server, source)
        dump = Dump.begin(server, request, 2 * options.heartbeat_seconds)
        self.received.source = source
        self.received.connections += 1
        self.received.connected = True
        self.checksum_length = 4 if source.checksum else 0
        self.folder.connected(
            self.endpoint,
            source,
            heartbeat_seconds=options.heartbeat_seconds,
            auto_position=options.auto_position,
        )
        self._say(
            f"connected to {self.endpoint}, {source.version}; receiving {self._place(source)}",
            connections=self.received.connections,
        )
        return dump

    def _say(self, text: str, level: int = logging.INFO, **said: object) -> None:
        """Reports progress, and logs it."""
        progress = self.progress
        _LOG.log(
            level,
            text,
            extra={
                "source": str(self.endpoint),
                "file": progress.file or None,
                "position": progress.offset,
                **said,
            },
        )
        self._watch.on_note(text)

    def _place(self, source: SourceServer) -> str:
        progress = self.progress
        if self.options.auto_position:
            gtids = progress.domains if source.is_mariadb else progress.gtids
            return f"all but {gtids}" if gtids else "all transactions"
        return f"from {progress.position}" if progress.file else "from the oldest log on"

    def _request(self, server: Server, source: SourceServer) -> Request:
        own, progress = self.folder.own, self.progress
        flags = (NON_BLOCKING if self.options.to_end else 0) | (
            SEND_ANNOTATIONS if source.is_mariadb else 0
        )
        if not self.options.auto_position:
            return dump_from(progress.position, own, flags=flags)
        if source.is_mariadb:
            return dump_behind(server, progress.domains, own, flags=flags)
        if source.gtid_mode == "OFF":
            raise ReplicationError(
                NO_AUTO_POSITION,
                f"{self.endpoint} has gtid_mode=OFF",
                hint="leave --auto-position out, or turn GTIDs on there",
            )
        return dump_without(progress.gtids, own, flags=flags)

    # one event

    def queue(self, raw: bytes) -> None:
        """Writes an event into the relay log, or what stands for it there. Raises BinlagError where
        the receiver must not go on."""
        event = event_of(
            raw,
            file=self.progress.file,
            position=self.progress.offset,
            checksum_length=self.checksum_length,
        )
        type_code = event.type
        if self._has_checksum(type_code, raw):
            _verify(zlib.crc32(raw), event)
        if type_code in HEARTBEATS:
            self.received.heartbeats += 1
            self._heartbeat(event)
            return
        self.received.events += 1
        self.received.bytes += len(raw)
        if type_code == EventType.ROTATE:
            self._rotate(event, raw)
        elif type_code == EventType.FORMAT_DESCRIPTION:
            self._format(event, raw)
        elif type_code == EventType.PREVIOUS_GTIDS:
            self.progress.take(event)
            self.folder.writer.append_position(self.progress.position)
        elif type_code != EventType.STOP:
            self._write(event, [raw])

    def _copy(self, dump: Dump) -> bool:
        """Writes an event of a transaction that does not fit into the buffer while it comes, and
        looks at its beginning only. False: there is none."""
        beginning = dump.beginning()
        if beginning is None or beginning[_TYPE] not in MEMBER_TYPES:
            return False
        progress, header = self.progress, HEADER.unpack_from(beginning)
        event = Event(
            progress.file, progress.offset, header, beginning, HEADER_LENGTH, len(beginning)
        )
        self._write(event, self._verified(event, dump.pieces()))
        self.received.events += 1
        self.received.bytes += event.length
        return True

    def _verified(self, event: Event, pieces: Iterable[memoryview]) -> Iterator[memoryview]:
        """The pieces of a long event, its last one only if all is right: what is whole in a relay
        log may be read by others at once."""
        missing, crc = event.length, 0
        for piece in pieces:
            missing -= len(piece)
            crc = zlib.crc32(piece, crc) if self.checksum_length else CRC_RESIDUE
            if missing < 0:
                break
            if missing == 0:
                _verify(crc, event)
            yield piece
        if missing:
            raise wrong_length(event.length - missing, event.length)

    def _has_checksum(self, type_code: int, raw: bytes) -> bool:
        """A format description says it of itself: that of a source without checksums has a wrong
        one where it is sent from the middle of a log."""
        if type_code == EventType.FORMAT_DESCRIPTION:
            return parse_format_description(raw[HEADER_LENGTH:]).checksum_length > 0
        return self.checksum_length > 0

    def _write(self, event: Event, pieces: Iterable[bytes | memoryview]) -> None:
        progress, writer = self.progress, self.folder.writer
        missing = progress.end_of(event) - progress.offset - event.length
        if (
            missing > 0
            and not self.options.auto_position
            and not event.flags & EventFlag.ARTIFICIAL
        ):
            raise InputError(
                f"the source has left out {missing} bytes before {an_event(event.name)} that"
                f" ends at {event.log_pos}",
                code=Code.SOURCE_GAP,
                file=progress.file,
                position=progress.offset,
                hint=(
                    "start the receiver again; if it stays so, the source's log has a hole: look at"
                    " it with mysqlbinlog there"
                ),
            )
        writer.append_pieces(pieces)
        progress.take(event)
        self._split_if_long()

    def _rotate(self, event: Event, raw: bytes) -> None:
        """The first event of each of the source's logs is one that is not in it: it says which log
        follows."""
        writer = self.folder.writer
        if event.flags & EventFlag.ARTIFICIAL:
            self.folder.begin_file()
            file, relay_log = (
                event.data[8:].decode(errors="replace"),
                writer.name.removeprefix("./"),
            )
            _LOG.info("the source's log begins", extra={"file": file, "relay_log": relay_log})
            checksum = writer.checksum  # of our own, until the source's format description comes
            if checksum != bool(self.checksum_length):
                what = {
                    "timestamp": event.timestamp,
                    "server_id": event.server_id,
                    "flags": event.flags,
                }
                raw = make_event(EventType.ROTATE, event.data, checksum=checksum, **what)
        writer.append(raw)
        self.progress.take(event)

    def _format(self, event: Event, raw: bytes) -> None:
        self.folder.writer.append(raw)
        self.progress.take(event)
        self.checksum_length = self.progress.checksum_length
        self.folder.writer.checksum = bool(self.checksum_length)

    def _heartbeat(self, event: Event) -> None:
        """The source is alive and says how far it is: further than we know when it left out what we
        have."""
        progress = self.progress
        beat = parse(event, progress.format or _NO_FORMAT)
        if (beat.file and beat.file != progress.file) or beat.position < progress.offset < 1 << 32:
            raise ReplicationError(
                HEARTBEAT_FAILURE,
                f"the source says that it is at {beat.file}:{beat.position}, but the relay logs"
                f" have {progress.position}",
                hint=(
                    "the source has lost the end of its log: take a fresh dump, and receive from"
                    " its position into a new folder"
                ),
            )
        if self.options.auto_position and beat.position > progress.offset:
            progress.offset = beat.position
            self.folder.writer.append_position(progress.position)

    def _tell(self, *, waiting: bool) -> None:
        """Keeps master.info, and reports progress."""
        self._told = time.monotonic()
        self.received.position, self.received.waiting = self.progress.position, waiting
        self.folder.keep(self.progress.position)
        self._watch.on_events(self.received)


def _verify(crc: int, event: Event) -> None:
    """Raises ReplicationError 1743 where this is not the CRC-32 of an event with its checksum."""
    if crc != CRC_RESIDUE:
        raise ReplicationError(
            CHECKSUM_FAILURE,
            f"the checksum of {an_event(event.name)} from the source is wrong",
            file=event.file,
            position=event.position,
            hint=(
                "start the receiver again; if it stays so, the source's log is damaged: look at"
                " it with mysqlbinlog there"
            ),
        )
