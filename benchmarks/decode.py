"""Decoding a binary log: binlag's Arrow batches beside mysqlbinlog and python-mysql-replication, in
one run.

    python benchmarks/decode.py bench/bulk.000001 [--mysqlbinlog PATH] [--runs 5] \
        [--output benchmarks/results/decode.json]

Each contestant is a process of its own, timed from its start to its end, import and start-up
included:

    binlag                     read_batches() over the whole log, every batch built (checksums
                               verified)
    binlag, no threads         the same with threads=1
    binlag, first run          the same with an empty kernel cache: compiles first
    mysqlbinlog                -vv --base64-output=decode-rows, output to /dev/null (does not verify
                               checksums)
    mysqlbinlog, verifying     the same with --verify-binlog-checksum
    python-mysql-replication   its event classes fed from the file, rows decoded, on the first
                               --slice MB only; its time is scaled up by bytes
    binlag, plain Python       the path for small logs, on the same slice, scaled too

Contestants take turns, so that a slow moment of the machine meets all; the best and the median of
the runs are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "docker"))

from servers.installed import installed

READ = """
import sys
from applier.binlog.columnar import read_batches
rows = 0
for batch in read_batches([sys.argv[1]], threads={threads}, compiled={compiled}):
    rows += batch.data.num_rows
print(rows)
"""
PEER = "from decode import read_with_peer; import sys; print(read_with_peer(sys.argv[1]))"
HERE = Path(__file__).resolve().parent


class _NoServer:
    """What the peer's event classes ask of a connection. It has no reader of files, its tests stand
    in for one like this."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mysql"


def peer_events(path: str, *others: type) -> Iterator[Any]:
    """The rows events of a log as python-mysql-replication's own classes read them, and those of
    `others`."""
    from pymysql.protocol import MysqlPacket
    from pymysqlreplication import row_event
    from pymysqlreplication.packet import BinLogPacketWrapper

    log = Path(path).read_bytes()
    rows_classes = (row_event.WriteRowsEvent, row_event.UpdateRowsEvent, row_event.DeleteRowsEvent)
    read = {*rows_classes, row_event.TableMapEvent, *others}
    tables: dict[int, Any] = {}
    server, at = _NoServer(), 4
    options = (None, None, None, None, False, False, False, False, False)
    while at < len(log):
        length = int.from_bytes(log[at + 9 : at + 13], "little")
        packet = MysqlPacket(b"\0" + log[at : at + length], "utf8mb4")
        event = BinLogPacketWrapper(packet, tables, server, (9, 7, 0), True, read, *options).event
        if isinstance(event, row_event.TableMapEvent):
            tables[event.table_id] = event.get_table()
        elif isinstance(event, rows_classes):
            yield event
        at += length


def read_with_peer(path: str) -> int:
    """Decodes all rows of a log; returns the number of row images."""
    from pymysqlreplication import event, row_event

    found = peer_events(path, event.QueryEvent, event.XidEvent, event.GtidEvent)
    return sum(len(one.rows) * (1 + isinstance(one, row_event.UpdateRowsEvent)) for one in found)


def cut(path: Path, size: int, target: Path) -> None:
    """The first whole events of a log, about `size` bytes."""
    with path.open("rb") as file:
        data = file.read(size)
    at = 4
    while at + 19 <= len(data):
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        if at + length > len(data):
            break
        at += length
    target.write_bytes(data[:at])


class Contest:
    """The contestants as command lines; `bytes` is what each reads."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.log: Path = arguments.log.resolve()
        self.slice = folder / "slice.000001"
        self.cold = folder / "cold"
        cut(self.log, arguments.slice * 1_000_000, self.slice)
        self.commands: dict[str, tuple[list[str], Path, bool]] = {}
        python = [sys.executable, "-c"]
        everything, part = self.log, self.slice
        for name, threads, compiled, file in (
            ("binlag", None, True, everything),
            ("binlag, no threads", 1, True, everything),
            ("binlag, first run", None, True, everything),
            ("binlag, plain Python", None, False, part),
        ):
            code = READ.format(threads=threads, compiled=compiled)
            self.commands[name] = ([*python, code, str(file)], file, name == "binlag, plain Python")
        if program := mysqlbinlog(arguments.mysqlbinlog):
            decode = [*program, "-vv", "--base64-output=decode-rows"]
            self.commands["mysqlbinlog"] = ([*decode, str(everything)], everything, False)
            self.commands["mysqlbinlog, verifying"] = (
                [*decode, "--verify-binlog-checksum", str(everything)],
                everything,
                False,
            )
        try:
            version("mysql-replication")
            self.commands["python-mysql-replication"] = ([*python, PEER, str(part)], part, True)
        except PackageNotFoundError:
            pass

    def run(self, name: str) -> float:
        """Seconds of one run, scaled to the whole log."""
        command, file, _ = self.commands[name]
        environment = dict(os.environ, PYTHONPATH=f"{HERE}{os.pathsep}{HERE.parent}")
        if name == "binlag, first run":
            shutil.rmtree(self.cold, ignore_errors=True)
            environment["NUMBA_CACHE_DIR"] = str(self.cold)
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment, cwd=HERE)
        seconds = time.perf_counter() - started
        return seconds * self.log.stat().st_size / file.stat().st_size


def machine() -> dict[str, Any]:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in _lines("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    packages = {}
    for name in ("numpy", "numba", "llvmlite", "pyarrow", "mysql-replication"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(),
        "python": platform.python_version(), "packages": packages,
        "load": os.getloadavg(),
    }  # fmt: skip


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def mysqlbinlog(given: str | None) -> list[str]:
    """How the program is started; empty where there is none."""
    if given is not None:
        return [given]
    found = installed("9.7")
    return found.command("mysqlbinlog") if found.there else []


def _version_of(program: list[str]) -> str:
    shown = subprocess.run(
        [*program, "--version"], capture_output=True, text=True, check=True
    ).stdout
    return shown.split("mysqlbinlog")[-1].strip()


def measure(contest: Contest, runs: int, slow_runs: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contest.commands}
    contest.run("binlag")  # fills the kernel cache, and the log is in the page cache for all
    for turn in range(runs):
        for name, (_, _, slow) in contest.commands.items():
            if turn < (slow_runs if slow or name == "binlag, first run" else runs):
                times[name].append(contest.run(name))
    return times


def report(times: dict[str, list[float]], size: int) -> None:
    own = min(times["binlag"])
    print(f"{'':28}{'best':>10}{'median':>10}{'MB/s':>9}   against binlag")
    for name, seconds in sorted(times.items(), key=lambda item: min(item[1])):
        best = min(seconds)
        print(
            f"{name:28}{best:9.2f}s{statistics.median(seconds):9.2f}s{size / best / 1e6:9.1f}   "
            f"{best / own:.1f} times"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="a binary log, e.g. one of make_log.py")
    parser.add_argument(
        "--mysqlbinlog", help="the program (default: that of docker/servers/bring.py 9.7)"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--slow-runs",
        type=int,
        default=3,
        help="runs of those that are measured on a slice, and of the first run",
    )
    parser.add_argument(
        "--slice",
        type=int,
        default=10,
        help="megabytes for those that are too slow for the whole log",
    )
    parser.add_argument("--output", type=Path, help="write the raw times there, as JSON")
    arguments = parser.parse_args()
    size = arguments.log.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(arguments, Path(folder))
        times = measure(contest, arguments.runs, arguments.slow_runs)
        slice_bytes = contest.slice.stat().st_size
        program = mysqlbinlog(arguments.mysqlbinlog)
        peer_version = _version_of(program) if program else None
    report(times, size)
    if arguments.output:
        result = {
            "log": {"name": arguments.log.name, "bytes": size, "slice_bytes": slice_bytes},
            "machine": machine(),
            "mysqlbinlog": peer_version, "seconds": times,
            "note": "whole processes; times of slices are scaled to the whole log by bytes",
        }  # fmt: skip
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
