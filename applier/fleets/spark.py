"""A fleet's forecasts as a Spark job: ranges of files -> transactions -> one clock a source, in the
order of its log.

    files   (source, number, path)                   cut into ranges at transactions, where it lies
    ranges  (source, number, start, stop)            read by tasks; what it asks for goes on
    loads   (source, number, start, chunk, payload)  by source, sorted; a source is streamed
    results (source, outcome)                        one row each

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
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from applier.error_codes import Code
from applier.errors import BinlagError, UsageError
from applier.fleets.prepare import PreparedSource, SourceFiles, forecast, prepare
from applier.fleets.results import Outcome
from applier.forecast.plan import load_reader
from applier.forecast.workload.load_batch import LoadBatch, Shapes
from applier.forecast.workload.ranges import DEFAULT_BYTES, FileRange, ranges
from applier.forecast.workload.transaction_load import TransactionLoad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAVE = 64
"""Sources in a wave."""
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
    wave: int = WAVE,
    range_bytes: int = DEFAULT_BYTES,
) -> Iterator[Outcome]:
    """The outcomes of these sources, wave by wave. Raises UsageError for a session of Spark
    Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "a session of Spark Connect is not supported",
            code=Code.OPTION_VALUE,
            hint="give a session of the cluster itself",
        )
    for at in range(0, len(todo), wave):
        yield from _wave(spark, todo[at : at + wave], range_bytes)


def _wave(spark: SparkSession, todo: Sequence[SourceFiles], range_bytes: int) -> Iterator[Outcome]:
    with ThreadPoolExecutor(PREPARERS) as readers:
        ready = list(readers.map(_prepared, todo))
    sources = {at: one for at, one in enumerate(ready) if isinstance(one, PreparedSource)}
    yield from (one for one in ready if isinstance(one, Outcome))
    if not sources:
        return
    for row in results(spark, sources, range_bytes).collect():
        name, told = todo[row.source].source.name, json.loads(row.outcome)
        yield (
            Outcome(name, "", error=told["error"])
            if "error" in told
            else todo[row.source].outcome(told)
        )


def _prepared(found: SourceFiles) -> PreparedSource | Outcome:
    try:
        return prepare(found)
    except BinlagError as error:
        return Outcome.failed(found.source.name, error)


def results(
    spark: SparkSession, sources: Mapping[int, PreparedSource], range_bytes: int = DEFAULT_BYTES
) -> DataFrame:
    """RESULTS for prepared sources: `outcome` is the forecast as JSON, or {"error": …}."""
    gathered = loads(spark, sources, range_bytes).repartition(len(sources), "source")
    ordered = gathered.sortWithinPartitions("source", "number", "start", "chunk")
    return ordered.mapInArrow(_clocks(_packed(sources)), RESULTS)


def loads(
    spark: SparkSession, sources: Mapping[int, PreparedSource], range_bytes: int = DEFAULT_BYTES
) -> DataFrame:
    """LOADS of prepared sources: what each transaction asks of a replica, some of them in a row,
    pickled."""
    files = [
        (at, number, path) for at, one in sources.items() for number, path in enumerate(one.files)
    ]
    parts = sum(1 + size // range_bytes for one in sources.values() for size in one.sizes)
    packed = _packed(sources)
    listed = spark.createDataFrame(files, FILES).repartition(min(len(files), MOST_CUTTERS))
    cut = listed.mapInArrow(_cut(packed, range_bytes), RANGES)
    return cut.repartition(min(parts, MOST_READERS)).mapInArrow(_read(packed), LOADS)


def _packed(sources: Mapping[int, PreparedSource]) -> bytes:
    return pickle.dumps(dict(sources))


def _cut(packed: bytes, range_bytes: int) -> Callable[[Batches], Batches]:
    """FILES -> RANGES. Relay logs, in which a transaction may go on in the next file, are one range
    together."""

    def cut(batches: Batches) -> Batches:
        sources: dict[int, PreparedSource] = pickle.loads(packed)
        for batch in batches:
            found = []
            for row in batch.to_pylist():
                one = sources[row["source"]]
                if one.whole:
                    parts = [FileRange(row["path"])] if not row["number"] else []
                else:
                    parts = _ranges(row["path"], range_bytes)
                found += [(row["source"], row["number"], part.start, part.stop) for part in parts]
            yield _batch(RANGES, found)

    return cut


def _ranges(path: str, range_bytes: int) -> list[FileRange]:
    try:
        return ranges([path], range_bytes)
    except BinlagError:
        return [FileRange(path)]  # who reads it says what is wrong


def _read(packed: bytes) -> Callable[[Batches], Batches]:
    """RANGES -> LOADS: transactions, then what is to be said of the range, or its error."""

    def read(batches: Batches) -> Batches:
        sources: dict[int, PreparedSource] = pickle.loads(packed)
        for batch in batches:
            for row in batch.to_pylist():
                one = sources[row["source"]]
                files = one.files if one.whole else one.files[row["number"] : row["number"] + 1]
                head = row["source"], row["number"], row["start"] or 0
                for chunk, payload in enumerate(_payloads(one, files, row["start"], row["stop"])):
                    yield _batch(LOADS, [(*head, chunk, pickle.dumps(payload))])

    return read


def _payloads(
    one: PreparedSource, files: Sequence[str], start: int | None, stop: int | None
) -> Iterator[list[TransactionLoad] | LoadBatch | dict[str, Any]]:
    try:
        reader = load_reader(one.plan(), files, start, stop)
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


def _clocks(packed: bytes) -> Callable[[Batches], Batches]:
    """LOADS, sorted -> RESULTS."""

    def clocks(batches: Batches) -> Batches:
        sources: dict[int, PreparedSource] = pickle.loads(packed)
        rows = (row for batch in batches for row in batch.to_pylist())
        for at, mine in groupby(rows, itemgetter("source")):
            notes: list[str] = []
            try:
                told: dict[str, Any] = forecast(sources[at], _transactions(mine, notes), notes)
            except _Unreadable as unreadable:
                told = {"error": unreadable.error}
            except BinlagError as error:
                told = {"error": error.as_dict()}
            yield _batch(RESULTS, [(at, json.dumps(told))])

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
