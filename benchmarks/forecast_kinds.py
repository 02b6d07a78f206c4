"""Forecasts for schemas of many kinds beside a real replica: UUIDs and JSON, foreign keys, hundreds
of tables, partitions, many indexes, long texts, counters, queues.

    python docker/servers/bring.py 9.7
    python benchmarks/forecast_kinds.py --server 9.7 --calibration prices.json \
        --output benchmarks/results/forecast_kinds_9.7.json

Each load of `forecast_kinds_loads.py` runs on a real source with eight clients; a real replica with
the same tables fetches the log with its applier stopped, `binlag forecast LOG --schema THE_REPLICA`
says seconds and how often tables are opened again, and only then the applier starts. Relaxed
commits, `--workers` as many as given. Takes some five minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from decode import machine
from forecast_accuracy import Pair, beside, times
from forecast_kinds_loads import LOADS, Kind
from forecast_strata import STRATA
from replication import Server

DATABASE = "kinds"
DEADLOCK, LOCK_WAIT = 1213, 1205
ATTEMPTS = 20
JSON_TYPES = {"mariadb": "LONGTEXT"}


def fill(server: Server, kind: Kind, json_type: str) -> None:
    """Makes a load's tables, none of it in a log."""
    server.execute(
        "SET SESSION sql_log_bin = 0",
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        *(statement.replace("{json}", json_type) for statement in kind.tables),
    )
    tables = server.query(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'"
    )
    for (table,) in tables:
        server.execute("SET SESSION sql_log_bin = 0", f"ANALYZE TABLE {DATABASE}.{table}")


def change(source: Server, kind: Kind) -> None:
    """Runs a load."""

    def client(number: int) -> None:
        with (
            source.connect(database=DATABASE, autocommit=False) as connection,
            connection.cursor() as cursor,
        ):
            for setting in kind.session:
                cursor.execute(setting)
            for transaction in kind.run(number, Random(number)):
                _commit(connection, cursor, transaction)

    with ThreadPoolExecutor(kind.clients) as pool:
        list(pool.map(client, range(kind.clients)))


def _commit(connection: Any, cursor: Any, transaction: list[str]) -> None:
    """Tries again where clients lock each other."""
    for attempt in range(ATTEMPTS):
        try:
            for statement in transaction:
                cursor.execute(statement)
            connection.commit()
            return
        except Exception as error:
            connection.rollback()
            if error.args[0] not in (DEADLOCK, LOCK_WAIT) or attempt == ATTEMPTS - 1:
                raise


def opened(server: Server) -> int:
    """Tables that the server closed another one for."""
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Table_open_cache_overflows'")[0][1])


def case(name: str, kind: Kind, given: argparse.Namespace) -> dict[str, Any]:
    """A load, forecast and applied."""
    with Pair(given.server, STRATA[f"{given.workers}-relaxed-0-0"]) as pair:
        pair.connect()
        with ThreadPoolExecutor() as pool:
            json_type = JSON_TYPES.get(given.server, "JSON")
            servers = pair.source, pair.replica
            list(pool.map(lambda server: fill(server, kind, json_type), servers))
        pair.source.execute("FLUSH BINARY LOGS")
        log = pair.source.binlog_files()[-1]
        change(pair.source, kind)
        pair.source.execute("FLUSH BINARY LOGS")
        pair.fetch()
        said = pair.forecasts(log, given.calibration)
        before = opened(pair.replica)
        seconds = pair.applied()
        again = opened(pair.replica) - before
    first = said["shipped"]
    return {
        "load": name,
        "transactions": first["transactions"],
        "table_opens": again,
        "table_opens_forecast": first["replica"]["table_opens"],
        **beside(seconds, said),
    }


def show(done: dict[str, Any]) -> str:
    """One line."""
    opens = f"{done['table_opens']:,} tables opened again, {done['table_opens_forecast']:,.0f} said"
    return f"{done['load']:22} {times(done)}; {opens}"


def summary(cases: list[dict[str, Any]]) -> list[str]:
    """How far off the prices of each kind are, and how often the margin held."""
    lines = []
    for word in cases[0]["forecast"]:
        ratios = [one["forecast"][word] / one["seconds"] for one in cases]
        factors = [max(ratio, 1 / ratio) for ratio in ratios]
        held = sum(
            factor <= 1 + one["margin"][word] for factor, one in zip(factors, cases, strict=True)
        )
        lines.append(
            f"{word}: factor {median(factors):.2f} at the median, {max(factors):.2f} at worst; the"
            f" margin held {held} of {len(cases)}"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--workers", default="4")
    parser.add_argument("--calibration")
    parser.add_argument("--only", nargs="*", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = []
    for name in given.only:
        kind = LOADS[name]
        if given.server in kind.servers:
            found.append(case(name, kind, given))
            print(show(found[-1]), flush=True)
    print(*summary(found), sep="\n")
    if given.output is not None:
        told = {
            "machine": machine(), "server": given.server, "workers": int(given.workers),
            "cases": found,
        }  # fmt: skip
        given.output.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
