"""When a real replica that is a minute behind will have caught up, as forecast at the start and
half way.

    python docker/servers/bring.py 9.7
    python benchmarks/catch_up.py --calibration prices.json \
        --output benchmarks/results/catch_up_9.7.json

A source and a replica of 9.7 as they ship (durable commits) with the same table and primary key. A
session on the source changes some rows in each transaction, so many a second, all the time. The
replica's applier begins `--behind` seconds late. Three seconds later, and once more when half of
the lag is gone,

    binlag forecast LOG --replica mysql://THE_REPLICA --json

says how long it will take (now.catch_up_seconds). The replica has caught up when what it applied
last was committed on the source less than a second ago; performance_schema tells. Takes three to
five minutes for each number of workers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from decode import machine
from replication import ReplicationWords, Server, forecast

VERSION = "9.7"
OPTIONS: dict[str, str | int | bool | None] = {
    "innodb_buffer_pool_size": "256M",
    "max_binlog_size": 1 << 30,
}
ROWS = 200_000
LEVEL_SECONDS = 1.0
POLL_SECONDS = 0.25
LONGEST_SECONDS = 400.0
WARM_UP_SECONDS = 3.0
"""Until the applier runs at its usual pace and it is asked for the first time."""
APPLIED = (
    "SELECT MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) > '1970-01-02', "
    "TIMESTAMPDIFF(MICROSECOND, MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP), NOW(6)) "
    "FROM performance_schema.replication_applier_status_by_worker"
)


class Pair:
    """A source and a replica with the same table, which is in no log; the applier is stopped."""

    def __init__(self, source: Server, replica: Server) -> None:
        self.source, self.replica, words = source, replica, ReplicationWords(VERSION)
        for server in (source, replica):
            server.execute(
                "SET SESSION sql_log_bin = 0, cte_max_recursion_depth = 100000000",
                "CREATE DATABASE shop",
                "CREATE TABLE shop.item (id INT NOT NULL PRIMARY KEY, n INT NOT NULL, "
                "note CHAR(120) NOT NULL)",
                "INSERT INTO shop.item WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                f"FROM s WHERE i < {ROWS}) "
                "SELECT i, 0, SHA2(i, 256) FROM s",
                "ANALYZE TABLE shop.item",
            )
        source.execute("FLUSH BINARY LOGS")
        self.log = source.binlog_files()[-1]
        replica.execute(words.change_source(source), words("START REPLICA IO_THREAD"))

    @contextmanager
    def traffic(self, rate: float, rows: int) -> Iterator[None]:
        """A session that changes so many rows in a transaction, so many transactions a second."""
        stop = Event()

        def work() -> None:
            draw, start, number = random.Random(1), time.monotonic(), 0
            with self.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
                while not stop.wait(max(start + number / rate - time.monotonic(), 0)):
                    first = draw.randrange(ROWS - rows)
                    cursor.execute(
                        f"UPDATE shop.item SET n = n + 1 WHERE id BETWEEN {first + 1} AND "
                        f"{first + rows}"
                    )
                    number += 1

        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def behind(self) -> float:
        """Seconds since the commit on the source of what the replica applied last; a day where
        there is none."""
        any_yet, microseconds = self.replica.query(APPLIED)[0]
        return float(microseconds) / 1e6 if any_yet else 86_400.0

    def forecast(self, calibration: str | None) -> dict[str, Any]:
        """What binlag says now."""
        logs = [file for file in self.source.binlog_files() if file.name >= self.log.name]
        said = forecast(self.replica, *logs, option="--replica", calibration=calibration)
        return {
            name: said["now"][name]
            for name in (
                "time",
                "behind_seconds",
                "transactions_left",
                "capacity",
                "catch_up_seconds",
            )
        }


def run(workers: int, given: argparse.Namespace) -> dict[str, Any]:
    """One catch-up."""
    second = {**OPTIONS, "server_id": 2, "replica_parallel_workers": workers}
    with (
        Server(VERSION, options=OPTIONS, gtids=True) as source,
        Server(VERSION, options=second, gtids=True) as replica,
    ):
        pair = Pair(source, replica)
        with pair.traffic(given.rate, given.rows):
            time.sleep(given.behind)
            replica.execute("START REPLICA SQL_THREAD")
            time.sleep(WARM_UP_SECONDS)
            begun, lags = time.time(), list[list[float]]()
            said = [pair.forecast(given.calibration)]
            half = said[0]["behind_seconds"] / 2
            while True:
                lag = pair.behind()
                lags.append([time.time() - begun, lag])
                if lag < LEVEL_SECONDS or lags[-1][0] > LONGEST_SECONDS:
                    break
                if lag < half and len(said) == 1:
                    said.append(pair.forecast(given.calibration))
                time.sleep(POLL_SECONDS)
            level = time.time()
    for one in said:
        one["real_seconds"] = level - one["time"]
        print(_words(workers, one), flush=True)
    return {
        "workers": workers,
        "caught_up": lags[-1][1] < LEVEL_SECONDS,
        "asked": said,
        "lags": lags,
    }


def _words(workers: int, one: dict[str, Any]) -> str:
    return (
        f"{workers} workers, {one['behind_seconds']:.0f} s behind: forecast "
        f"{one['catch_up_seconds']} s "
        f"(capacity {one['capacity']:.2f}), took {one['real_seconds']:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,4")
    parser.add_argument("--behind", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument(
        "--rate", type=float, default=100.0, help="transactions a second (default: %(default)s)"
    )
    parser.add_argument(
        "--rows", type=int, default=400, help="that a transaction changes (default: %(default)s)"
    )
    parser.add_argument("--calibration", help="forecast with these prices")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    runs = [run(int(workers), given) for workers in given.workers.split(",")]
    settings = {name: getattr(given, name) for name in ("behind", "rate", "rows")}
    found = {"machine": machine(), "server": VERSION, "load_before": load, **settings, "runs": runs}
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
