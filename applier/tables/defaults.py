"""Rows that do not name every column: defaults, generated columns (`prepare_record`, sql/rpl_record.cc, and INSERT)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from applier.binlog.types import ValueRefused, from_sql
from applier.binlog.types.temporal import pack_datetime, pack_time, pack_timestamp
from applier.tables.dump import END_OF_TIME
from lookup.handler import Row
from lookup.table import Column, TableDefinition


def implicit_default(column: Column) -> Any:
    """What a NOT NULL column without a DEFAULT gets: zero, the empty string, the first label of an ENUM."""
    if column.type == "enum":
        return 1
    if column.type == "timestamp":
        return pack_timestamp(0, column.scale)
    if column.type == "datetime":
        return pack_datetime((0, 0, 0, 0, 0, 0, 0), column.scale)
    if column.type == "time":
        return pack_time(0, column.scale)
    if column.type == "json":
        return b"\x04\x00"
    if column.type in ("decimal", "float", "double", "year", "date", "set", "bit") or "int" in column.type:
        return 0 if column.type in ("date", "set", "bit", "year") else from_sql(column)(0)
    return b""


def column_default(column: Column, session: Any = None) -> Any:
    """The stored default of a column. An expression is evaluated; CURRENT_TIMESTAMP takes the session's time."""
    if column.default is None:
        return None if column.nullable else implicit_default(column)
    from applier.tables.expressions import evaluate_constant

    value = evaluate_constant(column.default, session)
    if value is None:
        return None if column.nullable else implicit_default(column)
    try:
        return from_sql(column)(value)
    except ValueRefused as refused:
        return refused.closest if refused.closest is not None else implicit_default(column)


@lru_cache(maxsize=256)
def _static_defaults(definition: TableDefinition) -> tuple[Any, ...] | None:
    """Defaults of all columns when none of them depends on the moment."""
    moving = ("current_timestamp", "now", "localtime", "uuid", "rand", "curdate", "curtime", "next")
    if any(column.default and any(word in column.default.lower() for word in moving) for column in definition.columns):
        return None
    return tuple(column_default(column) for column in definition.columns)


def default_row(definition: TableDefinition, session: Any = None) -> Row:
    """A row of defaults; generated columns are NULL in it."""
    fixed = _static_defaults(definition)
    if fixed is not None:
        return fixed
    return tuple(column_default(column, session) for column in definition.columns)


def complete_rows(
    definition: TableDefinition, columns: tuple[int, ...], rows: Iterable[tuple[Any, ...]], session: Any = None
) -> Iterator[Row]:
    """Whole rows from rows of `columns`: defaults and generated columns filled in."""
    generate = row_generator(definition)
    if columns == tuple(range(len(definition.columns))) and generate is None:
        yield from rows
        return
    base = default_row(definition, session)
    max_end = _versioning_end(definition)
    for values in rows:
        row = list(base)
        for column, value in zip(columns, values, strict=True):
            row[column] = value
        if max_end is not None and max_end not in columns:
            row[max_end] = END_OF_TIME
        yield generate(tuple(row)) if generate is not None else tuple(row)


def number_rows(definition: TableDefinition, rows: Iterable[Row], start: int, unnumbered: tuple[Any, ...] = (None, 0)) -> Iterator[Row]:
    """Rows with their AUTO_INCREMENT column filled: each of the values `unnumbered` in it becomes the next number.

    The first number is `start`, or one above what the rows before have (`handler::update_auto_increment`, sql/handler.cc).
    """
    at = next((at for at, column in enumerate(definition.columns) if column.auto_increment), None)
    if at is None:
        yield from rows
        return
    for row in rows:
        if row[at] in unnumbered:
            row = (*row[:at], start, *row[at + 1 :])
        if isinstance(row[at], int) and row[at] >= start:
            start = row[at] + 1
        yield row


def _versioning_end(definition: TableDefinition) -> int | None:
    return next((at for at, column in enumerate(definition.columns) if column.system_time == "end"), None)


def row_generator(definition: TableDefinition) -> Callable[[Row], Row] | None:
    """A function that computes the generated columns of a row; None for a table without any."""
    if not any(column.generated for column in definition.columns):
        return None
    from applier.tables.expressions import generated_columns

    return generated_columns(definition)
