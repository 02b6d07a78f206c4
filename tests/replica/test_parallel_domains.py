"""Workers of MariaDB in the emulated replica: who commits when, what a kill leaves, and that
nothing comes twice or never."""

from __future__ import annotations

import random
import struct

import pytest

import applier
from applier.binlog.gtid_events import MariadbGtidEvent as Marked
from applier.errors import ReplicationError, UsageError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.interleaving import Eager, InOrder, Interleaving, Shuffled
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from checkpoints.gtid_slave_pos import TABLE
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk
from tests.binlog.build import int_image, log, mariadb_gtid, query, rows, table_map, xid
from tests.replica.replicas import Rig, replayed
from tests.replica.test_mariadb import CAPTURE, WITH_XA, committed

VERSION = "10.11.6-MariaDB"
GTID_LIST = 163
DOMAINS = (0, 0, 5, 0, 5, 7, 0, 5, 5, 0, 7, 0)


def source(domains: tuple[int, ...] = DOMAINS, *, files: int = 2) -> BinlogFiles:
    """A row with a number of its own for each group; the second half may stand in another file, of
    a server that was started again."""
    sequence = dict.fromkeys(domains, 0)
    events = []
    for number, domain in enumerate(domains, 1):
        sequence[domain] += 1
        flags = Marked.TRANSACTIONAL | Marked.ALLOW_PARALLEL
        events += [
            mariadb_gtid(sequence[domain], flags, domain=domain),
            table_map(),
            rows(30, int_image(number)),
            xid(number),
        ]
    half = len(events) // 8 * 4 if files == 2 else 0
    before = {domain: domains[: half // 4].count(domain) for domain in sorted(set(domains))}
    listed = struct.pack("<I", len(before)) + b"".join(
        struct.pack("<IIQ", domain, 1, count) for domain, count in before.items()
    )
    parts = [events[:half], [(GTID_LIST, listed), *events[half:]]] if half else [events]
    return BinlogFiles(
        {
            f"binlog.{number:06}": log(*part, version=VERSION)
            for number, part in enumerate(parts, 1)
        },
        server_id=1,
    )


class Servers:
    """A replica that is started again and again on what the one before left."""

    def __init__(
        self, interleaving: Interleaving | None = None, *, files: int = 2, **options: object
    ) -> None:
        self.source, self.interleaving, self.options = source(files=files), interleaving, options
        self.storage = MemoryStorage(
            applier.load_schema("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY);")
        )
        self.disk = SimulatedDisk()

    def start(self, **options: object) -> Replica:
        given = {"workers": 4, "using_gtid": "Slave_Pos", **self.options, **options}
        configuration = ReplicaConfiguration("mariadb", **given)  # type: ignore[arg-type]
        start = Position("binlog.000001", 4) if configuration.using_gtid == "No" else None
        replica = Replica(
            self.disk,
            configuration,
            self.source,
            self.storage,
            start_at=start,
            interleaving=self.interleaving,
            clock=int,
        )
        replica.start()
        return replica

    @property
    def rows(self) -> list[int]:
        return [row[0] for row in self.storage.tables["d.t"].stored_rows()]

    @property
    def sub_ids(self) -> dict[tuple[int, int], int]:
        """Domain and sequence number -> sub_id."""
        return {
            (row["domain_id"], row["seq_no"]): row["sub_id"]
            for row in self.storage.info.rows(TABLE)
        }


def order_of(servers: Servers, replica: Replica) -> list[int]:
    """The groups by their numbers, as they are committed."""
    found: list[int] = []
    while replica.apply(1):
        found += sorted(set(servers.rows) - set(found))
    return found


def in_domain(numbers: list[int], domain: int) -> list[int]:
    return [number for number in numbers if DOMAINS[number - 1] == domain]


@pytest.mark.parametrize("seed", range(5))
def test_a_domain_commits_in_order_whatever_the_others_do(seed: int) -> None:
    servers = Servers(Shuffled(seed), relay_log_purge=False)
    replica = servers.start()
    replica.receive()
    order = order_of(servers, replica)
    assert sorted(order) == list(range(1, 13))
    assert order != sorted(order)
    for domain in set(DOMAINS):
        assert in_domain(order, domain) == sorted(in_domain(order, domain))
    # sub_id follows the log
    sequence = [(domain, DOMAINS[: at + 1].count(domain)) for at, domain in enumerate(DOMAINS)]
    assert [servers.sub_ids[one] for one in sequence] == sorted(servers.sub_ids.values())


@pytest.mark.parametrize("options", [{"using_gtid": "No"}, {"parallel_type": "MINIMAL"}], ids=str)
def test_by_position_and_in_mode_minimal_there_is_one_domain(options: dict[str, str]) -> None:
    servers = Servers(Shuffled(3), **options)
    replica = servers.start()
    replica.receive()
    assert order_of(servers, replica) == list(range(1, 13))


@pytest.mark.parametrize(
    "interleaving",
    [InOrder(), Eager(), Shuffled(1), Shuffled(2), Shuffled(9)],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize(
    ("using_gtid", "recovery"),
    [("Slave_Pos", False), ("Slave_Pos", True), ("No", False), ("No", True)],
)
def test_a_kill_between_commits_loses_nothing_and_repeats_nothing(
    using_gtid: str, recovery: bool, interleaving: Interleaving
) -> None:
    rnd = random.Random(5)
    servers = Servers(interleaving, using_gtid=using_gtid, max_relay_log_size=4096)
    for _ in range(6):
        replica = servers.start(relay_log_recovery=recovery, workers=rnd.choice((1, 2, 4)))
        replica.receive(rnd.choice((9, 20, 40)))
        replica.apply(2)
    replica = servers.start(workers=0)
    replica.receive()
    replica.apply()
    assert servers.rows == list(range(1, 13))
    assert str(replica.status.executed_gtids) == str(
        servers.source.domains_at(*servers.source.end())
    )
    applied = replica.status.memory.applied
    assert applied is not None
    assert applied.source_position == Position(*servers.source.end())


class LastFirst(InOrder):
    """The domain that came last commits first."""

    def next(self, runnable: int) -> int:
        return runnable - 1


def test_a_domain_that_is_ahead_takes_the_position_along_and_gtids_remember_the_gap() -> None:
    servers = Servers(LastFirst(), files=1, relay_log_purge=False)
    replica = servers.start()
    replica.receive()
    replica.apply(2)
    assert servers.rows == [6, 11]
    assert str(replica.status.executed_gtids) == "7-1-2"
    ahead = replica.status.memory.applied
    assert replica.apply(1) == 1
    assert replica.status.memory.applied == ahead
    again = servers.start(workers=0)
    again.receive()
    again.apply()
    assert servers.rows == list(range(1, 13))


def test_an_event_between_groups_moves_the_position_and_not_the_record() -> None:
    servers = Servers(using_gtid="No", workers=2)
    replica = servers.start()
    replica.receive()
    replica.apply(6)
    while (
        replica.memory.applied is not None
        and replica.memory.applied.source_log_name == "binlog.000001"
    ):
        assert replica._applier is not None
        assert replica._applier.step()
    kept = replica.status.persisted.applied
    assert kept is not None
    assert kept.source_log_name == "binlog.000001"
    assert servers.rows == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("using_gtid", "interleaving", "expected"),
    [
        ("No", InOrder(), [1]),
        ("Slave_Pos", InOrder(), [1, 3]),
        ("No", Eager(), [1, 2, 3, 4, 5]),
        ("Slave_Pos", Eager(), [1, 2, 3, 4, 5]),
    ],
)
def test_where_the_relay_log_cannot_be_read_on_what_was_begun_is_executed(
    using_gtid: str, interleaving: Interleaving, expected: list[int]
) -> None:
    servers = Servers(interleaving, using_gtid=using_gtid)
    replica = servers.start()
    replica.receive()
    name = "relay.000002"
    with_six = servers.disk.contents()[name].index(int_image(6))
    servers.disk.open(name).truncate(with_six)
    with pytest.raises(ReplicationError):
        replica.apply()
    assert servers.rows == expected


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("mode", ["conservative", "aggressive"])
@pytest.mark.parametrize("capture", [CAPTURE, WITH_XA])
def test_killed_behind_some_groups_of_a_capture(capture: str, mode: str, workers: int) -> None:
    """XA transactions are groups as others are, in the order of their domain."""
    rig = Rig.of(capture)
    options = {"using_gtid": "Slave_Pos", "workers": workers, "parallel_type": mode}
    replica = rig.replica("mariadb", **options)
    for _ in range(8):
        replica.receive(40)
        replica.apply(3)
        replica = rig.replica("mariadb", **options)
    replica.receive()
    replica.apply()
    assert committed(rig) == replayed(capture, "mariadb")


def test_an_alter_table_in_two_parts_is_refused() -> None:
    """binlog_alter_two_phase: workers carry out other transactions between the two."""
    servers = Servers()
    begins = mariadb_gtid(1, Marked.DDL | Marked.STANDALONE, rest=bytes([Marked.START_ALTER]))
    servers.source = BinlogFiles(
        {
            "binlog.000001": log(
                (GTID_LIST, bytes(4)), begins, query(b"ALTER TABLE t ADD b INT"), version=VERSION
            )
        }
    )
    replica = servers.start()
    replica.receive()
    with pytest.raises(ReplicationError, match="two parts is not emulated with workers"):
        replica.apply()


def test_its_options() -> None:
    assert ReplicaConfiguration("mariadb", workers=16383).parallel_type == "optimistic"
    assert ReplicaConfiguration("mariadb", workers=3, parallel_type="NONE").workers == 0
    for options, message in (
        ({"workers": 16384}, "out of range"),
        ({"parallel_type": "LOGICAL_CLOCK"}, "has no parallel_type"),
    ):
        with pytest.raises(UsageError, match=message):
            ReplicaConfiguration("mariadb", **options)  # type: ignore[arg-type]
