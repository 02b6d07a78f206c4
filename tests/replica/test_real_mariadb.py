"""The emulated replica of MariaDB beside a real one: relay logs event by event, info files byte by
byte, positions and GTIDs."""

from __future__ import annotations

import itertools
import os
import re
import time
from dataclasses import replace
from typing import Any

import pytest

import applier
from applier.binlog.header import EventType
from applier.errors import ReplicationError
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.replica import Replica
from applier.replica.scheduling import CONSERVATIVE, OPTIMISTIC
from applier.replica.source import BinlogFiles
from applier.replica.storage import MemoryStorage
from applier.tables.catalog import Tables
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.execution import apply_ddl
from checkpoints.gtid import MariadbGtidSet
from checkpoints.gtid_slave_pos import position
from checkpoints.info import RelayLogInfo, SourceInfo
from checkpoints.info_files import parse
from checkpoints.position import Position
from checkpoints.simulated_disk import SimulatedDisk
from tests.replica.kills.__main__ import of_setup
from tests.replica.kills.setups import Kill, Setup
from tests.replica.mariadb_pairs import VERSION, MariadbPair
from tests.replica.recovery_scenarios import events_of
from tests.replica.test_real_relay_logs import shown as events_shown
from tests.servers.fixtures import ServerFactory

SIZE = 4096
FILES = re.compile(r"relay\.\d+|relay\.index|(relay-log|master)\.info")


class Both:
    """A real pair, and an emulated replica of the same source that is asked for the same.

    `has_races`: workers race with the thread that reads the relay logs. Which position it records
    where a file ends, and which files it deletes, is a matter of time then.
    """

    def __init__(self, pair: MariadbPair, *, has_races: bool = False, **options: Any) -> None:
        self.pair, self.has_races = pair, has_races
        self.disk, self.storage, self.options = SimulatedDisk(), MemoryStorage(Tables()), options
        self.replica = self._replica(pair.source_files())
        self.replica.start()

    def _replica(self, files: dict[str, bytes]) -> Replica:
        version = str(self.pair.replica.query("SELECT @@version")[0][0])
        self.source = BinlogFiles(files, server_id=1)
        configuration = ReplicaConfiguration(
            VERSION, server_version=version, using_gtid=self.pair.using_gtid, **self.options
        )
        start = Position("mbinlog.000001", 4) if self.pair.using_gtid == "no" else None
        return Replica(self.disk, configuration, self.source, self.storage, start_at=start)

    def go_on(self) -> None:
        """Both apply all that the source has."""
        self.pair.settle()
        self.source.files.update(self.pair.source_files())
        self.replica.receive()
        self.replica.apply()

    def restart(self, *, crash: bool = False) -> None:
        self.pair.replica.kill() if crash else self.pair.replica.stop()
        self.pair.replica.start()
        if not crash:
            self.replica.shutdown()
        self.replica = self._replica(self.pair.source_files())
        self.replica.start()

    def agree(self, where: str, *, logs: bool = True) -> None:
        """On positions, relay logs, records and GTIDs."""
        real, own = self._real(), self.disk.contents()
        memory, status = self.replica.status.memory, self.pair.status()
        assert memory.applied is not None
        assert memory.received is not None
        assert (memory.received.source_log_name, memory.received.source_log_pos) == (
            status["Master_Log_File"],
            status["Read_Master_Log_Pos"],
        ), where
        assert (
            str(memory.applied.source_position)
            == f"{status['Relay_Master_Log_File']}:{status['Exec_Master_Log_Pos']}"
        ), where
        relay_position = f"{status['Relay_Log_File']}:{status['Relay_Log_Pos']}"
        assert (
            self.has_races
            or str(memory.applied.relay_position).removeprefix("./") == relay_position
        ), where
        assert _domains(self.replica.retrieved_gtids) == _domains(status["Gtid_IO_Pos"]), where
        rows = [
            dict(zip(("domain_id", "sub_id", "server_id", "seq_no"), row, strict=True))
            for row in self._gtid_rows()
        ]
        assert str(position(rows)) == str(self.replica.status.executed_gtids), where
        if not self.has_races:
            assert sorted(name for name in own if FILES.fullmatch(name)) == sorted(real), where
            assert own["relay.index"] == real["relay.index"], where
        assert sorted(own)[-1] == sorted(real)[-1], where
        for name, content in real.items():
            if name[-1].isdigit() and logs and (name in own or not self.has_races):
                assert _ordered(events_shown(own[name])) == _ordered(events_shown(content)), (
                    where,
                    name,
                )
        self._records_agree(real, own, where)

    def _records_agree(self, real: dict[str, bytes], own: dict[str, bytes], where: str) -> None:
        """Byte for byte, but for how to connect."""
        assert self.has_races or own["relay-log.info"] == real["relay-log.info"], where
        mine = parse(SourceInfo, own["master.info"], VERSION).record
        theirs = parse(SourceInfo, real["master.info"], VERSION).record
        assert (mine.source_log_name, mine.source_log_pos, mine.using_gtid) == (
            theirs.source_log_name,
            theirs.source_log_pos,
            theirs.using_gtid,
        ), where
        parse(RelayLogInfo, own["relay-log.info"], VERSION)

    def _real(self) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in self.pair.replica.data.iterdir()
            if FILES.fullmatch(path.name)
        }

    def _gtid_rows(self) -> list[tuple[Any, ...]]:
        return list(
            self.pair.replica.query(
                "SELECT domain_id, sub_id, server_id, seq_no FROM mysql.gtid_slave_pos"
            )
        )


FILES_ONLY = Setup(VERSION, "FILE", "FILE", recovery=False, parallel_type=OPTIMISTIC)
BY_GTID = replace(FILES_ONLY, auto_position=True, using_gtid="slave_pos")
KILLS = {
    "position": (FILES_ONLY, Kill(("all rows", "new log", "plain"), 3, 0.6, flushes=True)),
    "slave_pos": (BY_GTID, Kill(("domains", "plain"), 3, 0.6, flushes=False)),
    "recovery": (
        replace(FILES_ONLY, recovery=True, relay_log_bytes=SIZE),
        Kill(("ddl", "large"), 1, 0.6, flushes=False, second=0.2),
    ),
    "workers": (replace(BY_GTID, workers=4), Kill(("domains", "large"), 4, 0.6, flushes=True)),
    "workers by position": (
        replace(FILES_ONLY, workers=2, parallel_type=CONSERVATIVE),
        Kill(("domains", "new log"), 4, 0.6, flushes=True),
    ),
}
CI_KILLS = ("position", "workers")


@pytest.mark.parametrize("name", KILLS if os.environ.get("BINLAG_ALL_CASES") == "1" else CI_KILLS)
def test_kill(name: str) -> None:
    """kill -9 under load: started on what is left, the emulated replica stands where the real one
    stands and ends as it ends."""
    setup, kill = KILLS[name]
    ((_, _, agreement, problem),) = of_setup(setup, [kill], name, None)
    assert agreement is not None, problem
    assert agreement.differences == {}


def _ordered(events: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Lists of GTIDs with their entries in order: a server has them in a hash."""
    return [
        (*event[:-1], sorted(re.findall(b"(?s).{16}", event[-1][4:])))
        if event[0] == "GTID_LIST"
        else event  # type: ignore[index]
        for event in events
    ]


def _domains(gtids: object) -> list[str]:
    return sorted(filter(None, str(gtids).split(",")))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("using_gtid", ["no", "slave_pos", "current_pos"])
@pytest.mark.parametrize("purges", [0, 1])
@pytest.mark.parametrize("workers", [0, 2])
def test_its_life(
    using_gtid: str, purges: int, workers: int, server_factory: ServerFactory
) -> None:
    options = {"max_relay_log_size": SIZE, "relay_log_purge": purges}
    with MariadbPair(
        server_factory, using_gtid=using_gtid, slave_parallel_threads=workers, **options
    ) as pair:
        source = pair.source
        source.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT)",
            "CREATE TABLE d.m (a INT) ENGINE=MyISAM",
        )
        pair.change_source()
        both = Both(
            pair,
            has_races=bool(workers),
            max_relay_log_size=SIZE,
            relay_log_purge=bool(purges),
            workers=workers,
        )
        both.agree("change master")
        pair.run("START SLAVE")
        both.go_on()
        both.agree("started")
        source.execute(
            "INSERT INTO d.t VALUES (1, 'x')",
            "INSERT INTO d.m VALUES (1)",
            "FLUSH LOGS",
            "ALTER TABLE d.t ADD c INT",
        )
        source.execute(
            "SET SESSION gtid_domain_id = 5",
            "INSERT INTO d.t VALUES (2, 'x', 1)",
            "INSERT INTO d.t VALUES (3, 'x', 1)",
        )
        both.go_on()
        both.agree("two logs")
        both.restart()
        both.agree("restarted")
        source.execute("INSERT INTO d.t VALUES (4, 'x', 1)", "FLUSH LOGS")
        pair.run("START SLAVE")
        both.go_on()
        both.agree("started again")
        source.execute(
            "SET SESSION gtid_domain_id = 5",
            "INSERT INTO d.t VALUES (5, REPEAT('y', 5000), 1)",
            "UPDATE d.t SET c = 7",
        )
        both.go_on()
        both.agree("a large transaction")
        pair.run("STOP SLAVE")
        both.replica.stop()
        both.agree("stopped")
        both.restart(crash=True)
        both.agree("killed")
        source.execute("INSERT INTO d.t VALUES (6, 'x', 1)")
        pair.run("START SLAVE")
        both.go_on()
        both.agree("started behind the kill")


REFUSED = {
    "not there": ("0-1-100", False),
    "another server's": ("0-2-2", False),
    "an empty domain": ("0-1-2,9-1-5", False),
    "purged": ("0-1-2", True),
    "all was purged": ("", True),
    "the last of the purged": ("0-1-3", True),
}


def test_gtids_that_the_source_refuses(server_factory: ServerFactory) -> None:
    """Error 1236 of the receiver, with the server's words, or the same events."""
    with MariadbPair(server_factory, using_gtid="slave_pos") as pair:
        pair.source.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1)",
            "FLUSH LOGS",
        )
        pair.source.execute("INSERT INTO d.t VALUES (2)")
        pair.change_source()
        purged = False
        for case, (position_asked, purges) in REFUSED.items():
            if purges and not purged:
                pair.source.execute("PURGE BINARY LOGS TO 'mbinlog.000002'")
                purged = True
            pair.run("STOP SLAVE")
            pair.replica.execute("RESET MASTER", f"SET GLOBAL gtid_slave_pos = '{position_asked}'")
            pair.run("START SLAVE IO_THREAD")
            seen, words = real_answer(pair)
            source = BinlogFiles(pair.source_files(), server_id=1)
            try:
                own = list(
                    itertools.takewhile(bool, source.dump_domains(MariadbGtidSet(position_asked)))
                )
                assert seen == 0, (case, words)
                assert sum(data[4] == EventType.MARIADB_GTID for data in own) == relayed(pair), case
            except ReplicationError as error:
                assert (error.number, case) == (seen, case)
                assert words.startswith(error.message.rstrip("'")[:150]), (words, error.message)


def real_answer(pair: MariadbPair) -> tuple[int, str]:
    """Last_IO_Errno and Last_IO_Error, once the receiver has read all or has stopped."""
    file, _ = pair.source_end()
    for _attempt in range(600):
        status = pair.status()
        if (
            status["Last_IO_Errno"]
            or (status["Master_Log_File"], status["Read_Master_Log_Pos"]) == pair.source_end()
        ):
            return int(status["Last_IO_Errno"]), str(status["Last_IO_Error"])
        time.sleep(0.05)
    raise TimeoutError(f"{file} is not received: {status}")


def relayed(pair: MariadbPair) -> int:
    """How many groups the relay logs have."""
    return sum(
        data[4] == EventType.MARIADB_GTID
        for content in pair.relay_logs().values()
        for data in events_of(content)
    )


AGAIN = (
    "CREATE DATABASE e",
    "CREATE TABLE d.u (a INT)",
    "CREATE TABLE d.v LIKE d.t",
    "CREATE TABLE d.w AS SELECT a FROM d.t",
    "ALTER TABLE d.t ADD COLUMN b INT",
    "CREATE INDEX i ON d.t (a)",
    "ALTER TABLE d.t DROP COLUMN b",
    "DROP INDEX i ON d.t",
    "RENAME TABLE d.u TO d.x",
    "TRUNCATE TABLE d.w",
    "DROP TABLE d.w",
    "DROP DATABASE e",
)
"""Each is executed on the replica first. Views have no rows, and are passed over."""


def test_statements_that_are_executed_again(server_factory: ServerFactory) -> None:
    """slave_ddl_exec_mode=IDEMPOTENT lets some of them pass: which errors the others end with."""
    with MariadbPair(server_factory) as pair:
        setup = (
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1)",
        )
        pair.source.execute(*setup)
        pair.change_source()
        pair.run("START SLAVE")
        pair.settle()
        tables = applier.load_schema(";\n".join(setup) + ";", server=VERSION)
        session = DdlSession(server=VERSION, executes_again=True)
        seen, own = {}, {}
        for statement in AGAIN:
            pair.replica.execute("SET sql_log_bin = 0", statement)
            apply_ddl(tables, statement, "d", session)
            pair.source.execute(statement)
            seen[statement] = passed_or_failed(pair)
            own[statement] = 0
            try:
                apply_ddl(tables, statement, "d", session)
            except ReplicationError as error:
                own[statement] = error.number
        assert own == seen


def passed_or_failed(pair: MariadbPair) -> int:
    """Last_SQL_Errno; the statement is skipped then."""
    file, position_ = pair.source_end()
    for _attempt in range(600):
        status = pair.status()
        if status["Last_SQL_Errno"]:
            pair.wait(Slave_SQL_Running="No")  # the error is told before the thread has ended
            pair.run("SET GLOBAL sql_slave_skip_counter = 1", "START SLAVE SQL_THREAD")
            pair.settle()
            return int(status["Last_SQL_Errno"])
        if (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == (file, position_):
            return 0
        time.sleep(0.05)
    raise TimeoutError(str(status))
