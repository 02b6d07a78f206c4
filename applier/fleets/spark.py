"""A fleet's forecasts as a Spark job: one task reads and forecasts a source.

    sources (number)           one task each, the largest first
    results (source, outcome)  one row each

A source that is larger than one core's share of the fleet is cut, so that no core waits for it:

    files   (source, number, path)                   cut into ranges at transactions, where it lies
    ranges  (source, number, start, stop)            read by tasks; what it asks for goes on
    loads   (source, number, start, chunk, payload)  by source, sorted; a source is streamed

The same classes read and price as without Spark, and a source's transactions come to its clock in
the same order, so the numbers are the same. A task that is lost is done again by Spark. Sources are
taken in waves; those of a wave that is over are done, whatever becomes of the next.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from applier.error_codes import Code
from applier.errors import BinlagError, UsageError
from applier.fleets.prepare import PreparedSource, SourceFiles, forecast, prepare
from applier.fleets.results import Outcome
from applier.fleets.schemas import SharedSchemas
from applier.forecast.plan import compile_ahead, load_reader
from applier.forecast.workload.load_batch import LoadBatch, Shapes
from applier.forecast.workload.ranges import DEFAULT_BYTES, FileRange, ranges
from applier.forecast.workload.transaction_load import TransactionLoad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAVE, WAVE_OF_A_CORE = 64, 8
"""Sources in a wave: so many at least, and so many for each core."""
CHUNK = 500
"""Transactions that travel together, where they do not come in batches."""
PREPARERS = 16
MOST_CUTTERS, MOST_READERS = 64, 4096
"""Tasks that look for cuts, and that read."""
FILES = "source int, number int, path string"
RANGES = "source int, number int, start bigint, stop bigint"
LOADS = "source int, number int, start bigint, chunk int, payload binary"
RESULTS = "source int, outcome string"
PACKAGE_FOLDER = "binlag-env"
Batches = Iterator[Any]
Sent = Any
"""Prepared sources by number, as `.value`: a broadcast, which each worker unpacks once."""


def fleet_session(
    master: str | None, package: str | None, settings: Mapping[str, str]
) -> SparkSession:
    """A session for a fleet; that of spark-submit where `master` is None. Raises UsageError for one
    that cannot be used.

    `package`: what `binlag spark-package` wrote, which executors unpack and run; without it they
    need binlag themselves.
    """
    if master is not None and master.startswith("sc://"):
        raise UsageError(
            "Spark Connect is not supported",
            code=Code.OPTION_VALUE,
            hint="give --master of the cluster itself, or use spark-submit",
        )
    from applier.forecast.spark_session import session

    config = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
        "spark.sql.adaptive.enabled": "false",
        **settings,
    }
    if package is not None:
        config["spark.archives"] = f"{os.path.abspath(package)}#{PACKAGE_FOLDER}"  # noqa: PTH100 - for Spark
        os.environ["PYSPARK_PYTHON"] = f"./{PACKAGE_FOLDER}/bin/python"
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return session(master, config)


def outcomes(
    spark: SparkSession,
    todo: Sequence[SourceFiles],
    *,
    wave: int | None = None,
    range_bytes: int = DEFAULT_BYTES,
    most_bytes: int | None = None,
) -> Iterator[Outcome]:
    """The outcomes of these sources, wave by wave. Raises UsageError for a session of Spark
    Connect.

    `most_bytes`: a source with more is cut [default: one core's share of all].
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "a session of Spark Connect is not supported",
            code=Code.OPTION_VALUE,
            hint="give a session of the cluster itself",
        )
    most_bytes = _share(spark, todo) if most_bytes is None else most_bytes
    several = wave or max(WAVE, WAVE_OF_A_CORE * spark.sparkContext.defaultParallelism)
    waves = [todo[at : at + several] for at in range(0, len(todo), several)]
    schemas = SharedSchemas(one.source for one in todo)
    with ThreadPoolExecutor(1) as ahead:
        coming = [ahead.submit(_ready, schemas, one) for one in waves[:1]]
        for at, one in enumerate(waves):
            ready = coming.pop().result()
            coming = [ahead.submit(_ready, schemas, after) for after in waves[at + 1 : at + 2]]
            yield from _wave(spark, one, ready, range_bytes, most_bytes)


def _share(spark: SparkSession, sources: Iterable[SourceFiles | PreparedSource]) -> int:
    """The bytes of logs that one core gets, if each gets as much."""
    cores: int = spark.sparkContext.defaultParallelism
    return sum(sum(one.sizes) for one in sources) // cores


def _ready(schemas: SharedSchemas, todo: Sequence[SourceFiles]) -> list[PreparedSource | Outcome]:
    with ThreadPoolExecutor(PREPARERS) as readers:
        return list(readers.map(partial(_prepared, schemas), todo))


def _prepared(schemas: SharedSchemas, found: SourceFiles) -> PreparedSource | Outcome:
    try:
        return prepare(found, schemas)
    except BinlagError as error:
        return Outcome.failed(found.source.name, error)


def _wave(
    spark: SparkSession,
    todo: Sequence[SourceFiles],
    ready: Sequence[PreparedSource | Outcome],
    range_bytes: int,
    most_bytes: int,
) -> Iterator[Outcome]:
    sources = {at: one for at, one in enumerate(ready) if isinstance(one, PreparedSource)}
    yield from (one for one in ready if isinstance(one, Outcome))
    if not sources:
        return
    rows = results(spark, sources, range_bytes, most_bytes).collect()
    for row in rows:
        name, told = todo[row.source].source.name, json.loads(row.outcome)
        yield (
            Outcome(name, "", error=told["error"])
            if "error" in told
            else todo[row.source].outcome(told)
        )


def results(
    spark: SparkSession,
    sources: Mapping[int, PreparedSource],
    range_bytes: int = DEFAULT_BYTES,
    most_bytes: int | None = None,
) -> DataFrame:
    """RESULTS for prepared sources: `outcome` is the forecast as JSON, or {"error": …}.

    A source of more than `most_bytes` is cut into ranges [default: one core's share of all].
    """
    share = _share(spark, sources.values())
    most_bytes = share if most_bytes is None else most_bytes
    cut = {
        at: one
        for at, one in sources.items()
        if not one.whole and sum(one.sizes) > max(most_bytes, range_bytes)
    }
    by_size = sorted(sources.keys() - cut.keys(), key=lambda at: -sum(sources[at].sizes))
    done = []
    if by_size:
        sent = spark.sparkContext.broadcast({at: sources[at] for at in by_size})
        numbers = spark.range(0, len(by_size), 1, len(by_size))
        done.append(numbers.mapInArrow(_compiled(share, _forecasts(sent, by_size)), RESULTS))
    if cut:
        gathered = loads(spark, cut, range_bytes).repartition(len(cut), "source")
        ordered = gathered.sortWithinPartitions("source", "number", "start", "chunk")
        sent = spark.sparkContext.broadcast(cut)
        done.append(ordered.mapInArrow(_compiled(share, _clocks(sent)), RESULTS))
    return reduce(lambda first, second: second.union(first), done)


def loads(
    spark: SparkSession, sources: Mapping[int, PreparedSource], range_bytes: int = DEFAULT_BYTES
) -> DataFrame:
    """LOADS of prepared sources: what each transaction asks of a replica, some of them in a row,
    pickled. Not of relay logs, in which a transaction may go on in the next file."""
    files = [
        (at, number, path) for at, one in sources.items() for number, path in enumerate(one.files)
    ]
    parts = sum(1 + size // range_bytes for one in sources.values() for size in one.sizes)
    sent = spark.sparkContext.broadcast(dict(sources))
    listed = spark.createDataFrame(files, FILES).repartition(min(len(files), MOST_CUTTERS))
    cut = listed.mapInArrow(_cut(range_bytes), RANGES)
    return cut.repartition(min(parts, MOST_READERS)).mapInArrow(
        _compiled(_share(spark, sources.values()), _read(sent)), LOADS
    )


def _compiled(log_bytes: int, work: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """The work of a task on a core that has so many bytes of logs before it."""

    def compiled(batches: Batches) -> Batches:
        compile_ahead(log_bytes)
        return work(batches)

    return compiled


def _forecasts(sent: Sent, numbers: Sequence[int]) -> Callable[[Batches], Batches]:
    """Places in `numbers` -> RESULTS."""

    def forecasts(batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                at = numbers[row["id"]]
                yield _batch(RESULTS, [(at, json.dumps(_told(partial(forecast, sent.value[at]))))])

    return forecasts


def _told(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return work()
    except _Unreadable as unreadable:
        return {"error": unreadable.error}
    except BinlagError as error:
        return {"error": error.as_dict()}


def _cut(range_bytes: int) -> Callable[[Batches], Batches]:
    """FILES -> RANGES."""

    def cut(batches: Batches) -> Batches:
        for batch in batches:
            found = []
            for row in batch.to_pylist():
                parts = _ranges(row["path"], range_bytes)
                found += [(row["source"], row["number"], part.start, part.stop) for part in parts]
            yield _batch(RANGES, found)

    return cut


def _ranges(path: str, range_bytes: int) -> list[FileRange]:
    try:
        return ranges([path], range_bytes)
    except BinlagError:
        return [FileRange(path)]  # who reads it says what is wrong


def _read(sent: Sent) -> Callable[[Batches], Batches]:
    """RANGES -> LOADS: transactions, then what is to be said of the range, or its error."""

    def read(batches: Batches) -> Batches:
        sources = sent.value
        for batch in batches:
            for row in batch.to_pylist():
                one = sources[row["source"]]
                file = one.files[row["number"]]
                head = row["source"], row["number"], row["start"] or 0
                for chunk, payload in enumerate(_payloads(one, file, row["start"], row["stop"])):
                    yield _batch(LOADS, [(*head, chunk, pickle.dumps(payload))])

    return read


def _payloads(
    one: PreparedSource, file: str, start: int | None, stop: int | None
) -> Iterator[list[TransactionLoad] | LoadBatch | dict[str, Any]]:
    try:
        reader = load_reader(one.plan(), [file], start, stop)
        several: list[TransactionLoad] = []
        for found in reader.batches():
            if not isinstance(found, LoadBatch):
                several.append(found)
            if several and (isinstance(found, LoadBatch) or len(several) == CHUNK):
                yield several
                several = []
            if isinstance(found, LoadBatch):
                yield found.portable()
        yield several
        yield {"notes": list(reader.notes)}
    except BinlagError as error:
        yield {"error": error.as_dict()}


def _clocks(sent: Sent) -> Callable[[Batches], Batches]:
    """LOADS, sorted -> RESULTS."""

    def clocks(batches: Batches) -> Batches:
        sources = sent.value
        rows = (row for batch in batches for row in batch.to_pylist())
        for at, mine in groupby(rows, itemgetter("source")):
            notes: list[str] = []
            work = partial(forecast, sources[at], _transactions(mine, notes), notes)
            yield _batch(RESULTS, [(at, json.dumps(_told(work)))])

    return clocks


class _Unreadable(Exception):
    """A range of the source's log had this error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


def _transactions(
    rows: Iterable[Mapping[str, Any]], notes: list[str]
) -> Iterator[TransactionLoad | LoadBatch]:
    """The transactions of a source in the order of its log; `notes` takes what else there is.
    Raises _Unreadable."""
    shapes = Shapes()
    for row in rows:
        payload = pickle.loads(row["payload"])
        if isinstance(payload, dict):
            if "error" in payload:
                raise _Unreadable(payload["error"])
            notes += payload["notes"]
            continue
        if isinstance(payload, LoadBatch):
            yield payload.numbered(shapes)
            continue
        for load in payload:
            load.applied = {
                (mine := shapes.same(target)): replace(applied, target=mine)
                for target, applied in load.applied.items()
            }
            yield load


def _batch(columns: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    kinds = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    schema = pa.schema(
        [(name, kinds[kind]) for name, kind in (column.split() for column in columns.split(", "))]
    )
    return pa.record_batch(
        [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema], schema=schema
    )
