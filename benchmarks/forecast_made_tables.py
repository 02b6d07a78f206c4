"""Logs that make their own tables, forecast for a replica that has none of them yet.

    python docker/servers/bring.py 9.7
    python benchmarks/forecast_made_tables.py --server 9.7 --calibration prices.json \
        --output benchmarks/results/forecast_made_tables_9.7.json

Loads of mysqlslap (Debian's mariadb-client), whose tables only it knows, and two jobs of ours: one
fills a table without a unique key and changes it batch by batch (`batches`), one keeps a log of
events without any key, changes single rows of it and drops the oldest (`events`). Each runs on a
real source; an empty replica with relaxed commits and one worker fetches the log with its applier
stopped; `binlag forecast LOG --schema THE_REPLICA` says seconds and rows; only then the applier
starts. Rows are the replica's Handler_read_* counters, less what the same server counts for a
transaction that finds no row (its own position). Takes a minute.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from decode import machine
from forecast_accuracy import Pair, beside, times
from forecast_strata import STRATA
from replication import Server

STRATUM = STRATA["1-relaxed-0-0"]
CLIENTS = 8
BATCHES, ROWS_OF_A_BATCH, KEPT_BATCHES = 60, 500, 4
EVENTS, CHANGED_EVENTS, DROPS, DROPPED_AT_ONCE = 10_000, 400, 200, 10
READS = "SHOW GLOBAL STATUS LIKE 'Handler_read%'"


def slap(*arguments: str) -> Callable[[Server], None]:
    """A run of mysqlslap, which leaves its tables."""

    def run(source: Server) -> None:
        where = ["--host=127.0.0.1", f"--port={source.port}", f"--user={source.user}", "--ssl=0"]
        given = ["--no-drop", f"--concurrency={CLIENTS}", *arguments]
        subprocess.run(
            ["mariadb-slap", *where, *given],
            check=True,
            stdout=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "MYSQL_PWD": source.password},
        )

    return run


def batches() -> Iterator[str]:
    yield "CREATE TABLE jobs.staging (batch INT, payload VARCHAR(40), done INT, KEY (batch))"
    yield (
        "CREATE TABLE jobs.final (id INT AUTO_INCREMENT PRIMARY KEY, batch INT, "
        "payload VARCHAR(40), KEY (batch))"
    )
    for batch in range(BATCHES):
        rows = (f"({batch}, HEX({batch * 1000 + row}), 0)" for row in range(ROWS_OF_A_BATCH))
        yield f"INSERT INTO jobs.staging VALUES {', '.join(rows)}"
        yield f"UPDATE jobs.staging SET done = 1 WHERE batch = {batch}"
        yield (
            "INSERT INTO jobs.final (batch, payload) SELECT batch, payload FROM jobs.staging "
            f"WHERE batch = {batch}"
        )
        yield f"DELETE FROM jobs.staging WHERE batch = {batch - KEPT_BATCHES}"
        yield f"DELETE FROM jobs.final WHERE batch = {batch - 2 * KEPT_BATCHES}"


def events() -> Iterator[str]:
    yield "CREATE TABLE jobs.events (at DATETIME, level INT, message VARCHAR(60))"
    for first in range(0, EVENTS, 250):
        rows = (
            f"('2026-01-01' + INTERVAL {row} SECOND, {row % 5}, HEX({row}))"
            for row in range(first, first + 250)
        )
        yield f"INSERT INTO jobs.events VALUES {', '.join(rows)}"
    for number in range(CHANGED_EVENTS):
        row = number * 7919 % EVENTS
        yield f"UPDATE jobs.events SET level = 9 WHERE message = HEX({row})"
    for _ in range(DROPS):
        yield f"DELETE FROM jobs.events ORDER BY at LIMIT {DROPPED_AT_ONCE}"


def job(statements: Callable[[], Iterator[str]]) -> Callable[[Server], None]:
    """A job of ours, each statement a transaction."""
    return lambda source: source.execute("CREATE DATABASE jobs", *statements())


AUTO = "--auto-generate-sql"
LOADS = {
    "slap write": slap(AUTO, f"{AUTO}-load-type=write", "--number-of-queries=20000"),
    "slap update": slap(
        AUTO, f"{AUTO}-load-type=update", f"{AUTO}-guid-primary", f"{AUTO}-write-number=500",
        "--number-of-queries=16000", "--number-int-cols=2", "--number-char-cols=3",
    ),
    "slap mixed": slap(
        AUTO, f"{AUTO}-load-type=mixed", f"{AUTO}-add-autoincrement",
        f"{AUTO}-secondary-indexes=2", "--number-of-queries=20000",
    ),
    "batches": job(batches),
    "events": job(events),
}  # fmt: skip


def reads(server: Server) -> int:
    """Rows that the server has read: `lookup.handler.Counters.rows_read` of its own counters."""
    said = {name.removeprefix("Handler_read_"): int(value) for name, value in server.query(READS)}
    found = max(said["key"] - said["rnd"] - said["first"], 0)
    return found + said["next"] + said["rnd"] + said["rnd_next"]


def case(name: str, load: Callable[[Server], None], given: argparse.Namespace) -> dict[str, Any]:
    """A load, forecast and applied."""
    with Pair(given.server, STRATUM) as pair:
        pair.connect()
        pair.source.execute("FLUSH BINARY LOGS")
        log = pair.source.binlog_files()[-1]
        load(pair.source)
        pair.source.execute("FLUSH BINARY LOGS")
        pair.fetch()
        said = pair.forecasts(log, given.calibration)
        asking = -reads(pair.replica) + reads(pair.replica)  # what that costs
        before = reads(pair.replica)
        seconds = pair.applied()
        read = reads(pair.replica) - before - asking
    first = said["shipped"]
    # A replica keeps its position in a table, by its key: slave_worker_info, gtid_slave_pos.
    own = 0 if given.server == "5.7" else first["transactions"]
    return {
        "load": name,
        "rows_read": read - own,
        "rows_forecast": sum(table["rows_read"] for table in first["tables"]),
        **beside(seconds, said),
    }


def show(done: dict[str, Any]) -> str:
    """One line."""
    rows = f"{done['rows_read']:,} rows read, {done['rows_forecast']:,.0f} forecast"
    return f"{done['load']:12} {rows:40} {times(done)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--calibration")
    parser.add_argument("--only", nargs="*", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = []
    for name in given.only:
        found.append(case(name, LOADS[name], given))
        print(show(found[-1]), flush=True)
    if given.output is not None:
        told = {"machine": machine(), "server": given.server, "cases": found}
        given.output.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
