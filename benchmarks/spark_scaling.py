"""Spark on two cores beside one: the workload of a log and cells measured in memory, and that both give the same numbers.

    python benchmarks/spark_scaling.py [LOG] [--transactions 400000] [--output benchmarks/results/spark_scaling.json]

Without LOG one is made. Each master is a process of its own; after a first run that is not counted the better of two counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from decode import machine

from applier.forecast.cells import Cell, grid, make_log
from applier.forecast.measured import Memory
from applier.forecast.spark_measure import measure_with_spark
from applier.forecast.spark_session import session
from applier.forecast.spark_source import profile, register
from lookup.shape import PRIMARY
from lookup.versions import RULES

RUNS = 3


def child(master: str, log: str) -> dict[str, Any]:
    """Seconds and results on one master."""
    spark = session(master)
    register(spark)
    cells = grid(RULES["9.7"], largest=10_000)
    found: dict[str, Any] = {"profile": [], "cells": []}
    for _ in range(RUNS):
        began = time.perf_counter()
        rows = [row.asDict() for row in profile(spark.read.format("binlog").option("range_bytes", "4000000").load(log)).collect()]
        found["profile"].append(time.perf_counter() - began)
        began = time.perf_counter()
        measured = measure_with_spark(cells, Memory("9.7"), spark=spark)
        found["cells"].append(time.perf_counter() - began)
    counters = sorted([one.cell.name, dict(one.counters)] for one in measured)
    spark.stop()
    return {"seconds": {name: min(times[1:]) for name, times in found.items()}, "results": [rows, counters]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="?")
    parser.add_argument("--transactions", type=int, default=400_000)
    parser.add_argument("--master", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.master:
        print(json.dumps(child(arguments.master, arguments.log)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        log = arguments.log or str(Path(folder) / "binlog.000001")
        if not arguments.log:
            count = arguments.transactions
            Path(log).write_bytes(make_log(Cell(PRIMARY, count, "update", 1, 1, count), gtids=True))
        found = {}
        for master in ("local[1]", "local[2]"):
            done = subprocess.run([sys.executable, __file__, log, "--master", master], check=True, stdout=subprocess.PIPE, text=True)
            found[master] = json.loads(done.stdout.splitlines()[-1])
    one, two = found["local[1]"], found["local[2]"]
    same = one["results"] == two["results"]
    speedup = {name: one["seconds"][name] / two["seconds"][name] for name in one["seconds"]}
    for name, times in speedup.items():
        print(f"{name:8s} local[1] {one['seconds'][name]:.1f} s, local[2] {two['seconds'][name]:.1f} s: {times:.2f} times")
    print("the same numbers" if same else "DIFFERENT NUMBERS")
    if arguments.output:
        seconds = {master: each["seconds"] for master, each in found.items()}
        result = {"machine": machine(), "seconds": seconds, "speedup": speedup, "same": same}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
