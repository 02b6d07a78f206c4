"""How fast a log is received from a live source, beside
`mysqlbinlog --read-from-remote-server --raw` of the same run.

    python benchmarks/receive.py [--server 9.7] [--kinds small,large,wide] [--megabytes 100] \
        [--rounds 7]

Both read the whole log of one local server into files, in turns: small transactions, large ones of
many rows, rows of 16 MB. Prints a line per load, of the time that passed and of the CPU time, which
depends less on what else the machine does; writes raw seconds to
benchmarks/results/receive_<server>.json, where those of other loads and sizes stay. Needs the
servers of docker/servers/bring.py; the peer is 9.7's mysqlbinlog, and MariaDB's for MariaDB and for
MySQL 5.x, whose passwords that of 9.7 does not know. What both have written is compared with the
log's bytes. Python keeps its compiled modules, as it does where PYTHONDONTWRITEBYTECODE is not set:
the variable is taken out of binlag's environment.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "docker"))

from servers.installed import installed  # noqa: E402
from servers.server import Server  # noqa: E402

SMALL_ROW_BYTES, LARGE_ROWS = 200, 20_000
WIDE_ROW_BYTES = 16_000_000
KINDS = ("small", "large", "wide")
BINLAG_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
OPTIONS = {
    "max_allowed_packet": 1 << 30,
    "sync_binlog": 0,
    "innodb_flush_log_at_trx_commit": 2,
    "innodb_doublewrite": 0,
}


def load(server: Server, kind: str, megabytes: int) -> int:
    """Writes a log of about so many megabytes; returns its bytes."""
    server.execute(
        "CREATE DATABASE b", "CREATE TABLE b.t (id INT AUTO_INCREMENT PRIMARY KEY, c LONGBLOB)"
    )
    row = f"(NULL, REPEAT('x', {SMALL_ROW_BYTES}))"
    if kind == "small":
        server.execute(
            "CREATE PROCEDURE b.p (n INT) BEGIN WHILE n > 0 DO"
            f" INSERT INTO b.t VALUES {row}; SET n = n - 1; END WHILE; END"
        )
        while log_bytes(server) < megabytes * 1_000_000:
            server.execute("CALL b.p(20000)")
    elif kind == "wide":
        while log_bytes(server) < megabytes * 1_000_000:
            server.execute(f"INSERT INTO b.t VALUES (NULL, REPEAT('x', {WIDE_ROW_BYTES}))")
    else:
        rows = ",".join([row] * LARGE_ROWS)
        while log_bytes(server) < megabytes * 1_000_000:
            server.execute(f"INSERT INTO b.t VALUES {rows}")
    return log_bytes(server)


def log_bytes(server: Server) -> int:
    return sum(path.stat().st_size for path in server.binlog_files())


def cpu_seconds() -> float:
    """Of all processes that were started and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of(command: list[str], **options: object) -> tuple[float, float]:
    """By the clock, and of the CPU."""
    began, before = time.perf_counter(), cpu_seconds()
    subprocess.run(command, check=True, capture_output=True, **options)  # type: ignore[call-overload]
    return time.perf_counter() - began, cpu_seconds() - before


def mysqlbinlog(server: Server, name: str, folder: Path) -> tuple[float, float]:
    program = (
        installed("9.7").command("mysqlbinlog")
        if name == "9.7"
        else installed("mariadb").command("mariadb-binlog")
    )
    first = server.binlog_files()[0].name
    return seconds_of(
        [*program, "--no-defaults", "--read-from-remote-server", "--raw", "--to-last-log",
         f"--result-file={folder}/", "--host=127.0.0.1",
         f"--port={server.port}", "--user=root", first],
        env={**os.environ, "MYSQL_PWD": server.password},
    )  # fmt: skip


def binlag(server: Server, folder: Path) -> tuple[float, float]:
    return seconds_of(
        [
            sys.executable,
            "-m",
            "applier",
            "receive",
            f"mysql://root@127.0.0.1:{server.port}",
            "--dir",
            str(folder),
            "--to-end",
        ],
        env={**BINLAG_ENVIRONMENT, "BINLAG_PASSWORD": server.password},
    )


def measure(name: str, kind: str, megabytes: int, rounds: int) -> dict[str, object]:
    server = Server(name, options=OPTIONS)
    server.start()
    try:
        size = load(server, kind, megabytes)
        seconds: dict[str, list[float]] = {"mysqlbinlog": [], "binlag": []}
        cpu: dict[str, list[float]] = {"mysqlbinlog": [], "binlag": []}
        for _ in range(rounds):
            for peer, run in (
                ("mysqlbinlog", lambda to: mysqlbinlog(server, name, to)),
                ("binlag", lambda to: binlag(server, to)),
            ):
                folder = Path(tempfile.mkdtemp())
                for kept_times, value in zip((seconds, cpu), run(folder), strict=True):
                    kept_times[peer].append(value)
                written = sum(path.stat().st_size for path in folder.glob("*bin*.0*"))
                assert written > 0.999 * size, f"{peer} has written {written:,} of {size:,} bytes"
                shutil.rmtree(folder)
    finally:
        server.close()
    return {"bytes": size, "seconds": seconds, "cpu_seconds": cpu}


def kept(path: Path) -> list[dict[str, object]]:
    """What was measured before."""
    return json.loads(path.read_text())["results"] if path.exists() else []  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="9.7")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    path = HERE / "results" / f"receive_{given.server}.json"
    for kind in given.kinds.split(","):
        about = {
            "load": kind,
            "megabytes": given.megabytes,
            "python": platform.python_version(),
            "machine_load": os.getloadavg(),
        }
        found = about | measure(given.server, kind, given.megabytes, given.rounds)
        others = [
            one for one in kept(path) if (one["load"], one["megabytes"]) != (kind, given.megabytes)
        ]
        path.write_text(
            json.dumps({"server": given.server, "results": [*others, found]}, indent=1) + "\n"
        )
        ratios = {
            word: median(found[word]["mysqlbinlog"]) / median(found[word]["binlag"])
            for word in ("seconds", "cpu_seconds")
        }  # type: ignore[index]
        print(
            f"{given.server} {kind}, {found['bytes']:,} bytes: {ratios['seconds']:.2f} times "
            "mysqlbinlog's speed, "
            f"{ratios['cpu_seconds']:.2f} times by CPU time"
        )


if __name__ == "__main__":
    main()
