"""Logs that grow while they are read: order, rotation, half events, the end."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import applier
from applier.binlog import follow
from applier.binlog.follow import IndexedLogs, LogFollower
from applier.binlog.header import MAGIC
from applier.binlog.reader import LogReader
from applier.errors import InputError
from tests.captures_support import CAPTURES, logs

CAPTURE = CAPTURES / "open" / "my57_xa"


class Growing:
    """A capture's logs appear in a folder piece by piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = folder / "binlog.index"
        self.index.write_text("")
        self._names: list[str] = []

    def begin(self, name: str) -> None:
        """As a server does: the file first, then the index as a whole."""
        (self.folder / name).write_bytes(MAGIC)
        self._names.append(f"./{name}\n")
        new = self.folder / "new"
        new.write_text("".join(self._names))
        self.index.unlink()
        new.rename(self.index)

    def add(self, name: str, data: bytes) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(data)


def test_all_events_come_in_order_however_they_are_cut(tmp_path: Path) -> None:
    growing, ended = Growing(tmp_path), threading.Event()
    followed = IndexedLogs(tmp_path, follow=True, stopped=ended.is_set)
    found: list[tuple[str, int, int]] = []
    reader = threading.Thread(
        target=lambda: found.extend((e.file, e.position, e.type) for e in LogFollower(followed))
    )
    reader.start()
    try:
        for path in logs(CAPTURE):
            growing.begin(path.name)
            content = path.read_bytes()
            for start in range(len(MAGIC), len(content), 1009):  # mostly in the midst of an event
                growing.add(path.name, content[start : start + 1009])
        last = len(list(LogReader(logs(CAPTURE))))
        deadline = time.monotonic() + 120
        while len(found) < last and reader.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        ended.set()
        reader.join()
    assert found == [(event.file, event.position, event.type) for event in LogReader(logs(CAPTURE))]


def test_a_file_is_not_over_before_the_index_names_the_next(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    first, second = logs(CAPTURE)[:2]
    growing.begin(first.name)
    content = first.read_bytes()
    growing.add(first.name, content[len(MAGIC) : -30])
    steps = []

    def more() -> None:
        """Called where the reader would wait: the rest of the event, then the next file, then the
        end."""
        steps.append(len(steps))
        if len(steps) == 1:
            growing.add(first.name, content[-30:])
        elif len(steps) == 2:
            growing.begin(second.name)
            growing.add(second.name, second.read_bytes()[len(MAGIC) :])

    followed = IndexedLogs(tmp_path, follow=True, stopped=lambda: len(steps) == 3)
    followed.on_idle = more
    found = [(event.file, event.position) for event in LogFollower(followed)]
    assert found == [(event.file, event.position) for event in LogReader([first, second])]
    assert steps == [0, 1, 2]


def test_a_start_far_behind_the_first_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PIECE_BYTES", 512)
    growing, path = Growing(tmp_path), logs(CAPTURE)[0]
    growing.begin(path.name)
    growing.add(path.name, path.read_bytes()[len(MAGIC) :])
    whole = [event.position for event in LogReader([path])]
    for start in whole[3::5]:
        idle: list[int] = []
        followed = IndexedLogs(tmp_path, follow=True, stopped=lambda idle=idle: bool(idle))
        followed.on_idle = lambda idle=idle: idle.append(1)
        found = [
            event.position
            for event in LogFollower(followed, start=followed[0], start_position=start)
        ]
        assert found == [event.position for event in LogReader([path], start_position=start)]
        assert found[-1] == whole[-1]


def test_half_an_event_that_nobody_finishes_is_an_error(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    first, second = logs(CAPTURE)[:2]
    growing.begin(first.name)
    growing.add(first.name, first.read_bytes()[len(MAGIC) : -30])
    growing.begin(second.name)
    with pytest.raises(InputError, match="ends in the middle"):
        list(LogFollower(IndexedLogs(tmp_path, follow=True)))


def test_a_log_that_is_taken_away_is_an_error(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    first = logs(CAPTURE)[0]
    growing.begin(first.name)
    growing.add(first.name, first.read_bytes()[len(MAGIC) :])
    followed = IndexedLogs(tmp_path, follow=True)

    def take_away() -> None:
        growing.index.write_text("./binlog.000009\n")

    followed.on_idle = take_away
    with pytest.raises(InputError, match=r"taken out of binlog\.index"):
        list(LogFollower(followed))


def test_a_folder_stands_for_its_logs(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    for path in logs(CAPTURE):
        growing.begin(path.name)
        growing.add(path.name, path.read_bytes()[len(MAGIC) :])
    named = IndexedLogs(tmp_path)
    assert [Path(name).name for name in named] == [path.name for path in logs(CAPTURE)]
    schema = CAPTURE / "before.sql"
    by_folder, by_files = (
        applier.replay(files, into=applier.load_schema(schema)) for files in (named, logs(CAPTURE))
    )
    assert (by_folder.transactions, by_folder.counters) == (
        by_files.transactions,
        by_files.counters,
    )
    (tmp_path / "second.index").write_text("")
    with pytest.raises(
        InputError, match=r"more than one index of logs: binlog\.index, second\.index"
    ):
        IndexedLogs(tmp_path)
