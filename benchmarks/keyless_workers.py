"""What several workers do to a table that has its key on the source only: seconds, scans, retries,
lock waits.

    python docker/servers/bring.py 9.7
    python benchmarks/keyless_workers.py --output benchmarks/results/keyless_workers_9.7.json
    python benchmarks/keyless_workers.py --set strata --calibration prices.json \
        --output benchmarks/results/keyless_strata_9.7.json

A source whose table has a primary key changes single rows of it, drawn at random, one row a
transaction (`update`, `delete`), so that nothing in its log ties them to each other (WRITESET). A
replica of the same version has the same rows without a key. It fetches the log with its applier
stopped, and then applies it with 1, 2 and 4 workers, in turns, so that all of them meet the same
machine. Counts of the replica before and after: Handler_read_rnd_next (over the rows of the table:
how often it was scanned), COUNT_TRANSACTIONS_RETRIES of its workers, Innodb_row_lock_waits, and the
processor time of its process. Before each, `binlag forecast LOG --schema THE_REPLICA` says how long
it will take, with the prices of `--calibration` or with those that ship. Takes seven minutes, most
of them pauses of the replica.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from decode import machine
from replication import ReplicationWords, Server, forecast

TABLE = "shop.t"
PRIMARY = ", PRIMARY KEY (id)"
COLUMNS = "id INT NOT NULL, n INT NOT NULL, note CHAR(60) NOT NULL"
RELAXED = {
    "innodb_flush_log_at_trx_commit": 2,
    "sync_binlog": 0,
    "innodb_buffer_pool_size": "512M",
    "max_binlog_size": 1 << 30,
}
STATEMENTS = {
    "update": f"UPDATE {TABLE} SET n = n + 1 WHERE id = {{}}",
    "delete": f"DELETE FROM {TABLE} WHERE id = {{}}",
}
RETRIES = (
    "SELECT COALESCE(SUM(COUNT_TRANSACTIONS_RETRIES), 0) FROM "
    "performance_schema.replication_applier_status"
)


@dataclass(frozen=True)
class Case:
    """So many one-row transactions of a kind on a table of so many rows. `key`: who has one, both,
    the source or none."""

    kind: str
    rows: int
    transactions: int
    key: str = "source"
    durable: bool = False


CASES = (Case("update", 10_000, 60), Case("delete", 10_000, 60), Case("update", 100_000, 40))

STRATA = tuple(
    Case("update", 10_000, transactions, key, durable)
    for durable in (False, True) for key,
    transactions in (("both", 3_000), ("source", 60), ("none", 60))
)  # fmt: skip
GROUP = ("kind", "rows", "key", "durable")
SETS = {"workers": CASES, "strata": STRATA}
DURABLE = {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1}


@dataclass(frozen=True)
class Counts:
    """Of the replica's process since its start. `processor`: seconds."""

    moment: float
    processor: float
    rows_read: int
    retries: int
    lock_waits: int
    lock_milliseconds: int


class Pair:
    """A source and a replica; the replica's table has no key."""

    def __init__(self, name: str, source: Server, replica: Server) -> None:
        self.source, self.replica, self.words = source, replica, ReplicationWords(name)

    def fill(self, server: Server, rows: int, key: str) -> None:
        """The same rows on both, in no log."""
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for statement in (
                "SET SESSION sql_log_bin = 0",
                "CREATE DATABASE IF NOT EXISTS shop",
                f"DROP TABLE IF EXISTS {TABLE}",
            ):
                cursor.execute(statement)
            cursor.execute(f"CREATE TABLE {TABLE} ({COLUMNS}{key})")
            for first in range(0, rows, 5_000):
                values = ", ".join(
                    f"({one}, 0, 'note {one}')" for one in range(first, min(first + 5_000, rows))
                )
                cursor.execute(f"INSERT INTO {TABLE} VALUES {values}")

    def log(self, case: Case) -> None:
        """The source's transactions, in a file of their own."""
        self.fill(self.source, case.rows, "" if case.key == "none" else PRIMARY)
        draw = random.Random(case.rows)
        self.source.execute("FLUSH BINARY LOGS")
        self.file = self.source.binlog_files()[-1]
        chosen = draw.sample(range(case.rows), case.transactions)
        with self.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for number, one in enumerate(chosen):
                time.sleep(1.1 if number + 1 == len(chosen) else 0)  # 5.7 logs whole seconds
                cursor.execute(STATEMENTS[case.kind].format(one))
        self.source.execute("FLUSH BINARY LOGS")

    def forecast(self, calibration: str | None) -> float:
        """Seconds that `binlag forecast` says before anything is applied."""
        self.replica.execute(f"ANALYZE NO_WRITE_TO_BINLOG TABLE {TABLE}")
        said = forecast(self.replica, self.file, calibration=calibration)
        return float(said["replica"]["span_seconds"])

    def prepare(self, case: Case, workers: int) -> None:
        """The replica has the log and nothing of it applied."""
        variable = self.words.variable
        self.replica.execute(
            self.words("STOP REPLICA"), self.words("RESET REPLICA ALL"),
            self.words("RESET BINARY LOGS AND GTIDS"),
            f"SET GLOBAL {variable('replica_parallel_workers')} = {self.words.workers(workers)}",
        )  # fmt: skip
        self.fill(self.replica, case.rows, PRIMARY if case.key == "both" else "")
        self.replica.execute(
            self.words.change_source(self.source), self.words("START REPLICA IO_THREAD"),
        )  # fmt: skip
        wanted = self.source.query(self.words("SHOW BINARY LOG STATUS"))[0][:2]
        while self.replica.query(self.words("SHOW REPLICA STATUS"))[0][5:7] != wanted:
            time.sleep(0.05)

    def counts(self) -> Counts:
        """What the replica's counters say now."""
        status = {
            name: int(value)
            for name, value in self.replica.query(
                "SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_rnd_next', "
                "'Innodb_row_lock_waits', 'Innodb_row_lock_time')"
            )
        }
        moment = time.monotonic()
        spent = Path(f"/proc/{self.replica.pid}/stat").read_text().rsplit(")", 1)[1].split()
        processor = (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")
        retries = int(self.replica.query(RETRIES)[0][0])
        return Counts(
            moment, processor, status["Handler_read_rnd_next"], retries,
            status["Innodb_row_lock_waits"],
            status["Innodb_row_lock_time"],
        )  # fmt: skip

    def apply(self, case: Case, workers: int, calibration: str | None = None) -> dict[str, Any]:
        """Forecasts the log with these prices, and applies it with so many workers."""
        self.prepare(case, workers)
        said = self.forecast(calibration)
        end = self.source.query("SELECT @@global.gtid_executed")[0][0].replace("\n", "")
        before = self.counts()
        self.replica.execute(self.words("START REPLICA SQL_THREAD"))
        self.replica.query(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{end}', 1200)")
        after = self.counts()
        seconds = after.moment - before.moment
        return {
            **asdict(case),
            "workers": workers,
            "seconds": seconds,
            "forecast": said,
            "milliseconds": 1000 * seconds / case.transactions,
            "processors": (after.processor - before.processor) / seconds,
            "scans": (after.rows_read - before.rows_read) / case.rows / case.transactions,
            "retries": (after.retries - before.retries) / case.transactions,
            "lock_waits": (after.lock_waits - before.lock_waits) / case.transactions,
            "lock_milliseconds": (after.lock_milliseconds - before.lock_milliseconds)
            / case.transactions,
        }


def run(
    name: str,
    numbers: list[int],
    rounds: int,
    cases: list[Case],
    options: dict[str, str],
    calibration: str | None,
) -> Iterator[dict[str, Any]]:
    """Each case with each number of workers, in turns."""
    for case in cases:
        first = {**RELAXED,
                 **({"binlog_transaction_dependency_tracking": "WRITESET",
                     "transaction_write_set_extraction": "XXHASH64"}
                 if name == "5.7" else {})}  # fmt: skip
        second = {**RELAXED, "server_id": 2, **(DURABLE if case.durable else {}), **options}
        with (
            Server(name, options=first, gtids=True) as source,
            Server(name, options=second, gtids=True) as replica,
        ):
            pair = Pair(name, source, replica)
            pair.log(case)
            for number in range(rounds):
                for workers in numbers:
                    found = {"round": number + 1, **pair.apply(case, workers, calibration)}
                    print(_words(found), flush=True)
                    yield found


def _words(one: dict[str, Any]) -> str:
    commits = "durable" if one["durable"] else "relaxed"
    return (
        f"{one['kind']} {one['rows']:>7,} rows, key: {one['key']}, {commits}, {one['workers']:.0f} "
        f"workers: {one['seconds']:6.1f} s, "
        f"forecast {one['forecast']:6.1f} s, {one['scans']:.2f} scans, {one['retries']:.2f} "
        f"retries, {one['lock_waits']:.2f} lock waits, "
        f"{one['processors']:.2f} processors"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--set",
        choices=SETS,
        default="workers",
        help="strata: with the key on both, on the source, on none; relaxed and durable",
    )
    parser.add_argument("--only", default="", help="cases whose kind and rows hold this")
    parser.add_argument("--replica-option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--calibration", help="forecast with these prices")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    cases = [one for one in SETS[given.set] if given.only in f"{one.kind} {one.rows} {one.key}"]
    options = dict(one.split("=", 1) for one in given.replica_option)
    load = os.getloadavg()[0]
    done = list(
        run(
            given.server,
            [int(one) for one in given.workers.split(",")],
            given.rounds,
            cases,
            options,
            given.calibration,
        )
    )
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in done:
        groups.setdefault(tuple(one[name] for name in (*GROUP, "workers")), []).append(one)
    print("medians:")
    for group in groups.values():
        middle = {
            name: statistics.median(one[name] for one in group)
            for name in group[0]
            if name not in GROUP
        }
        print(_words({**group[0], **middle}))
    if given.output:
        found = {
            "machine": machine(),
            "server": given.server,
            "replica_options": options,
            "load_before": load,
            "runs": done,
        }
        given.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
