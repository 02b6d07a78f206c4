"""A journal for consumers: what was synced is there after a crash, and a line that is not whole is
cut off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from applier.crashtest import Journal, Kind, State, explore
from checkpoints.disk import Disk, read_file
from checkpoints.simulated_disk import SimulatedDisk

RECORDS = [{"rows": ["a", "\u20ac\n"]}, {"rows": [], "position": 4}]


def test_records_are_there_after_a_restart() -> None:
    disk = SimulatedDisk()
    for record in RECORDS:
        Journal(disk, "mine").append(record)
    assert Journal(disk, "mine").records == RECORDS
    assert Journal(disk).records == []


@pytest.mark.parametrize("end", [b"0000", b'00000000 {"rows": []}\n', b"no line\n", b"\n"])
def test_what_is_no_whole_record_is_cut_off(end: bytes) -> None:
    disk = SimulatedDisk()
    Journal(disk).append(RECORDS[0])
    whole = read_file(disk, "journal") or b""
    disk.open("journal").write(len(whole), end)
    journal = Journal(disk)
    assert (journal.records, read_file(disk, "journal")) == (RECORDS[:1], whole)
    journal.append(RECORDS[1])
    assert Journal(disk).records == RECORDS


class Writer:
    """Writes numbers; `sync` says whether they are durable when that is claimed."""

    sync = True

    def run(self, disk: Disk) -> Iterator[int]:
        journal = Journal(disk)
        for number in range(len(journal.records), 3):
            journal.append({"number": number}, sync=self.sync)
            yield number

    def recover(self, disk: Disk) -> State:
        for _ in self.run(disk):
            pass
        return State(tuple(record["number"] for record in Journal(disk).records), None)


class Careless(Writer):
    sync = False

    def recover(self, disk: Disk) -> State:
        return State(tuple(record["number"] for record in Journal(disk).records), None)


def test_no_crash_loses_a_synced_record_and_one_does_lose_others() -> None:
    assert not explore(Writer).failures
    assert explore(Careless, kinds=[Kind.OS]).failures
