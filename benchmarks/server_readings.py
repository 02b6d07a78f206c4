"""What benchmarks read off a server and its machine, before and after a run."""

from __future__ import annotations

import os
from pathlib import Path

from replication import Server

from applier.forecast.live.live_settings import PICOSECOND, READS, SYNCS
from applier.forecast.measurement.server_words import ServerWords
from applier.forecast.measurement.thread_clock import ThreadClock
from lookup.versions import rules_for

TIMED_READS = {
    "performance_schema": "ON",
    "performance_schema_instrument": "wait/io/file/innodb/innodb_data_file=ON",
}
"""What tells of a MariaDB how long a read takes. On other servers it is on by default."""
INDEXES = (
    "SELECT table_name, index_name, column_name FROM information_schema.statistics WHERE "
    "table_schema = 'sbtest' AND seq_in_index = 1"
)


def warm(server: Server) -> None:
    """Brings all pages of the tables and their indexes into the buffer pool."""
    for (table,) in server.query("SHOW TABLES FROM sbtest"):
        server.query(f"CHECKSUM TABLE sbtest.{table}")
    for table, index, column in server.query(INDEXES):
        server.query(f"SELECT SUM(LENGTH({column})) FROM sbtest.{table} FORCE INDEX ({index})")


def sync_time(server: Server) -> float:
    """Seconds of a sync of its redo log, as some small commits wait for it."""
    before = redo_syncs(server)
    server.execute("SET SESSION sql_log_bin = 0", "CREATE TABLE sbtest.tried (id INT)")
    server.execute(*["INSERT INTO sbtest.tried VALUES (1)"] * 300, "DROP TABLE sbtest.tried")
    syncs, seconds = (now - then for now, then in zip(redo_syncs(server), before, strict=True))
    return seconds / syncs


def redo_syncs(server: Server) -> tuple[int, float]:
    """(Syncs of the redo log, their seconds) since the server's start."""
    rows = {str(row[0]): row[1:] for row in server.query(SYNCS)}
    syncs, picoseconds = rows["wait/io/file/innodb/innodb_log_file"]
    return int(syncs), int(picoseconds) * PICOSECOND


def pages_read(server: Server) -> int:
    """Innodb_pages_read."""
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Innodb_pages_read'")[0][1])


def page_splits(server: Server) -> int:
    """How often a page was split since the server's start: nothing writes before the applier."""
    found = server.query(
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'index_page_splits'"
    )
    return int(found[0][0])


def applier_clock(replica: Server) -> ThreadClock:
    """Of the one thread that changes rows, which was started just now."""
    words = ServerWords(rules_for(str(replica.query("SELECT VERSION()")[0][0])))
    return ThreadClock(replica.pid, int(replica.query(words.applier_thread)[0][0]))


def processor_seconds(process: int) -> tuple[float, float]:
    """(Of a process, of all of the machine), so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    mine = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    user, nice, system, _, _, *more = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    return sum(map(int, mine)) / ticks, sum(map(int, (user, nice, system, *more))) / ticks


def read_microseconds(server: Server) -> float:
    """What a read of a data file has taken since the server's start, strace's work included; 0
    where its performance schema is off."""
    rows = server.query(READS)
    reads, picoseconds = map(int, rows[0]) if rows else (0, 0)
    return picoseconds / reads / 1e6 if reads else 0.0
