"""Replaying a log into a server: binlag beside `mysqlbinlog | mysql` and the server's own replica
applier, in one run.

    python docker/servers/bring.py 9.7
    python benchmarks/into_server.py --kind small --setting durable        (about 7 minutes)
    python benchmarks/into_server.py --kind small --setting relaxed        (4 minutes)
    python benchmarks/into_server.py --kind bulk                           (6 minutes)

The logs are made on a real 9.7. `small`: 10,000 transactions of four one-row changes from 8 clients
at once. `bulk`: 40 updates of an indexed column, 10,000 rows each. `load`: 40 inserts of 10,000
rows. `keyless`: 20 updates and deletes of 2,000 rows each in tables of 20,000 rows that have no key
on the replica's side nor on the source's. `keyless-small`: the same rows, each in a transaction of
its own. Each contestant replays them into a fresh server with the same schema and rows, at the same
settings, one after another, `durable` (innodb_flush_log_at_trx_commit=1, sync_binlog=1) and
`relaxed` (2 and 0). The server writes its own binary log, except where the name says `no log`:
--disable-log-bin of mysqlbinlog and of binlag, log_replica_updates=OFF for the applier.

    pipe           mysqlbinlog LOG | mysql
    applier, 1     the server's own applier with one worker; the relay log is there before the clock
                   starts
    applier, 4     the same with four workers, the log's own dependencies, commits in order
    binlag         binlag replay LOG --into mysql://…, the whole process with its start
    binlag, 4      the same with --workers 4
    …, no log      the same, and nothing of it in the server's own binary log

After each run the tables are compared with the source's by CHECKSUM TABLE. Each time is of one
process from its start to its end, but the applier's, which is from START REPLICA until the last
transaction is there. The order turns from run to run. Raw results, with the load of the machine
before each, go to benchmarks/results/into-server-KIND-SETTING.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decode import machine

sys.path.insert(0, str(Path(__file__).parent.parent / "docker"))
from servers.server import Server
from servers.table import Options

DATABASE, TABLES, ROWS, CLIENTS = "bench", 4, 10_000, 8
SETTINGS: dict[str, Options] = {
    "durable": {"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1},
    "relaxed": {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0},
}
COMMON: Options = {
    "innodb_buffer_pool_size": "512M",
    "innodb_redo_log_capacity": "512M",
    "max_binlog_size": 1 << 30,
    "max_allowed_packet": "256M",
}


def fill(server: Server, keys: str, rows: int) -> None:
    server.execute(f"CREATE DATABASE {DATABASE}", "SET SESSION cte_max_recursion_depth = 100000")
    for number in range(TABLES):
        server.execute(
            f"CREATE TABLE {DATABASE}.t{number} (id INT NOT NULL, k INT NOT NULL, c CHAR(120) "
            f"NOT NULL, pad CHAR(60) NOT NULL{keys})",
            f"INSERT INTO {DATABASE}.t{number} WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n "
            f"+ 1 FROM r WHERE n < {rows}) "
            "SELECT /*+ SET_VAR(cte_max_recursion_depth=100000) */ n, n % 1000, REPEAT('c', 110), "
            "REPEAT('p', 50) FROM r",
        )


def client(server: Server, seed: int, transactions: int) -> None:
    """One client: each transaction updates two rows, deletes one and inserts it again, in a part of
    the tables of its own."""
    chance = random.Random(seed)
    connection = server.connect()
    with connection.cursor() as cursor:
        for _ in range(transactions):
            one, two, three = (
                chance.randrange(ROWS // CLIENTS) * CLIENTS + seed + 1 for _ in range(3)
            )
            name = f"{DATABASE}.t{chance.randrange(TABLES)}"
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE {name} SET k = k + 1 WHERE id = {one}")
            cursor.execute(f"UPDATE {name} SET c = '{chance.random():.17f}' WHERE id = {two}")
            cursor.execute(f"DELETE FROM {name} WHERE id = {three}")
            cursor.execute(
                f"INSERT INTO {name} VALUES ({three}, {chance.randrange(1000)}, "
                f"'{chance.random()}', 'x')"
            )
            cursor.execute("COMMIT")
    connection.close()


def write_small(server: Server, transactions: int) -> None:
    threads = [
        threading.Thread(target=client, args=(server, seed, transactions // CLIENTS))
        for seed in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_bulk(server: Server, transactions: int) -> None:
    """Ten times the rows of `small`, in statements of thousands."""
    for turn in range(max(transactions * 40 // ROWS, 1)):
        server.execute(
            f"UPDATE {DATABASE}.t{turn % TABLES} SET k = k + 1, pad = REPEAT('{turn % 10}', 40)"
        )


def write_load(server: Server, transactions: int) -> None:
    """As many rows as `bulk`, new ones."""
    for turn in range(max(transactions * 40 // ROWS, 1)):
        table = f"{DATABASE}.t{turn % TABLES}"
        server.execute(
            f"INSERT INTO {table} SELECT id + {ROWS * (turn // TABLES + 1)}, k, c, "
            f"pad FROM {table} WHERE id <= {ROWS} ORDER BY id"
        )


def write_keyless(server: Server, transactions: int) -> None:
    """Statements of 2,000 rows, an update and a delete by turns; no row is changed twice."""
    for turn in range(max(transactions // 500, 1)):
        change = (
            f"DELETE FROM {DATABASE}.t{turn % TABLES}"
            if turn % 2
            else f"UPDATE {DATABASE}.t{turn % TABLES} SET pad = 'changed'"
        )
        server.execute(f"{change} WHERE id % 10 = {turn // TABLES}")


def write_keyless_small(server: Server, transactions: int) -> None:
    """Transactions of one row each, deletes and updates in runs; no row is changed twice."""
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        for turn in range(transactions // 5):
            name, row = f"{DATABASE}.t{turn // 50 % TABLES}", 1 + turn * 7
            change = (
                f"DELETE FROM {name}" if turn % 100 < 50 else f"UPDATE {name} SET pad = 'changed'"
            )
            cursor.execute(f"{change} WHERE id = {row}")
    connection.close()


@dataclass(frozen=True)
class Kind:
    """A log: the tables' keys and rows, and what changes them."""

    write: Callable[[Server, int], None]
    keys: str = ", PRIMARY KEY (id), KEY (k)"
    rows: int = ROWS


KINDS = {
    "small": Kind(write_small),
    "bulk": Kind(write_bulk),
    "load": Kind(write_load),
    "keyless": Kind(write_keyless, "", 20_000),
    "keyless-small": Kind(write_keyless_small, "", 20_000),
}


def make_log(kind: str, transactions: int, folder: Path) -> dict[str, Any]:
    """The schema with its rows, the log, and what the tables are at its end."""
    with Server("9.7", options={**COMMON, **SETTINGS["relaxed"]}, gtids=True) as source:
        source.execute("SET SESSION sql_log_bin = 0")
        fill(source, KINDS[kind].keys, KINDS[kind].rows)
        schema = folder / f"{kind}.sql"
        with schema.open("wb") as target:
            dump = source.client("mysqldump", "--set-gtid-purged=OFF", "--databases", DATABASE)
            subprocess.run(dump, stdout=target, check=True)
        source.execute("RESET BINARY LOGS AND GTIDS")
        KINDS[kind].write(source, transactions)
        log = folder / f"{kind}.000001"
        version = source.query("SELECT VERSION()")[0][0]
        gtids = source.query("SELECT @@gtid_executed")[0][0]
        shutil.copyfile(source.binlog_files()[0], log)
        return {
            "log": log,
            "schema": schema,
            "gtids": gtids.replace("\n", ""),
            "checksums": checksums(source),
            "version": version,
        }


def checksums(server: Server) -> Any:
    return server.query(
        "CHECKSUM TABLE " + ", ".join(f"{DATABASE}.t{number}" for number in range(TABLES))
    )


def prepare(server: Server, made: dict[str, Any]) -> None:
    with made["schema"].open("rb") as sql:
        subprocess.run(
            server.client("mysql", "--init-command=SET sql_log_bin=0"), stdin=sql, check=True
        )


def run_pipe(server: Server, made: dict[str, Any], *options: str) -> float:
    started = time.perf_counter()
    reader = subprocess.Popen(
        [*server.installed.command("mysqlbinlog"), *options, str(made["log"])],
        stdout=subprocess.PIPE,
    )
    subprocess.run(server.client("mysql"), stdin=reader.stdout, check=True)
    reader.wait()
    return time.perf_counter() - started


def run_applier(server: Server, made: dict[str, Any], workers: int) -> float:
    server.execute(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='x', "
        "SOURCE_AUTO_POSITION=0"
    )
    server.stop()
    shutil.copyfile(made["log"], server.data / "relay.000001")
    (server.data / "relay.index").write_text("./relay.000001\n")
    server.restart(replica_parallel_workers=workers, replica_preserve_commit_order=True)
    server.execute("CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE='relay.000001', RELAY_LOG_POS=4")
    started = time.perf_counter()
    server.execute("START REPLICA SQL_THREAD")
    done = server.query(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{made['gtids']}', 1200)")
    seconds = time.perf_counter() - started
    assert done == ((0,),), server.query(
        "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker"
    )
    server.execute("STOP REPLICA")
    return seconds


def run_binlag(server: Server, made: dict[str, Any], *options: str) -> float:
    url = f"mysql://{server.user}@localhost?socket={server.socket}"  # as the pipe is connected
    command = [
        sys.executable,
        "-m",
        "applier",
        "replay",
        str(made["log"]),
        "--into",
        url,
        "--force",
        *options,
    ]
    environment = {
        **os.environ,
        "BINLAG_PASSWORD": server.password,
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - started


@dataclass(frozen=True)
class Contestant:
    """What is timed, and what its server is told beforehand."""

    run: Callable[[Server, dict[str, Any]], float]
    options: Options = field(default_factory=dict)


NO_LOG = ", no log"
NOT_LOGGED: Options = {"log_replica_updates": False}
CONTESTANTS = {
    "pipe": Contestant(run_pipe),
    "applier, 1": Contestant(lambda server, made: run_applier(server, made, 1)),
    "applier, 4": Contestant(lambda server, made: run_applier(server, made, 4)),
    "binlag": Contestant(run_binlag),
    "binlag, 4": Contestant(lambda server, made: run_binlag(server, made, "--workers", "4")),
    "pipe, no log": Contestant(lambda server, made: run_pipe(server, made, "--disable-log-bin")),
    "applier, 1, no log": Contestant(lambda server, made: run_applier(server, made, 1), NOT_LOGGED),
    "applier, 4, no log": Contestant(lambda server, made: run_applier(server, made, 4), NOT_LOGGED),
    "binlag, no log": Contestant(
        lambda server, made: run_binlag(server, made, "--disable-log-bin")
    ),
}
RESULTS = Path(__file__).parent / "results"


def measure(name: str, setting: str, made: dict[str, Any]) -> float:
    options: Options = {
        **COMMON,
        **SETTINGS[setting],
        "server_id": 2,
        "relay_log": "relay",
        "relay_log_recovery": 0,
        "relay_log_purge": 0,
        "skip_replica_start": 1,
        **CONTESTANTS[name].options,
    }
    with Server("9.7", options=options, gtids=True) as server:
        prepare(server, made)
        seconds = CONTESTANTS[name].run(server, made)
        assert checksums(server) == made["checksums"], f"{name}: the tables differ"
        return seconds


def compare(times: dict[str, list[float]]) -> dict[str, float]:
    """How many times as long the others take, by medians: with the server's binary log, and
    without."""
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    ratios = {}
    for ending in ("", NO_LOG):
        appliers = [
            median[name]
            for name in (f"applier, 1{ending}", f"applier, 4{ending}")
            if name in median
        ]
        for own in (f"binlag{ending}", f"binlag, 4{ending}"):
            if own not in median:
                continue
            if f"pipe{ending}" in median:
                ratios[f"pipe{ending} / {own}"] = round(median[f"pipe{ending}"] / median[own], 2)
            if len(appliers) == 2:
                ratios[f"better applier{ending} / {own}"] = round(min(appliers) / median[own], 2)
    return ratios


def run(
    kind: str, setting: str, made: dict[str, Any], names: list[str], runs: int
) -> dict[str, Any]:
    times: dict[str, list[float]] = {name: [] for name in names}
    loads: list[float] = []
    for turn in range(runs):
        for place in range(len(names)):
            name = names[(place + turn) % len(names)]
            loads.append(round(os.getloadavg()[0], 2))
            times[name].append(round(measure(name, setting, made), 3))
            print(
                f"{kind:14}{setting:8}{name:20}{times[name][-1]:8.2f}s   load {loads[-1]}",
                flush=True,
            )
    ratios = compare(times)
    for what, ratio in ratios.items():
        print(f"{kind:14}{setting:8}{what:42}{ratio:6.1f}", flush=True)
    return {"seconds": times, "ratios_of_medians": ratios, "load_before": loads}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transactions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=CONTESTANTS, help="not all contestants")
    parser.add_argument("--setting", action="append", choices=SETTINGS)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, metavar="FOLDER", help="where the results go"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in arguments.kind or KINDS:
            made = make_log(kind, arguments.transactions, Path(folder))
            log_bytes = made["log"].stat().st_size
            print(f"{kind}: {log_bytes:,} bytes", flush=True)
            for setting in arguments.setting or SETTINGS:
                found = run(
                    kind, setting, made, arguments.only or list(CONTESTANTS), arguments.runs
                )
                settings = {**COMMON, **SETTINGS[setting]}
                head = {
                    "machine": machine(),
                    "server": made["version"],
                    "settings": settings,
                    "transactions": arguments.transactions,
                }
                content = {**head, "log_bytes": log_bytes, **found}
                arguments.output.mkdir(exist_ok=True)
                (arguments.output / f"into-server-{kind}-{setting}.json").write_text(
                    json.dumps(content, indent=1) + "\n"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
