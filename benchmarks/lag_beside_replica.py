"""The lag of a real replica, moment by moment, and the forecast's curve for the same log.

    python docker/servers/bring.py 9.7
    python benchmarks/lag_beside_replica.py --calibration prices.json \
        --output benchmarks/results/lag_beside_replica_9.7.json

A source and a replica of 9.7 as it ships (4 workers, durable commits), and one table, once with its
primary key and once without any key on either of them. For a minute, a job on the source changes
every twentieth row of it in one statement, every few seconds. Seconds_Behind_Source is read twice a
second until the replica has caught up. It counts whole seconds from the beginning of the statement
on the source, the forecast counts from its commit. Then

    binlag forecast LOG --schema mysql://THE_REPLICA --json

says its curve, with the prices of `--calibration` (from `binlag measure` on the same machine).
`python scripts/figures.py` draws both into docs/images/forecast-beside-replica.svg.
"""

from __future__ import annotations

import argparse
import json
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
KEYS = {"primary key": ", PRIMARY KEY (id)", "no key": ""}
PARTS = 20
"""A statement changes one row of so many."""
PAUSE_SECONDS = 0.5


class Pair:
    """A source and a replica with the same table, which is in no log."""

    def __init__(self, source: Server, replica: Server, key: str, rows: int) -> None:
        self.source, self.replica, self.words = source, replica, ReplicationWords(VERSION)
        for server in (source, replica):
            server.execute(
                "SET SESSION sql_log_bin = 0, cte_max_recursion_depth = 100000000",
                "CREATE DATABASE shop",
                "CREATE TABLE shop.audit_log (id INT NOT NULL, n INT NOT NULL, note CHAR(120) "
                f"NOT NULL{key})",
                "INSERT INTO shop.audit_log WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i "
                f"+ 1 FROM s WHERE i < {rows}) "
                "SELECT i, 0, SHA2(i, 256) FROM s",
                "ANALYZE TABLE shop.audit_log",
            )
        source.execute("FLUSH BINARY LOGS")
        self.log = source.binlog_files()[-1]
        replica.execute(self.words.change_source(source), self.words("START REPLICA"))

    def job(self, seconds: float, every: float) -> None:
        """The statements, in a session of their own."""
        connection = self.source.connect(autocommit=True)
        start = time.monotonic()
        for number in range(int(seconds / every)):
            time.sleep(max(start + number * every - time.monotonic(), 0))
            with connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE shop.audit_log SET n = n + 1 WHERE id % {PARTS} = {number % PARTS}"
                )
        connection.close()

    def measured(self, seconds: float, every: float) -> tuple[float, list[list[float]]]:
        """The moment at which the job began, and [seconds since then, Seconds_Behind_Source] until
        the replica has caught up."""
        start, points = time.time(), []
        job = Thread(target=self.job, args=(seconds, every))
        job.start()
        while job.is_alive() or not self.has_all() or points[-1][1] > 0:
            behind = self.replica.query(self.words("SHOW REPLICA STATUS"))[0][32]
            points.append([time.time() - start, float(behind)])
            time.sleep(PAUSE_SECONDS)
        self.source.execute("FLUSH BINARY LOGS")
        return start, points

    def has_all(self) -> bool:
        """Whether the replica has every transaction of the source."""
        executed = self.source.query("SELECT @@global.gtid_executed")[0][0]
        return bool(
            self.replica.query(f"SELECT GTID_SUBSET('{executed}', @@global.gtid_executed)")[0][0]
        )


@contextmanager
def pair(key: str, rows: int) -> Iterator[Pair]:
    """Started and filled."""
    second = {**OPTIONS, "server_id": 2}
    with (
        Server(VERSION, options=OPTIONS, gtids=True) as source,
        Server(VERSION, options=second, gtids=True) as replica,
    ):
        yield Pair(source, replica, key, rows)


def curves(keys: str, given: argparse.Namespace) -> dict[str, Any]:
    """Both curves for tables with these keys, in seconds since the job began."""
    with pair(KEYS[keys], given.rows) as both:
        start, measured = both.measured(given.seconds, given.every)
        said = forecast(both.replica, both.log, calibration=given.calibration)
    return {
        "keys": keys, "measured": measured,
        "forecast": [[moment - start, lag] for moment, lag in said["curve"]["points"]],
        "peak": [said["replica"]["peak_lag_seconds"], said["peak_low_seconds"],
                 said["peak_high_seconds"]],
        "conditions": said["conditions"], "transactions": said["transactions"],
        "rows": said["rows"],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=100_000, help="of the table (default: %(default)s)"
    )
    parser.add_argument(
        "--every", type=float, default=6.0, help="seconds between statements (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of the job (default: %(default)s)"
    )
    parser.add_argument("--calibration", help="forecast with these prices")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    found = [curves(keys, given) for keys in KEYS]
    said = {
        "machine": machine(),
        "server": VERSION,
        "rows": given.rows,
        "every": given.every,
        "seconds": given.seconds,
    }
    given.output.write_text(json.dumps(said | {"curves": found}, indent=1) + "\n")
    for one in found:
        worst = max(lag for _, lag in one["measured"])
        print(
            f"{one['keys']:12s} worst lag {worst:.0f} s, forecast {one['peak'][0]:.1f} s "
            f"({one['peak'][1]:.1f} to {one['peak'][2]:.1f})"
        )
        print(
            f"{'':12s} caught up after {one['measured'][-1][0]:.0f} s, forecast "
            f"{one['forecast'][-1][0]:.0f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
