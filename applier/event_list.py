"""The events of logs as Python objects, as an Arrow table, or as a data frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from applier.arguments import at_least, checked
from applier.binlog.follow import LogFiles, log_files
from applier.binlog.header import FIRST_EVENT
from applier.binlog.listing import EventRecord, Listing
from applier.binlog.selection.filters import LogFilter, Moment
from applier.binlog.selection.table_filter import TableFilter
from applier.error_codes import Code
from applier.errors import UsageError
from applier.tables.sql.statement_names import names_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

BATCH_EVENTS = 65536
COLUMNS: dict[str, tuple[str, Callable[[EventRecord], Any]]] = {
    "file": ("string", lambda record: record.event.file),
    "position": ("int64", lambda record: record.event.position),
    "end_log_pos": ("int64", lambda record: record.event.log_pos),
    "type": ("string", lambda record: record.event.name),
    "timestamp": ("timestamp", lambda record: record.event.timestamp),
    "server_id": ("int64", lambda record: record.event.server_id),
    "gtid": ("string", lambda record: record.gtid),
    "database": ("string", lambda record: record.database),
    "table": ("string", lambda record: record.table),
    "rows": ("int64", lambda record: record.row_count),
    "event_bytes": ("int64", lambda record: record.event.length),
}
"""Column of the Arrow table -> its type, and where its values come from."""


LOGS_SHOWN = 3
"""Logs that the repr names."""


class LogEvents:
    """The events of logs, in order. Each iteration reads the logs anew.

    `incomplete` says after one whether the last transaction has no end in these logs; None: it has
    one. `nothing` says that no event lies in the times, `unmatched` which names that were given the
    logs do not have.
    """

    def __init__(self, files: LogFiles, *, rows: bool = False, **options: Any) -> None:
        self._files = log_files(files)
        self._rows = rows
        self._options = options
        self.incomplete: str | None = None
        self.nothing: str | None = None
        self.unmatched: list[str] = []

    def __repr__(self) -> str:
        """Which logs, and what can be done with them. Nothing is read."""
        names = ", ".join(map(str, self._files[:LOGS_SHOWN]))
        more = len(self._files) - LOGS_SHOWN
        return (
            f"LogEvents: {names}{f' and {more} more' if more > 0 else ''}\n"
            "  iterate over it, or take all events: .to_pandas(), .to_arrow(), .to_polars()"
        )

    def __iter__(self) -> Iterator[EventRecord]:
        return self._records()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The columns of `binlag events --parquet`, some ten thousand events at a time."""
        import pyarrow as pa

        schema = arrow_schema()
        records = self._records(count_rows=True)
        while batch := list(itertools.islice(records, BATCH_EVENTS)):
            columns = [
                pa.array([value(record) for record in batch], schema.field(name).type)
                for name, (_, value) in COLUMNS.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def to_arrow(self) -> pa.Table:
        """All events as one table. Raises UsageError without pyarrow."""
        schema = arrow_schema()
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), schema)

    def to_pandas(self) -> pd.DataFrame:
        """All events as a data frame. Raises UsageError without pandas."""
        _library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All events as a data frame. Raises UsageError without polars."""
        polars = _library("polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def _records(self, *, count_rows: bool = False) -> Iterator[EventRecord]:
        listing = Listing(
            self._files,
            with_rows=self._rows,
            count_rows=count_rows,
            names_of=names_of,
            **self._options,
        )
        yield from listing
        self.incomplete, self.nothing = listing.incomplete, listing.nothing
        self.unmatched = listing.unmatched


def arrow_schema() -> pa.Schema:
    """The columns of the table. Raises UsageError without pyarrow."""
    pa = _library("pyarrow")
    types = {"string": pa.string(), "int64": pa.int64(), "timestamp": pa.timestamp("s", tz="UTC")}
    return pa.schema([(name, types[kind]) for name, (kind, _) in COLUMNS.items()])


@checked()
def events(
    files: LogFiles,
    *,
    rows: bool = False,
    database: str | Iterable[str] = (),
    table: str | Iterable[str] = (),
    exclude_database: str | Iterable[str] = (),
    exclude_table: str | Iterable[str] = (),
    start_position: int | None = None,
    stop_position: int | None = None,
    start_datetime: Moment = None,
    stop_datetime: Moment = None,
    include_gtids: str | None = None,
    exclude_gtids: str | None = None,
    verify: bool = True,
) -> LogEvents:
    """The events of `files`: one log, several, a pattern, or the folder of an index; compressed
    ones, too.

    Options are those of `binlag events`. With `rows=True` values are decoded: `rows` of a record is
    a list of (before, after). Raises InputError for a log that cannot be read, where it is met;
    UsageError for invalid options.
    """
    at_least(FIRST_EVENT, start_position=start_position, stop_position=stop_position)
    part: dict[str, Any] = {
        "start_datetime": start_datetime,
        "stop_datetime": stop_datetime,
        "include_gtids": include_gtids,
        "exclude_gtids": exclude_gtids,
    }
    LogFilter.of(**part)  # so that a wrong option is refused here, not where events are read
    return LogEvents(
        files,
        rows=rows,
        only=TableFilter.of(database, table, exclude_database, exclude_table),
        start_position=start_position,
        stop_position=stop_position,
        verify=verify,
        **part,
    )


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"{name} is not installed",
            code=Code.NO_LIBRARY,
            hint=f"pip install 'binlag[arrow]' {name}",
        ) from None
