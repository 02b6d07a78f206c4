"""Row changes of binary logs into files for other tools: one Parquet or Arrow file per table and
table definition.

The columns are those of the batches (see `layout`), with the log's name in front as binlog_file. A
table whose definition changes in the log has a second file, DB.TABLE.2.parquet, and so on. Rows
stand in the order of the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.binlog.columnar.batches import read_batches
from applier.binlog.columnar.table_batch import Paths, TableBatch
from applier.binlog.selection.table_filter import FilterTally, TableFilter
from applier.error_codes import Code
from applier.errors import UsageError, cannot_write
from applier.lazy_imports import needed
from applier.whole_file import whole_files

GROUP_BYTES = 64_000_000
"""Rows wait for a row group until all tables together have this many bytes,"""
GROUP_ROWS = 1 << 18
"""or one table this many rows."""
FORMATS = ("parquet", "arrow")


@dataclass
class ExportedTable:
    """One file written."""

    database: str
    table: str
    version: int
    path: Path
    rows: int = 0


@dataclass
class _Target:
    """A file being written, and the rows that wait for their row group."""

    exported: ExportedTable
    writer: Any
    waiting: list[Any] = field(default_factory=list)
    rows: int = 0

    def flush(self) -> None:
        import pyarrow as pa

        if self.waiting:
            self.writer.write_table(pa.Table.from_batches(self.waiting))
            self.waiting, self.rows = [], 0


def export(
    paths: Paths,
    directory: str | os.PathLike[str],
    *,
    file_format: str = "parquet",
    tables: Collection[str] | TableFilter | FilterTally | None = None,
    verify_checksum: bool = True,
) -> list[ExportedTable]:
    """Writes the row changes of `paths` into `directory`, which is made when it is not there; files
    in it are replaced when all is done.

    Raises InputError for a log that cannot be read: the files then hold what stands before the
    damage.
    """
    if file_format not in FORMATS:
        raise UsageError(
            f"unknown file format {file_format}",
            code=Code.OPTION_VALUE,
            hint=f"one of {', '.join(FORMATS)}",
        )
    with needed("Arrow and Parquet files need pyarrow", "binlag[arrow]"):
        import pyarrow  # noqa: F401
    folder = Path(directory)
    targets: dict[int, _Target] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _fill(targets, paths, folder, file_format, tables, verify_checksum)
    except OSError as error:
        raise cannot_write(error, folder) from None
    return [target.exported for target in targets.values()]


def _fill(
    targets: dict[int, _Target],
    paths: Paths,
    folder: Path,
    file_format: str,
    tables: Collection[str] | TableFilter | FilterTally | None,
    verify_checksum: bool,
) -> None:
    waiting = 0
    with whole_files(folder) as place, _written(targets):
        for batch in read_batches(paths, tables, verify_checksum=verify_checksum):
            data = _with_file(batch)
            target = targets.get(batch.version)
            if target is None:
                target = targets[batch.version] = _open(
                    targets, batch, data.schema, folder, file_format, place
                )
            target.waiting.append(data)
            target.rows += data.num_rows
            target.exported.rows += data.num_rows
            waiting += data.nbytes
            if waiting >= GROUP_BYTES:
                for each in targets.values():
                    each.flush()
                waiting = 0
            elif target.rows >= GROUP_ROWS:
                target.flush()


@contextmanager
def _written(targets: dict[int, _Target]) -> Iterator[None]:
    try:
        yield
    finally:
        for target in targets.values():
            with target.writer:
                target.flush()


def _with_file(batch: TableBatch) -> Any:
    """The batch with binlog_file in front. Bitmaps become plain: an Arrow file has one dictionary
    for all its batches."""
    import pyarrow as pa

    data = batch.data
    fields = [pa.field("binlog_file", pa.string(), nullable=False), *data.schema]
    columns = [pa.repeat(pa.scalar(batch.file, pa.string()), data.num_rows), *data.columns]
    at = data.schema.get_field_index("binlog_present") + 1
    fields[at] = pa.field("binlog_present", pa.binary(), nullable=False)
    columns[at] = columns[at].cast(pa.binary())
    return pa.RecordBatch.from_arrays(
        columns, schema=pa.schema(fields, metadata=data.schema.metadata)
    )


def _open(
    targets: dict[int, _Target],
    batch: TableBatch,
    schema: Any,
    folder: Path,
    file_format: str,
    place: Callable[[str], Path],
) -> _Target:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = batch.table
    version = 1 + sum(
        (each.exported.database, each.exported.table) == (table.database, table.table)
        for each in targets.values()
    )
    number = f".{version}" if version > 1 else ""
    path = folder / f"{_escaped(table.database)}.{_escaped(table.table)}{number}.{file_format}"
    file = place(path.name)
    writer = (
        pq.ParquetWriter(file, schema)
        if file_format == "parquet"
        else pa.ipc.new_file(str(file), schema)
    )
    return _Target(ExportedTable(table.database, table.table, version, path), writer)


def _escaped(name: str) -> str:
    """A name as part of a file name: other than letters, digits and _ stands as @xxxx (hex)."""
    return re.sub(r"[^0-9A-Za-z_]", lambda char: f"@{ord(char[0]):04x}", name)
