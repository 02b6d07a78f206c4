"""The changes of one table out of a log as Arrow batches: the images before and after as typed
columns, and where they come from.

One row for each row that an event changes; `event` is the number of the event in its transaction,
`row` that in its event. The table's columns are those of its first table map in the log; a map that
comes later gives its columns by name, or by place where the log has no names. What Spark has no
type for is widened: unsigned integers, labels of an ENUM as text, a DECIMAL of more than 38 digits
as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from typing import TYPE_CHECKING

from applier.binlog.events import parse
from applier.binlog.header import GTID_TYPES, Event, EventType
from applier.binlog.reader import LogReader
from applier.binlog.transactions import TransactionTracker, with_formats
from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.forecast.workload.ranges import FileRange
from applier.forecast.workload.wanted import EVERYTHING, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

    from applier.binlog.columnar.table_batch import TableBatch

ORIGIN = "binlog_"
"""How the columns begin that the batches have besides the table's."""
Heads = dict[int, tuple[str | None, int, int]]
"""Position of a GTID event -> its GTID, its commit time in microseconds (0: not known), its number
among the events."""
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = "insert", "update_before", "update_after", "delete"


def column_schema(paths: Sequence[str], table: str) -> pa.Schema:
    """The table's columns, as the changes have them. Raises UsageError where no log has a table map
    of it."""
    import pyarrow as pa

    from applier.binlog.columnar.layout import TableLayout
    from applier.binlog.table_map import read_table_map

    for path in paths:
        for event, fde in with_formats(LogReader([path], on_cut_off=_ignored)):
            if event.type == EventType.TABLE_MAP:
                table_map = read_table_map(event, fde)
                if table_map.full_name == table:
                    fields = _own_fields(TableLayout(0, table_map, True).schema)
                    return pa.schema([(item.name, _widened(item.type)) for item in fields])
    raise UsageError(
        f"the logs hold no rows of the table {table}",
        code=Code.NOTHING_CHOSEN,
        hint="name it as database.table; `binlag events` shows the tables of a log",
    )


def change_schema(columns: pa.Schema) -> pa.Schema:
    """The schema of the changes of a table with these columns."""
    import pyarrow as pa

    image = pa.struct(list(columns))
    return pa.schema([
        ("file", pa.string()), ("position", pa.int64()), ("event", pa.int64()), ("row", pa.int32()),
        ("gtid", pa.string()),
        ("commit_time", pa.timestamp("us", "UTC")), ("type", pa.string()), ("before", image),
        ("after", image),
    ])  # fmt: skip


def changes(
    part: FileRange, table: str, columns: pa.Schema, wanted: Wanted = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """The changes in a range of a log, whole transactions or not, by the times and GTIDs that are
    wanted. Raises InputError."""
    from applier.binlog.columnar.batches import CHUNK_BYTES
    from applier.binlog.columnar.plain import read_plain

    heads: Heads = {}
    events, is_wanted = count(0), wanted.gtids is None

    def note(event: Event, reader: LogReader) -> bool:
        nonlocal is_wanted
        number = next(events)
        if event.type in GTID_TYPES and reader.format is not None:
            parsed = parse(event, reader.format)
            heads[event.position] = (
                parsed.text,
                getattr(parsed, "immediate_commit_timestamp", 0),
                number,
            )
            gtid, stamp, _ = heads[event.position]
            is_wanted = wanted.takes_gtid(gtid) and (not stamp or wanted.takes_time(stamp / 1e6))
        return is_wanted

    database, _, name = table.partition(".")
    batches = read_plain(
        [part.path], lambda *place: place == (database, name), verify_checksum=True, text=True,
        chunk_bytes=CHUNK_BYTES,
        start_position=part.start, stop_position=part.stop, on_event=note,
    )  # fmt: skip
    for batch in batches:
        yield _in_time(_changes_of(batch, columns, heads), wanted)
        latest = max(heads, default=None)
        for position in [position for position in heads if position != latest]:
            del heads[position]


def _in_time(found: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    """The rows of wanted times: of a log without commit times the events' own seconds count."""
    if wanted.earliest == -inf and wanted.end == inf:
        return found
    import pyarrow as pa

    times = found.column("commit_time").cast(pa.int64()).to_pylist()
    return found.filter(pa.array([wanted.takes_time(time / 1e6) for time in times], pa.bool_()))


def whole_transactions(path: str, start: int | None) -> int | None:
    """Where the last whole transaction ends that begins at `start` or later; `start` where there is
    none."""
    tracker, end = TransactionTracker(), start
    for event, fde in with_formats(LogReader([path], start_position=start, on_cut_off=_ignored)):
        boundary = tracker.feed(event, fde)
        if boundary is not None and boundary.ended is not None and boundary.ended.complete:
            end = boundary.ended.end
    return end


def _ignored(_error: InputError) -> None:
    """A file that is being written ends anywhere."""


def _own_fields(schema: pa.Schema) -> list[pa.Field]:
    return [item for item in schema if not item.name.startswith(ORIGIN)]


def _widened(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_dictionary(kind) or pa.types.is_decimal256(kind):
        return pa.string()
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
    }
    return wider.get(kind, kind)


def _changes_of(batch: TableBatch, columns: pa.Schema, heads: Heads) -> pa.RecordBatch:
    import pyarrow as pa

    data = batch.data
    _check_whole(batch)
    kinds = data.column("binlog_kind").to_pylist()
    rows = [at for at, kind in enumerate(kinds) if kind != UPDATE_AFTER]
    before = [at if kinds[at] in (UPDATE_BEFORE, DELETE) else None for at in rows]
    after = [{INSERT: at, UPDATE_BEFORE: at + 1}.get(kinds[at]) for at in rows]
    values = [_fitting(batch, item) for item in columns]
    places = pa.array(rows, pa.int64())
    origin = ("position", "event", "row", "timestamp", "gtid_position")
    taken = {name: data.column(ORIGIN + name).take(places) for name in origin}
    origins = [heads.get(position, (None, 0, 0)) for position in taken["gtid_position"].to_pylist()]
    seconds = taken["timestamp"].cast(pa.int64()).to_pylist()
    events = [
        event - first
        for event, (_, _, first) in zip(taken["event"].to_pylist(), origins, strict=True)
    ]
    times = [
        commit or moment * 1_000_000
        for (_, commit, _), moment in zip(origins, seconds, strict=True)
    ]
    schema = change_schema(columns)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([batch.file] * len(rows), pa.string()), taken["position"],
            pa.array(events, pa.int64()),
            taken["row"],
            pa.array([text for text, _, _ in origins], pa.string()),
            pa.array(times, pa.int64()).cast(schema.field("commit_time").type),
            pa.array(["update" if kinds[at] == UPDATE_BEFORE else kinds[at] for at in rows],
                pa.string()),
            _images(values, before, columns), _images(values, after, columns),
        ],
        schema=schema,
    )  # fmt: skip


def _check_whole(batch: TableBatch) -> None:
    """Raises InputError where the log holds changes of a JSON document only, not the document."""
    if (
        "binlog_diff" in batch.data.schema.names
        and batch.data.column("binlog_diff").null_count < batch.data.num_rows
    ):
        raise InputError(
            "a partial update of a JSON column holds its changes only, not its value",
            code=Code.BAD_VALUE,
            file=batch.file,
            table=batch.name,
            hint="log whole documents: SET GLOBAL binlog_row_value_options = ''",
        )


def _images(values: list[pa.Array], rows: list[int | None], columns: pa.Schema) -> pa.Array:
    import pyarrow as pa

    places = pa.array(rows, pa.int64())
    return pa.StructArray.from_arrays(
        [one.take(places) for one in values], fields=list(columns), mask=places.is_null()
    )


def _fitting(batch: TableBatch, wanted: pa.Field) -> pa.Array:
    """A column as the changes have it; NULL where this table map has none of the name. Raises
    InputError."""
    import pyarrow as pa

    if wanted.name not in batch.data.schema.names:
        return pa.nulls(batch.data.num_rows, wanted.type)
    column = batch.data.column(wanted.name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"column {wanted.name} has become one of {column.type}, whose values do not fit"
            f" {wanted.type}: {error}",
            code=Code.BAD_VALUE,
            file=batch.file,
            position=batch.data.column("binlog_position")[0].as_py(),
            table=batch.name,
            hint="read the files before and behind the ALTER TABLE as tables of their own",
        ) from None
