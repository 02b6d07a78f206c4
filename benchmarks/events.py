"""Listing a log as text: `binlag events` beside mysqlbinlog, in turns of one run.

    python benchmarks/events.py bench/oltp.000001 [--mysqlbinlog PATH] [--runs 5] \
        [--output benchmarks/results/events-oltp.json]

Each contestant is a process of its own whose output goes to /dev/null, timed from its start to its
end:

    events               binlag events LOG (checksums verified)
    mysqlbinlog          mysqlbinlog LOG (does not verify checksums)
    events --rows        binlag events --rows LOG
    mysqlbinlog -vv      mysqlbinlog -vv LOG

Beside the time that passed stands the processors' (user and system): a machine with other work to
do leaves that alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from decode import machine, mysqlbinlog  # noqa: E402

PAIRS = (("events", "mysqlbinlog"), ("events --rows", "mysqlbinlog -vv"))


def commands(log: str, peer: list[str]) -> dict[str, list[str]]:
    """Name of a contestant -> its command line."""
    binlag = [sys.executable, "-m", "applier", "events"]
    return {
        "events": [*binlag, log],
        "mysqlbinlog": [*peer, log],
        "events --rows": [*binlag, "--rows", log],
        "mysqlbinlog -vv": [*peer, "-vv", log],
    }


def run(command: list[str]) -> tuple[float, float]:
    """Seconds that passed, and seconds of the processors."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=HERE.parent)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path)
    parser.add_argument(
        "--mysqlbinlog", help="the program (default: that of docker/servers/bring.py 9.7)"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, help="write the raw times there, as JSON")
    given = parser.parse_args()
    contestants = commands(str(given.log.resolve()), mysqlbinlog(given.mysqlbinlog))
    # the kernels are in their cache, and the log is in the page cache for all
    run(contestants["events"])
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(given.runs):
        for name, command in contestants.items():
            times[name].append(run(command))
    for name, runs in times.items():
        passed, used = zip(*runs, strict=True)
        print(
            f"{name:16} best {min(passed):.2f} s, median {median(passed):.2f} s; processors: "
            f"median {median(used):.2f} s"
        )
    for own, peer in PAIRS:
        ratios = [
            median([one[at] for one in times[own]]) / median([one[at] for one in times[peer]])
            for at in (0, 1)
        ]
        print(f"{own} ÷ {peer}: {ratios[0]:.2f} (processors: {ratios[1]:.2f})")
    if given.output:
        size = given.log.stat().st_size
        result = {
            "log": {"name": given.log.name, "bytes": size},
            "machine": machine(),
            "seconds_and_processor_seconds": times,
        }
        given.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
