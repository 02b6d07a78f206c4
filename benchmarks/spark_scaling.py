"""Spark on two cores beside one: the workload of a log and cells measured in memory, and that both
give the same numbers.

    python benchmarks/spark_scaling.py [LOG] [--transactions 1000000] [--runs 5] \
        [--output benchmarks/results/spark_scaling.json]

Without LOG one is made. Each master is a process of its own that keeps its session; they take
turns, and the other one sleeps. The first turn of each is not counted: Java starts, and both Java
and Python warm up. The median of the others counts. Beside them stands what the machine gives
without Spark: the same ranges of the log read by one process and by two.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from decode import machine

from applier.forecast.log_rows import batches
from applier.forecast.measurement.cell_log import make_log
from applier.forecast.measurement.measured import Memory
from applier.forecast.measurement.measurement_grid import Cell, grid
from applier.forecast.spark_measure import measure_with_spark
from applier.forecast.spark_session import session
from applier.forecast.spark_source import PROFILED, profile, register
from applier.forecast.workload.ranges import FileRange, ranges
from lookup.table_shape import PRIMARY
from lookup.versions import RULES

MASTERS = ("local[1]", "local[2]")
RANGE_BYTES = 2_000_000
LARGEST = 100_000


class Master:
    """A child process with a session; each line that it is sent is a turn."""

    def __init__(self, name: str, log: str) -> None:
        command = [sys.executable, __file__, log, "--master", name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds: dict[str, list[float]] = {}
        self.results: list[Any] = []

    def turn(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        for name, seconds in told["seconds"].items():
            self.seconds.setdefault(name, []).append(seconds)
        self.results = told["results"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def child(name: str, log: str) -> None:
    """Turns on one master, each a line of JSON: seconds and results."""
    spark = session(name)
    register(spark)
    cells = grid(RULES["9.7"], largest=LARGEST, quick=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        read = (
            spark.read.format("binlog")
            .schema(PROFILED)
            .option("range_bytes", str(RANGE_BYTES))
            .load(log)
        )
        rows = [row.asDict() for row in profile(read).collect()]
        profiled = time.perf_counter()
        measured = measure_with_spark(cells, Memory("9.7"), spark=spark)
        seconds = {"profile": profiled - began, "cells": time.perf_counter() - profiled}
        counters = sorted([one.cell.name, dict(one.counters)] for one in measured)
        print(json.dumps({"seconds": seconds, "results": [rows, counters]}), flush=True)
    spark.stop()


def read_range(part: FileRange) -> int:
    return sum(batch.num_rows for batch in batches(part))


def by_processes(count: int, log: str) -> float:
    """Seconds in which that many processes read the ranges of a log, without Spark."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        pool.map(read_range, ranges([log], RANGE_BYTES)[: 2 * count], chunksize=1)
        began = time.perf_counter()
        pool.map(read_range, ranges([log], RANGE_BYTES), chunksize=1)
        return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?")
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--master", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.master:
        child(arguments.master, arguments.log)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        log = arguments.log or str(Path(folder) / "binlog.000001")
        if not arguments.log:
            count = arguments.transactions
            Path(log).write_bytes(make_log(Cell(PRIMARY, count, "update", 1, 1, count), gtids=True))
        masters = {name: Master(name, log) for name in MASTERS}
        for _ in range(arguments.runs + 1):
            for one in masters.values():
                one.turn()
        for one in masters.values():
            one.close()
        alone = {
            str(count): statistics.median(by_processes(count, log) for _ in range(3))
            for count in (1, 2)
        }
    one, two = (masters[name] for name in MASTERS)
    same = one.results == two.results
    speedup = {}
    for name in one.seconds:
        medians = [statistics.median(master.seconds[name][1:]) for master in (one, two)]
        speedup[name] = medians[0] / medians[1]
        print(
            f"{name:8s} local[1] {medians[0]:.1f} s, local[2] {medians[1]:.1f} s: "
            f"{speedup[name]:.2f} times"
        )
    print(
        f"without Spark: one process {alone['1']:.1f} s, two {alone['2']:.1f} s: "
        f"{alone['1'] / alone['2']:.2f} times"
    )
    print("the same numbers" if same else "DIFFERENT NUMBERS")
    if arguments.output:
        result = {
            "machine": machine(),
            "transactions": arguments.transactions,
            "range_bytes": RANGE_BYTES,
            "largest": LARGEST,
        }
        result |= {"seconds": {name: masters[name].seconds for name in MASTERS}}
        result |= {
            "first turn": "not counted",
            "without Spark": alone,
            "speedup": speedup,
            "same": same,
        }
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
