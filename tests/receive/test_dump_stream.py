"""Many events at a time or one by one: the relay logs, the position and the GTIDs are the same."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from applier.binlog.event_bytes import make_event
from applier.binlog.header import EventType
from applier.errors import InputError, ReplicationError
from applier.mysql.client.connection import ServerLost
from applier.mysql.client.url import Endpoint
from applier.receive.dump_stream import BUFFER_BYTES, DumpStream, PacketBuffer
from applier.receive.protocol import Dump
from applier.receive.receive import LiveReceiver
from applier.receive.receive_progress import Progress
from tests.captures_support import captures, logs
from tests.receive.receiving import NOT_RECEIVED, Offline, relay_events

END_OF_DUMP = b"\xfe\x00\x00\x02\x00"
SMALL_BUFFER_BYTES = 512
"""Shorter than many events of the captures, which are taken in pieces then."""
LOGS = [logs(capture)[0] for capture in captures()]
LONG_EVENTS = next(log for log in LOGS if log.parent.name == "my_tagged_gtid")


def packets(contents: Iterable[bytes]) -> Iterator[bytes]:
    """The contents as a server sends them: in packets of at most 16 MiB less one byte, numbered."""
    number = 1
    for content in contents:
        while True:
            part, content = content[:0xFFFFFF], content[0xFFFFFF:]
            yield struct.pack("<I", len(part))[:3] + bytes([number & 0xFF]) + part
            number += 1
            if len(part) < 0xFFFFFF:
                break


@contextmanager
def dump_of(data: bytes, sizes: Iterator[int], buffer_bytes: int = BUFFER_BYTES) -> Iterator[Dump]:
    """A dump over a socket; the bytes come in pieces of these sizes."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        at = 0
        with theirs:
            while at < len(data):
                size = next(sizes)
                theirs.sendall(data[at : at + size])
                at += size

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    with ours:
        dump = Dump(Endpoint(), DumpStream(ours, 60.0))
        dump.buffer.memory = bytearray(buffer_bytes)
        yield dump
        thread.join()


def receive(receiver: LiveReceiver, dump: Dump) -> None:
    while not dump.has_ended:
        receiver.take(dump)
        if not dump.has_ended:
            dump.fill()


def after(
    folder: Path, receiver: LiveReceiver
) -> tuple[list[tuple[str, bytes]], str, str, str, int]:
    """Relay logs (without the time of our own events) and where the receiver is."""
    progress: Progress = receiver.progress
    logs = [(path.name, path.read_bytes()) for path in sorted(folder.glob("relay-bin.0*"))]
    state = (
        str(progress.position),
        str(progress.gtids),
        str(progress.domains),
        progress.transaction_state,
    )
    return (logs, *state)


@pytest.fixture
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("applier.replica.relay.relay_log.system_clock", lambda: 7)
    monkeypatch.setattr("time.time", lambda: 7.0)


@pytest.fixture
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes what it can from the first event on."""
    monkeypatch.setattr("applier.receive.receive.SINGLE_EVENTS", 0)


def run(
    folder: Path,
    log: Path,
    seed: int,
    *,
    compiled: bool,
    max_bytes: int,
    buffer_bytes: int = BUFFER_BYTES,
) -> object:
    source = Offline(folder, [log], max_bytes=max_bytes)
    receiver, events = source.connect()
    (folder / "auto.cnf").write_text("")
    if not compiled:
        receiver.unpacker = None
    listed = list(events)
    receiver.checksum_length = source._negotiated(listed[0])
    data = b"".join(packets([*(b"\0" + raw for raw in listed), END_OF_DUMP]))
    chance = random.Random(seed)
    largest = chance.choice((40, 700, 1 << 20))
    with dump_of(data, iter(lambda: chance.randint(1, largest), None), buffer_bytes) as dump:
        receive(receiver, dump)
        assert len(dump.buffer.memory) == buffer_bytes
    found = after(folder, receiver)
    receiver.folder.abandon()
    return found


@pytest.mark.usefixtures("one_clock", "compiled_at_once")
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.parent.name)
def test_captures(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("applier.receive.receive_folder._id_of", lambda uuid: 77)
    seed = sum(log.parent.name.encode())
    for name, max_bytes in (("whole", 1 << 30), ("split", 4096)):
        slow = run(tmp_path / f"{name}-slow", log, seed, compiled=False, max_bytes=max_bytes)
        quick = run(tmp_path / f"{name}-quick", log, seed, compiled=True, max_bytes=max_bytes)
        assert quick == slow
        for compiled in (False, True):
            folder = tmp_path / f"{name}-pieces-{compiled}"
            assert slow == run(
                folder,
                log,
                seed,
                compiled=compiled,
                max_bytes=max_bytes,
                buffer_bytes=SMALL_BUFFER_BYTES,
            )


@pytest.mark.usefixtures("compiled_at_once")
def test_most_events_take_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, a kernel that takes nothing would pass all tests."""
    one_by_one: list[int] = []
    queue = LiveReceiver.queue
    monkeypatch.setattr(
        LiveReceiver, "queue", lambda self, raw: (one_by_one.append(raw[4]), queue(self, raw))[1]
    )
    counts = []
    for log in LOGS:
        one_by_one.clear()
        source = Offline(tmp_path / log.parent.name, [log])
        receiver, events = source.connect()
        total = len(list(events))
        receiver.folder.abandon()
        run(tmp_path / f"{log.parent.name}-run", log, 1, compiled=True, max_bytes=1 << 30)
        counts.append((total, len(one_by_one)))
    assert sum(slow for _, slow in counts) < 0.25 * sum(total for total, _ in counts)


def damaged(raw: bytes) -> bytes:
    return raw[:1000] + bytes([raw[1000] ^ 1]) + raw[1001:]


def claiming(raw: bytes, more: int) -> bytes:
    """The event with another length, and the end that goes with it."""
    length, log_pos = struct.unpack_from("<II", raw, 9)
    return raw[:9] + struct.pack("<II", length + more, log_pos + more) + raw[17:]


@pytest.mark.parametrize(
    ("change", "cut", "error", "said"),
    [
        (
            damaged,
            0,
            ReplicationError,
            "the checksum of a Write_rows event from the source is wrong",
        ),
        (lambda raw: claiming(raw, 1), 0, InputError, "an event of 1132 bytes says it has 1133"),
        (lambda raw: claiming(raw, -1), 0, InputError, "an event of 1132 bytes says it has 1131"),
        (bytes, 5, ServerLost, "the source ended it"),
    ],
)
def test_a_long_event_that_is_not_whole_leaves_nothing(
    change: Callable[[bytes], bytes], cut: int, error: type[Exception], said: str, tmp_path: Path
) -> None:
    """What came of it before somebody knew is in no relay log afterwards."""
    source = Offline(tmp_path, [LONG_EVENTS])
    receiver, events = source.connect()
    listed = list(events)
    receiver.checksum_length = source._negotiated(listed[0])
    long = next(at for at, raw in enumerate(listed) if len(raw) == 1132)
    content = [*listed[:long], change(listed[long])]
    data = b"".join(packets(b"\0" + raw for raw in content))
    data = data[: len(data) - cut]
    with (
        dump_of(data, iter(lambda: 3000, None), SMALL_BUFFER_BYTES) as dump,
        pytest.raises(error, match=said),
    ):
        receive(receiver, dump)
    writer = receiver.folder.writer
    assert (tmp_path / writer.name).stat().st_size == writer.size
    assert relay_events(tmp_path) == [
        raw for raw in listed[:long] if raw[4] not in NOT_RECEIVED | {EventType.ROTATE}
    ]
    receiver.folder.abandon()


def test_a_packet_goes_on_in_the_next_one() -> None:
    event = make_event(EventType.IGNORABLE, b"x" * (0xFFFFFF + 100), timestamp=0, server_id=1)
    data = b"".join(packets([b"\0" + event, b"\0" + b"y" * (0xFFFFFF - 1), b"\0z"]))
    buffer = PacketBuffer(64)
    chunks = iter([data[at : at + 1_000_000] for at in range(0, len(data), 1_000_000)])
    pending = bytearray()

    def receive_into(view: memoryview) -> int:
        if not pending:
            pending.extend(next(chunks, b""))
        size = min(len(view), len(pending))
        view[:size] = pending[:size]
        del pending[:size]
        return size

    found = []
    while True:
        packet = buffer.packet()
        if packet is not None:
            found.append(packet)
        elif not buffer.receive(receive_into):
            break
    assert found == [(0, event), (0, b"y" * (0xFFFFFF - 1)), (0, b"z")]
    assert len(buffer.memory) <= 4 * (len(event) + BUFFER_BYTES)


def test_a_packet_is_there_once_its_last_byte_is() -> None:
    for content in (b"", b"\0", b"\0event", b"\0" + b"z" * 600):
        data = b"".join(packets([content, b"\0next"]))
        for end in range(len(data) + 1):
            buffer = PacketBuffer(1024)
            buffer.memory[:end], buffer.end = data[:end], end
            assert buffer.has_packet == (buffer.packet() is not None)


def test_a_source_that_is_silent_is_lost() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        dump = Dump(Endpoint(), DumpStream(ours, 0.01))
        with pytest.raises(ServerLost, match=r"nothing came for 0\.01 s"):
            dump.fill()


def test_what_came_before_the_end_is_taken_first() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(b"".join(packets([b"\0one", b"\0two"])))
        dump = Dump(Endpoint(), DumpStream(ours, 1.0))
        dump.fill()
        assert [dump.event(), dump.event(), dump.event()] == [b"one", b"two", None]
        with pytest.raises(ServerLost, match="the source ended it"):
            dump.fill()
