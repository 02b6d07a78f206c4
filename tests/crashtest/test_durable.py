"""What a commit promises: after every crash the tables are those after some number of transactions,
and no fewer than was promised."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.crashtest.durable import Durability, DurableStorage
from applier.crashtest.records import RecordFile, framed, whole_records
from applier.replica.storage import Commit, row_changes
from applier.schema_source import load_schema
from applier.tables.catalog import Tables
from applier.tables.engine import Change, MemoryTable
from checkpoints.crash import CrashKind, CrashPoint
from checkpoints.gtid import GtidSet
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage, SimulatedDisk

UUID = "5eed0000-c4a5-11ee-8000-000000000001"
SCHEMA = (
    "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; "
    "CREATE TABLE d.m (v INT) ENGINE=MyISAM"
)
TAME = Medium(reorders_within_files=False, extends_with_zeros=False)
COUNT = 3
Rows = dict[str, list[tuple[int, ...]]]


def rows_of(tables: Tables) -> Rows:
    return {table.definition.name: table.rows() for table in tables}


class Bench:
    """Commits COUNT transactions on one disk; the second one is rolled back first, the third also
    writes an info row."""

    def __init__(self, durability: Durability) -> None:
        self.base = load_schema(SCHEMA)
        self.durability = durability
        self.number = 0
        self.states: list[Rows] = [rows_of(self.base)]

    def storage(self, disk: SimulatedDisk) -> DurableStorage:
        storage = DurableStorage(
            disk, self.base, self.durability, version="8.0", work=lambda: self.number
        )
        storage.recover()
        return storage

    def run(self, disk: SimulatedDisk) -> None:
        storage = self.storage(disk)
        for number in range(1, COUNT + 1):
            if number == 2:
                storage.begin()
                storage.info.write("info", {"Id": 1}, {"Id": 1, "position": -1})
                storage.tables["d.t"].insert((99, 99))
                storage.rollback()
            storage.begin()
            table = storage.tables["d.t"]
            table.insert((number, number))
            if number > 1:
                table.update(1, (1, number))
            if number == 3:
                storage.info.write("info", {"Id": 1}, {"Id": 1, "position": 3})
            self.states.append(rows_of(storage.tables))
            storage.commit(Commit(f"{UUID}:{number}", row_changes(storage.tables._journal)))
            self.number = number


def promised(durability: Durability, kind: CrashKind) -> bool:
    """Whether a commit that returned survives. A killed process loses only what it had not
    written."""
    if kind is CrashKind.PROCESS:
        return durability.flush_log_at_trx_commit != 0
    return durability.flush_log_at_trx_commit == 1 and (
        durability.sync_binlog == 1 or not durability.log_bin
    )


@pytest.mark.parametrize(
    "durability",
    [
        Durability(flush, sync, binary, 3)
        for flush, sync, binary in itertools.product((0, 1, 2), (0, 1, 2), (True, False))
    ],
    ids=str,
)
def test_every_crash_leaves_whole_transactions(durability: Durability) -> None:
    least: dict[CrashKind, int] = dict.fromkeys(CrashKind, 0)
    bench = Bench(durability)

    def reached(disk: SimulatedDisk, point: CrashPoint) -> None:
        for kind in CrashKind:
            for _, left in disk.crashes(kind, Coverage.EDGES):
                found = Bench(durability).storage(left)
                done = bench.states.index(rows_of(found.tables))
                assert found.ledger == list(range(done))
                assert (done >= 3) == bool(found.info.rows("info"))
                least[kind] = max(least[kind], bench.number - done)
                if promised(durability, kind):
                    assert bench.number <= done <= bench.number + 1
                    assert found.executed_gtids == GtidSet(f"{UUID}:1-{done}" if done else "")

    disk = SimulatedDisk(medium=TAME, observer=reached)
    bench.run(disk)
    for kind in CrashKind:
        assert (least[kind] == 0) == promised(durability, kind), (
            "what is not promised is lost by some crash"
        )


def test_a_prepared_transaction_is_committed_when_the_binary_log_has_it() -> None:
    bench = Bench(Durability())
    disk = SimulatedDisk()
    bench.run(disk)
    names = [
        str(operation).split(" ", 1)[1]
        for operation in disk.operations
        if operation.action in ("write", "fsync")
    ][-4:]
    assert [
        name.rsplit(" bytes", 1)[0].rsplit(" ", 1)[0] if "bytes" in name else name for name in names
    ] == [
        "write ib_logfile0",
        "fsync ib_logfile0",
        "write binlog.000001",
        "fsync binlog.000001",
    ]
    disk.open("binlog.000001").truncate(disk.open("binlog.000001").size() - 1)
    found = bench.storage(disk)
    assert rows_of(found.tables) == bench.states[COUNT - 1], (
        "prepared, not in the binary log: rolled back"
    )
    assert rows_of(bench.storage(disk).tables) == bench.states[COUNT - 1]


def test_a_rolled_back_number_is_not_used_again() -> None:
    """Behind a start that rolled back, the next transaction must not be taken for the one that was
    given up, nor the other way round."""
    bench = Bench(Durability())
    disk = SimulatedDisk()
    bench.run(disk)
    disk.open("binlog.000001").truncate(disk.open("binlog.000001").size() - 1)
    storage = bench.storage(disk)
    storage.begin()
    storage.tables["d.t"].insert((50, 50))
    storage.commit(Commit(f"{UUID}:50", row_changes(storage.tables._journal)))
    again = bench.storage(disk)
    assert rows_of(again.tables) == rows_of(storage.tables)
    assert (50, 50) in again.tables["d.t"].rows()
    assert again.executed_gtids == GtidSet(f"{UUID}:1-{COUNT - 1}:50")


def test_non_transactional_rows_stay() -> None:
    """They are written at once, survive a rollback and a killed process, and have parts of their
    own in the ledger."""
    bench, disk = Bench(Durability()), SimulatedDisk()
    storage = bench.storage(disk)
    storage.begin()
    table = storage.tables["d.m"]
    journal: list[object] = []
    table.journal = journal  # type: ignore[assignment]
    table.insert((7,))
    table.journal = None
    storage.write_through(row_changes(journal))  # type: ignore[arg-type]
    storage.rollback()
    again = bench.storage(disk)
    assert rows_of(again.tables) == {"t": [], "m": [(7,)]}
    assert again.ledger == [(0, 1)]
    left = {
        len(bench.storage(found).ledger) for _, found in disk.crashes(CrashKind.OS, Coverage.EVERY)
    }
    assert left == {0, 1}, "a machine that crashes may lose it: nothing syncs it"


@given(st.lists(st.integers(-6, 30), max_size=12), st.sampled_from(["InnoDB", "MyISAM"]))
def test_a_redone_table_goes_on_like_the_first(steps: list[int], engine: str) -> None:
    """Rows without a key have places: after redoing half of the changes, the other half must find
    the same places free."""
    tables = [
        load_schema(f"CREATE DATABASE d; CREATE TABLE d.t (v INT) ENGINE={engine}")["d.t"]
        for _ in range(2)
    ]
    journals: list[list[Change]] = [[], []]
    for number, (table, journal) in enumerate(zip(tables, journals, strict=True)):
        table.journal = journal
        for at, value in enumerate(steps):
            if number == 1 and at == len(steps) // 2:
                break
            change_table(table, value)
    again = load_schema(f"CREATE DATABASE d; CREATE TABLE d.t (v INT) ENGINE={engine}")["d.t"]
    for change in row_changes(journals[1]):
        again.redo((again, change.ref_before, change.before, change.ref_after, change.after))
    for value in steps[len(steps) // 2 :]:
        change_table(again, value)
    assert list(again.scan()) == list(tables[0].scan())


def change_table(table: MemoryTable, value: int) -> None:
    refs = table.refs()
    if value >= 0 or not refs:
        table.insert((value,))
    elif value % 2:
        table.delete(refs[value % len(refs)])
    else:
        table.update(refs[value % len(refs)], (value,))


def test_non_transactional_info_rows() -> None:
    disk = SimulatedDisk()
    storage = DurableStorage(
        disk, load_schema(SCHEMA), Durability(), version="5.7", info_transactional=False
    )
    storage.recover()
    assert not storage.info.transactional
    storage.begin()
    storage.info.write("info", {"Id": 1}, {"Id": 1, "position": 5})
    storage.rollback()
    again = DurableStorage(
        disk, load_schema(SCHEMA), Durability(), version="5.7", info_transactional=False
    )
    again.recover()
    assert again.info.rows("info") == [{"Id": 1, "position": 5}]
    again.info.delete("info", {"Id": 1})
    assert again.info.rows("info") == []


@given(
    st.lists(st.tuples(st.integers(), st.binary(max_size=9)), max_size=4),
    st.integers(0, 200),
    st.binary(max_size=40),
)
def test_records(records: list[tuple[int, bytes]], cut: int, tail: bytes) -> None:
    """Whatever stands behind the last whole record, it is not read, and the next start writes over
    it."""
    frames = [framed(record) for record in records]
    data = b"".join(frames)
    kept = data[:cut]
    whole = next(
        count for count in range(len(frames), -1, -1) if len(b"".join(frames[:count])) <= len(kept)
    )
    assert [record for record, _ in whole_records(kept, {})] == records[:whole]
    assert [record for record, _ in whole_records(data + bytes(len(tail)), {})] == records
    disk = SimulatedDisk({"log": kept})
    file = RecordFile(disk, "log")
    file.append("next")
    file.sync()
    assert [record for record, _ in whole_records(disk.contents()["log"], {})] == [
        *records[:whole],
        "next",
    ]
