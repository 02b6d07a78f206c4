"""The real servers: a source under traffic, a replica that is killed, and what the kill left."""

from __future__ import annotations

import random
import re
import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pymysql
import pymysql.cursors

from checkpoints.gtid_slave_pos import TABLE
from tests.checkpoints.recovery_captures import TABLES
from tests.replica.kills.damage import DAMAGES
from tests.replica.kills.setups import MARIADB, Kill, Setup
from tests.replica.kills.traffic import LOADS, SCHEMA, SCHEMA_OF_DOMAINS
from tests.replica.mariadb_pairs import change_master, wait_for_checkpoint
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

DATABASES = ("d1", "d2", "d3", "d4")
FILES = re.compile(r"relay\..*|(relay-log|master)\.info|worker-relay-log\.info\.\d+")
STEP_PAUSE_SECONDS = 0.04
"""The longest pause of a session between two steps: traffic of some hundred transactions, whatever
the machine."""
ANSWER_SECONDS = 300.0
"""The longest that a server takes to answer: one that hangs is not waited for."""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Left:
    """What a kill left: files, rows of info tables, tables as (CREATE TABLE, rows), GTIDs, and of
    each prepared XA its rows."""

    files: dict[str, bytes]
    infos: dict[str, list[dict[str, Any]]]
    tables: dict[str, tuple[str, Rows]]
    gtids: str
    prepared: dict[str, dict[str, Rows]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stopped:
    """Where the real replica came to rest. `is_over` False: it did neither catch up nor stop in
    time."""

    number: int
    message: str
    status: dict[str, Any]
    gtids: str
    contents: dict[str, Rows]
    is_over: bool = True


class KillPair(Pair):
    """One configuration, for several kills."""

    def __init__(self, factory: ServerFactory, setup: Setup) -> None:
        source_options = setup.gtid_options | dict(setup.source)
        super().__init__(
            factory,
            setup.version,
            gtids=setup.gtids,
            source_options=source_options,
            **setup.options,
        )
        self.factory, self.setup, self._usual = factory, setup, setup
        self.auto_position = setup.auto_position
        self.source.answer_seconds = self.replica.answer_seconds = ANSWER_SECONDS
        # a source's commits need not be durable here
        self.source.execute(
            "SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
        )

    def change_source(self, more: str = "") -> None:
        if self.setup.delay_seconds:
            more += (
                f", {'MASTER' if self.version == MARIADB else 'SOURCE'}_DELAY = "
                f"{self.setup.delay_seconds}"
            )
        if self.version == MARIADB:
            self.run(change_master(self.source, self.setup.using_gtid) + more)
        else:
            super().change_source(more)

    def configure(self, setup: Setup) -> None:
        """How the replica starts from now on."""
        self.setup = setup
        self.replica.options.update(setup.options)

    def begin(self, sessions: int) -> None:
        """Empty databases for so many sessions on both sides; the replica runs and has them."""
        if self.setup != self._usual:
            self.replica.kill()
            self.configure(self._usual)
        reset = "RESET BINARY LOGS AND GTIDS" if self.version == "9.7" else "RESET MASTER"
        if not self.replica.running:
            self.replica.start()
        self.run("STOP REPLICA", "RESET REPLICA ALL")
        for server in (self.replica, self.source):
            for xid in prepared(server):
                server.execute(f"XA ROLLBACK '{xid}'")
            there = [row[0] for row in server.query("SHOW DATABASES LIKE 'd_'")]
            server.execute(
                "SET sql_log_bin = 0",
                *(f"DROP DATABASE {name}" for name in there if name in DATABASES),
                reset,
            )
        if self.version == MARIADB:
            self.replica.execute("SET GLOBAL gtid_slave_pos = ''")
        schema = SCHEMA + (SCHEMA_OF_DOMAINS if self.version == MARIADB else ())
        self.source.execute(
            *(statement.format(d=name) for name in DATABASES[:sessions] for statement in schema)
        )
        self.change_source()
        self.run("START REPLICA")
        stopped = self.settle()
        assert stopped.is_over, stopped.status
        assert not stopped.number, stopped.message

    def kill(self, kill: Kill, rnd: random.Random) -> list[str]:
        """Traffic, kill, damage, second kill. Returns what went wrong in the sessions."""
        over, errors = threading.Event(), list[str]()
        seeds = [rnd.randrange(1 << 30) for _ in range(kill.sessions)]
        threads = [
            threading.Thread(target=self._session, args=(kill, n, seeds[n], over, errors))
            for n in range(kill.sessions)
        ]
        for thread in threads:
            thread.start()
        time.sleep(kill.seconds / 2)
        if kill.halted:
            self.run(f"STOP REPLICA {kill.halted}")
        if kill.flushes:
            self.run("FLUSH LOGS" if self.version == "5.6" else "FLUSH RELAY LOGS")
        time.sleep(kill.seconds / 2)
        self.replica.kill()
        self.configure(kill.next_setup(self.setup))
        over.set()
        for thread in threads:
            thread.join()
        if kill.damage is not None:
            DAMAGES[kill.damage](self.replica.data, rnd)
        if kill.second is not None:
            self.replica.start()
            try:
                self.run("START REPLICA")
                time.sleep(kill.second)
            except pymysql.err.MySQLError as error:
                errors.append(str(error))
            self.replica.kill()
        return errors

    def _session(
        self, kill: Kill, number: int, seed: int, over: threading.Event, errors: list[str]
    ) -> None:
        rnd, n = random.Random(seed), number * 1_000_000
        connection = self.source.connect(autocommit=True)
        with connection, connection.cursor() as cursor:
            while not over.is_set() and len(errors) < 20:
                n += 1
                try:
                    LOADS[rnd.choice(kill.loads)](cursor.execute, DATABASES[number], n, rnd)
                except pymysql.err.MySQLError as error:
                    errors.append(str(error))
                time.sleep(rnd.random() * STEP_PAUSE_SECONDS)

    # what is there

    def files(self) -> dict[str, bytes]:
        """Relay logs, their index, and info files."""
        return {
            path.name: path.read_bytes()
            for path in self.replica.data.iterdir()
            if FILES.fullmatch(path.name)
        }

    def left(self) -> Left:
        """Read from a copy of the killed data, in a server that finds no relay log there; the
        original is as it was."""
        files = self.files()
        folder = self.replica.folder / "copy"
        shutil.copytree(self.replica.data, folder / "data")
        for path in list((folder / "data").iterdir()):
            if FILES.fullmatch(path.name):
                path.unlink()
        server = self.factory(
            self.version,
            options={**self.replica.options, "relay-log": "none", "relay-log-recovery": 0},
            folder=folder,
        )
        server.answer_seconds = ANSWER_SECONDS
        try:
            tables_of_records = [TABLE] if self.version == MARIADB else list(TABLES)
            infos = {
                table: dictionaries(server, f"SELECT * FROM mysql.{table}")
                for table in tables_of_records
            }
            gtids = self._executed(server)
            open_ones = prepared(server)
            rows_of = contents(server)
            made = definitions(server, list(rows_of))
            tables = {name: (made[name], rows) for name, rows in rows_of.items()}
            found: dict[str, dict[str, Rows]] = {}
            before = {name: rows for name, (_, rows) in tables.items()}
            for xid in open_ones:
                server.execute(f"XA COMMIT '{xid}'")
                after = contents(server)
                found[xid] = {name: added(before[name], rows) for name, rows in after.items()}
                before = after
        finally:
            server.close()
            shutil.rmtree(folder, ignore_errors=True)
        return Left(files, infos, tables, gtids, found)

    def at_start(self) -> tuple[Any, ...]:
        """What SHOW REPLICA STATUS says before a thread runs, and the sizes of the relay logs; no
        more than these where it is empty."""
        status = self.status()
        names = (
            "Master_Log_File Read_Master_Log_Pos Relay_Log_File Relay_Log_Pos "
            "Relay_Master_Log_File Exec_Master_Log_Pos"
        ).split()
        sizes = {name: len(content) for name, content in self.relay_logs().items()}
        if not status:  # 5.6.24: an empty master.info
            return (sizes,)
        gtids = status["Gtid_IO_Pos" if self.version == MARIADB else "Retrieved_Gtid_Set"].replace(
            "\n", ""
        )
        return (*(status[name] for name in names), gtids, sizes)

    def _executed(self, server: Any) -> str:
        variable = "gtid_slave_pos" if self.version == MARIADB else "gtid_executed"
        return str(server.query(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")

    def go_on(self) -> Stopped:
        """START REPLICA, until it has caught up or has stopped."""
        try:
            self.run("START REPLICA")
        except pymysql.err.MySQLError as error:
            return self._stopped(int(error.args[0]), str(error), self.status())
        return self.settle()

    def settle(self, seconds: float = 90) -> Stopped:
        """Caught up, or both threads at rest behind an error of one."""
        if self.version == MARIADB:
            wait_for_checkpoint(self.source)
        file, position = self.source_end()
        end = time.monotonic() + seconds
        while True:
            status = self.status()
            if status["Last_SQL_Errno"] and status["Slave_SQL_Running"] == "No":
                return self._stopped(
                    int(status["Last_SQL_Errno"]), status["Last_SQL_Error"], status
                )
            if (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == (
                file,
                position,
            ) and _has_read_all(status):
                return self._stopped(0, "", status)
            if status["Last_IO_Errno"] and status["Slave_IO_Running"] == "No" and _is_idle(status):
                return self._stopped(int(status["Last_IO_Errno"]), status["Last_IO_Error"], status)
            if time.monotonic() > end:
                return Stopped(-1, "neither caught up nor stopped", status, "", {}, is_over=False)
            time.sleep(0.05)

    def _stopped(self, number: int, message: str, status: dict[str, Any]) -> Stopped:
        rows_of = {name: sorted(rows, key=repr) for name, rows in contents(self.replica).items()}
        return Stopped(number, message, status, self._executed(self.replica), rows_of)


def _is_idle(status: dict[str, Any]) -> bool:
    return status["Slave_SQL_Running"] == "No" or _has_read_all(status)


def _has_read_all(status: dict[str, Any]) -> bool:
    """The applier has met what damage there is."""
    return "has read all relay log" in (status["Slave_SQL_Running_State"] or "")


def dictionaries(server: Any, sql: str) -> list[dict[str, Any]]:
    """The rows with the names of their columns."""
    connection = server.connect(cursorclass=pymysql.cursors.DictCursor)
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [dict(row) for row in cursor.fetchall()]


def prepared(server: Any) -> list[str]:
    """The XA transactions that are prepared."""
    data = (row[3] for row in server.query("XA RECOVER"))
    return [xid.decode() if isinstance(xid, bytes) else str(xid) for xid in data]


def definitions(server: Any, names: list[str]) -> dict[str, str]:
    """Table -> its CREATE TABLE."""
    connection = server.connect()
    found = {}
    with connection, connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"SHOW CREATE TABLE {name}")
            found[name] = str(cursor.fetchone()[1])
    return found


def contents(server: Any) -> dict[str, Rows]:
    """Table -> its rows, of the databases under test."""
    connection = server.connect()
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_schema IN ({','.join(repr(name) for name in DATABASES)}) ORDER BY 1, 2"
        )
        found: dict[str, Rows] = {}
        for database, table in list(cursor.fetchall()):
            cursor.execute(f"SELECT * FROM {database}.{table}")
            found[f"{database}.{table}"] = [tuple(row) for row in cursor.fetchall()]
    return found


def added(before: Rows, after: Rows) -> Rows:
    """The rows that came."""
    return list((Counter(after) - Counter(before)).elements())
