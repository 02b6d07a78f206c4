"""The end of the relay logs is lost, as in a crash of the machine: a real replica and the emulated
one make the same of it.

A replica that has received everything and applied nothing is killed, its newest relay log is cut at
some place, and it is started: 5.7 keeps the partial transaction, 9.7 cuts it off and fetches it
again.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import pymysql.cursors
import pytest
from pymysql.err import MySQLError
from servers.server import ServerError

from applier.binlog.header import EventType
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from checkpoints.gtid import GtidSet
from checkpoints.info_rows import key_columns
from checkpoints.simulated_disk import SimulatedDisk
from tests.checkpoints.recovery_captures import TABLES
from tests.replica.real_pairs import Pair, shown
from tests.replica.recovery_scenarios import events_of
from tests.servers.fixtures import ServerFactory

TABLE = "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT)"
TABLE_REPOSITORIES = {"relay_log_info_repository": "TABLE", "master_info_repository": "TABLE"}
NOT_EXECUTED = 4 * 5
"""Events of four transactions of one row."""
ALL = os.environ.get("BINLAG_ALL_CASES") == "1"
CUTS = [
    ("5.7", False, [(1, 7), (3, 0)]),
    ("9.7", False, [(1, 7), (21, 0), (24, 7)]),
]
MORE = [
    ("5.7", True, [(1, 7), (3, 0)]),
    ("9.7", False, [(1, 0), (3, 0), (5, 7), (20, 0), (22, 0), (23, 0)]),
]
"""Version, auto-position, and for each cut: how many events are gone, and how many bytes of the
first of them are not."""


class CutPair(Pair):
    """The two servers, and what the replica's data were when it was killed."""

    def prepare(self, *more: str) -> None:
        for server in (self.source, self.replica):
            server.execute("SET sql_log_bin = 0", "CREATE DATABASE d", TABLE)
        self.source.execute("INSERT INTO d.t VALUES (1, 'x')", "FLUSH BINARY LOGS")
        self.change_source()
        self.run("START REPLICA IO_THREAD")
        self.source.execute(
            *(
                f"INSERT INTO d.t VALUES ({number}, REPEAT('x', {number * 6}))"
                for number in range(10, 14)
            ),
            *more,
        )
        file, self.end = self.source_end()
        self.wait(Master_Log_File=file, Read_Master_Log_Pos=self.end)
        self.replica.kill()
        self.saved = self.replica.folder / "saved"
        shutil.copytree(self.replica.data, self.saved)

    def prepare_ahead(self) -> dict[str, list[dict[str, Any]]]:
        """A worker has executed four transactions, the low-water mark is before them, and as many
        more wait. The info tables."""
        for server in (self.source, self.replica):
            server.execute("SET sql_log_bin = 0", "CREATE DATABASE d", TABLE)
        self.change_source()
        self.run("START REPLICA")
        self.source.execute(*(f"INSERT INTO d.t VALUES ({number}, 'x')" for number in range(4)))
        end = time.monotonic() + 120
        while self.replica.query("SELECT COUNT(*) FROM d.t")[0][0] < 4:
            assert time.monotonic() < end
            time.sleep(0.05)
        lock = self.replica.connect()
        with lock.cursor() as cursor:
            cursor.execute("LOCK TABLES d.t READ")
        self.source.execute(*(f"INSERT INTO d.t VALUES ({number}, 'x')" for number in range(4, 8)))
        file, self.end = self.source_end()
        self.wait(Master_Log_File=file, Read_Master_Log_Pos=self.end)
        rows = self.rows()
        self.replica.kill()
        lock.close()
        self.saved = self.replica.folder / "saved"
        shutil.copytree(self.replica.data, self.saved)
        return rows

    def cut(self, events: int, left: int) -> None:
        """Puts the killed data back, with the end of the newest relay log gone."""
        if self.replica.running:
            self.replica.kill()
        shutil.rmtree(self.replica.data)
        shutil.copytree(self.saved, self.replica.data)
        newest = sorted(self.replica.data.glob("relay.0*"))[-1]
        content = newest.read_bytes()
        parts = events_of(content)
        newest.write_bytes(
            content[: len(content) - sum(map(len, parts[len(parts) - events :])) + left]
        )

    def garble(self, type_code: int, offset: int) -> None:
        """The killed data again, with zeros from that offset on in the last event of a type of the
        newest relay log."""
        self.cut(1, 0)
        newest = sorted(self.replica.data.glob("relay.0*"))[-1]
        content = (self.saved / newest.name).read_bytes()
        at = len(content)
        for part in reversed(events_of(content)):
            at -= len(part)
            if part[4] == type_code:
                newest.write_bytes(content[: at + offset] + bytes(len(content) - at - offset))
                return
        raise AssertionError(f"no event of type {type_code}")

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The info tables."""
        connection = self.replica.connect(cursorclass=pymysql.cursors.DictCursor)
        found = {}
        try:
            with connection.cursor() as cursor:
                for table in TABLES:
                    cursor.execute(f"SELECT * FROM mysql.{table}")
                    found[table] = [dict(row) for row in cursor.fetchall()]
        finally:
            connection.close()
        return found

    def settle(self) -> dict[str, Any]:
        """Until the replica has caught up or has stopped. Workers still run for a while behind the
        error that stops them, and what comes behind the last position may still stop the applier:
        only one that waits for more has caught up."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            status = self.status()
            waits = "has read all relay log" in status["Slave_SQL_Running_State"]
            if (waits and status["Exec_Master_Log_Pos"] == self.end) or (
                status["Last_SQL_Errno"] and status["Slave_SQL_Running"] == "No"
            ):
                return status
            time.sleep(0.05)
        raise ServerError(f"neither caught up nor stopped: {status}")

    def go_on(self, own: Replica) -> int:
        """Both replicas start, and go on until they have caught up or stopped: at the same place,
        for the same reason.

        Returns the number of the error that stopped them, or 0.
        """
        self.run("START REPLICA")
        real, number = self.settle(), 0
        try:
            own.receive()
            own.apply()
        except ReplicationError as error:
            number = error.number
        applied = own.status.memory.applied
        assert applied is not None
        assert (number, applied.source_log_pos) == (
            real["Last_SQL_Errno"],
            real["Exec_Master_Log_Pos"],
        )
        return number

    def seen(self, status: dict[str, Any]) -> tuple[Any, ...]:
        names = (
            "Master_Log_File Read_Master_Log_Pos Relay_Log_File Relay_Log_Pos "
            "Relay_Master_Log_File Exec_Master_Log_Pos"
        ).split()
        sizes = {name: len(content) for name, content in self.relay_logs().items()}
        return (
            *(status[name] for name in names),
            status["Retrieved_Gtid_Set"].replace("\n", ""),
            sizes,
        )


def emulated(
    pair: CutPair,
    disk: SimulatedDisk,
    gtids: str,
    rows: dict[str, list[dict[str, Any]]],
    **options: Any,
) -> Replica:
    """A replica with the data that the real one has at the start; `options` are its
    configuration's."""
    tables = Tables()
    tables.create(parse_create_table(TABLE, "d", SchemaRules()))
    storage = MemoryStorage(tables, executed_gtids=GtidSet(gtids))
    for table, found in rows.items():
        for row in found:
            storage.info.write(
                table,
                {column: row[column] for column in key_columns(TABLES[table], pair.version)},
                row,
            )
    configuration = ReplicaConfiguration(
        pair.version,
        server_version=str(pair.replica.query("SELECT @@version")[0][0]),
        gtid_mode=pair.replica.query("SELECT @@GLOBAL.gtid_mode")[0][0] == "ON",
        auto_position=pair.gtids,
        relay_log_info_repository="TABLE",
        master_info_repository="TABLE",
        **{"workers": 0 if pair.version == "5.7" else 1, **options},
    )
    source = BinlogFiles(
        pair.source_files(), uuid=str(pair.source.query("SELECT @@server_uuid")[0][0]), server_id=1
    )
    return Replica(disk, configuration, source, storage, clock=int)


@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_cut_behind_or_before_the_last_group_of_a_worker(
    version: str, server_factory: ServerFactory
) -> None:
    """relay_log_recovery=1 and one worker ahead of the low-water mark: what is cut behind its last
    group does no harm, what is cut before leaves nothing initialized."""
    word = "slave" if version == "5.7" else "replica"
    workers = {f"{word}_parallel_workers": 1, f"{word}_checkpoint_period": (1 << 32) - 1}
    more = {} if version == "9.7" else TABLE_REPOSITORIES
    with CutPair(
        server_factory, version, relay_log_purge=1, relay_log_recovery=1, **workers, **more
    ) as pair:
        rows = pair.prepare_ahead()
        for events, is_whole in ((NOT_EXECUTED, True), (NOT_EXECUTED + 2, False)):
            pair.cut(events, 7)
            disk = SimulatedDisk(
                {
                    **pair.relay_logs(),
                    "relay.index": (pair.replica.data / "relay.index").read_bytes(),
                }
            )
            pair.replica.start()
            own = emulated(pair, disk, "", rows, workers=1, relay_log_recovery=True)
            if is_whole:
                own.start()
                assert shown(own) == pair.seen(pair.status())
                pair.replica.execute(f"SET GLOBAL {word}_checkpoint_period = 100")
                assert pair.go_on(own) == 0
                continue
            with pytest.raises(ReplicationError) as refused:
                own.start()
            with pytest.raises(MySQLError) as really:
                pair.run("START REPLICA")
            assert refused.value.number == really.value.args[0]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("version", "gtids", "cuts"), CUTS + (MORE if ALL else []))
def test_cut(
    version: str, gtids: bool, cuts: list[tuple[int, int]], server_factory: ServerFactory
) -> None:
    options = {"replica_parallel_workers": 1} if version == "9.7" else TABLE_REPOSITORIES
    with CutPair(server_factory, version, gtids=gtids, relay_log_purge=1, **options) as pair:
        pair.prepare()
        for events, left in cuts:
            pair.cut(events, left)
            disk = SimulatedDisk(
                {
                    **pair.relay_logs(),
                    "relay.index": (pair.replica.data / "relay.index").read_bytes(),
                }
            )
            pair.replica.start()
            own = emulated(
                pair,
                disk,
                str(pair.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0]),
                pair.rows(),
            )
            own.start()
            assert shown(own) == pair.seen(pair.status()), (events, left)
            pair.go_on(own)
            assert shown(own) == pair.seen(pair.status()), (events, left)
            assert len(own.tables["d.t"]) == pair.replica.query("SELECT COUNT(*) FROM d.t")[0][0]


GARBLED = [
    (EventType.QUERY, 35, 1594),
    (EventType.TABLE_MAP, 20, 1594),
    (EventType.TABLE_MAP, 27, 1594),
    (EventType.WRITE_ROWS, 32, 1610),
]
"""The event from which on there are zeros, from which byte, and the error."""


@pytest.mark.parametrize("version", ["5.6", "5.7"])
def test_zeros_at_the_end_without_checksums(version: str, server_factory: ServerFactory) -> None:
    """The fields of an event are all that shows its damage: Log_event::read_log_event makes none of
    it, or unpack_row runs out of it."""
    with CutPair(
        server_factory,
        version,
        source_options={"binlog-checksum": "NONE"},
        relay_log_purge=0,
        **TABLE_REPOSITORIES,
    ) as pair:
        pair.prepare("INSERT INTO d.t VALUES (50, 'x')")
        for type_code, offset, number in GARBLED:
            pair.garble(type_code, offset)
            disk = SimulatedDisk(
                {
                    **pair.relay_logs(),
                    "relay.index": (pair.replica.data / "relay.index").read_bytes(),
                }
            )
            pair.replica.start()
            own = emulated(pair, disk, "", pair.rows(), workers=0)
            own.start()
            assert pair.go_on(own) == number, (type_code, offset)


@pytest.mark.parametrize("version", ["5.7", "9.7"])
def test_an_empty_newest_relay_log(version: str, server_factory: ServerFactory) -> None:
    """Behind FLUSH RELAY LOGS: 9.7 cannot open it and looks over none of them, and the applier
    comes to its first byte."""
    options = {"replica_parallel_workers": 1} if version == "9.7" else TABLE_REPOSITORIES
    with CutPair(server_factory, version, gtids=True, relay_log_purge=1, **options) as pair:
        pair.prepare()
        pair.replica.start()
        pair.run("FLUSH RELAY LOGS")
        pair.replica.kill()
        sorted(pair.replica.data.glob("relay.0*"))[-1].write_bytes(b"")
        disk = SimulatedDisk(
            {**pair.relay_logs(), "relay.index": (pair.replica.data / "relay.index").read_bytes()}
        )
        pair.replica.start()
        own = emulated(
            pair, disk, str(pair.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0]), pair.rows()
        )
        own.start()
        assert shown(own) == pair.seen(pair.status())
        assert pair.go_on(own) == (13121 if version == "9.7" else 1594)


@pytest.mark.parametrize(("version", "number"), [("5.6", 1594), ("5.7", 0)])
def test_a_restart_behind_the_head_without_checksums(
    version: str, number: int, server_factory: ServerFactory
) -> None:
    """Nothing is damaged: 5.6 with GTIDs does not come to the source's format description, and
    looks for checksums that are not there."""
    options = {"relay_log_purge": 0, **TABLE_REPOSITORIES}
    with CutPair(
        server_factory, version, gtids=True, source_options={"binlog-checksum": "NONE"}, **options
    ) as pair:
        for server in (pair.source, pair.replica):
            server.execute("SET sql_log_bin = 0", "CREATE DATABASE d", TABLE)
        pair.change_source()
        pair.run("START REPLICA")
        pair.source.execute("INSERT INTO d.t VALUES (1, 'x')")
        file, end = pair.source_end()
        pair.wait(Relay_Master_Log_File=file, Exec_Master_Log_Pos=end)
        pair.run("STOP REPLICA SQL_THREAD")
        pair.source.execute("INSERT INTO d.t VALUES (2, 'x')")
        file, pair.end = pair.source_end()
        pair.wait(Master_Log_File=file, Read_Master_Log_Pos=pair.end)
        pair.replica.kill()
        disk = SimulatedDisk(
            {**pair.relay_logs(), "relay.index": (pair.replica.data / "relay.index").read_bytes()}
        )
        pair.replica.start()
        own = emulated(
            pair,
            disk,
            str(pair.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0]),
            pair.rows(),
            workers=0,
        )
        own.start()
        assert pair.go_on(own) == number


def test_a_relay_log_that_does_not_begin_as_one(server_factory: ServerFactory) -> None:
    """5.7 opens the applier's relay log when the server starts: 1872, whatever of its first four
    bytes is wrong."""
    with CutPair(server_factory, "5.7", relay_log_purge=0, **TABLE_REPOSITORIES) as pair:
        pair.prepare()
        place = pair.replica.data / "relay.000001"
        whole = place.read_bytes()
        for content in (b"", whole[:2], b"\xff" + whole[1:]):
            place.write_bytes(content)
            disk = SimulatedDisk(
                {
                    **pair.relay_logs(),
                    "relay.index": (pair.replica.data / "relay.index").read_bytes(),
                }
            )
            pair.replica.start()
            with pytest.raises(ReplicationError) as refused:
                emulated(pair, disk, "", pair.rows()).start()
            with pytest.raises(MySQLError) as really:
                pair.run("START REPLICA")
            assert refused.value.number == really.value.args[0] == 1872
            pair.replica.kill()


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("gtids", [False, True])
@pytest.mark.parametrize("version", ["5.6", "5.7", "9.7"])
def test_recovery_reads_the_relay_logs_up_to_the_sources_place(
    version: str, gtids: bool, server_factory: ServerFactory
) -> None:
    """relay_log_recovery=1 before the applier's first event: the place is in the first relay log
    with a rotate event of the source. One that cannot be opened ends the search."""
    options = {"replica_parallel_workers": 1} if version == "9.7" else TABLE_REPOSITORIES
    with CutPair(
        server_factory, version, gtids=gtids, relay_log_purge=0, relay_log_recovery=1, **options
    ) as pair:
        pair.prepare()
        first = pair.replica.data / "relay.000002"
        whole = first.read_bytes()
        for content in (b"", whole[:3], whole[:50], whole[:130], whole[:200]):
            first.write_bytes(content)
            disk = SimulatedDisk(
                {
                    **pair.relay_logs(),
                    "relay.index": (pair.replica.data / "relay.index").read_bytes(),
                }
            )
            pair.replica.start()
            executed = str(pair.replica.query("SELECT @@GLOBAL.gtid_executed")[0][0])
            own = emulated(pair, disk, executed, pair.rows(), relay_log_recovery=True)
            number = 0
            try:
                own.start()
            except ReplicationError as error:
                number = error.number
            really = 0
            try:
                pair.run("START REPLICA")
            except MySQLError as error:
                really = error.args[0]
            assert number == really, len(content)
            pair.replica.kill()
            shutil.rmtree(pair.replica.data)
            shutil.copytree(pair.saved, pair.replica.data)
