"""How right the forecast is: ten workloads that the calibration has not seen, forecast from their
binlogs, then applied by a real replica.

    python docker/servers/bring.py 9.7
    python benchmarks/forecast_accuracy.py --set fifth --rounds 5 \
        --output benchmarks/results/forecast_accuracy_9.7.json

1. `binlag measure --into` the server that will be the replica: prices of its units of work.
2. Each workload is run on a source of the same version, whose tables have a primary key; the
   replica's tables have the keys that the workload is about. The replica has fetched the binlog,
   its applier is stopped.
3. The forecast reads the binlog file and, from the live replica, definitions, row counts and
   cardinalities. It knows nothing else.
4. The replica's applier starts; an onlooker takes the time between the workload's first transaction
   and its last. Time that the applier stood in line for a processor that something else used is
   left out, as in the measurement (Linux tells; `queue_seconds` in the results).

Rounds of the workloads, and a measurement between each two of them: the speed of a machine may
change for minutes, so they take turns, and both the measurement and the workloads count with their
medians. Workloads: `forecast_workloads.py`; the sets before `fifth` have steered the model. A
measurement takes 5 minutes, a round of `fifth` 2; `--keep FOLDER` keeps all, and a run that was
interrupted (SIGTERM ends the servers, too) goes on. `--server 5.7` does the same on 5.7 with
HASH_SCAN on. The aim: within 15 % at the median, 35 % at worst.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from decode import machine
from forecast_strata import STRATA, Stratum
from forecast_workloads import SETS, Workload
from replication import ReplicationWords, Server, forecast

from applier.cli.commands.measure import command as measure
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.server_facts import facts_of_server
from applier.forecast.measurement.on_server import ServerTarget
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from applier.mysql.client.url import Endpoint
from lookup.versions import parse_row_search, rules_for

DATABASE = "accuracy"
HASHED = "INDEX_SCAN,HASH_SCAN"
"""For 5.7, whose default would scan a million rows for each of ten thousand."""
RELAXED = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "innodb_buffer_pool_size": "768M"}
TABLE_BYTES = 256 << 20
"""About what a workload's table takes, for the pools of strata."""
MARK = "INSERT INTO mark VALUES ({})"


class Pair:
    """A source and a replica of one version; the replica's applier runs only while it is timed."""

    def __init__(self, name: str, stratum: Stratum) -> None:
        self.stratum = stratum
        options = {**RELAXED, "binlog_row_event_max_size": 1 << 20}
        replica = {**RELAXED, "server_id": 2, **stratum.options(TABLE_BYTES)}
        rules = rules_for(name)
        self.row_search = HASHED if rules.row_search_selectable else None
        replica |= {"slave_rows_search_algorithms": HASHED} if self.row_search else {}
        # `measure` puts its logs in place of the relay logs
        replica |= {"relay_log": "relay"} if rules.name == "mariadb" else {}
        self.source, self.replica = (
            Server(name, options=options, gtids=True),
            Server(name, options=replica, gtids=True),
        )
        self.words = ReplicationWords(rules.name)

    def __enter__(self) -> Pair:
        self.source.start()
        self.replica.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()
        self.replica.close()

    def connect(self) -> None:
        workers = self.words.workers(self.stratum.workers)
        self.replica.execute(
            self.words("STOP REPLICA"),
            self.words("RESET REPLICA ALL"),
            f"SET GLOBAL {self.words.variable('replica_parallel_workers')} = {workers}",
            self.words.change_source(self.source),
        )

    def fill(self, workload: Workload) -> None:
        """The same rows on both, none of it in a log."""

        def fill(server: Server, key: str) -> None:
            parts = ", ".join(part for part in (workload.kind.columns, key) if part)
            server.execute(
                "SET SESSION sql_log_bin = 0",
                f"DROP DATABASE IF EXISTS {DATABASE}",
                f"CREATE DATABASE {DATABASE}",
                f"USE {DATABASE}",
                "CREATE TABLE mark (id INT NOT NULL PRIMARY KEY)",
                f"CREATE TABLE t ({parts}) DEFAULT CHARSET={workload.kind.charset}",
                *workload.fill(),
                "ANALYZE TABLE t",
            )

        with ThreadPoolExecutor() as pool:
            list(pool.map(fill, (self.source, self.replica), ("PRIMARY KEY (id)", workload.key)))

    def log(self, workload: Workload, folder: Path) -> Path:
        """Runs the workload on the source; its binlog file."""
        self.source.execute("FLUSH BINARY LOGS")
        before = self.source.binlog_files()[-1]
        with (
            self.source.connect(database=DATABASE, autocommit=False) as connection,
            connection.cursor() as cursor,
        ):
            for transaction in chain(
                [[MARK.format(1)]], workload.transactions(), [[MARK.format(2)]]
            ):
                for statement in transaction:
                    cursor.execute(statement)
                connection.commit()
        self.source.execute("FLUSH BINARY LOGS")
        return Path(shutil.copy(before, folder / before.name))

    def fetch(self) -> None:
        """Waits until the replica has all of the source's log."""
        self.replica.execute(self.words("START REPLICA IO_THREAD"))
        wanted = self.source.query(self.words("SHOW BINARY LOG STATUS"))[0]
        deadline = time.monotonic() + 120
        while True:
            status = self.replica.query(self.words("SHOW REPLICA STATUS"))[0]
            # A MariaDB writes a checkpoint behind what was wanted, some time later.
            if (status[5], int(status[6])) >= (wanted[0], int(wanted[1])):
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"the replica does not fetch: {status}")
            time.sleep(0.05)

    def forecasts(self, log: Path, calibration: str | None) -> dict[str, dict[str, Any]]:
        """What is forecast for the replica with the prices that ship, and with those of a file."""
        prices = {"shipped": None, "measured": calibration}
        return {
            word: forecast(self.replica, log, calibration=file)
            for word, file in prices.items()
            if file or word == "shipped"
        }

    def applied(self) -> float:
        """Starts the applier; seconds until it has executed what the source has."""
        start = time.monotonic()
        self.replica.execute(self.words("START REPLICA SQL_THREAD"))
        self.words.wait_for(self.replica, self.words.executed(self.source))
        return time.monotonic() - start


def beside(seconds: float, said: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What a replica took, and what was forecast: the parts of a result that all loads have."""
    return {
        "seconds": seconds,
        "forecast": {word: one["replica"]["span_seconds"] for word, one in said.items()},
        "margin": {word: one["margin"] for word, one in said.items()},
    }


def times(done: Mapping[str, Any]) -> str:
    """The seconds of such a result, in words."""
    forecasts = ", ".join(
        f"{word} {seconds:.2f} s ({seconds / done['seconds']:.2f})"
        for word, seconds in done["forecast"].items()
    )
    return f"{done['seconds']:.2f} s, {forecasts}"


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


@dataclass(frozen=True)
class Run:
    """One workload, applied once. What the forecast may know of it: the log, and the replica's
    tables before."""

    workload: str
    number: int
    seconds: float
    queue_seconds: float
    log: Path
    facts: dict[str, TableFacts]
    version: str

    def forecast(self, row_search: str | None, calibration: str, stratum: Stratum) -> float:
        """Seconds of the log behind its first transaction, the mark."""
        durable = 1 if stratum.durable else 0
        settings = {
            "innodb_flush_log_at_trx_commit": durable or 2,
            "sync_binlog": durable,
            "log_replica_updates": True,
            "buffer_pool": int(stratum.options(TABLE_BYTES)["innodb_buffer_pool_size"])
            if stratum.pool
            else 768 << 20,
            "cores": os.cpu_count(),
            **stratum.settings,
        }
        search = parse_row_search(row_search) if row_search else None
        schema = Schema(self.facts, rules_for(self.version), search)
        loads = [
            load for load in islice(LoadReader([self.log], schema=schema), 1, None) if load.applied
        ]
        plan = ForecastPlan(
            loads=loads, facts=self.facts, server=self.version, row_search=row_search,
            calibration=calibration,
            workers=stratum.workers, settings=settings,
        )  # fmt: skip
        found = run(plan)
        return found.forecast.base.span


class Bench:
    """Rounds on a pair of servers; what is done is kept in a folder."""

    def __init__(self, pair: Pair, folder: Path, largest: int) -> None:
        self.pair, self.folder, self.largest = pair, folder, largest
        self.calibration = folder / "calibration.json"
        self._runs = folder / "runs.pickle"
        self.runs: list[Run] = pickle.loads(self._runs.read_bytes()) if self._runs.exists() else []

    def measure(self, rounds: int) -> None:
        """The calibration of the replica's server, by the command, with that many rounds."""
        replica = self.pair.replica
        os.environ["BINLAG_PASSWORD"] = replica.password
        given = [
            "--into",
            f"mysql://root@127.0.0.1:{replica.port}",
            "--relay-folder",
            str(replica.data),
            "--rounds",
            str(rounds),
        ]
        given += [
            "--output",
            str(self.calibration),
            "--table",
            str(self.folder / "cells.parquet"),
            "--largest",
            str(self.largest),
        ]
        given += ["--row-search", self.pair.row_search] if self.pair.row_search else []
        measure.main(given, standalone_mode=False)

    def apply(self, workloads: Sequence[Workload], number: int) -> None:
        """Each workload that has not had this round."""
        pair, replica = self.pair, self.pair.replica
        done = {(one.workload, one.number) for one in self.runs}
        pair.connect()
        endpoint = Endpoint(replica.host, replica.port, replica.user, password=replica.password)
        watcher = Watcher(endpoint, relay_folder=replica.data)
        for workload in (one for one in workloads if (one.name, number) not in done):
            pair.fill(workload)
            log = pair.log(workload, self.folder)
            facts, version = facts_of_server(endpoint, [DATABASE])
            pair.fetch()
            seconds, queue = watcher.applied(pair.words("START REPLICA SQL_THREAD"))
            replica.execute(pair.words("STOP REPLICA"))
            log = log.rename(self.folder / f"{len(self.runs)}.binlog")
            self.runs.append(Run(workload.name, number, seconds, queue, log, facts, version))
            self._runs.write_bytes(pickle.dumps(self.runs))
            print(f"round {number + 1}: {workload.name:65s} {seconds:8.3f} s", flush=True)
        watcher.close()

    def results(self, workloads: Sequence[Workload], calibration: str) -> list[dict[str, Any]]:
        """For each workload what was forecast and what it took, both medians."""
        found = []
        for workload in workloads:
            runs = [one for one in self.runs if one.workload == workload.name]
            if not runs:
                continue
            said = statistics.median(
                one.forecast(self.pair.row_search, calibration, self.pair.stratum) for one in runs
            )
            seconds = statistics.median(one.seconds for one in runs)
            error = said / seconds - 1
            print(
                f"{workload.name:65s} forecast {said:8.3f} s  applied {seconds:8.3f} s  "
                f"{error:+.0%}",
                flush=True,
            )
            found.append({
                "workload": workload.name, "forecast_seconds": said, "applied_seconds": seconds,
                "error": error,
                "runs": [{"seconds": one.seconds,
                          "queue_seconds": one.queue_seconds} for one in runs],
            })  # fmt: skip
        return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--set", choices=SETS, default="fifth")
    parser.add_argument(
        "--stratum",
        choices=STRATA,
        default="1-relaxed-0-0",
        help="workers, commits, tables beside the pool, µs of a read",
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--largest", type=int, default=1_000_000, help="rows of the largest table that is measured"
    )
    parser.add_argument("--keep", type=Path, help="a folder for all that was measured")
    parser.add_argument("--calibration", help="use this one, measure nothing")
    parser.add_argument("--only", help="workloads whose name holds this")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    # by default it ends Python at once, and servers go on
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    workloads = [
        one for one in SETS[arguments.set] if not arguments.only or arguments.only in one.name
    ]
    with (
        tempfile.TemporaryDirectory(prefix="binlag-accuracy-") as name,
        Pair(arguments.server, STRATA[arguments.stratum]) as pair,
    ):
        folder = arguments.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(pair, folder, arguments.largest)
        for number in range(arguments.rounds):
            bench.apply(workloads, number)
            if not arguments.calibration and number < max(arguments.rounds - 1, 1):
                bench.measure(number + 1)
        calibration = arguments.calibration or str(bench.calibration)
        results = bench.results(workloads, calibration)
        version = pair.replica.query("SELECT VERSION()")[0][0]
        prices = json.loads(Path(calibration).read_text())
    errors = sorted(abs(one["error"]) for one in results)
    summary = {"median": statistics.median(errors), "worst": errors[-1]}
    print(f"error: median {summary['median']:.1%}, worst {summary['worst']:.1%}")
    if arguments.output:
        found = {
            "machine": machine(),
            "server": version,
            "settings": RELAXED,
            "stratum": arguments.stratum,
        }
        found |= {"set": arguments.set, "rounds": arguments.rounds}
        found |= {"error": summary, "workloads": results, "calibration": prices}
        arguments.output.write_text(json.dumps(found, indent=1, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
