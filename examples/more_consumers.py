"""Eleven more consumers of the log of `saved_offset.py`. `test_more_consumers.py` says what each
does wrong, and finds it.

How each keeps its rows and its position, and behind the arrow what a crash makes it do:

    Snapshots            all in one file, written anew, synced, renamed over the old one → nothing
    FilePerTransaction   a file for each transaction, synced, its name too; the newest one is the
                         position → nothing
    Lazily               in the same record, synced only now and then → nothing: what is lost comes
                         again
    AtLeastOnce          the rows, then the position → execute a transaction again, as it says
    ByKey                rows under the number of their transaction, the position behind them →
                         nothing: twice is as once
    RenamedTooEarly      as Snapshots, but the new file is not synced → lose transactions
    NamesNotSynced       the log's position in a file by itself, rows in files whose names are not
                         synced → lose transactions
    OneBehind            the position of the transaction before, up to the last one → execute a
                         transaction again
    OneAhead             a position that is one event too far while rows are open → lose the first
                         row of the next one
    CutBeforeWritten     the position in a file that is cut to nothing and written again → execute
                         all again
    InMemory             nothing on the disk → (refused: nothing can be tested)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from saved_offset import LOG, Consumer, WithTheData

from applier.crashtest import State
from checkpoints.disk import Disk, read_file


class Snapshots:
    """Keeps everything in one file that is replaced as a whole."""

    syncs = True

    def run(self, disk: Disk) -> Iterator[int]:
        kept = self.kept(disk)
        for number in range(len(kept), len(LOG) // 4):
            kept.append(rows_of(number))
            self.replace(disk, json.dumps(kept).encode())
            yield number

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        kept = self.kept(disk)
        return State(tuple(range(len(kept))), kept)

    def kept(self, disk: Disk) -> list[list[str]]:
        found: list[list[str]] = json.loads(read_file(disk, "all") or b"[]")
        return found

    def replace(self, disk: Disk, content: bytes) -> None:
        new = disk.open("all.new", create=True)
        new.truncate(0)
        new.write(0, content)
        if self.syncs:
            new.fsync()
        disk.rename("all.new", "all")
        disk.fsync_names()


class RenamedTooEarly(Snapshots):
    syncs = False

    def kept(self, disk: Disk) -> list[list[str]]:
        try:
            return super().kept(disk)
        # a file that was cut off by the crash: begin anew where the position says
        except ValueError:
            return [[] for _ in range(int(read_file(disk, "position") or 0))]

    def replace(self, disk: Disk, content: bytes) -> None:
        super().replace(disk, content)
        file = disk.open("position", create=True)
        file.write(0, b"%08d" % len(json.loads(content)))
        file.fsync()


class FilePerTransaction:
    """Keeps a file for each transaction; how many there are is the position."""

    syncs_names = True

    def run(self, disk: Disk) -> Iterator[int]:
        for number in range(self.position(disk), len(LOG) // 4):
            file = disk.open(f"new.{number}", create=True)
            file.write(0, json.dumps(rows_of(number)).encode())
            file.fsync()
            disk.rename(f"new.{number}", f"rows.{number}")
            if self.syncs_names:
                disk.fsync_names()
            self.done(disk, number)
            yield number

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        numbers = sorted(
            int(name.partition(".")[2]) for name in disk.names() if name.startswith("rows.")
        )
        return State(
            tuple(numbers),
            [json.loads(read_file(disk, f"rows.{number}") or b"[]") for number in numbers],
        )

    def position(self, disk: Disk) -> int:
        return sum(name.startswith("rows.") for name in disk.names())

    def done(self, disk: Disk, number: int) -> None:
        """A transaction is kept."""


class NamesNotSynced(FilePerTransaction):
    syncs_names = False

    def run(self, disk: Disk) -> Iterator[int]:
        disk.open("position", create=True)
        disk.fsync_names()
        yield from super().run(disk)

    def position(self, disk: Disk) -> int:
        return int(read_file(disk, "position") or 0)

    def done(self, disk: Disk, number: int) -> None:
        file = disk.open("position")
        file.write(0, b"%08d" % (number + 1))
        file.fsync()


class Lazily(WithTheData):
    """Promises nothing before the source may forget it: a lost record takes its position along."""

    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record, sync=record["transaction"] % 2 == 1)


class AtLeastOnce(Consumer):
    """Saves its position behind the rows, and begins anew where a crash left zeros in place of
    it."""

    def position(self, disk: Disk) -> int:
        text = read_file(disk, "position") or b""
        return int(text) if text.isdigit() else 0

    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record)
        self.save(disk, record["position"])


class ByKey(AtLeastOnce):
    """Executes a transaction again, and nobody can tell."""

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        by_key = {record["transaction"]: record["rows"] for record in self.journal.records}
        return State(tuple(by_key), list(by_key.values()))


class OneBehind(WithTheData):
    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        super().commit(
            disk, record | {"position": record["position"] - 4 * (record["transaction"] < 3)}
        )


class OneAhead(WithTheData):
    def position(self, disk: Disk) -> int:
        behind = super().position(disk)
        return behind + 2 if 0 < behind < len(LOG) else behind


class CutBeforeWritten(Consumer):
    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record)
        file = disk.open("position", create=True)
        file.truncate(0)
        file.write(0, b"%08d" % record["position"])
        file.fsync()


class InMemory(Snapshots):
    def run(self, disk: Disk) -> Iterator[int]:
        yield from range(len(LOG) // 4)

    def recover(self, disk: Disk) -> State:
        numbers = range(len(LOG) // 4)
        return State(tuple(numbers), [rows_of(number) for number in numbers])


def rows_of(number: int) -> list[str]:
    """The rows of a transaction of the log."""
    return [f"a{number}", f"b{number}"]
