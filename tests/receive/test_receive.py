"""The live receiver without a network: what it writes, and where it goes on after it was killed."""

from __future__ import annotations

import errno
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.binlog.event_bytes import make_event, rotate_body
from applier.binlog.follow import IndexedLogs
from applier.binlog.header import EventFlag, EventType
from applier.binlog.reader import LogReader
from applier.binlog.transactions import group
from applier.errors import InputError, ReplicationError, UsageError
from applier.receive.receive import LiveReceiver
from applier.receive.receive_folder import Folder, Start
from checkpoints.disk import RealFile
from checkpoints.gtid import GtidSet
from checkpoints.position import Position
from tests.captures_support import CAPTURES, logs
from tests.receive.receiving import Offline, relay_events, source_events, transactions

SOURCES = [
    "my57_xa",
    "my_oltp_compressed_rotated",
    "ma_xa_domains",
    "my56_anonymous_nochecksum",
    "my_tagged_gtid",
    "my_statement_mixed",
]
WITH_GTIDS = ["my57_xa", "my_oltp_compressed_rotated", "my_tagged_gtid"]


def capture_logs(name: str) -> list[Path]:
    return logs(CAPTURES / "open" / name)


@pytest.mark.parametrize("name", SOURCES)
def test_relay_logs_hold_the_sources_events(name: str, tmp_path: Path) -> None:
    offline = Offline(tmp_path, capture_logs(name))
    offline.receive()
    assert relay_events(tmp_path) == source_events(capture_logs(name))
    assert offline.receive(0) == 0
    assert resumed(tmp_path) == end_of(capture_logs(name))


def end_of(paths: list[Path]) -> Position:
    """Where a receiver is that has all: a stop event is not received, a rotate event leads to the
    next log."""
    last = list(LogReader(paths[-1:]))[-1]
    if last.type == EventType.ROTATE:
        return Position(last.data[8:].decode(), 4)
    return Position(
        paths[-1].name,
        last.position if last.type == EventType.STOP else last.position + last.length,
    )


@pytest.mark.parametrize("name", SOURCES)
@given(kills=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), max_size=12))
@settings(max_examples=5)
def test_killed_anywhere_nothing_is_lost_or_doubled(
    name: str, kills: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("relay")
    offline = Offline(folder, capture_logs(name), max_bytes=1 << 13)
    for events, torn_bytes in kills:
        offline.receive(events, torn_bytes)
    offline.receive()
    assert relay_events(folder) == source_events(capture_logs(name))


@pytest.mark.parametrize("name", WITH_GTIDS)
@given(kills=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), max_size=12))
@settings(max_examples=5)
def test_killed_anywhere_every_transaction_is_there_once(
    name: str, kills: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The source sends a transaction that was cut off again from its beginning."""
    folder = tmp_path_factory.mktemp("relay")
    offline = Offline(folder, capture_logs(name), auto_position=True)
    for events, torn_bytes in kills:
        offline.receive(events, torn_bytes)
    offline.receive()
    assert transactions(IndexedLogs(folder)) == transactions(capture_logs(name))


@pytest.mark.parametrize(
    ("name", "auto_position"),
    [*((name, False) for name in SOURCES), *((name, True) for name in WITH_GTIDS)],
)
def test_killed_inside_transactions_the_replay_is_the_same(
    name: str, auto_position: bool, tmp_path: Path
) -> None:
    """By position a transaction goes on in the next relay log, by GTID it is there once more as a
    whole."""
    offline = Offline(tmp_path, capture_logs(name), auto_position=auto_position)
    while offline.receive(97, 100) == 97:
        pass
    offline.receive()
    schema = CAPTURES / "open" / name / "before.sql"
    expected, found = applier.load_schema(schema), applier.load_schema(schema)
    once, again = (
        applier.replay(capture_logs(name), into=expected),
        applier.replay(IndexedLogs(tmp_path), into=found),
    )
    assert once.error is None
    assert again.error is None
    assert (again.transactions, str(again.executed)) == (once.transactions, str(once.executed))
    assert {table.definition.full_name: table.rows() for table in found} == {
        t.definition.full_name: t.rows() for t in expected
    }
    end = end_of(capture_logs(name))
    assert (again.source_file, again.source_position) == (end.file, end.offset)


def test_a_relay_log_that_is_too_long_is_left_between_transactions(tmp_path: Path) -> None:
    offline = Offline(tmp_path, capture_logs("my57_xa"), max_bytes=4096)
    offline.receive()
    paths = IndexedLogs(tmp_path).paths()
    assert len(paths) > 3 * len(offline.source.files)
    assert relay_events(tmp_path) == source_events(capture_logs("my57_xa"))
    for path in paths:
        assert all(transaction.begin for transaction in group(LogReader([path])))


def test_the_relay_logs_say_what_was_received(tmp_path: Path) -> None:
    """Each begins with the set of all transactions before it, so that nobody need read the older
    ones."""
    names = capture_logs("my57_xa")
    Offline(tmp_path, names, auto_position=True).receive()
    seen = GtidSet()
    for path in IndexedLogs(tmp_path):
        events = list(LogReader([path]))
        before = next(event for event in events if event.type == EventType.PREVIOUS_GTIDS)
        assert GtidSet.decode(before.data) == seen
        for gtid in transactions([path]):
            seen = seen.union(GtidSet(gtid or ""))
    assert seen == GtidSet(
        str(
            applier.replay(
                names, into=applier.load_schema(CAPTURES / "open" / "my57_xa" / "before.sql")
            ).executed
        )
    )


# what must not go on


@contextmanager
def begun(
    folder: Path, *, auto_position: bool = False
) -> Iterator[tuple[LiveReceiver, list[bytes]]]:
    """A receiver that has a dozen events, and those that come next."""
    receiver, dump = Offline(folder, capture_logs("my57_xa"), auto_position=auto_position).connect()
    try:
        events = list(dump)
        receiver.checksum_length = 4
        for raw in events[:12]:
            receiver.queue(raw)
        yield receiver, events[12:]
    finally:
        receiver.folder.abandon()


def resumed(folder: Path) -> Position:
    """Where the next run goes on."""
    opened = Folder(folder, Start())
    opened.close()
    return opened.progress.position


def test_a_damaged_event_is_refused_and_not_written(tmp_path: Path) -> None:
    with begun(tmp_path) as (receiver, events):
        size, position = receiver.folder.writer.size, receiver.progress.position
        damaged = bytearray(events[0])
        damaged[25] ^= 1
        with pytest.raises(ReplicationError, match="checksum") as caught:
            receiver.queue(bytes(damaged))
        assert (caught.value.number, caught.value.position) == (1743, position.offset)
        assert (receiver.folder.writer.size, receiver.progress.position) == (size, position)


def test_a_hole_in_the_stream_is_refused(tmp_path: Path) -> None:
    with begun(tmp_path) as (receiver, events):
        with pytest.raises(InputError, match=f"left out {len(events[0])} bytes"):
            receiver.queue(events[1])
        receiver.queue(events[0])
        with pytest.raises(InputError, match="before the expected"):
            receiver.queue(events[0])
        receiver.queue(events[1])


@pytest.mark.parametrize(("shift", "file"), [(-1, "binlog.000001"), (0, "binlog.000002")])
def test_a_heartbeat_from_elsewhere_is_refused(shift: int, file: str, tmp_path: Path) -> None:
    with begun(tmp_path) as (receiver, _), pytest.raises(ReplicationError) as caught:
        log_pos = receiver.progress.offset + shift
        receiver.queue(
            make_event(
                EventType.HEARTBEAT, file.encode(), timestamp=0, server_id=1, log_pos=log_pos
            )
        )
    assert caught.value.number == 1623


@pytest.mark.parametrize(("auto_position", "moved"), [(False, 0), (True, 100)])
def test_a_heartbeat_moves_the_position_only_with_gtids(
    auto_position: bool, moved: int, tmp_path: Path
) -> None:
    with begun(tmp_path, auto_position=auto_position) as (receiver, _):
        before = receiver.progress.position
        log_pos = before.offset + 100
        receiver.queue(
            make_event(
                EventType.HEARTBEAT, before.file.encode(), timestamp=0, server_id=1, log_pos=log_pos
            )
        )
        assert receiver.progress.position == Position(before.file, before.offset + moved)
    assert resumed(tmp_path) == receiver.progress.position


def test_positions_beyond_four_gigabytes(tmp_path: Path) -> None:
    """log_pos has four bytes and begins anew; the position does not."""
    start, flags = (1 << 32) - 30, EventFlag.ARTIFICIAL
    with begun(tmp_path) as (receiver, _):
        receiver.queue(
            make_event(
                EventType.ROTATE,
                rotate_body("binlog.000007", start),
                timestamp=0,
                server_id=1,
                flags=flags,
            )
        )
        for end in (start + 50, start + 100):
            receiver.queue(
                make_event(
                    EventType.IGNORABLE,
                    b"x" * 27,
                    timestamp=1,
                    server_id=1,
                    log_pos=end % (1 << 32),
                )
            )
            assert receiver.progress.position == Position("binlog.000007", end)
    assert resumed(tmp_path) == Position("binlog.000007", start + 100)


def test_a_full_disk_ends_the_receiver_as_a_kill_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an event may be there; the next run cuts it off and goes on."""
    names = capture_logs("my57_xa")
    receiver, dump = Offline(tmp_path, names).connect()
    receiver.checksum_length = 4
    written = RealFile.write

    def write(file: RealFile, offset: int, data: bytes) -> None:
        if offset > 3000:
            written(file, offset, data[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        written(file, offset, data)

    def receive() -> None:
        for raw in dump:
            receiver.queue(raw)

    monkeypatch.setattr(receiver, "_keep_receiving", receive)
    with monkeypatch.context() as full:
        full.setattr(RealFile, "write", write)
        with pytest.raises(
            InputError, match="cannot write the relay log: No space left on device"
        ) as caught:
            receiver.run()
    assert caught.value.file == str(tmp_path / "relay-bin.000001")
    assert caught.value.hint
    Offline(tmp_path, names).receive()
    assert relay_events(tmp_path) == source_events(names)


# the folder


def test_a_clean_end_leaves_the_place(tmp_path: Path) -> None:
    """The stop event at the end of a relay log is our own and says nothing of the source's log."""
    receiver, dump = Offline(tmp_path, capture_logs("my57_xa")).connect()
    receiver.checksum_length = 4
    for raw, _ in zip(dump, range(30), strict=False):
        receiver.queue(raw)
    receiver.folder.close()
    assert [event.type for event in LogReader(IndexedLogs(tmp_path))][-1] == EventType.STOP
    assert resumed(tmp_path) == receiver.progress.position


def test_a_transaction_that_was_open_is_remembered_through_idle_runs(tmp_path: Path) -> None:
    """Its GTID stands two relay logs before its end."""
    names = capture_logs("my57_xa")
    whole = Offline(tmp_path / "whole", names).receive()
    for events in range(6, whole, 9):
        folder = tmp_path / str(events)
        offline = Offline(folder, names)
        offline.receive(events)
        offline.receive(2)
        offline.receive(2)
        offline.receive()
        assert executed_of(folder) == executed_of(tmp_path / "whole")


def executed_of(folder: Path) -> str:
    opened = Folder(folder, Start())
    opened.close()
    return str(opened.progress.gtids)


def test_killed_between_the_creation_of_master_info_and_its_first_write(tmp_path: Path) -> None:
    """The relay logs say where to go on, not this file: when it is empty it says nothing."""
    names = capture_logs("my57_xa")
    (tmp_path / "master.info").touch()
    Offline(tmp_path, names).receive(20)
    (tmp_path / "master.info").write_bytes(b"")
    Offline(tmp_path, names).receive()
    assert relay_events(tmp_path) == source_events(names)


def test_one_receiver_at_a_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path, Start())
    with pytest.raises(InputError, match="another receiver is at work"):
        Folder(tmp_path, Start())
    folder.close()
    Folder(tmp_path, Start()).close()


def test_who_we_are_stays(tmp_path: Path) -> None:
    first = Folder(tmp_path, Start())
    own = first.own
    first.close()
    again = Folder(tmp_path, Start())
    assert again.own == own
    assert own.server_id >= 1 << 31
    again.close()
    other = Folder(tmp_path / "other", Start())
    assert other.own.uuid != own.uuid
    assert other.own.server_id != own.server_id
    other.close()


def test_a_folder_with_relay_logs_goes_on_there(tmp_path: Path) -> None:
    Offline(tmp_path, capture_logs("my57_xa")).receive(20)
    with pytest.raises(UsageError, match="goes on there"):
        Folder(tmp_path, Start(position=Position("binlog.000001", 4)))
    with pytest.raises(UsageError, match="--server-id 5"):
        Folder(tmp_path, Start(server_id=5))


def test_the_executed_set_is_kept_in_the_first_relay_log(tmp_path: Path) -> None:
    names = capture_logs("my57_xa")
    gtids = [GtidSet(gtid or "") for gtid in transactions(names)]
    before = gtids[0].union(gtids[1])
    folder = Folder(tmp_path, Start(gtids=before), auto_position=True)
    folder.begin_file()
    folder.abandon()
    Offline(tmp_path, names, auto_position=True).receive()
    assert transactions(IndexedLogs(tmp_path)) == transactions(names)[2:]


def test_a_log_without_checksums_stays_without(tmp_path: Path) -> None:
    """The head of a relay log is our own and has checksums; what follows is as the source wrote
    it."""
    names = capture_logs("my56_anonymous_nochecksum")
    Offline(tmp_path, names).receive()
    events = list(LogReader(IndexedLogs(tmp_path)))
    assert [event.type for event in events[:4]] == [
        EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
    ]  # fmt: skip
    (name,) = IndexedLogs(tmp_path)
    raw = Path(name).read_bytes()
    rotate = events[2]
    assert zlib.crc32(raw[rotate.position : rotate.position + rotate.length]) == 0x2144DF1C
    assert struct.unpack_from("<I", raw, rotate.position + 9)[0] == rotate.length
