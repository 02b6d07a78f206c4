"""Five consumers of a log that save how far they are, and what crashes make of them.

Each reads transactions from a log, keeps their rows in a journal of its own, and goes on behind its
saved position after a restart. `test_saved_offset.py` tries every crash of each:

| consumer | saves its position | a crash makes it |
|---|---|---|
| InsideTransactions | after each event | lose the rows before it of an open transaction |
| BeforeTheData | in a file, before the rows are on disk | lose transactions |
| WithoutSync | in a file, behind the rows, neither synced | lose or repeat transactions |
| AfterTheData | in a file, when the rows are on disk | execute a transaction again |
| WithTheData | in the same record as the rows | nothing |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from applier.crashtest import Journal, State
from checkpoints.disk import Disk, read_file

LOG = [
    event
    for number in range(4)
    for event in (
        ("begin", number),
        ("row", f"a{number}"),
        ("row", f"b{number}"),
        ("commit", number),
    )
]
"""What the source wrote: four transactions of two rows. The position of an event is its place in
the list."""


class Consumer:
    """What all five have in common. Where the position is saved is up to each."""

    def run(self, disk: Disk) -> Iterator[int]:
        self.journal = Journal(disk)
        rows: list[str] = []
        for position in range(self.position(disk), len(LOG)):
            kind, value = LOG[position]
            if kind == "row":
                rows.append(str(value))
            elif kind == "commit":
                self.commit(disk, {"transaction": value, "rows": rows, "position": position + 1})
                rows = []
                yield int(value)
            self.seen(disk, position + 1)

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        records = self.journal.records
        return State(
            tuple(record["transaction"] for record in records),
            [record["rows"] for record in records],
        )

    def position(self, disk: Disk) -> int:
        return int(read_file(disk, "position") or 0)

    def save(self, disk: Disk, position: int, *, sync: bool = True) -> None:
        file = disk.open("position", create=True)
        file.write(0, b"%08d" % position)
        if sync:
            file.fsync()

    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record)

    def seen(self, disk: Disk, position: int) -> None:
        """An event was read."""


class InsideTransactions(Consumer):
    def seen(self, disk: Disk, position: int) -> None:
        self.save(disk, position)


class BeforeTheData(Consumer):
    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.save(disk, record["position"])
        self.journal.append(record)


class WithoutSync(Consumer):
    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record, sync=False)
        self.save(disk, record["position"], sync=False)


class AfterTheData(Consumer):
    def commit(self, disk: Disk, record: dict[str, Any]) -> None:
        self.journal.append(record)
        self.save(disk, record["position"])


class WithTheData(Consumer):
    """The right way: one record holds rows and position, so that there are both or none."""

    def position(self, disk: Disk) -> int:
        return int(self.journal.records[-1]["position"]) if self.journal.records else 0
