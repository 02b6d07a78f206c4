"""What a crash of the machine leaves of the relay logs and of master.info is mended by the next
start: the same command goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from applier.binlog.follow import IndexedLogs
from tests.captures_support import CAPTURES, logs
from tests.receive.receiving import Offline, relay_events, source_events, transactions

LOG = logs(CAPTURES / "open" / "my57_xa")


def newest(folder: Path) -> Path:
    return sorted(folder.glob("relay-bin.0*"))[-1]


def zeros_behind(folder: Path) -> None:
    with newest(folder).open("ab") as file:
        file.write(bytes(4096))


def zeros_in_the_last_page(folder: Path) -> None:
    data = newest(folder).read_bytes()
    newest(folder).write_bytes(data[:-300] + bytes(300))


def old_bytes_in_the_last_event(folder: Path) -> None:
    data = newest(folder).read_bytes()
    newest(folder).write_bytes(data[:-10] + b"\xaa" * 6 + data[-4:])


def nothing_of_the_newest(folder: Path) -> None:
    newest(folder).write_bytes(b"")


def half_a_head_of_the_newest(folder: Path) -> None:
    newest(folder).write_bytes(newest(folder).read_bytes()[:60])


def zeros_instead_of_the_newest(folder: Path) -> None:
    newest(folder).write_bytes(bytes(len(newest(folder).read_bytes())))


def garbled_master_info(folder: Path) -> None:
    (folder / "master.info").write_bytes(b"\0" * 200)


def newest_is_not_there(folder: Path) -> None:
    newest(folder).unlink()


def zeros_in_the_index(folder: Path) -> None:
    index = folder / "relay-bin.index"
    index.write_bytes(bytes(len(index.read_bytes())))


def empty_index(folder: Path) -> None:
    (folder / "relay-bin.index").write_bytes(b"")


def zeros_for_our_name(folder: Path) -> None:
    (folder / "auto.cnf").write_bytes(bytes(56))


def noise_for_our_name(folder: Path) -> None:
    (folder / "auto.cnf").write_bytes(b"\xff" * 56)


@pytest.mark.parametrize(
    ("damage", "note"),
    [
        (newest_is_not_there, "has no beginning and is removed"),
        (zeros_in_the_index, "relay-bin.index is damaged and is written again"),
        (empty_index, "relay-bin.index is damaged and is written again"),
        (zeros_for_our_name, "auto.cnf is damaged and is written again"),
        (noise_for_our_name, "auto.cnf is damaged and is written again"),
        (zeros_behind, "4,096 bytes behind the last whole event are cut off"),
        (zeros_in_the_last_page, "behind the last whole event are cut off"),
        (old_bytes_in_the_last_event, "behind the last whole event are cut off"),
        (nothing_of_the_newest, "has no beginning and is removed"),
        (half_a_head_of_the_newest, "has no beginning and is removed"),
        (zeros_instead_of_the_newest, "has no beginning and is removed"),
        (garbled_master_info, "master.info is damaged and is written again"),
    ],
)
@pytest.mark.parametrize("events", [6, 25, 60])
@pytest.mark.parametrize("auto_position", [False, True])
def test_goes_on(
    damage: Callable[[Path], None], note: str, events: int, auto_position: bool, tmp_path: Path
) -> None:
    source = Offline(tmp_path, LOG, auto_position=auto_position, max_bytes=4096)
    source.receive(events)
    damage(tmp_path)
    receiver, _ = source.connect()
    assert any(note in text for text in receiver.folder.notes)
    receiver.folder.abandon()
    source.receive()
    if auto_position:  # a transaction that was cut is sent again from its beginning
        assert transactions(IndexedLogs(tmp_path)) == transactions(LOG)
    else:
        assert relay_events(tmp_path) == source_events(LOG)


def test_what_is_whole_needs_no_note(tmp_path: Path) -> None:
    source = Offline(tmp_path, LOG)
    source.receive(40)
    receiver, _ = source.connect()
    assert receiver.folder.notes == []
    receiver.folder.abandon()
