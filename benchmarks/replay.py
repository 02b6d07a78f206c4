"""Replaying into memory: an OLTP log beside what Python programs do today, and a table without a
key.

    python benchmarks/replay.py --log bench/oltp.000001 --schema bench/oltp.sql \
        [--output benchmarks/results/replay.json]

`--log` is a log of benchmarks/make_log.py (mode oltp); without it only the table without a key is
measured. Each contestant is a process of its own, on one core; what is timed is the replay, not the
loading of the schema:

    binlag                     applier.replay(), no records kept, as `binlag replay` does
    binlag, records            the same with one record for each rows event, as for --stats
    peer                       python-mysql-replication's event classes fed from the file, rows put
                               into dictionaries by primary key, on the first --slice MB only; its
                               time is scaled up by rows
    mysqlbinlog                -vv --base64-output=decode-rows, output to /dev/null: decodes only,
                               applies nothing

The table without a key: 10,000 rows deleted from a million, each found from the top of the table,
counters checked against the positions that the rows had.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from decode import HERE, cut, machine

REPLAY = """
import sys, time
import applier
tables = applier.load_schema(sys.argv[2])
tables.commit()
started = time.perf_counter()
result = applier.replay([sys.argv[1]], into=tables, keep_events={keep})
print(time.perf_counter() - started, result.rows)
assert result.error is None, result.error
"""
PEER = "from replay import replay_with_peer; import sys; print(*replay_with_peer(sys.argv[1]))"
DECODE = """
import subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - started, 0)
"""
KEYLESS = "from replay import delete_without_key; print(*delete_without_key())"
ROWS, DELETED = 1_000_000, 10_000


def replay_with_peer(path: str) -> tuple[float, int]:
    """(seconds, rows) of applying a log's rows to dictionaries by the first column."""
    import time

    from decode import peer_events
    from pymysqlreplication import row_event

    started = time.perf_counter()
    tables: dict[str, dict[Any, Any]] = {}
    count = 0
    for event in peer_events(path):
        table = tables.setdefault(event.table, {})
        for row in event.rows:
            before = row.get("before_values") or row["values"]
            after = row.get("after_values") or row["values"]
            table.pop(next(iter(before.values())), None)
            if not isinstance(event, row_event.DeleteRowsEvent):
                table[next(iter(after.values()))] = after
        count += len(event.rows)
    return time.perf_counter() - started, count


def delete_without_key() -> tuple[float, int]:
    """(seconds, rows read) of one event that deletes 10,000 rows of a million; the first search
    builds what finds rows by content."""
    import random
    import time

    from sortedcontainers import SortedList

    from applier.tables.catalog import Tables
    from lookup.batch import ApplyOptions, RowsShape
    from lookup.handler import Counters
    from lookup.rows import RowsPlan
    from lookup.table import Column, TableDefinition
    from lookup.versions import rules_for

    columns = (
        Column("id", "int", nullable=False),
        Column("a", "int"),
        Column("s", "varchar", 20, charset="latin1"),
    )
    table = Tables().create(TableDefinition("d", "t", columns))
    table.load((n, n * 7 % 1000, b"x%d" % n) for n in range(ROWS))
    chosen = random.Random(1).sample(range(ROWS), DELETED)
    counters = Counters()
    started = time.perf_counter()
    plan = RowsPlan(
        table, RowsShape("delete", (0, 1, 2), (0, 1, 2)), ApplyOptions(rules_for("5.7"))
    )
    outcome = plan.apply([(n, n * 7 % 1000, b"x%d" % n) for n in chosen], counters)
    seconds = time.perf_counter() - started
    standing, expected = SortedList(range(ROWS)), 0
    for n in chosen:
        expected += standing.bisect_left(n) + 1
        standing.remove(n)
    assert outcome.error is None and len(table) == ROWS - DELETED
    assert counters.read_rnd_next == expected, (counters.read_rnd_next, expected)
    return seconds, expected


def run(command: list[str]) -> tuple[float, int]:
    environment = {"PYTHONPATH": f"{HERE}:{HERE.parent}", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=HERE
    ).stdout.split()
    return float(shown[-2]), int(shown[-1])


def contestants(arguments: argparse.Namespace, part: Path) -> dict[str, list[str]]:
    python = [sys.executable, "-c"]
    log, schema = str(arguments.log.resolve()), str(arguments.schema.resolve())
    commands = {
        "binlag": [*python, REPLAY.format(keep=False), log, schema],
        "binlag, records": [*python, REPLAY.format(keep=True), log, schema],
        "peer": [*python, PEER, str(part)],
    }
    program = shutil.which(arguments.mysqlbinlog)
    if program:
        commands["mysqlbinlog"] = [
            *python,
            DECODE,
            program,
            "-vv",
            "--base64-output=decode-rows",
            log,
        ]
    return commands


def measure(arguments: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds for the whole log, by contestant; they take turns."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "slice.000001"
        cut(arguments.log, arguments.slice * 1_000_000, part)
        for _ in range(arguments.runs):
            rows = 0
            for name, command in contestants(arguments, part).items():
                seconds, count = run(command)
                rows = count if name == "binlag" else rows
                times.setdefault(name, []).append(
                    seconds * rows / count if name == "peer" else seconds
                )
            times.setdefault("rows", []).append(rows)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", type=Path, help="a log of make_log.py oltp")
    parser.add_argument("--schema", type=Path, help="its schema and first rows")
    parser.add_argument(
        "--mysqlbinlog", default="mysqlbinlog", help="the program; left out when it is not found"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slice", type=int, default=10, help="megabytes for the peer")
    parser.add_argument("--output", type=Path, help="write the raw times there, as JSON")
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "machine": machine(),
        "note": "seconds of the replay alone; the peer's are scaled to the whole log by rows",
    }
    if arguments.log and arguments.schema:
        times = measure(arguments)
        rows = int(times.pop("rows")[0])
        for name, seconds in times.items():
            best, median = min(seconds), statistics.median(seconds)
            print(
                f"{name:18}{best:8.2f}s best{median:8.2f}s median{rows / best:12,.0f} rows/s "
                f"best{rows / median:12,.0f} rows/s median"
            )
        result |= {"log": {"bytes": arguments.log.stat().st_size, "rows": rows}, "seconds": times}
    else:
        print(
            "no --log and --schema: only the table without a key (benchmarks/make_log.py makes a "
            "log)"
        )
    keyless = [run([sys.executable, "-c", KEYLESS]) for _ in range(3)]
    read = keyless[0][1]
    seconds = [taken for taken, _ in keyless]
    print(
        f"{DELETED:,} rows of {ROWS:,} deleted without a key: {min(seconds):.2f}s best, "
        f"{read:,} rows that a server would have read"
    )
    result["without a key"] = {
        "rows": ROWS,
        "deleted": DELETED,
        "rows_read": read,
        "seconds": seconds,
    }
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
