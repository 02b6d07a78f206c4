"""When a real replica that is a minute behind will have caught up, as forecast at the start and
half way.

    apt-get install sysbench
    python docker/servers/bring.py 9.7
    TMPDIR=/dev/shm python benchmarks/catch_up.py --output catch_up.json

A source and a replica of 9.7 as they ship (durable commits), whose tables sysbench made through
the log. Then the applier stops, and sysbench changes the source at a steady rate, all the time. The
applier begins `--behind` seconds late. Three seconds later, and once more when half of the lag is
gone,

    binlag forecast LOG --replica mysql://THE_REPLICA --json

says how long it will take (now.catch_up_seconds). The replica has caught up when what it applied
last was committed on the source less than a second ago; performance_schema tells. Takes two to four
minutes for each number of workers. Results are added to those in --output.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from decode import machine
from replication import ReplicationWords, Server, forecast

VERSION = "9.7"
OPTIONS: dict[str, str | int | bool | None] = {
    "innodb_buffer_pool_size": "512M",
    "max_binlog_size": 1 << 30,
}
TABLES = ("--tables=4", "--table-size=100000")
LEVEL_SECONDS = 1.0
POLL_SECONDS = 0.25
LONGEST_SECONDS = 300.0
WARM_UP_SECONDS = 3.0
"""Until the applier runs at its usual pace and it is asked for the first time."""
APPLIED = (
    "SELECT MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) > '1970-01-02', "
    "TIMESTAMPDIFF(MICROSECOND, MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP), NOW(6)) "
    "FROM performance_schema.replication_applier_status_by_worker"
)


class Pair:
    """A source, and a replica that has its tables and whose applier is stopped."""

    def __init__(self, source: Server, replica: Server, script: str) -> None:
        self.source, self.replica, self.script = source, replica, script
        words = ReplicationWords(VERSION)
        replica.execute(words.change_source(source), "START REPLICA")
        source.execute(
            "CREATE DATABASE sbtest",
            "CREATE USER bench@localhost IDENTIFIED BY 'bench'",
            "GRANT ALL ON *.* TO bench@localhost",
        )
        self._sysbench("prepare", "--threads=2").wait()
        words.wait_for(replica, words.executed(source))
        replica.execute("STOP REPLICA SQL_THREAD", "ANALYZE TABLE sbtest.sbtest1, sbtest.sbtest2, "
                        "sbtest.sbtest3, sbtest.sbtest4")  # fmt: skip
        source.execute("FLUSH BINARY LOGS")
        self.log = source.binlog_files()[-1]

    def _sysbench(self, command: str, *given: str) -> subprocess.Popen[bytes]:
        address = [f"--mysql-socket={self.source.socket}", "--mysql-user=bench"]
        return subprocess.Popen(
            ["sysbench", self.script, *address, "--mysql-password=bench", *TABLES, *given, command],
            stdout=subprocess.DEVNULL,
        )

    @contextmanager
    def traffic(self, rate: float) -> Iterator[None]:
        """So many transactions a second, at times drawn as by a Poisson process."""
        running = self._sysbench(
            "run", "--threads=8", "--time=0", "--events=0", f"--rate={rate:g}", "--rand-seed=7"
        )
        try:
            yield
        finally:
            running.terminate()
            running.wait()

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
                "pace",
                "capacity",
                "catch_up_seconds",
                "catch_up_low_seconds",
                "catch_up_high_seconds",
            )
        }


@contextmanager
def watched(pair: Pair) -> Iterator[list[tuple[float, float]]]:
    """Times and how far it was behind then, until it has caught up."""
    lags: list[tuple[float, float]] = [(time.time(), pair.behind())]

    def look() -> None:
        while lags[-1][1] > LEVEL_SECONDS and lags[-1][0] < lags[0][0] + LONGEST_SECONDS:
            time.sleep(POLL_SECONDS)
            lags.append((round(time.time(), 3), round(pair.behind(), 3)))

    thread = Thread(target=look)
    thread.start()
    yield lags
    thread.join()


def run(workers: int, given: argparse.Namespace) -> dict[str, Any]:
    """One catch-up."""
    second = {**OPTIONS, "server_id": 2, "replica_parallel_workers": workers}
    with (
        Server(VERSION, options=OPTIONS, gtids=True) as source,
        Server(VERSION, options=second, gtids=True) as replica,
    ):
        pair = Pair(source, replica, given.script)
        with pair.traffic(given.rate):
            time.sleep(given.behind)
            replica.execute("START REPLICA SQL_THREAD")
            time.sleep(WARM_UP_SECONDS)
            with watched(pair) as lags:
                said = [pair.forecast(given.calibration)]
                half = said[0]["behind_seconds"] / 2
                while lags[-1][1] > half:
                    time.sleep(POLL_SECONDS)
                if lags[-1][1] > LEVEL_SECONDS:
                    said.append(pair.forecast(given.calibration))
    for one in said:
        one["real_seconds"] = lags[-1][0] - one["time"]
        print(_words(workers, one), flush=True)
    return {
        "script": given.script,
        "rate": given.rate,
        "workers": workers,
        "caught_up": lags[-1][1] <= LEVEL_SECONDS,
        "asked": said,
        "lags": lags,
    }


def _words(workers: int, one: dict[str, Any]) -> str:
    low, said, high = (one[f"catch_up_{name}seconds"] for name in ("low_", "", "high_"))
    return (
        f"{workers} workers, {one['behind_seconds']:.0f} s behind: forecast {said} s "
        f"({low} to {high}; capacity {one['capacity']:.2f}), took {one['real_seconds']:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,4")
    parser.add_argument("--behind", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument(
        "--script", default="oltp_write_only", help="sysbench's (default: %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=600.0, help="transactions a second (default: %(default)s)"
    )
    parser.add_argument("--calibration", help="forecast with these prices")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    found: dict[str, Any] = {"runs": []}
    if given.output.exists():
        found = json.loads(given.output.read_text())
    for workers in given.workers.split(","):
        load = os.getloadavg()[0]
        found |= {"machine": machine(), "server": VERSION, "behind": given.behind}
        found["runs"].append({"load_before": load, **run(int(workers), given)})
        given.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
