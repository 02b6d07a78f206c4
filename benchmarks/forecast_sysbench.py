"""How right the forecast is for loads that nobody here wrote: sysbench (Debian's package) on a real
source, applied by a real replica.

    apt-get install sysbench strace
    python docker/servers/bring.py 9.7
    python benchmarks/forecast_sysbench.py --output benchmarks/results/forecast_sysbench_9.7.json

For each load: sysbench's tables are made once, the source runs the load from there with eight
threads, and for each stratum (`forecast_strata.py`: workers, durable or relaxed, tables beside the
buffer pool, a slower disk) a replica starts from the same files, with or without the primary key of
sbtest1, and fetches the log with its applier stopped. Then

    binlag forecast LOG --schema mysql://THE_REPLICA --json

says seconds (replica.span_seconds), pages read and an error bar: once with the
prices that ship and, with `--calibration`, with those. Only then does the applier start; it is
timed to its last transaction, and Innodb_pages_read and the processor time of the replica and of
all others are taken before and after. What a single worker stood in line for a processor that other
programs had does not count, as with `measure`; several workers need the machine for themselves.
All strata of a load are applied, then all once more, `--times` altogether, each time by a new
replica; their mean counts. On a virtual machine the same log is applied in 1 s or in 1.4.
`--set` gives variables of the replica, such as slave_parallel_mode=conservative. With `--sync-delay
MICROSECONDS` strace holds up each sync of the replica's disk so long; how long one takes then is
told by some commits made before the log is applied. What is there already in --output is not run
again; with `--keep FOLDER` the tables and the source of each load stay there, and the next run
begins with its replicas.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from decode import machine
from forecast_strata import STRATA, slowed
from replication import ReplicationWords, Server, forecast
from server_readings import (
    TIMED_READS,
    applier_clock,
    page_splits,
    pages_read,
    processor_seconds,
    read_microseconds,
    sync_time,
    warm,
)
from servers.installed import Installed

KEYS = {
    "keys": (),
    "keyless": ("ALTER TABLE sbtest.sbtest1 MODIFY id INT NOT NULL, DROP PRIMARY KEY",),
}
"""The replica's tables: as sysbench makes them, or one of them without its primary key (KEY k is
left)."""
STANDARD = (
    "1-relaxed-0-0",
    "2-relaxed-0-0",
    "4-relaxed-0-0",
    "1-durable-0-0",
    "2-durable-0-0",
    "4-durable-0-0",
)
ON_DISK = (
    "1-relaxed-4-0",
    "4-relaxed-4-0",
    "1-relaxed-16-0",
    "1-relaxed-4-500",
    "4-durable-4-500",
    "1-relaxed-16-500",
)


@dataclass(frozen=True)
class Load:
    """What sysbench runs: its script, so many transactions over so many tables of so many rows."""

    script: str
    transactions: int
    tables: int = 4
    rows: int = 100_000

    @property
    def table_bytes(self) -> int:
        """sysbench's rows take some 190 bytes each, and as much again for free space and the
        index."""
        return self.tables * self.rows * 240


@dataclass(frozen=True)
class Case:
    """A load in a stratum."""

    load: str
    keys: str
    stratum: str
    replica: tuple[str, ...] = ()
    """Variables of the replica, as `--set` has them."""
    sync_delay: int = 0
    """Microseconds by which its disk is slower at a sync."""

    @property
    def slow_disk(self) -> list[str]:
        """What the command of its server follows."""
        reads = STRATA[self.stratum].read_microseconds
        return slowed({"pread64": reads, "fsync,fdatasync": self.sync_delay})

    @property
    def name(self) -> str:
        return " ".join((self.load, self.keys, self.stratum))


LOADS = {
    "write_only": Load("oltp_write_only", 30_000),
    "update_index": Load("oltp_update_index", 30_000),
    "update_non_index": Load("oltp_update_non_index", 30_000),
    "insert": Load("oltp_insert", 30_000),
    "delete": Load("oltp_delete", 30_000),
    "orders": Load(str(Path(__file__).with_name("orders.lua")), 15_000, 4, 25_000),
    "write_only_large": Load("oltp_write_only", 6_000, 2, 500_000),
    "update_index_large": Load("oltp_update_index", 12_000, 2, 500_000),
    "update_index_one": Load("oltp_update_index", 30_000, 1),
    "update_index_eight": Load("oltp_update_index", 30_000, 8, 200_000),
}


def cases(replica: tuple[str, ...], sync_delay: int) -> Iterator[Case]:
    for load, keys, strata in (
        ("write_only", ("keys", "keyless"), STANDARD),
        ("update_index", ("keys", "keyless"), STANDARD),
        ("update_non_index", ("keys",), STANDARD),
        ("insert", ("keys",), STANDARD),
        ("delete", ("keys",), STANDARD),
        ("orders", ("keys",), STANDARD),
        ("write_only_large", ("keys",), ON_DISK),
        ("update_index_large", ("keys",), ON_DISK),
        ("update_index_one", ("keys",), STANDARD[:1]),
        ("update_index_eight", ("keys",), STANDARD[:1]),
    ):
        yield from (
            Case(load, one, stratum, replica, sync_delay) for one in keys for stratum in strata
        )


def sysbench(server: Server, load: Load, command: str, threads: int) -> None:
    """The load's command against a server, over its socket."""
    server.execute(
        "CREATE DATABASE IF NOT EXISTS sbtest",
        "CREATE USER IF NOT EXISTS bench@localhost IDENTIFIED BY 'bench'",
        "GRANT ALL ON *.* TO bench@localhost",
    )  # fmt: skip
    given = [
        "sysbench",
        load.script,
        f"--mysql-socket={server.socket}",
        "--mysql-user=bench",
        "--mysql-password=bench",
        "--time=0",
    ]
    given += [
        f"--tables={load.tables}",
        f"--table-size={load.rows}",
        f"--threads={threads}",
        f"--events={load.transactions}",
        command,
    ]
    subprocess.run(given, check=True, stdout=subprocess.DEVNULL)


class Stand:
    """One load: the tables' files, and a source that has run it behind them."""

    def __init__(self, name: str, load: Load, folder: Path) -> None:
        self.name, self.load, self.folder = name, load, folder
        self.words = ReplicationWords(name)
        self.files = folder / "tables"
        self.log = folder / "log"
        if not self.log.exists():
            self._prepare()
        self.source = self._server("source")

    def _prepare(self) -> None:
        """Makes the tables, and runs the load on a source."""
        with self._server("tables") as server:
            sysbench(server, self.load, "prepare", threads=2)
            tables = ", ".join(
                f"sbtest.{table}" for (table,) in server.query("SHOW TABLES FROM sbtest")
            )
            server.execute(f"ANALYZE TABLE {tables}")
            server.stop()
        with self._server("source", copied=True) as source:
            source.execute("FLUSH BINARY LOGS")
            log = source.binlog_files()[-1]
            sysbench(source, self.load, "run", threads=8)
            source.execute("FLUSH BINARY LOGS")
            source.stop()
            shutil.copy(log, self.log)

    def __enter__(self) -> Stand:
        self.source.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def _server(self, folder: str, *, copied: bool = False, **options: str | int) -> Server:
        place = self.folder / folder
        if copied:
            shutil.copytree(self.files / "data", place / "data")
            (place / "data" / "auto.cnf").unlink(missing_ok=True)
        relaxed = {
            "innodb_flush_log_at_trx_commit": 2,
            "sync_binlog": 0,
            "innodb_buffer_pool_size": "768M",
        }
        return Server(
            self.name,
            options={**relaxed, "max_binlog_size": 1 << 30, **options},
            gtids=True,
            folder=place,
        )

    @contextmanager
    def replica(self, case: Case) -> Iterator[Server]:
        """One that has the log and has applied nothing of it."""
        stratum = STRATA[case.stratum]
        options = stratum.options(self.load.table_bytes) | {"innodb_monitor_enable": "module_index"}
        if stratum.read_microseconds and self.words.is_mariadb:
            options |= TIMED_READS
        options |= dict(one.split("=", 1) for one in case.replica)
        options[self.words.variable("replica_parallel_workers")] = self.words.workers(
            stratum.workers
        )
        with self._server("replica", copied=True, server_id=2, **options) as server:
            server.execute("SET SESSION sql_log_bin = 0", *KEYS[case.keys])
            if self.words.is_mariadb:
                server.execute("SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_binlog_pos")
            server.execute(self.words.change_source(self.source))
            self._fetch(server)
            if stratum.pool or case.slow_disk:
                server.installed = SlowDisk(
                    server.installed.recipe, server.installed.folder, tuple(case.slow_disk)
                )
                server.restart(**{self.words.variable("skip_replica_start"): "ON"})
                if self.words.is_mariadb:  # with GTIDs it begins its relay log anew
                    self._fetch(server)
            if not stratum.pool:
                warm(server)
            yield server
        shutil.rmtree(self.folder / "replica")

    def _fetch(self, replica: Server) -> None:
        """Until the replica has all of the source's log."""
        replica.execute(self.words("START REPLICA IO_THREAD"))
        wanted = self.source.query(self.words("SHOW BINARY LOG STATUS"))[0][:2]
        while replica.query(self.words("SHOW REPLICA STATUS"))[0][5:7] != wanted:
            time.sleep(0.1)

    def forecast(
        self, replica: Server, case: Case, sync_seconds: float, calibration: str | None
    ) -> dict[str, Any]:
        """What `binlag forecast` says before anything is applied."""
        stratum = STRATA[case.stratum]
        latency = ["--sync-latency", f"{sync_seconds * 1e6:.0f}us"] if case.sync_delay else []
        if stratum.read_microseconds:
            read = read_microseconds(replica) or stratum.read_microseconds
            latency += ["--read-latency", f"{read:.0f}us"]
        said = forecast(replica, self.log, *latency, calibration=calibration)
        return {
            "seconds": said["replica"]["span_seconds"], "page_reads": said["replica"]["page_reads"],
            "margin": said["margin"],
            "peak": [said["replica"]["peak_lag_seconds"], said["peak_low_seconds"],
                     said["peak_high_seconds"]],
        }  # fmt: skip

    def runs(
        self, cases: list[Case], calibrations: dict[str, str | None], times: int
    ) -> list[dict[str, Any]]:
        """The cases, each applied so many times, the others between; the mean of each."""
        found = [[self.run(case, calibrations)] for case in cases]
        for _ in range(times - 1):
            for case, runs in zip(cases, found, strict=True):
                runs.append(self.run(case, {}))
        return [mean_of(each) for each in found]

    def run(self, case: Case, calibrations: dict[str, str | None]) -> dict[str, Any]:
        """A case, forecast with each of the calibrations and then applied."""
        stratum = STRATA[case.stratum]
        with self.replica(case) as replica:
            sync_seconds = sync_time(replica) if case.sync_delay else 0.0
            ask = partial(self.forecast, replica, case, sync_seconds)
            with ThreadPoolExecutor() as at_once:
                said = dict(zip(calibrations, at_once.map(ask, calibrations.values()), strict=True))
            end = self.words.executed(self.source)
            before = pages_read(replica)
            busy, start = processor_seconds(replica.pid), time.monotonic()
            replica.execute(self.words("START REPLICA SQL_THREAD"))
            clock = applier_clock(replica) if stratum.workers == 1 else None
            self.words.wait_for(replica, end)
            seconds = time.monotonic() - start
            in_line = 0.0 if clock is None else clock.in_line()
            mine, every = (
                now - then for now, then in zip(processor_seconds(replica.pid), busy, strict=True)
            )
            pages, splits = pages_read(replica) - before, page_splits(replica)
        return {
            "load": case.load,
            "keys": case.keys,
            "stratum": case.stratum,
            "replica": case.replica,
            "sync_delay": case.sync_delay,
            "sync_seconds": sync_seconds,
            "seconds": seconds,
            "page_reads": pages,
            "page_splits": splits,
            "seconds_in_line": in_line,
            "processor_seconds": mine,
            "processors_of_others": (every - mine) / seconds,
            "forecast": said,
        }


@dataclass(frozen=True)
class SlowDisk(Installed):
    """A server that is started by this. Attached to a server that runs (-p), strace stops all of
    its calls, each for 50 µs; below --seccomp-bpf it stops only reads."""

    strace: tuple[str, ...] = ()

    def command(self, name: str = "") -> list[str]:
        """Implements `Installed`."""
        return [*([] if name else self.strace), *super().command(name)]


MEASURED = (
    "seconds", "page_reads", "page_splits", "seconds_in_line", "processor_seconds",
    "processors_of_others",
)  # fmt: skip
"""What the runs of a case differ in."""


def mean_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of a case's runs, with the forecast, which was made before the first."""
    told = {name: statistics.fmean(one[name] for one in runs) for name in MEASURED}
    return runs[0] | told | {"applied": [applied(one) for one in runs]}


def applied(run: dict[str, Any]) -> float:
    """Seconds, without those in which other programs had the processor."""
    return float(run["seconds"] - run.get("seconds_in_line", 0.0))


def spread(run: dict[str, Any]) -> str:
    """The shortest and the longest of its times."""
    each = run.get("applied", [applied(run)])
    return f"{min(each):.2f} to {max(each):.2f}"


def show(done: list[dict[str, Any]]) -> None:
    """Each case, and the medians and worst of the strata."""
    names = done[0]["forecast"]
    factors: dict[tuple[str, str], list[float]] = {}
    held = dict.fromkeys(names, 0)
    for one in done:
        row = [
            (
                f"{one['load']:20s} {one['keys']:8s} {one['stratum']:16s} {applied(one):7.2f} s "
                f"({spread(one)}) {one['page_reads']:8.0f} pages"
            )
        ]
        for name in names:
            said = one["forecast"][name]
            factor = said["seconds"] / applied(one)
            factors.setdefault((name, one["stratum"]), []).append(max(factor, 1 / factor))
            held[name] += abs(math.log(factor)) <= math.log1p(said["margin"])
            row.append(
                f"{name} {said['seconds']:7.2f} s ({factor:4.2f}) {said['page_reads']:8.0f} pages "
                f"±{said['margin']:.0%}"
            )
        print("  ".join(row))
    for (name, stratum), values in sorted(factors.items()):
        print(
            f"{name:10s} {stratum:16s} factor {statistics.median(values):.2f} at the median, "
            f"{max(values):.2f} at worst of {len(values)}"
        )
    for name, number in held.items():
        print(f"{name:10s} the margin held {number} of {len(done)}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--calibration", help="forecast with these prices, too")
    parser.add_argument(
        "--only", nargs="*", default=[""], help="cases whose name holds one of them"
    )
    parser.add_argument("--set", nargs="*", default=[], help="NAME=VALUE, variables of the replica")
    parser.add_argument("--times", type=int, default=3, help="each log is applied so often")
    parser.add_argument("--sync-delay", type=int, default=0, metavar="MICROSECONDS")
    parser.add_argument("--keep", type=Path, help="a folder for tables and sources")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.sync_delay and arguments.server == "mariadb":
        parser.error("--sync-delay: a MariaDB does not tell how long it syncs its redo log")
    # by default it ends Python at once, and servers go on
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    calibrations: dict[str, str | None] = {"shipped": None}
    calibrations |= {"measured": arguments.calibration} if arguments.calibration else {}
    found: dict[str, Any] = (
        json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    )
    done = found.setdefault("cases", [])
    there = {
        Case(
            one["load"],
            one["keys"],
            one["stratum"],
            tuple(one.get("replica", ())),
            one.get("sync_delay", 0),
        )
        for one in done
    }
    wanted = [
        one
        for one in cases(tuple(arguments.set), arguments.sync_delay)
        if one not in there and any(text in one.name for text in arguments.only)
    ]
    with tempfile.TemporaryDirectory(prefix="binlag-sysbench-") as temporary:
        for load, group in groupby(wanted, lambda one: one.load):
            folder = (arguments.keep or Path(temporary)) / arguments.server / load
            with Stand(arguments.server, LOADS[load], folder) as stand:
                runs = stand.runs(list(group), calibrations, arguments.times)
                done += runs
                found |= {"machine": machine(), "server": arguments.server}
                arguments.output.write_text(json.dumps(found, indent=1) + "\n")
                show(runs)
            if not arguments.keep:
                shutil.rmtree(folder)
    show(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
