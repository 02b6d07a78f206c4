"""The fleet as a Spark job: the numbers of this process to the last digit, on two cores and on a
cluster of bare Pythons."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import applier
from applier.errors import UsageError
from applier.fleets import spark as fleet_spark
from applier.fleets.config import read_fleet
from applier.fleets.package import packages, write_package
from applier.fleets.prepare import find
from applier.fleets.results import Outcome
from tests.fleets.cluster import cluster
from tests.fleets.made import made_fleet
from tests.fleets.test_fleet import damaged
from tests.forecast.test_spark import end_java, restored

needs_spark = pytest.mark.skipif(
    os.environ.get("BINLAG_ALL_CASES") != "1" or find_spec("pyspark") is None,
    reason="Spark: make .venv/.ci installs it, BINLAG_ALL_CASES=1 runs it",
)
SMALL = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
RANGE_BYTES = 6000
"""So that each small log is several ranges."""


@contextmanager
def session(master: str, package: str | None = None) -> Iterator[Any]:
    interrupt = signal.getsignal(signal.SIGINT)  # Spark takes it, and gives it back to nobody
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            restored(patch, name)
        opened = fleet_spark.fleet_session(master, package, SMALL)
        try:
            yield opened
        finally:
            opened.stop()
            end_java()
    signal.signal(signal.SIGINT, interrupt)


def by_spark(spark: Any, file: Path, wave: int = 64, most_bytes: int | None = 0) -> list[Outcome]:
    """`most_bytes` 0: all sources are cut."""
    found = [find(source) for source in read_fleet(file)]
    outcomes = fleet_spark.outcomes(
        spark, found, wave=wave, range_bytes=RANGE_BYTES, most_bytes=most_bytes
    )
    return sorted(outcomes, key=lambda one: one.source)


def without_reader(outcomes: Sequence[Outcome]) -> list[Any]:
    """What is said of an error may name its place in the file or the range; that there is one, and
    which, is the same."""
    return [
        one.summary or (one.source, (one.error or {})["code"], (one.error or {})["file"])
        for one in outcomes
    ]


@needs_spark
def test_the_numbers_of_this_process(tmp_path: Path) -> None:
    file = made_fleet(tmp_path, 5)
    damaged(tmp_path / "shop-002" / "binlog.000002")
    cut = tmp_path / "shop-004" / "binlog.000002"
    cut.write_bytes(cut.read_bytes()[:-10])
    (tmp_path / "shop-005" / "schema.sql").write_text(
        "CREATE DATABASE e; USE e; CREATE TABLE x (a INT);"
    )
    here = applier.fleet(file).outcomes
    with session("local[2]") as spark:
        cut = by_spark(spark, file)
        half = sorted(sum(one.sizes) for one in map(find, read_fleet(file)))[2]
        mixed = by_spark(spark, file, most_bytes=half)
        result = applier.fleet(file, spark=spark, output=tmp_path / "out")
    assert without_reader(cut) == without_reader(mixed) == without_reader(here)
    assert without_reader(result.outcomes) == without_reader(here)
    assert [one.source for one in result.failed] == ["shop-002", "shop-005"]
    assert sorted(path.stem for path in (tmp_path / "out" / "finished").iterdir()) == [
        "shop-001",
        "shop-003",
        "shop-004",
    ]


@needs_spark
@pytest.mark.in_ci
def test_a_cluster_of_bare_pythons_loses_a_worker(tmp_path: Path) -> None:
    """The worker is lost when the first tasks of the job are done: what it held is done again by
    the other one."""
    file, package = made_fleet(tmp_path, 4), str(tmp_path / "binlag-env.tar.gz")
    write_package(package)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as running:
        bare = subprocess.run(
            ["python", "-c", "import applier"],
            env=running.environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "No module named 'applier'" in bare.stderr
        with session(running.url, package) as spark:
            over, killed = threading.Event(), list[bool]()

            def kill() -> None:
                tracker = spark.sparkContext.statusTracker()
                while not over.wait(0.05):
                    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                    if any(stage is not None and stage.numCompletedTasks for stage in stages):
                        running.kill_worker()
                        killed.append(True)
                        return

            killer = threading.Thread(target=kill)
            killer.start()
            there = by_spark(spark, file, wave=2)
            over.set()
            killer.join()
    assert killed
    assert there == applier.fleet(file).outcomes


@needs_spark
@pytest.mark.in_ci
def test_the_commands_of_the_page_for_a_cluster(tmp_path: Path) -> None:
    """docs/how-to/spark.md; the fleet file is named from the driver's folder, which no executor
    has."""
    import pyspark

    made_fleet(tmp_path, 2)
    write_package(str(tmp_path / "binlag-env.tar.gz"))
    (tmp_path / "run_binlag.py").write_text("from applier.__main__ import main; main()")
    (tmp_path / "cluster").mkdir()
    home = Path(pyspark.__file__).parent
    fleet_command = ["fleet", "fleet.yaml", "--json", "--output"]
    with cluster(tmp_path / "cluster") as running:
        option = [sys.executable, "-P", "-m", "applier", *fleet_command, "by-option"]
        option += ["--master", running.url, "--package", "binlag-env.tar.gz"]
        submit = [
            str(home / "bin" / "spark-submit"),
            "--master",
            running.url,
            "--archives",
            "binlag-env.tar.gz#binlag-env",
        ]
        submit += ["run_binlag.py", *fleet_command, "by-submit"]
        pythons = {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": "./binlag-env/bin/python",
        }
        told = {}
        for name, command, variables in (("option", option, {}), ("submit", submit, pythons)):
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-2000:]
            # spark-submit has standard error there, too
            told[name] = json.loads(done.stdout.splitlines()[0])
    here = applier.fleet(tmp_path / "fleet.yaml")
    assert (
        told["option"]["sources"]
        == told["submit"]["sources"]
        == json.loads(json.dumps(here.sources))
    )


@needs_spark
def test_the_package_runs_by_itself(tmp_path: Path) -> None:
    write_package(tmp_path / "env.tar.gz")
    with tarfile.open(tmp_path / "env.tar.gz") as archive:
        archive.extractall(tmp_path / "env", filter="data")
    python = tmp_path / "env" / "bin" / "python"
    ask = [python, "-c", "import applier, pyarrow; print(applier.__file__)"]
    shown = subprocess.run(ask, cwd="/", capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str(tmp_path / "env" / "lib" / "applier" / "__init__.py")
    none = {"PATH": "/nowhere", "BINLAG_PYTHON": ""}
    failed = subprocess.run(
        ["/bin/sh", python, "-V"], env=none, capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1
    assert "this package is for Python 3." in failed.stderr


def test_what_is_packed() -> None:
    names = packages()
    assert {"click", "numpy", "pyarrow", "pyyaml", "rich", "sortedcontainers", "zstandard"} <= set(
        names
    )
    assert not {"pytest", "mypy", "altair"} & set(names)
    with pytest.raises(UsageError, match="--with: no package 'no-such-package' is installed here"):
        packages(["no-such-package"])


def test_spark_connect_is_refused() -> None:
    with pytest.raises(UsageError, match="Spark Connect is not supported"):
        fleet_spark.fleet_session("sc://host", None, {})
