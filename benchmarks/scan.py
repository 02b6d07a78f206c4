"""The scan behind forecasts on one core: MB and transactions a second of a log.

    python benchmarks/scan.py bench/oltp.000001 --schema bench/oltp.sql [--runs 7] [--output FILE]

Each run is a process of its own that reads the schema, imports what the scan needs and loads its
kernel, and then takes the time: what each transaction asks of each table, as `binlag forecast` and
`binlag fleet` read it, checksums verified. The log is in the page cache, the kernel in its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from decode import machine

from applier.forecast.inventory.facts import facts_of_file
from applier.forecast.plan import ForecastPlan, load_reader
from applier.forecast.workload.bulk_loads import compiled_loads
from applier.forecast.workload.load_batch import LoadBatch


def scan(log: str, schema: str) -> tuple[int, float]:
    """Transactions, and seconds of the processor."""
    plan = ForecastPlan(files=[log], facts=facts_of_file(schema, server="9.7"), server="9.7")
    reader = load_reader(plan, [log])
    compiled_loads()
    before = time.process_time()
    transactions = sum(
        len(found) if isinstance(found, LoadBatch) else 1 for found in reader.batches()
    )
    return transactions, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path)
    parser.add_argument("--schema", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--output", type=Path, help="write the raw times there, as JSON")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(scan(str(given.log), str(given.schema))))
        return
    command = [sys.executable, __file__, str(given.log), "--schema", str(given.schema), "--once"]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(given.runs)]
    size, transactions = given.log.stat().st_size, runs[0][0]
    seconds = [used for _, used in runs]
    for name, used in (("best", min(seconds)), ("median", median(seconds))):
        told = f"{used:.2f} s, {size / 1e6 / used:.0f} MB/s, {transactions / used:,.0f}"
        print(f"{name:6} {told} transactions/s")
    if given.output:
        log = {"name": given.log.name, "bytes": size, "transactions": transactions}
        told = {"log": log, "machine": machine(), "processor_seconds": seconds}
        given.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
