"""How right the forecast is: ten workloads that the calibration has not seen, forecast from their binlogs, then applied by a real replica.

    python docker/servers/bring.py 9.7
    python benchmarks/forecast_accuracy.py [--server 9.7] [--runs 3] [--output benchmarks/results/forecast_accuracy_9.7.json]

1. `binlag measure --into` the server that will be the replica: prices of its units of work.
2. Each workload is run on a source of the same version, whose tables have a primary key; the replica's tables have the keys that the
   workload is about. The replica has fetched the binlog, its applier is stopped.
3. The forecast reads the binlog file and, from the live replica, definitions, row counts and cardinalities. It knows nothing else.
4. The replica's applier starts; an onlooker takes the time between the workload's first transaction and its last. Time that the applier
   stood in line for a processor that something else used is left out, as in the measurement (Linux tells; `queue_seconds` in the results).

Quiet machine, 4 to 8 minutes; `--server 5.7` does the same on 5.7 with HASH_SCAN on; `--keep FOLDER` keeps the calibration.
The aim: within 15 % at the median, 35 % at worst.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from decode import machine

sys.path.insert(0, str(Path(__file__).parent.parent / "docker"))
from servers.server import Server

from applier.cli.measure import command as measure
from applier.forecast.live import facts_of_server
from applier.forecast.loads import LoadReader, Schema
from applier.forecast.on_server import ServerTarget
from applier.forecast.plan import Plan, run
from applier.mysql.url import Endpoint
from lookup.versions import parse_row_search, rules_for

DATABASE = "accuracy"
COLUMNS = "id INT NOT NULL, a INT NULL, b BIGINT NOT NULL, c DECIMAL(12,2) NULL, d DATETIME NOT NULL, e VARCHAR(80) NOT NULL"
HASHED = "INDEX_SCAN,HASH_SCAN"
"""For 5.7, whose default would scan a million rows for each of ten thousand."""
RELAXED = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "innodb_buffer_pool_size": "768M"}
OLD = {
    "CHANGE REPLICATION SOURCE TO": "CHANGE MASTER TO", "SOURCE_": "MASTER_", "REPLICA": "SLAVE", "GET_MASTER_PUBLIC_KEY = 1, ": "",
}  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """`key` is the replica's, `duplicates` rows have one value of column a. `statements` gives the SQL of each transaction."""

    name: str
    rows: int
    key: str
    duplicates: int
    statements: Callable[[], Sequence[Sequence[str]]]


def single(kind: str, rows: int, count: int) -> Callable[[], Sequence[Sequence[str]]]:
    """Transactions of one row each, anywhere in the table."""
    return lambda: [[change(kind, f"id = {1 + (7919 * number + 13) * (rows // count) // 7919 % rows}")] for number in range(count)]


def spread(kind: str, rows: int, per_statement: int, count: int) -> Callable[[], Sequence[Sequence[str]]]:
    """Statements that change every n-th row."""
    every = rows // per_statement
    return lambda: [[change(kind, f"id % {every} = {number} LIMIT {per_statement}")] for number in range(count)]


def change(kind: str, where: str) -> str:
    if kind == "delete":
        return f"DELETE FROM t WHERE {where}"
    return f"UPDATE t SET b = b + 1, e = CONCAT('u', SUBSTRING(e, 2)) WHERE {where}"


def mixed() -> Sequence[Sequence[str]]:
    """Three statements a transaction: ten rows in, ten changed, ten out, anywhere in the table."""
    return [
        [
            f"INSERT INTO t SELECT id + {20_000 * (number + 1)}, a, b, c, d, e FROM t WHERE id <= 20000 AND id % 2000 = {number}",
            change("update", f"id <= 20000 AND id % 2000 = {number + 100}"),
            change("delete", f"id <= 20000 AND id % 2000 = {number + 200}"),
        ]
        for number in range(60)
    ]


WORKLOADS = (
    Workload("no key, 1k rows, single deletes", 1_000, "", 1, single("delete", 1_000, 400)),
    Workload("no key, 100k rows, single updates", 100_000, "", 1, single("update", 100_000, 40)),
    Workload("no key, 1M rows, deletes of 10,000 rows", 1_000_000, "", 1, spread("delete", 1_000_000, 10_000, 2)),
    Workload("no key, 20k rows, mixed transactions of 30 rows", 20_000, "", 1, mixed),
    Workload("nullable unique, 100k rows, updates of 500 rows", 100_000, "UNIQUE KEY k (a)", 1, spread("update", 100_000, 500, 30)),
    Workload("nullable unique, 1M rows, single deletes", 1_000_000, "UNIQUE KEY k (a)", 1, single("delete", 1_000_000, 2_000)),
    Workload("key with 50 duplicates, 100k rows, single updates", 100_000, "KEY k (a)", 50, single("update", 100_000, 1_500)),
    Workload("key with 400 duplicates, 100k rows, deletes of 1,000", 100_000, "KEY k (a)", 400, spread("delete", 100_000, 1_000, 8)),
    Workload("primary key, 1M rows, single updates", 1_000_000, "PRIMARY KEY (id)", 1, single("update", 1_000_000, 3_000)),
    Workload("primary key and an index, 100k rows, deletes of 5,000", 100_000, "PRIMARY KEY (id), KEY k (a)", 20,
             spread("delete", 100_000, 5_000, 10)),
)  # fmt: skip


class Pair:
    """A source and a replica of one version; the replica's applier runs only while it is timed."""

    def __init__(self, name: str) -> None:
        options = {**RELAXED, "binlog_row_event_max_size": 1 << 20}
        replica = {**RELAXED, "server_id": 2} | ({"slave_rows_search_algorithms": HASHED} if name == "5.7" else {})
        self.source, self.replica = Server(name, options=options, gtids=True), Server(name, options=replica, gtids=True)
        self.old = rules_for(name).name in ("5.6", "5.7")
        self.row_search = HASHED if self.old else None

    def __enter__(self) -> Pair:
        self.source.start()
        self.replica.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()
        self.replica.close()

    def words(self, statement: str) -> str:
        for word, old in OLD.items() if self.old else ():
            statement = statement.replace(word, old)
        return statement

    def connect(self) -> None:
        workers = "SET GLOBAL slave_parallel_workers = 0" if self.old else "SET GLOBAL replica_parallel_workers = 1"
        self.replica.execute(
            self.words("STOP REPLICA"),
            self.words("RESET REPLICA ALL"),
            workers,
            self.words(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {self.source.port}, SOURCE_USER = 'root', "
                f"SOURCE_PASSWORD = '{self.source.password}', {'' if self.old else 'GET_SOURCE_PUBLIC_KEY = 1, '}SOURCE_AUTO_POSITION = 1"
            ),
        )

    def fill(self, workload: Workload) -> None:
        """The same rows on both, none of it in a log."""
        for server, key in ((self.source, "PRIMARY KEY (id)"), (self.replica, workload.key)):
            server.execute(
                "SET SESSION sql_log_bin = 0",
                f"DROP DATABASE IF EXISTS {DATABASE}",
                f"CREATE DATABASE {DATABASE}",
                f"USE {DATABASE}",
                "CREATE TABLE mark (id INT NOT NULL PRIMARY KEY)",
                f"CREATE TABLE t ({', '.join(part for part in (COLUMNS, key) if part)}) DEFAULT CHARSET=latin1",
                *fill_statements(workload),
                "ANALYZE TABLE t",
            )

    def log(self, workload: Workload, folder: Path) -> Path:
        """Runs the workload on the source; its binlog file."""
        self.source.execute("FLUSH BINARY LOGS")
        before = self.source.binlog_files()[-1]
        with self.source.connect(database=DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
            for transaction in ([MARK.format(1)], *workload.statements(), [MARK.format(2)]):
                for statement in transaction:
                    cursor.execute(statement)
                connection.commit()
        self.source.execute("FLUSH BINARY LOGS")
        return Path(shutil.copy(before, folder / before.name))

    def fetch(self) -> None:
        """Waits until the replica has all of the source's log."""
        self.replica.execute(self.words("START REPLICA IO_THREAD"))
        wanted = self.source.query(self.words("SHOW BINARY LOG STATUS") if not self.old else "SHOW MASTER STATUS")[0]
        deadline = time.monotonic() + 120
        while True:
            status = self.replica.query(self.words("SHOW REPLICA STATUS"))[0]
            if (status[5], status[6]) == (wanted[0], wanted[1]):
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"the replica does not fetch: {status}")
            time.sleep(0.05)


MARK = "INSERT INTO mark VALUES ({})"


def fill_statements(workload: Workload) -> list[str]:
    """Doubles the rows until there are enough."""
    value = "{0}" if workload.duplicates == 1 else f"({{0}}) % {workload.rows // workload.duplicates}"
    row = "{0}, " + value + ", {0} * 3, {0} / 7, '2024-01-01' + INTERVAL {0} SECOND, CONCAT('r', REPEAT('e', {0} % 40))"
    statements, filled = [f"INSERT INTO t SELECT {row.format('1')}"], 1
    while filled < workload.rows:
        more = min(filled, workload.rows - filled)
        statements.append(f"INSERT INTO t SELECT {row.format(f'(id + {filled})')} FROM t WHERE id <= {more} ORDER BY id")
        filled += more
    return statements


class Watcher(ServerTarget):
    """The measurement's onlooker, over the table `mark` of the workloads."""

    def applied(self, start: str) -> tuple[float, float]:
        """(Seconds between the marks, those that were left out beside)."""
        self.database = DATABASE
        self._log_end = self._end_of_log()
        self.server.send(start)
        seconds = self._watch(self._applier_error)
        self.server.receive()
        return seconds, self.queue_seconds


def forecast_seconds(log: Path, pair: Pair, endpoint: Endpoint, calibration: str) -> float:
    """What the forecast says of the log behind its first transaction, the mark."""
    facts, version = facts_of_server(endpoint, [DATABASE])
    definitions = {table: one.definition for table, one in facts.items()}
    search = parse_row_search(pair.row_search) if pair.row_search else None
    rows_per_value = {table: one.rows_per_value for table, one in facts.items()}
    schema = Schema(definitions, rules_for(version), search, lambda table, key: rows_per_value[table.full_name](key))
    loads = [load for load in islice(LoadReader([log], schema=schema), 1, None) if load.applied]
    found = run(Plan(loads=loads, facts=facts, server=version, row_search=pair.row_search, calibration=calibration))
    return found.forecast.base.seconds


def measure_replica(pair: Pair, folder: Path, arguments: argparse.Namespace) -> str:
    """The calibration of the replica's server, by the command."""
    folder = arguments.keep or folder
    output = str(folder / "calibration.json")
    os.environ["BINLAG_PASSWORD"] = pair.replica.password
    into = ["--into", f"mysql://root@127.0.0.1:{pair.replica.port}", "--relay-folder", str(pair.replica.data)]
    keep = ["--output", output, "--table", str(folder / "cells.parquet")]
    keep += ["--row-search", pair.row_search] if pair.row_search else []
    measure.main([*into, *keep, "--largest", str(arguments.largest)], standalone_mode=False)
    return output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows of the largest table that is measured")
    parser.add_argument("--keep", type=Path, help="a folder for the calibration and the table of cells")
    parser.add_argument("--calibration", help="use this one, measure nothing")
    parser.add_argument("--only", help="workloads whose name holds this")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    began, results = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="binlag-accuracy-") as name, Pair(arguments.server) as pair:
        folder = Path(name)
        calibration = arguments.calibration or measure_replica(pair, folder, arguments)
        prices = json.loads(Path(calibration).read_text())
        print(f"measured in {time.monotonic() - began:.0f} s")
        endpoint = Endpoint(pair.replica.host, pair.replica.port, pair.replica.user, password=pair.replica.password)
        pair.connect()
        watcher = Watcher(endpoint, relay_folder=pair.replica.data)
        for workload in (one for one in WORKLOADS if not arguments.only or arguments.only in one.name):
            results.append(one_workload(pair, workload, watcher, endpoint, calibration, folder, arguments.runs))
        version = pair.replica.query("SELECT VERSION()")[0][0]
    errors = sorted(abs(one["error"]) for one in results)
    summary = {"median": statistics.median(errors), "worst": errors[-1]}
    print(f"error: median {summary['median']:.1%}, worst {summary['worst']:.1%}; {time.monotonic() - began:.0f} s in all")
    if arguments.output:
        found = {"machine": machine(), "server": version, "settings": RELAXED, "error": summary, "workloads": results}
        found["calibration"] = prices
        arguments.output.write_text(json.dumps(found, indent=1, default=str) + "\n")
    return 0


def one_workload(
    pair: Pair, workload: Workload, watcher: Watcher, endpoint: Endpoint, calibration: str, folder: Path, runs: int
) -> dict[str, Any]:
    taken, said = [], []
    for _ in range(runs):
        pair.fill(workload)
        log = pair.log(workload, folder)
        said.append(forecast_seconds(log, pair, endpoint, calibration))
        pair.fetch()
        taken.append(watcher.applied(pair.words("START REPLICA SQL_THREAD")))
        pair.replica.execute(pair.words("STOP REPLICA"))
    seconds, forecast = statistics.median(one for one, _ in taken), statistics.median(said)
    error = forecast / seconds - 1
    print(f"{workload.name:55s} forecast {forecast:8.3f} s  applied {seconds:8.3f} s  {error:+.0%}", flush=True)
    return {
        "workload": workload.name, "forecast_seconds": forecast, "applied_seconds": seconds, "error": error,
        "runs": [{"seconds": one, "queue_seconds": queue} for one, queue in taken],
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
