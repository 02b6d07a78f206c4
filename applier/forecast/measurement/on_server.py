"""Cells measured on a real MySQL server: its own applier carries out the cell's log, and an
onlooker times it.

Two ways. With the server's data directory at hand (`relay_folder`), the log becomes its relay log
and its replication applier thread reads it: that is the thing itself. Without, the log is replayed
with BINLOG statements: rows are found and changed by the same code of the server
(Rows_log_event::do_apply_event), while events and commits cost what a client's do.

The log's first and last transactions insert a mark; the time between the two is measured, so
neither connecting nor the start of a thread is in it. The server must be of no other use meanwhile:
its replication settings are changed, and put back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from applier.error_codes import Code
from applier.errors import BinlagError, InputError, Interrupted, ReplicationError, UsageError
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.measurement.cell_log import AHEAD, make_log
from applier.forecast.measurement.cell_table import fill_statements
from applier.forecast.measurement.measured import (
    REPEATS,
    Measured,
    Repeats,
    mean_of,
    work_of_cell,
)
from applier.forecast.measurement.measurement_grid import DATABASE, MARK, TABLE, Cell, Spent
from applier.forecast.measurement.page_splits import counting, page_splits, with_splits
from applier.forecast.measurement.pool_reads import (
    BESIDE_MIB,
    can_resize,
    page_counts,
    resize_pool,
)
from applier.forecast.measurement.server_words import ServerWords, literal, position
from applier.forecast.measurement.thread_clock import ThreadClock
from applier.forecast.prices.calibration import APPLIER, DURABLE, RELAXED, STATEMENTS
from applier.forecast.workload.loads import LoadReader
from applier.mysql.client.connection import connect
from applier.mysql.client.url import Endpoint
from lookup.versions import RULES, rules_for

WAIT_SECONDS = 600.0
LOOK_SECONDS = 0.0005
LOOK_SHARE, LONGEST_LOOK = 0.005, 0.02
"""An onlooker is at work, too: it looks that often in the time so far, and at least that often."""
LOOK = "SELECT IFNULL(MAX(id), 0) FROM {}"
"""The last mark. Not COUNT(*): from 8.0.14 that starts threads of its own
(innodb_parallel_read_threads), a core's work when repeated."""
SHORT_SECONDS = 0.5
WRITTEN_PAGES = (f"FLUSH TABLES {TABLE} FOR EXPORT", "UNLOCK TABLES")
"""Its changed pages are written: the redo log is not full of what was before a cell. Beside a small
pool they stay, since making room for a page means to write others."""
LOG_BUFFERED = {"innodb_log_file_buffering": "1"}
"""What MariaDB has from the start where innodb_flush_log_at_trx_commit is 2 then. Set later, each
commit writes past the file system's cache: 80 µs a transaction beside 15. It cannot be switched
off again before the next start (10.11.18)."""
SETTINGS = (
    "innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_buffer_pool_size", "log_bin",
    "log_slave_updates", "log_replica_updates",
    "innodb_doublewrite", "binlog_format", "gtid_mode",
)  # fmt: skip


class ServerTarget:
    """A server to measure on; close it at the end. Raises UsageError for a server that is in use as
    a replica."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        relay_folder: str | os.PathLike[str] | None = None,
        database: str = DATABASE,
        is_alone: bool = True,
        repeats: Repeats = REPEATS,
    ) -> None:
        self.endpoint, self.repeats = endpoint, repeats
        self.is_alone = is_alone
        """Nobody else measures on this server: its durability can be set for each cell."""
        self.database = database
        self.relay_folder = None if relay_folder is None else Path(relay_folder)
        self.server = connect(endpoint)
        self.looker = connect(endpoint)
        self.server_version = self.server.version
        self.rules = rules_for(self.server_version)
        self.name = STATEMENTS if relay_folder is None else APPLIER
        self._words = ServerWords(self.rules)
        self._log_end: tuple[Path, int] | None = None
        self.queue_seconds = 0.0
        """What was left out of the last time: the applier stood in line for a processor."""
        self._filled: tuple[tuple[Any, ...], Spent] | None = None
        self._busy()
        self._execute("SET SESSION sql_log_bin = 0")
        buffered = self._rows("SHOW GLOBAL VARIABLES LIKE 'innodb_log_file_buffering'")
        self._relaxed = RELAXED | (LOG_BUFFERED if buffered else {})
        self._applied: str | None = None
        """What MariaDB has applied by its GTIDs, to which cells of its applier add."""
        if self._words.is_mariadb and self.relay_folder is not None:
            self._applied = self.server.value("SELECT @@GLOBAL.gtid_slave_pos")
        gtids = None if self.rules.find_row else self.server.value("SELECT @@GLOBAL.gtid_mode")
        self.gtids = (
            None if self.rules.name == "5.6" and gtids != "ON" else str(gtids).startswith("ON")
        )

    @property
    def settings(self) -> dict[str, str]:
        """What of the server's settings weighs on the time, as unit prices are measured."""
        names = ", ".join(f"'{name}'" for name in SETTINGS)
        found = {
            str(name): str(value)
            for name, value in self._rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        }
        return found | (RELAXED if self.is_alone else {})

    @property
    def runs_workers(self) -> bool:
        """Whether cells can have several workers: they need the applier itself, and marks of what
        depends on what in the log."""
        knows = self.gtids is not None or self._words.is_mariadb
        return self.relay_folder is not None and knows and self._words.marks_independence

    @property
    def resizes_pool(self) -> bool:
        """Whether cells can have a buffer pool of another size."""
        return self.is_alone and can_resize(self.server)

    def measure(self, cell: Cell) -> Measured:
        """A cell that is over soon is measured several times, on other rows, and the mean taken."""
        if not (cell.workers or cell.pool):
            return self._measured(cell)
        beside, least = cell.alone, self.repeats.beside
        if cell.pool:
            beside, least = replace(cell, pool=BESIDE_MIB), self.repeats.short
            self._filled = None  # a table that was just filled is in the pool
        seconds = self._measured(beside, least).seconds
        return replace(self._measured(cell, least), beside_seconds=seconds)

    def _measured(self, cell: Cell, least: int = 1) -> Measured:
        with TemporaryDirectory(prefix="binlag-cell-") as folder, self._set(cell):
            log = Path(folder) / "binlog.000001"
            taken: list[Measured] = []
            while len(taken) < least or (
                len(taken) < self.repeats.short and taken[0].seconds < SHORT_SECONDS
            ):
                spent = self._table(cell)
                rows = spent.rows
                log.write_bytes(
                    make_log(
                        cell,
                        gtids=self.gtids,
                        marks=True,
                        seed=time.time_ns(),
                        database=self.database,
                        spent=spent,
                        mariadb=self._words.is_mariadb and self.relay_folder is not None,
                    )
                )
                before = page_splits(self.server) if cell.full else 0
                pages = page_counts(self.server) if cell.pool else []
                seconds = self._by_relay_log(log) if self.relay_folder else self._by_statements(log)
                if cell.workers > 1:  # one worker's wait for a core is no time of all
                    seconds += self.queue_seconds
                work = work_of_cell(
                    cell, log, self.server_version, skip=AHEAD, database=self.database, rows=rows
                )
                if cell.full:
                    work = with_splits(work, page_splits(self.server) - before)
                one = Measured(
                    cell, self.name, self.server_version, seconds, log.stat().st_size, work
                )
                if pages:
                    reads, writes = map(int.__sub__, page_counts(self.server), pages)
                    one = replace(one, page_reads=reads, page_writes=writes)
                taken.append(one)
            return mean_of(taken)

    def __enter__(self) -> ServerTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes away what was made on the server."""
        applied = [] if self._applied is None else [position(self._applied)]
        try:
            self._put_back(*applied, f"DROP DATABASE IF EXISTS {self.database}")
        finally:
            self.server.close()
            self.looker.close()

    # the table

    def _table(self, cell: Cell) -> Spent:
        """The table of the cell before, if enough of its rows are as they were; a new one
        otherwise."""
        self._execute(f"CREATE DATABASE IF NOT EXISTS {self.database}", f"USE {self.database}")
        self._check_folder()
        if self._filled is None or self._filled[0] != cell.table or not self._filled[1].left(cell):
            self._execute(*fill_statements(cell))
            if self.rules.find_row:
                self._execute(f"ANALYZE TABLE {TABLE}")
            self._filled = cell.table, Spent(cell.rows)
        self._execute(f"DELETE FROM {MARK}")
        if POOL_RULES[self.rules.name].waits_for_redo and not cell.pool:
            self._execute(*WRITTEN_PAGES)
        return self._filled[1]

    def _check_folder(self) -> None:
        """Each database is a folder in the data directory: relay logs must not go to another
        server's."""
        folder = self.relay_folder
        with suppress(PermissionError):  # the first write says it better
            if folder is None or (folder / self.database).is_dir():
                return
            raise UsageError(
                f"--relay-folder: {folder} is not the data directory of {self.endpoint}",
                code=Code.OPTIONS_CLASH,
                hint="SELECT @@datadir says which it is",
            )

    # the log

    def _by_relay_log(self, log: Path) -> float:
        assert self.relay_folder is not None
        names = (
            self.server.value("SELECT @@GLOBAL.relay_log_basename"),
            self.server.value("SELECT @@GLOBAL.relay_log_index"),
        )
        if None in names:  # MariaDB without relay_log
            raise UsageError(
                f"--relay-folder: {self.endpoint} does not say what its relay logs are called",
                code=Code.OPTIONS_CLASH,
                hint="set relay_log in its configuration, or leave the option out",
            )
        base, index = (Path(str(name)).name for name in names)
        file = f"{base}.000001"
        self._replication("STOP REPLICA", "RESET REPLICA ALL")
        self._put(file, log.read_bytes())
        self._put(index, f"./{file}\n".encode())
        self._replication(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'nowhere.invalid', "
            f"{self._words.source_log}RELAY_LOG_FILE = '{file}', RELAY_LOG_POS = 4"
        )
        self._log_end = self._end_of_log()
        # its answer may come after the first mark
        self.server.send(self._words("START REPLICA SQL_THREAD"))
        try:
            return self._watch(self._applier_error)
        finally:
            self.server.receive()
            self._replication("STOP REPLICA", "RESET REPLICA ALL")

    def _put(self, name: str, content: bytes) -> None:
        assert self.relay_folder is not None
        path = self.relay_folder / name
        try:
            path.write_bytes(content)
            owner = self.relay_folder.stat()
            if os.geteuid() == 0:
                os.chown(path, owner.st_uid, owner.st_gid)
        except OSError as error:
            hint = "leave it out to measure by BINLOG statements"
            raise UsageError(
                f"--relay-folder: cannot write {path}: {error.strerror}",
                code=Code.CANNOT_WRITE,
                hint=hint,
            ) from None

    def _by_statements(self, log: Path) -> float:
        from applier.mysql.into import ReplayWatch, replay_into
        from applier.mysql.into_options import IntoOptions
        from applier.options import ReplayOptions

        failed: list[str] = []
        left = threading.Event()

        def replay() -> None:
            try:
                into = IntoOptions(batch=1, force=True, replay_id=f"measure {time.time_ns()}")
                outcome = replay_into(
                    [str(log)],
                    self.endpoint,
                    ReplayOptions(),
                    into,
                    ReplayWatch(stopped=left.is_set),
                )
                if outcome.error is not None:
                    failed.append(str(outcome.error))
            except BinlagError as error:
                failed.append(str(error))

        thread = threading.Thread(target=replay)
        try:
            thread.start()
            return self._watch(lambda: failed[0] if failed else None)
        except BaseException:
            left.set()  # an interrupt does not wait for the rest of the cell
            raise
        finally:
            if thread.ident is not None:  # it was started
                thread.join()

    def _watch(self, failed: Any) -> float:
        """Seconds from the first mark to the second, less those that the applier stood in line for
        a processor that others had."""
        began, first, asked, logged = time.perf_counter(), 0.0, 0, self._log_end
        clock: ThreadClock | None = None
        while True:
            count = int(str(self.looker.value(LOOK.format(f"{self.database}.{MARK}"))))
            now = time.perf_counter()
            if count >= 1 and not first:
                first, clock = now, self._clock()
            if count >= 2:
                self.queue_seconds = 0.0 if clock is None else clock.in_line()
                return max((self._logged_seconds(logged) or now - first) - self.queue_seconds, 0.0)
            asked += 1
            if asked % 100 == 0 and (told := failed()):
                raise InputError(
                    f"the server did not apply a cell: {told}",
                    code=Code.NOT_MEASURED,
                    hint="its error log says more",
                )
            if now - began > WAIT_SECONDS:
                raise InputError(
                    f"a cell was not applied within {WAIT_SECONDS:.0f} s",
                    code=Code.NOT_MEASURED,
                    hint="see SHOW REPLICA STATUS",
                )
            time.sleep(self._until_next_look(now - first) if first else LOOK_SECONDS)

    def _until_next_look(self, elapsed: float) -> float:
        """Seconds. Where the server's own log says when the marks came, looking often would only
        take processor time from the applier."""
        if self._log_end is not None:
            return LONGEST_LOOK
        return min(max(LOOK_SECONDS, elapsed * LOOK_SHARE), LONGEST_LOOK)

    def _end_of_log(self) -> tuple[Path, int] | None:
        """Where the server's own binary log ends, if it can be read here and gives commits in
        microseconds."""
        if self.relay_folder is None or self._words.is_old:
            return None
        try:
            name, size = self.server.texts("SHOW BINARY LOGS")[-1][:2]
            file = self.relay_folder / str(name)
            return (file, int(str(size))) if file.exists() else None
        except (BinlagError, IndexError):
            return None

    def _logged_seconds(self, end: tuple[Path, int] | None) -> float | None:
        """Seconds between the commits of the marks as the server itself logged them: nobody has to
        look at the right moment."""
        if end is None:
            return None
        marks = [
            load.commit_time
            for load in LoadReader([end[0]], start_position=end[1])
            if f"{self.database}.{MARK}" in load.tables
        ]
        return marks[1] - marks[0] if len(marks) == 2 else None

    def _clock(self) -> ThreadClock | None:
        """Of the thread that changes rows; None where the server or the kernel does not tell."""
        if self.relay_folder is None or self.rules.name == "5.6":
            return None
        try:
            process = Path(str(self.looker.value("SELECT @@pid_file"))).read_text().strip()
            return ThreadClock(
                int(process), int(str(self.looker.value(self._words.applier_thread)))
            )
        except (OSError, ValueError, BinlagError):
            return None

    def _applier_error(self) -> str | None:
        row = self.looker.texts(self._words("SHOW REPLICA STATUS"))
        errors = [
            str(value)
            for value in (row[0] if row else ())
            if isinstance(value, str) and "rror" in value
        ]
        return errors[0] if errors else None

    # the server

    def _busy(self) -> None:
        status = self._rows(self._words("SHOW REPLICA STATUS"))
        if (
            status and self.relay_folder is not None and "Yes" in status[0][10:12]
        ):  # the two threads
            raise UsageError(
                f"{self.endpoint} is a running replica",
                code=Code.NOT_A_TEST_SERVER,
                hint="measure on a server that is of no other use",
            )

    @contextmanager
    def _set(self, cell: Cell) -> Iterator[None]:
        """The settings that a cell is measured with, for its time."""
        wanted = dict(DURABLE if cell.durable else self._relaxed) if self.is_alone else {}
        if cell.row_search:
            if not RULES[self.rules.name].row_search_selectable:
                raise UsageError(
                    f"{self.server_version} has no slave_rows_search_algorithms",
                    code=Code.VERSION_LACKS,
                )
            wanted["slave_rows_search_algorithms"] = cell.row_search
        if self.relay_folder is not None:
            wanted |= self._words.workers(cell.workers)
        before: dict[str, str] = {}
        is_mariadb = self._words.is_mariadb
        pool_bytes = (
            int(str(self.server.value("SELECT @@GLOBAL.innodb_buffer_pool_size")))
            if cell.pool
            else 0
        )
        start, stop = counting(self.server, mariadb=is_mariadb) if cell.full else ([], [])
        try:
            with self._connected_again():
                before = {
                    name: str(self.server.value(f"SELECT @@GLOBAL.{name}")) for name in wanted
                }
                self._execute(
                    *start,
                    *(f"SET GLOBAL {name} = {literal(value)}" for name, value in wanted.items()),
                )
                if cell.pool:
                    resize_pool(self.server, cell.pool << 20)
                yield
        finally:
            self._put_back(
                *stop,
                *(f"SET GLOBAL {name} = {literal(value)}" for name, value in before.items()),
                pool_bytes=pool_bytes,
            )

    def _put_back(self, *statements: str, pool_bytes: int = 0) -> None:
        """Carries them out in any case, and gives the pool its size: an interrupt meanwhile is
        heard behind them."""

        def put_back() -> None:
            self._execute(*statements)
            if pool_bytes:
                resize_pool(self.server, pool_bytes)

        try:
            put_back()
        except (Interrupted, KeyboardInterrupt):
            self._connect_anew()
            put_back()
            raise

    def _connect_anew(self) -> None:
        """An interrupt in the middle of an answer is the end of that connection. What the server
        was still to do for it, a setting or a database, is over when this returns: it must not come
        behind what is put back."""
        interrupted = self.server.number
        self.server.close()
        self.server = connect(self.endpoint)
        self._execute("SET SESSION sql_log_bin = 0")
        with suppress(ReplicationError):  # gone already
            self._execute(f"KILL {interrupted}")
        while self._rows(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {interrupted}"):
            time.sleep(LOOK_SECONDS)

    @contextmanager
    def _connected_again(self) -> Iterator[None]:
        """Behind an interrupt there is a connection, and no replication, for what is to be put
        back."""
        try:
            yield
        except (Interrupted, KeyboardInterrupt):
            self._connect_anew()
            if self.relay_folder is not None:  # what was interrupted may have been STOP REPLICA
                self._replication("STOP REPLICA", "RESET REPLICA ALL")
            raise

    def _replication(self, *statements: str) -> None:
        self._execute(*(self._words(statement) for statement in statements))

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement)

    def _rows(self, statement: str) -> Any:
        return self.server.texts(statement)
