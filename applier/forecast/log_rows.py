"""A log as a table: one row for what a transaction does to one table in one way. The same rows with
Spark and without.

`batches` yields Arrow record batches of a range of a file; `spark.read.format("binlog")` hands
those to Spark, `read_table` makes one Arrow table of them in this process. `profile_table` sums
them up per table, as `spark_source.profile` does in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.ranges import FileRange, expand, ranges
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.transaction_load import TransactionLoad
from applier.forecast.workload.wanted import EVERYTHING, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: dict[str, str] = {
    "file": "string", "pos": "bigint", "end_log_pos": "bigint", "gtid": "string",
    "commit_time": "double", "last_committed": "bigint",
    "sequence_number": "bigint", "transaction_bytes": "bigint", "statement_seconds": "bigint",
    "database": "string", "table": "string",
    "type": "string", "statements": "bigint", "events": "bigint", "rows": "bigint",
    "row_bytes": "bigint", "largest_event": "bigint",
    "key": "string", "distinct_keys": "bigint",
}  # fmt: skip
"""Column -> Spark's type. A transaction that changes no row has one row whose `table` is NULL."""
BATCH_ROWS = 8192
SUMS = ("statements", "events", "rows", "row_bytes", "distinct_keys")


def arrow_schema(columns: Sequence[str] = ()) -> pa.Schema:
    """The schema, of some columns only if given."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    return pa.schema([(name, kinds[COLUMNS[name]]) for name in columns or COLUMNS])


def batches(
    part: FileRange,
    schema: Schema | None = None,
    columns: Sequence[str] = (),
    wanted: Wanted = EVERYTHING,
) -> Iterator[pa.RecordBatch]:
    """Record batches of what is wanted of a range; the last transaction of a log may be cut off,
    and is then left out."""
    import pyarrow as pa

    kinds, names = arrow_schema(columns), list(columns or COLUMNS)
    gathered: list[list[Any]] = [[] for _ in names]
    places = [list(COLUMNS).index(name) for name in names]
    reader = LoadReader(
        [part.path], schema=schema, start_position=part.start, stop_position=part.stop
    )
    for load in wanted.loads(reader):
        if not load.complete:
            continue
        for row in _rows(load, wanted):
            for column, place in zip(gathered, places, strict=True):
                column.append(row[place])
        if len(gathered[0]) >= BATCH_ROWS:
            yield pa.record_batch(gathered, schema=kinds)
            gathered = [[] for _ in names]
    if gathered[0]:
        yield pa.record_batch(gathered, schema=kinds)


def _rows(load: TransactionLoad, wanted: Wanted) -> Iterator[tuple[Any, ...]]:
    head = (
        load.file, load.position, load.end, load.gtid, load.commit_time, load.last_committed,
        load.sequence_number, load.log_bytes,
        load.statement_seconds,
    )  # fmt: skip
    if not load.applied:
        yield (*head, None, None, None, load.statements, 0, 0, 0, 0, None, None)
    for target, applied in load.applied.items():
        if not wanted.takes_table(target.table):
            continue
        database, _, table = target.table.partition(".")
        largest = max(rows for rows, _ in applied.sizes)
        distinct = applied.distinct_values if target.key is not None else None
        yield (
            *head, database, table, target.kind, applied.statements, applied.events, applied.rows,
            applied.row_bytes, largest,
            target.key, distinct,
        )  # fmt: skip


def read_table(paths: str | Sequence[str], schema: Schema | None = None) -> pa.Table:
    """All of it in this process."""
    import pyarrow as pa

    found = [batch for part in ranges(expand(paths)) for batch in batches(part, schema)]
    return pa.Table.from_batches(found, schema=arrow_schema())


def profile_table(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The workload per table and type: sums, and the largest event and transaction; the most rows
    first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        if row["table"] is None:
            continue
        place = row["database"], row["table"], row["type"]
        sums = found.setdefault(
            place,
            {
                "transactions": 0,
                **dict.fromkeys(SUMS, 0),
                "largest_event": 0,
                "largest_transaction": 0,
            },
        )
        sums["transactions"] += 1
        for name in SUMS:
            sums[name] += row[name] or 0
        sums["largest_event"] = max(sums["largest_event"], row["largest_event"])
        sums["largest_transaction"] = max(sums["largest_transaction"], row["rows"])
    lines = [
        dict(zip(("database", "table", "type"), place, strict=True)) | sums
        for place, sums in found.items()
    ]
    return sorted(
        lines, key=lambda line: (-line["rows"], line["database"], line["table"], line["type"])
    )
