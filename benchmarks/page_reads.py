"""How right the forecast's page reads are: strangers' loads on a real replica whose tables are
larger than its buffer pool.

    apt-get install sysbench
    python docker/servers/bring.py 9.7
    python benchmarks/page_reads.py --server 9.7 --output benchmarks/results/page_reads_9.7.json

All tables are made once. For each load (`page_reads_loads.py`) the source runs it from there; for
each size of the pool a replica starts from the same files, fetches the log and starts anew, its
pool empty. `binlag forecast LOG --schema mysql://THE_REPLICA --json` says how many pages it will
read; then the applier starts, and Innodb_pages_read is taken before it and when the last
transaction is applied. Counts of reads hardly depend on how busy the machine is, as long as the
pool is not tiny. What is there already in --output is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from decode import machine
from page_reads_loads import LOADS, Load, prepare, server_tables
from replication import ReplicationWords, Server

POOLS = ("32M", "64M")
RELAXED = {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0, "max_binlog_size": 1 << 30}


class Stand:
    """The tables' files of one server version, and what is made of them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.words = name, folder, ReplicationWords(name)
        self.files = folder / "tables"
        if not self.files.exists():
            with self.server("new", copied=False, innodb_buffer_pool_size="512M") as server:
                prepare(server)
                server.execute("FLUSH TABLES")
                server.stop()
            (folder / "new").rename(self.files)

    def server(self, place: str, *, copied: bool = True, **options: str | int) -> Server:
        folder = self.folder / place
        if copied:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.files / "data", folder / "data")
            (folder / "data" / "auto.cnf").unlink(missing_ok=True)
        return Server(self.name, options={**RELAXED, **options}, folder=folder)

    @contextmanager
    def source(self, load: Load) -> Iterator[tuple[Server, Path]]:
        """One that has run the load, and the log of it."""
        with self.server("source", innodb_buffer_pool_size="512M") as source:
            source.execute("FLUSH BINARY LOGS")
            log = source.binlog_files()[-1]
            load.run(source)
            source.execute("FLUSH BINARY LOGS")
            yield source, log

    @contextmanager
    def replica(self, load: Load, source: Server, log: Path, pool: str) -> Iterator[Server]:
        """One that has the log, has applied nothing of it, and holds no page of it."""
        options: dict[str, str | int] = {
            "server_id": 2,
            "innodb_buffer_pool_load_at_startup": "OFF",
            "performance_schema": "ON",
        }
        workers = {"9.7": "replica_parallel_workers"}.get(self.name)
        options |= {workers: 1} if workers else {}
        old, skip = self.words.is_old or self.name == "mariadb", "skip_slave_start"
        with self.server("replica", innodb_buffer_pool_size="256M", **options) as server:
            if load.replica:
                server.execute("SET SESSION sql_log_bin = 0", *load.replica)
                for database, tables in server_tables(server).items():
                    server.query(
                        "ANALYZE NO_WRITE_TO_BINLOG TABLE "
                        f"{', '.join(f'{database}.{table}' for table in tables)}"
                    )
            said = (
                f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {source.port}, "
                "MASTER_USER = 'root', "
                f"MASTER_PASSWORD = '{source.password}', MASTER_LOG_FILE = '{log.name}', "
                "MASTER_LOG_POS = 4"
                if old
                else "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = "
                f"{source.port}, SOURCE_USER = 'root', "
                f"SOURCE_PASSWORD = '{source.password}', GET_SOURCE_PUBLIC_KEY = 1, "
                f"SOURCE_LOG_FILE = '{log.name}', SOURCE_LOG_POS = 4"
            )
            server.execute(said, self.say("START REPLICA IO_THREAD"))
            end = source.query("SHOW BINARY LOG STATUS" if not old else "SHOW MASTER STATUS")[0][:2]
            while self.status(server)[5:7] != end:
                time.sleep(0.1)
            server.restart(
                **{skip if old else "skip_replica_start": "ON", "innodb_buffer_pool_size": pool}
            )
            yield server

    def say(self, statement: str) -> str:
        return (
            statement.replace("REPLICA", "SLAVE").replace("SOURCE", "MASTER")
            if self.name != "9.7"
            else statement
        )

    def status(self, server: Server) -> tuple[Any, ...]:
        return server.query(self.say("SHOW REPLICA STATUS"))[0]

    def apply(self, replica: Server, end: tuple[str, int]) -> dict[str, Any]:
        """Applies the log; the pages read meanwhile, in all and by file, and its seconds."""
        before, files, begin = counts(replica), file_reads(replica), time.monotonic()
        replica.execute(self.say("START REPLICA SQL_THREAD"))
        # Who asks now and then has pages of his own read and made; this waits inside the server.
        reached = replica.query(
            f"SELECT {self.say('SOURCE_POS_WAIT')}('{end[0]}', {end[1]}, 3600)"
        )[0][0]
        if reached is None:
            raise SystemExit(f"the replica stopped: {self.status(replica)[19]}")
        seconds, after, now = time.monotonic() - begin, counts(replica), file_reads(replica)
        return {
            **{name: after[name] - before[name] for name in before},
            "seconds": round(seconds, 2),
            "files": {name: reads - files.get(name, 0) for name,
                      reads in now.items() if reads > files.get(name, 0)},
        }  # fmt: skip


COUNTS = (
    "Innodb_pages_read", "Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_ahead",
    "Innodb_pages_created", "Innodb_pages_written",
    "Innodb_buffer_pool_pages_data", "Innodb_ibuf_merges",
)  # fmt: skip


def counts(server: Server) -> dict[str, int]:
    """Innodb_pages_read and what explains it."""
    found = dict(
        server.query(
            "SHOW GLOBAL STATUS WHERE Variable_name IN "
            f"({', '.join(repr(name) for name in COUNTS)})"
        )
    )
    return {name: int(found[name]) for name in COUNTS if name in found}


def file_reads(server: Server) -> dict[str, int]:
    """File of InnoDB -> reads of it so far."""
    rows = server.query(
        "SELECT file_name, count_read FROM performance_schema.file_summary_by_instance "
        "WHERE event_name = 'wait/io/file/innodb/innodb_data_file' AND count_read"
    )
    return {"/".join(Path(name).parts[-2:]): int(reads) for name, reads in rows}


def forecast(log: Path, replica: Server) -> float:
    """The page reads of `binlag forecast` for a replica that has all of the log when it begins."""
    given = [sys.executable, "-m", "applier", "forecast", str(log), "--json", "--behind", "1h"]
    given += ["--schema", f"mysql://root@127.0.0.1:{replica.port}"]
    done = subprocess.run(
        given,
        check=True,
        capture_output=True,
        env={**os.environ, "BINLAG_PASSWORD": replica.password},
    )
    return float(json.loads(done.stdout)["replica"]["page_reads"])


def show(done: list[dict[str, Any]]) -> None:
    for one in done:
        print(
            f"{one['server']:8s} {one['load']:26s} {one['pool']:>4s} {one['forecast']:9.0f} "
            f"{one['page_reads']:8d} {ratio(one):5.2f}"
        )
    factors = sorted(max(ratio(one), 1 / max(ratio(one), 1e-9)) for one in done)
    print(
        f"factor {statistics.median(factors):.2f} at the median, {factors[-1]:.2f} at worst of "
        f"{len(factors)}"
    )


def ratio(one: dict[str, Any]) -> float:
    return float(one["forecast"] / max(one["page_reads"], 1))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--only", default="", help="loads whose name holds this")
    parser.add_argument("--pools", default=",".join(POOLS))
    parser.add_argument(
        "--part", type=float, default=1.0, help="of each load's transactions (default: all)"
    )
    parser.add_argument("--keep", type=Path, help="keep tables, logs and schemas here")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    found: dict[str, Any] = (
        json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    )
    done = found.setdefault("cases", [])
    there = {(one["load"], one["pool"]) for one in done}
    with tempfile.TemporaryDirectory(prefix="binlag-pages-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        stand = Stand(arguments.server, folder)
        for name, whole in LOADS.items():
            load = replace(whole, count=round(whole.count * arguments.part))
            pools = [pool for pool in arguments.pools.split(",") if (name, pool) not in there]
            if not pools or arguments.only not in name:
                continue
            with stand.source(load) as (source, log):
                end = source.binlog_files()[-1].name, int(source.query(stand_status(stand))[0][1])
                kept = Path(shutil.copy(log, folder / f"{name.replace(' ', '_')}.binlog"))
                for pool in pools:
                    with stand.replica(load, source, log, pool) as replica:
                        said = forecast(kept, replica)
                        read = stand.apply(replica, end)
                    counted = {"page_reads": read.pop("Innodb_pages_read"), **read}
                    what = {
                        "server": arguments.server,
                        "load": name,
                        "count": load.count,
                        "pool": pool,
                    }
                    done.append({**what, "forecast": said, **counted})
                    show(done[-1:])
                    print(read, flush=True)
                    found |= {"machine": machine(), "server": arguments.server}
                    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    show(done)
    return 0


def stand_status(stand: Stand) -> str:
    return "SHOW BINARY LOG STATUS" if stand.name == "9.7" else "SHOW MASTER STATUS"


if __name__ == "__main__":
    sys.exit(main())
