"""The lag of a real replica, moment by moment, and the forecast's curve for the same log.

    apt-get install sysbench
    python docker/servers/bring.py 9.7
    python benchmarks/lag_beside_replica.py --calibration prices.json --output benchmarks/results/lag_beside_replica_9.7.json

A source and a replica of 9.7 as it ships (4 workers, durable commits). sysbench (Debian's package, oltp_update_non_index, at a
steady rate) writes to one table for a minute; the replica has that table once with its primary key and once without any key.
Seconds_Behind_Source is read twice a second until the replica has caught up. Then

    binlag forecast LOG --schema mysql://THE_REPLICA --json

says its curve, with the prices of `--calibration` (from `binlag measure` on the same machine). `python scripts/figures.py` draws
both into docs/images/forecast-beside-replica.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from decode import machine
from replication import ReplicationWords, Server

VERSION = "9.7"
OPTIONS: dict[str, str | int | bool | None] = {"innodb_buffer_pool_size": "512M", "max_binlog_size": 1 << 30}
KEYS = {
    "primary key": (),
    "no key": ("ALTER TABLE sbtest.sbtest1 MODIFY id INT NOT NULL, DROP PRIMARY KEY, DROP KEY k_1",),
}
PAUSE_SECONDS = 0.5


class Lagging:
    """One table's files, and the load that a source runs on them."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given, self.folder = given, folder
        self.words = ReplicationWords(VERSION)
        with Server(VERSION, options=OPTIONS, gtids=True, folder=folder / "tables") as server:
            server.execute(
                "CREATE DATABASE sbtest", "CREATE USER bench@localhost IDENTIFIED BY 'bench'", "GRANT ALL ON *.* TO bench@localhost"
            )
            subprocess.run(self.sysbench(server, "prepare"), check=True, stdout=subprocess.DEVNULL)
            server.execute("ANALYZE TABLE sbtest.sbtest1")
            server.stop()

    def sysbench(self, server: Server, command: str) -> list[str]:
        """sysbench's arguments, over the server's socket."""
        return [
            "sysbench", "oltp_update_non_index", f"--mysql-socket={server.socket}", "--mysql-user=bench", "--mysql-password=bench",
            "--tables=1", f"--table-size={self.given.rows}", "--threads=4", "--events=0", f"--rate={self.given.rate}",
            f"--time={self.given.seconds}", "--rand-type=uniform", command,
        ]  # fmt: skip

    @contextmanager
    def server(self, name: str, **options: str | int | bool) -> Iterator[Server]:
        """One that begins with the table."""
        place = self.folder / name
        shutil.copytree(self.folder / "tables" / "data", place / "data")
        (place / "data" / "auto.cnf").unlink(missing_ok=True)
        with Server(VERSION, options={**OPTIONS, **options}, gtids=True, folder=place) as server:
            yield server
        shutil.rmtree(place)

    def run(self, keys: str) -> dict[str, Any]:
        """Both curves for a replica with these keys, in seconds since the load began."""
        with self.server("source") as source, self.server("replica", server_id=2) as replica:
            replica.execute("SET SESSION sql_log_bin = 0", *KEYS[keys], "ANALYZE NO_WRITE_TO_BINLOG TABLE sbtest.sbtest1")
            replica.query("SELECT SUM(LENGTH(c)) FROM sbtest.sbtest1")
            source.execute("FLUSH BINARY LOGS")
            log = source.binlog_files()[-1]
            replica.execute(self.words.change_source(source), self.words("START REPLICA"))
            start, measured = self.measured(source, replica)
            source.execute("FLUSH BINARY LOGS")
            said = self.forecast(log, replica)
        points = [[moment - start, lag] for moment, lag in said["curve"]["points"]]
        return {
            "keys": keys, "measured": measured, "forecast": points, "width_seconds": said["curve"]["width_seconds"],
            "peak": [said["replica"]["peak_lag_seconds"], said["peak_low_seconds"], said["peak_high_seconds"]],
            "conditions": said["conditions"], "transactions": said["transactions"],
        }  # fmt: skip

    def measured(self, source: Server, replica: Server) -> tuple[float, list[list[float]]]:
        """The moment at which the load began, and [seconds since then, Seconds_Behind_Source] until the replica has caught up."""
        start, points = time.time(), []
        with subprocess.Popen(self.sysbench(source, "run"), stdout=subprocess.DEVNULL) as load:
            while load.poll() is None or points[-1][1] > 0:
                behind = replica.query(self.words("SHOW REPLICA STATUS"))[0][32]
                points.append([time.time() - start, float(behind)])
                time.sleep(PAUSE_SECONDS)
        return start, points

    def forecast(self, log: Path, replica: Server) -> dict[str, Any]:
        """What `binlag forecast` says of the log alone; the replica tells its settings and the table's size."""
        given = [sys.executable, "-m", "applier", "forecast", str(log), "--json", "--schema", f"mysql://root@127.0.0.1:{replica.port}"]
        given += ["--calibration", self.given.calibration] if self.given.calibration else []
        done = subprocess.run(given, check=True, capture_output=True, env={**os.environ, "BINLAG_PASSWORD": replica.password})
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="of the table (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=40, help="transactions a second (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="of the load (default: %(default)s)")
    parser.add_argument("--calibration", help="forecast with these prices")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlag-lag-") as folder:
        stand = Lagging(given, Path(folder))
        curves = [stand.run(keys) for keys in KEYS]
    found = {"machine": machine(), "server": VERSION, "rows": given.rows, "rate": given.rate, "seconds": given.seconds, "curves": curves}
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    for one in curves:
        worst = max(lag for _, lag in one["measured"])
        print(f"{one['keys']:12s} worst lag {worst:.0f} s, forecast {one['peak'][0]:.1f} s ({one['peak'][1]:.1f} to {one['peak'][2]:.1f})")
        print(f"{'':12s} caught up after {one['measured'][-1][0]:.0f} s, forecast {one['forecast'][-1][0]:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
