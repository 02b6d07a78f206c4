"""Info records as rows of mysql.slave_relay_log_info, slave_master_info and slave_worker_info.

The tables hold what the files hold, in the same order, with Number_of_lines in the place of the
file's first line (sql/rpl_info_table.cc). Column names are the same in all versions up to 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpoints.errors import CheckpointError, InfoError
from checkpoints.fields import Field, Fields, column_of, product
from checkpoints.info import R
from checkpoints.info_files import build, refuse_inexpressible

COUNT_COLUMN = "Number_of_lines"
Row = dict[str, Any]
"""Column -> value as a client of the server sees it, in the order of the columns."""

_REPAIR = (
    "compare the table with SHOW CREATE TABLE of a fresh server of this version; nothing was"
    " written"
)


def columns(record: type[R], server: str) -> tuple[str, ...]:
    """The columns of the table in a version."""
    table, version = _table(record, server)
    own = tuple(field.column for field in table.of(version))
    return own if table.counts[version] is None else (COUNT_COLUMN, *own)


def key_columns(record: type[R], server: str) -> tuple[str, ...]:
    """The columns of the table's primary key."""
    table, version = _table(record, server)
    return table.keys[version]


def to_row(record: R, server: str) -> Row:
    """The row that this server version stores: column -> value as a client sees it.

    Raises CheckpointError for a field that the version does not have.
    """
    table, version = _table(type(record), server)
    refuse_inexpressible(record, version)
    count = table.counts[version]
    row: Row = {} if count is None else {COUNT_COLUMN: count}
    for field in table.of(version):
        row[field.column] = _converted(
            field, field.kind.to_cell, getattr(record, field.name), table
        )
    return row


def from_row(record: type[R], row: Mapping[str, Any], server: str) -> R:
    """Reads a row; like a server, no further than Number_of_lines says. Raises InfoError for a row
    that is no such record."""
    table, version = _table(record, server)
    expected = columns(record, server)
    wrong = [column for column in expected if column not in row] or [
        column for column in row if column not in expected
    ]
    if wrong:
        state = "is missing" if wrong[0] in expected else f"is not known to MySQL {version}"
        raise InfoError(f"mysql.{table.table}: a column {state}", column=wrong[0], hint=_REPAIR)
    fields = table.of(version)
    if table.counts[version] is not None:
        count = row[COUNT_COLUMN]
        if not isinstance(count, int) or count < table.counted_from:
            raise InfoError(
                f"mysql.{table.table}: {count!r} is not a number of lines",
                column=COUNT_COLUMN,
                hint=_REPAIR,
            )
        fields = table.announced(version, count) + table.uncounted(version, count)
    values = {
        field.name: _converted(field, field.kind.from_cell, row[field.column], table)
        for field in fields
    }
    try:
        return build(record, values)
    except ValueError as error:
        raise InfoError(f"mysql.{table.table}: {error}", hint=_REPAIR) from None


def _table(record: type[R], server: str) -> tuple[Fields, str]:
    version = column_of(server)
    table = record.fields
    if version not in table.keys:
        raise CheckpointError(
            f"{product(server)} has no table mysql.{table.table}",
            hint=f"use {table.file_name}; tables came with 5.6 of MySQL",
        )
    return table, version


def _converted(field: Field, convert: Any, value: Any, table: Fields) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        raise InfoError(
            f"mysql.{table.table}: {error}", column=field.column, hint=_REPAIR
        ) from None
