"""Cells measured as a Spark job: the grid is a DataFrame, each task applies its cells, results come
back as the table of `measured`.

Cells that are timed beside each other disturb each other: for a calibration use one task at a time
(local[1]); handler calls are exact however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.measurement.measured import (
    Measured,
    MeasurementTarget,
    Memory,
    arrow_schema,
    log_measured,
)
from applier.forecast.measurement.measurement_grid import DATABASE, Cell
from applier.mysql.client.url import Endpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_KINDS = {"string": "string", "int64": "bigint", "double": "double"}


@dataclass(frozen=True)
class MemoryFactory:
    """What is shipped to workers instead of a target."""

    server: str

    def __call__(self, task: int) -> MeasurementTarget:
        return Memory(self.server)


@dataclass(frozen=True)
class ServerFactory:
    """A server, with a schema of its own for each task."""

    endpoint: Endpoint

    def __call__(self, task: int) -> MeasurementTarget:
        from applier.forecast.measurement.on_server import ServerTarget

        return ServerTarget(self.endpoint, database=f"{DATABASE}_{task}", is_alone=False)


Factory = MemoryFactory | ServerFactory


def factory_of(target: MeasurementTarget) -> Factory:
    """Raises UsageError for the replication applier, of which a server has one."""
    if isinstance(target, Memory):
        return MemoryFactory(target.server_version)
    if getattr(target, "relay_folder", None) is not None:
        raise UsageError(
            "--master: a server has one replication applier; it is measured in one process",
            code=Code.OPTIONS_CLASH,
            hint="leave out --master",
        )
    return ServerFactory(target.endpoint)  # type: ignore[attr-defined]


def measure_with_spark(
    cells: Iterable[Cell], target: MeasurementTarget, done: Iterable[Measured] = (),
    tick: Callable[[Measured], None] | None = None, *,
    master: str = "local[2]", spark: SparkSession | None = None, number: int = 0,
) -> list[Measured]:  # fmt: skip
    """Measures what is not `done` yet in the round of that number; the rows are those of
    `measure_all`.

    `tick` gets each as soon as it is measured, whatever happens to the others.
    """
    from applier.forecast.spark_session import session

    known = {one.place for one in done}
    missing = [
        cell for cell in cells if (target.name, target.server_version, cell, number) not in known
    ]
    found, one_at_a_time = list[Measured](), Lock()

    def take(rows: Iterable[Row]) -> None:
        with one_at_a_time:
            for row in rows:
                found.append(replace(Measured.of_row(row.asDict()), round=number))
                if tick is not None:
                    tick(found[-1])
                log_measured(found[-1])

    if missing:
        _take_each_partition(
            measured_frame(spark or session(master), missing, factory_of(target)), take
        )
    return found


def _take_each_partition(frame: DataFrame, take: Callable[[Iterable[Row]], None]) -> None:
    """The rows of each partition when it is done, by a job of its own: `collect` gives all or
    nothing.

    Twice as many jobs as there are cores are asked for, so that none waits. `take` is called by
    threads: no signal interrupts it. An interrupt or error ends the jobs that run.
    """
    rdd, context = frame.rdd, frame.sparkSession.sparkContext
    group = f"binlag-{uuid4().hex}"

    def job(partition: int) -> None:
        context.setJobGroup(group, "binlag measure", interruptOnCancel=True)
        take(context.runJob(rdd, list, [partition]))

    with ThreadPoolExecutor(2 * context.defaultParallelism) as pool:
        jobs = [pool.submit(job, partition) for partition in range(rdd.getNumPartitions())]
        try:
            for one in as_completed(jobs):
                one.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            context.cancelJobGroup(group)


def measured_frame(spark: SparkSession, cells: Sequence[Cell], factory: Factory) -> DataFrame:
    """The table of measurements as a DataFrame; nothing is measured before it is asked for.

    Each cell is a task and the large ones come first, or all other cores would wait for the last.
    """
    rows = [asdict(cell) for cell in sorted(cells, key=lambda cell: -(cell.rows + cell.changed))]
    grid = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, len(rows)),
        _ddl(arrow_schema(), only=Cell.__dataclass_fields__),
    )
    return grid.mapInArrow(_measurer(factory), _ddl(arrow_schema()))


def _measurer(factory: Factory) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def measure(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        target = factory(0 if context is None else context.partitionId())
        try:
            for batch in batches:
                rows = [target.measure(Cell(**row)).as_row() for row in batch.to_pylist()]
                yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema())
        finally:
            close = getattr(target, "close", None)
            if close is not None:
                close()

    return measure


def _ddl(schema: Any, only: Iterable[str] | None = None) -> str:
    wanted = None if only is None else set(only)
    return ", ".join(
        f"`{field.name}` {_KINDS[str(field.type)]}"
        for field in schema
        if wanted is None or field.name in wanted
    )
