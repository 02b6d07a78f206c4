"""A standalone Spark cluster for tests: a master and workers as processes, whose Python is bare."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


class Cluster:
    """`url` is the master's."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        import pyspark

        from applier.forecast.spark_session import find_java

        find_java()
        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        bare = folder / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYSPARK", "VIRTUAL_ENV"))
        }
        path = f"{bare / 'bin'}:{Path(os.environ['JAVA_HOME']) / 'bin'}:/usr/bin:/bin"
        self.environment = {
            **kept,
            "PATH": path,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self.processes: list[subprocess.Popen[str]] = []
        self.url = self._started(
            MASTER,
            ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"],
            r"Starting Spark master at (\S+)",
        )
        for at in range(workers):
            place = [
                "--host",
                "127.0.0.1",
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(folder / f"work-{at}"),
            ]
            self._started(WORKER, [*place, self.url], r"Successfully registered with (master)")

    def _started(self, name: str, arguments: Sequence[str], said: str) -> str:
        """Starts a process, and waits until it says so; what it said."""
        log = self.folder / f"{name.rpartition('.')[2]}-{len(self.processes)}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [self.home / "bin" / "spark-class", name, *arguments], stdout=output,
                stderr=subprocess.STDOUT, text=True,
                env=self.environment, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        while process.poll() is None:
            found = re.search(said, log.read_text())
            if found is not None:
                return found[1]
        raise AssertionError(log.read_text())

    def kill_worker(self) -> None:
        """The last worker and its executors, at once."""
        process = self.processes.pop()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        while self.processes:
            self.kill_worker()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    opened = Cluster(folder)
    try:
        yield opened
    finally:
        opened.close()
