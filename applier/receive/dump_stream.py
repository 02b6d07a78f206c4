"""The bytes of a dump as they come over the connection, and the packets in them.

One buffer holds what has come and was not taken yet. Plain transactions leave it many events at a
time, through a compiled kernel where Numba is installed; what remains leaves it packet by packet,
and a packet that does not fit into it in pieces.
"""

from __future__ import annotations

import ctypes
import select
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.transactions import QUIET_TYPES

BUFFER_BYTES = 1 << 20
PACKET_HEAD = 4
LARGEST_PACKET = 0xFFFFFF
"""A packet of this length goes on in the next one."""
_RUNS = 1024
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError)
"""Nothing has come."""


class PacketBuffer:
    """What has come over a socket: [start, end) of `memory` is not taken yet. It grows where nobody
    takes the pieces of a packet that does not fit."""

    def __init__(self, size: int = BUFFER_BYTES) -> None:
        self.memory = bytearray(size)
        self.start = self.end = 0

    def receive(self, receive_into: Callable[[memoryview], int]) -> int:
        """Takes what the socket has until half of the memory is full; 0 at the socket's end.

        Raises the socket's OSError where it comes before the first byte.
        """
        with memoryview(self.memory) as view:
            if self.start:
                left = self.end - self.start
                view[:left] = view[self.start : self.end]
                self.start, self.end = 0, left
        if self.end == len(self.memory):
            self.memory += bytes(len(self.memory))
        before, enough = self.end, max(len(self.memory) // 2, self.end + 1)
        with memoryview(self.memory) as view:
            try:
                while self.end < enough and (got := receive_into(view[self.end :])):
                    self.end += got
            except OSError:  # nothing more for now, or the connection is gone: so it is next time
                if self.end == before:
                    raise
        return self.end - before

    @property
    def has_packet(self) -> bool:
        """Whether the next packet, or the first part of a long one, has come whole."""
        begin = self.start + PACKET_HEAD
        length = int.from_bytes(self.memory[self.start : begin - 1], "little")
        return begin + length <= self.end

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more before something is taken."""
        return self.end - self.start == len(self.memory)

    def pieces(self, fill: Callable[[], object]) -> Iterator[memoryview]:
        """Takes the next packet's content as it comes, with that of those in which it goes on.
        `fill` waits for more; a piece is gone when the next one is asked for."""
        length = LARGEST_PACKET
        while length == LARGEST_PACKET:
            while self.end - self.start < PACKET_HEAD:
                fill()
            length = int.from_bytes(self.memory[self.start : self.start + 3], "little")
            self.start += PACKET_HEAD
            left = length
            while left:
                if self.start == self.end:
                    fill()
                begin = self.start
                self.start = min(self.end, begin + left)
                left -= self.start - begin
                with memoryview(self.memory) as view, view[begin : self.start] as piece:
                    yield piece

    def packet(self) -> tuple[int, bytes] | None:
        """Takes the next packet's content, joined where it goes on in others: its first byte, and
        the others. None: it has not come to its end.
        """
        at, length = self.start, LARGEST_PACKET
        parts: list[tuple[int, int]] = []
        while length == LARGEST_PACKET:
            if at + PACKET_HEAD > self.end:
                return None
            length = int.from_bytes(self.memory[at : at + 3], "little")
            parts.append((at + PACKET_HEAD, at + PACKET_HEAD + length))
            at += PACKET_HEAD + length
        if at > self.end:
            return None
        self.start, (first, stop) = at, parts[0]
        if first == stop:
            return 0, b""
        parts[0] = (first + 1, stop)
        with memoryview(self.memory) as view:
            return view[first], b"".join(view[begin:end] for begin, end in parts)


class DumpStream:
    """The socket behind a dump command, encrypted or not. Errors are the system's: OSError."""

    def __init__(self, connected: Any, timeout_seconds: float) -> None:
        self.buffer = PacketBuffer()
        self._socket = connected
        self._timeout_seconds = timeout_seconds
        self._socket.settimeout(0)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._waiting_in_tls: Callable[[], int] = getattr(self._socket, "pending", lambda: 0)

    def fill(self) -> int:
        """Waits for more bytes and takes those that have come: many small pieces cost less
        together.

        Returns how many: 0 at the end of the connection. Raises OSError, after a long silence, too.
        """
        while True:
            try:
                return self.buffer.receive(self._socket.recv_into)
            except _NOT_YET:
                if not self._poll.poll(1000 * self._timeout_seconds):
                    said = f"nothing came for {self._timeout_seconds:g} s"
                    raise TimeoutError(said) from None

    def has_more(self) -> bool:
        """More bytes have come already, so that `fill` does not wait."""
        return bool(self._waiting_in_tls()) or bool(self._poll.poll(0))


@dataclass
class Unpacked:
    """Events of plain transactions: `data` as they stand in the source's log, up to `offset` there;
    the next ones overwrite it.

    `runs` are (UUID's bytes, first, last) of whole transactions, `domains` (domain, server id,
    number) of MariaDB's. `ended`: the transaction that was open before is whole now. `opening`: the
    first events of the one that is open at the end, if it began in here.
    """

    data: memoryview
    events: int
    offset: int
    ended: bool
    runs: list[tuple[bytes, int, int]] = field(default_factory=list)
    domains: list[tuple[int, int, int]] = field(default_factory=list)
    opening: list[bytes] = field(default_factory=list)


def compiled_unpacker() -> Unpacker | None:
    """The kernel and its memory; None where Numba is not installed."""
    if find_spec("numba") is None:
        return None
    return Unpacker()


class Unpacker:
    """Takes plain transactions out of a buffer, by a compiled kernel."""

    def __init__(self) -> None:
        from applier.binlog.columnar.cache import load_kernel
        from applier.binlog.columnar.checksum_tables import crc_tables
        from applier.binlog.columnar.control import GtidRun, Stream

        self._unpack = load_kernel("unpack").call
        self._control = (ctypes.c_int64 * Stream.SIZE_OF_BLOCK)()
        self._runs = (ctypes.c_int64 * (GtidRun.SIZE_OF_ENTRY * _RUNS))()
        self._classes = ctypes.create_string_buffer(_classes(), 256)
        self._out = bytearray(0)
        self._crc = crc_tables()
        self._control[Stream.CLASSES] = ctypes.addressof(self._classes)
        self._control[Stream.CRC_TABLES] = ctypes.addressof(self._crc)
        self._control[Stream.RUNS] = ctypes.addressof(self._runs)
        self._control[Stream.RUNS_CAPACITY] = _RUNS

    def take(
        self, buffer: PacketBuffer, *, offset: int, trailer: int, state: int, room: int
    ) -> Unpacked | None:
        """The events up to one that Python has to look at; None where there are none.

        `offset`: where the source's log goes on; `trailer`: bytes of a checksum; `state`: of the
        TransactionTracker; `room`: bytes after which it stops at the next end of a transaction.
        """
        from applier.binlog.columnar.control import Stream

        if buffer.end - buffer.start <= PACKET_HEAD:
            return None
        if len(self._out) < len(buffer.memory):
            self._out = bytearray(len(buffer.memory))
        control = self._control
        given = {
            Stream.POSITION: buffer.start, Stream.SIZE: buffer.end, Stream.WRITTEN: 0,
            Stream.TRAILER: trailer, Stream.OFFSET: offset,
            Stream.ROOM: room, Stream.STATE: state, Stream.OPENING: -1, Stream.SECOND: -1,
            Stream.ENDED_INHERITED: 0, Stream.EVENTS: 0,
            Stream.RUNS_COUNT: 0,
        }  # fmt: skip
        for name, value in given.items():
            control[name] = value
        control[Stream.BUFFER] = _address(buffer.memory)
        control[Stream.OUT] = _address(self._out)
        self._unpack(ctypes.addressof(control))
        written = control[Stream.WRITTEN]
        if not written:
            return None
        buffer.start = control[Stream.POSITION]
        found = Unpacked(
            memoryview(self._out)[:written],
            control[Stream.EVENTS],
            control[Stream.OFFSET],
            bool(control[Stream.ENDED_INHERITED]),
        )
        self._add_runs(found)
        for start in (control[Stream.OPENING], control[Stream.SECOND]):
            if start >= 0:
                length = int.from_bytes(found.data[start + 9 : start + 13], "little")
                found.opening.append(bytes(found.data[start : start + length]))
        return found

    def _add_runs(self, found: Unpacked) -> None:
        from applier.binlog.columnar.control import GtidRun, GtidRunKind, Stream

        for number in range(self._control[Stream.RUNS_COUNT]):
            at = number * GtidRun.SIZE_OF_ENTRY
            kind, low, high, first, last = self._runs[at : at + GtidRun.SIZE_OF_ENTRY]
            if kind == GtidRunKind.MYSQL:
                found.runs.append(
                    (
                        low.to_bytes(8, "little", signed=True)
                        + high.to_bytes(8, "little", signed=True),
                        first,
                        last,
                    )
                )
            else:
                found.domains.append((low, high, last))


def _address(memory: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _classes() -> bytes:
    """Event type -> what the kernel does with it."""
    from applier.binlog.columnar.control import StreamClass

    classes = bytearray(256)
    for type_code in (QUIET_TYPES | ROWS_TYPES) - {
        EventType.TRANSACTION_PAYLOAD,
        EventType.VIEW_CHANGE,
    }:
        classes[type_code] = StreamClass.QUIET
    classes[EventType.GTID] = classes[EventType.ANONYMOUS_GTID] = StreamClass.GTID
    classes[EventType.MARIADB_GTID] = StreamClass.MARIADB_GTID
    classes[EventType.QUERY], classes[EventType.XID] = StreamClass.QUERY, StreamClass.XID
    return bytes(classes)
