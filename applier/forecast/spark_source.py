"""Binary logs as a Spark data source, and their workload as an aggregation.

    from applier.forecast.spark_source import profile, register
    register(spark)
    log = spark.read.format("binlog").option("schema", "schema.sql").load("/var/lib/mysql/binlog.*")
    profile(log).show()

Options: `path` (files, directories, globs, commas between), `schema` (a SQL file: with it distinct
key values are counted), `server` (whose rules choose the key), `range_bytes` (of one partition);
`from_time`, `to_time`, `gtids`, `tables`: see `wanted`.
Partitions are cut at transactions and come as Arrow batches. With `table` ("shop.orders") the rows
are the changes of that table, their images as typed columns; these can be streamed, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from applier.forecast.log_rows import COLUMNS, SUMS
from applier.forecast.spark_ranges import RangePartition, from_root, logs_of, partitions_of
from applier.forecast.workload.ranges import FileRange
from applier.forecast.workload.wanted import wanted_of
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class BinlogReader(DataSourceReader):
    """Runs in Python workers; third-party imports stay inside the methods."""

    def __init__(self, options: dict[str, str], columns: Sequence[str]) -> None:
        schema = {"schema": from_root(options["schema"])} if options.get("schema") else {}
        self.options = {**options, **schema}
        self.columns = list(columns)

    def partitions(self) -> Sequence[InputPartition]:
        """Stretches of the logs, each for one task. Runs once, on the driver."""
        return partitions_of(self.options)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one stretch as Arrow batches. Runs once a stretch, in a worker."""
        from applier.forecast.log_rows import batches

        assert isinstance(partition, RangePartition)
        yield from batches(partition.part, self._schema(), self.columns, wanted_of(self.options))

    def _schema(self) -> Any:
        from applier.forecast.inventory.facts import facts_of_file
        from applier.forecast.workload.schema import Schema
        from applier.server_versions import asked_rules

        file = self.options.get("schema")
        if not file:
            return None
        server = self.options.get("server", NEWEST)
        return Schema(facts_of_file(file, server=server), asked_rules(server))


class BinlogDataSource(DataSource):
    """`spark.read.format("binlog")`."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` takes."""
        return "binlog"

    def schema(self) -> Any:
        """All columns: in DDL, or those of the changes of a table, which its first table map
        has."""
        if "table" not in self.options:
            return ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
        from pyspark.sql.pandas.types import from_arrow_schema

        from applier.forecast.workload.table_changes import change_schema, column_schema

        return from_arrow_schema(
            change_schema(column_schema(logs_of(dict(self.options)), self.options["table"]))
        )

    def reader(self, schema: Any) -> DataSourceReader:
        """The reader of these columns."""
        if "table" in self.options:
            from applier.forecast.spark_changes import ChangeReader

            return ChangeReader(dict(self.options), schema)
        return BinlogReader(dict(self.options), [field.name for field in schema.fields])

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - pyspark's name
        """The reader of a folder that grows: the changes of a table. Raises UsageError without
        one."""
        from applier.error_codes import Code
        from applier.errors import UsageError
        from applier.forecast.spark_changes import ChangeStreamReader

        if "table" not in self.options:
            raise UsageError(
                "a stream of the data source binlog needs a table",
                code=Code.OPTION_MISSING,
                hint=(
                    'spark.readStream.format("binlog").option("table",'
                    ' "shop.orders").load("/var/lib/mysql")'
                ),
            )
        return ChangeStreamReader(dict(self.options), schema)


def register(spark: SparkSession) -> None:
    """Makes the format known to a session."""
    spark.dataSource.register(BinlogDataSource)


def read_anywhere(spark: SparkSession, path: str) -> DataFrame:
    """The same table for files on any filesystem that Spark reaches (s3a://…, hdfs://…): one task a
    file, which is fetched whole.

    The data source itself runs in Python, which has no Hadoop filesystems; it reads what is
    mounted.
    """
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    files = spark.read.format("binaryFile").load(path).select("path", "content")
    return files.mapInArrow(_read_fetched, ddl)


def _read_fetched(batches: Iterator[Any]) -> Iterator[Any]:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from applier.forecast.log_rows import batches as read

    for batch in batches:
        for row in batch.to_pylist():
            with TemporaryDirectory(prefix="binlag-log-") as folder:
                file = Path(folder) / Path(row["path"]).name
                file.write_bytes(row["content"])
                yield from read(FileRange(str(file)))


PROFILED = ", ".join(
    f"`{name}` {COLUMNS[name]}" for name in ("database", "table", "type", *SUMS, "largest_event")
)
"""What `profile` looks at: with `.schema(PROFILED)` a read brings nothing else. (Spark does not
tell a Python source what it needs.)"""


def profile(log: DataFrame) -> DataFrame:
    """The workload per table and type, as `log_rows.profile_table` has it without Spark."""
    from pyspark.sql import functions as f

    largest = [
        f.max("largest_event").alias("largest_event"),
        f.max("rows").alias("largest_transaction"),
    ]
    sums = [f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in SUMS]
    grouped = log.where(f.col("table").isNotNull()).groupBy("database", "table", "type")
    return grouped.agg(f.count("*").alias("transactions"), *sums, *largest).orderBy(
        f.desc("rows"), "database", "table", "type"
    )
