"""The forecast of a fleet in this process, by Spark on one core, on two, and on a standalone
cluster: the same numbers, and MB/s per core.

    python benchmarks/make_log.py oltp --port 3306 --output bench/oltp.000001 \
        --schema bench/oltp.sql --mysqldump bin/mysqldump
    python benchmarks/fleet_scaling.py bench/oltp.000001 --schema bench/oltp.sql \
        [--sources 200] [--gigabytes 20] [--runs 3]

The fleet is made of the given logs: each becomes some variants, whole copies behind each other by
`grow_log.py` with other times, so many that sources have the size asked for on average. Sources are
hard links to the variants under their own names, with row counts of their own. So a fleet of 20 GB
takes some hundreds of MB of the disk. (The page cache holds the variants: this measures processors,
not disks.)

The cluster is that of tests/fleets/cluster.py: a master and two workers of one core each as
processes. Their Python has no packages; binlag reaches them as `binlag spark-package` writes it.
The cluster starts and ends with its run.

Each run is a process of its own; contestants take turns. The time of a run is that of the job; the
start of Java, session and cluster is printed beside it and not counted. What a run prints of its
numbers has to be the same for all. Beside the time that passed stands the processors' time of all
its processes, Java's too: a machine with other work to do leaves that alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from decode import machine
from grow_log import grow

import applier
from tests.fleets.cluster import cluster

HERE, CLUSTER = "in process", "cluster"
CORES = {HERE: 1, "local[1]": 1, "local[2]": 2, CLUSTER: 2}
"""Contestant -> the cores that it may use."""
SETTINGS = {"spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1"}
VARIANTS = 4
HOUR = 3600
FLEET = """
sources:
  - logs: "{source}/binlog.*"
    schema: schema.sql
    rows: "{source}/rows.csv"
"""


def make_fleet(
    folder: Path, logs: list[Path], schema: Path, sources: int, source_bytes: int
) -> int:
    """Writes the fleet into a folder; its bytes."""
    variants: list[Path] = []
    for at in range(VARIANTS):
        log = logs[at % len(logs)]
        missing = source_bytes * (at + 1) - sum(one.stat().st_size for one in variants)
        variants.append(folder / f"variant-{at}")
        grow(log, variants[at], max(round(missing / log.stat().st_size), 1), at * HOUR)
    for at in range(sources):
        source = folder / f"shop-{at:03}"
        source.mkdir()
        os.link(variants[at % VARIANTS], source / "binlog.000001")
        counts = "".join(
            f"bench,sbtest{table},{10_000 * (at % 7 + table)}\n" for table in range(1, 5)
        )
        (source / "rows.csv").write_text(f"TABLE_SCHEMA,TABLE_NAME,TABLE_ROWS\n{counts}")
    (folder / "schema.sql").write_bytes(schema.read_bytes())
    (folder / "fleet.yaml").write_text(FLEET)
    return sum(variants[at % VARIANTS].stat().st_size for at in range(sources))


def processor_seconds(root: int) -> float:
    """Of a process and all that it started, those that ended included (Linux)."""
    times, children = dict[int, int](), dict[int, list[int]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has just ended
        fields, number = rest.split(), int(head.split()[0])
        children.setdefault(int(fields[1]), []).append(number)
        times[number] = sum(map(int, fields[11:15]))
    found, todo = 0, [root]
    while todo:
        number = todo.pop()
        found += times.get(number, 0)
        todo += children.get(number, [])
    return found / os.sysconf("SC_CLK_TCK")


def run_once(contestant: str, folder: Path) -> None:
    """One run, in a process that does nothing else: prints its seconds and a digest of its
    numbers."""
    began = time.perf_counter()
    with session(contestant) as spark:
        ready, before = time.perf_counter(), processor_seconds(os.getpid())
        result = applier.fleet(folder / "fleet.yaml", spark=spark)
        seconds, used = time.perf_counter() - ready, processor_seconds(os.getpid()) - before
    failed = [one.error for one in result.failed]
    told = sorted(json.dumps([one.source, one.summary], sort_keys=True) for one in result.outcomes)
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()
    print(
        json.dumps(
            {
                "start": ready - began,
                "seconds": seconds,
                "processor": used,
                "digest": digest,
                "failed": failed,
            }
        )
    )


@contextmanager
def session(contestant: str) -> Iterator[Any]:
    """The Spark session of a contestant; None in process."""
    if contestant == HERE:
        yield None
        return
    from applier.fleets.package import write_package
    from applier.fleets.spark import fleet_session

    with ExitStack() as opened:
        master, package = contestant, None
        if contestant == CLUSTER:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="cluster-")))
            write_package(package := str(folder / "binlag-env.tar.gz"))
            master = opened.enter_context(cluster(folder)).url
        spark = fleet_session(master, package, SETTINGS)
        opened.callback(spark.stop)
        yield spark


def measure(folder: Path, runs: int) -> dict[str, list[dict[str, Any]]]:
    """All runs, in turns. Raises SystemExit where numbers differ or a source failed."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in CORES}
    for _ in range(runs):
        for name, told in found.items():
            command = [sys.executable, __file__, "--run", name, "--folder", str(folder)]
            line = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True
            ).stdout.splitlines()[-1]
            told.append(json.loads(line))
            last = told[-1]
            print(
                f"{name}: {last['seconds']:.1f} s, processors {last['processor']:.1f} s (start "
                f"{last['start']:.1f} s)",
                file=sys.stderr,
            )
    every = [one for told in found.values() for one in told]
    if any(one["failed"] for one in every) or len({one["digest"] for one in every}) > 1:
        raise SystemExit(
            f"the numbers differ, or a source failed: {[one['failed'] for one in every]}"
        )
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--schema", type=Path, help="the schema of all logs")
    parser.add_argument("--sources", type=int, default=200)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the fleet is made [default: a temporary folder, removed at the end]",
    )
    parser.add_argument("--output", type=Path, help="write the raw times there, as JSON")
    parser.add_argument("--run", choices=CORES, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    if arguments.run:
        run_once(arguments.run, arguments.folder)
        return 0
    if not arguments.logs or arguments.schema is None:
        raise SystemExit("give logs and --schema")
    with tempfile.TemporaryDirectory(prefix="binlag-fleet-", dir=arguments.folder) as name:
        each = int(arguments.gigabytes * 1e9 / arguments.sources)
        size = make_fleet(Path(name), arguments.logs, arguments.schema, arguments.sources, each)
        print(f"{arguments.sources} sources, {size / 1e9:.2f} GB; load {os.getloadavg()[0]:.1f}")
        found = measure(Path(name), arguments.runs)
    median, used = (
        {one: statistics.median(run[what] for run in told) for one, told in found.items()}
        for what in ("seconds", "processor")
    )
    for one, seconds in median.items():
        rates = size / 1e6 / seconds / CORES[one], size / 1e6 / used[one]
        told = f"{seconds:7.1f} s  {rates[0]:6.0f} MB/s per core"
        print(f"{one:12} {told}; processors {used[one]:7.1f} s  {rates[1]:6.0f} MB/s of their time")
    if arguments.output:
        told = {"sources": arguments.sources, "bytes": size, "machine": machine(), "runs": found}
        arguments.output.write_text(json.dumps(told, indent=1) + "\n")
    ratio = median["local[1]"] / median["local[2]"]
    print(
        f"local[2] is {ratio:.2f} times as fast as local[1]; all numbers are equal; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
