"""Rows that do not name every column: defaults, generated columns (`prepare_record`,
sql/rpl_record.cc, and INSERT)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from applier.binlog.time_zone import to_utc
from applier.binlog.types import Unevaluated, ValueRefused, from_sql
from applier.binlog.types.temporal import (
    END_OF_TIME,
    pack_datetime,
    pack_time,
    pack_timestamp,
    parts_text,
    timestamp_from_sql,
    timestamp_to_text,
)
from applier.binlog.types.temporal_parse import text_moment
from applier.errors import ReplicationError
from applier.tables.auto_numbers import ONE_BY_ONE, NumberSteps
from lookup.handler import Row
from lookup.table import Column, TableDefinition

if TYPE_CHECKING:
    from applier.tables.expressions.operands import Dialect, Session


def implicit_default(column: Column) -> Any:
    """What a NOT NULL column without a DEFAULT gets: zero, the empty string, the first label of an
    ENUM."""
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
    if (
        column.type in ("decimal", "float", "double", "year", "date", "set", "bit")
        or "int" in column.type
    ):
        return 0 if column.type in ("date", "set", "bit", "year") else from_sql(column)(0)
    return b""


def is_evaluated(default: str) -> bool:
    """Whether a DEFAULT is an expression or the moment, and no literal."""
    return re.match(r"\(|CURRENT_TIMESTAMP\b|NOW\b|LOCALTIME", default, re.IGNORECASE) is not None


def column_default(column: Column, session: Session | None = None) -> Any:
    """The stored default of a column. An expression is evaluated; CURRENT_TIMESTAMP takes the
    session's time."""
    if column.system_time is not None:
        return _system_time(column, session)
    if column.default is None:
        return None if column.nullable else implicit_default(column)
    from applier.tables.expressions.row_expressions import constant_value

    try:
        value = constant_value(column, column.default, session)
        return implicit_default(column) if value is None and not column.nullable else value
    except ValueRefused as refused:
        return refused.closest if refused.closest is not None else implicit_default(column)


def _system_time(column: Column, session: Session | None) -> Any:
    """What a new row of a system-versioned table has in its period columns (`vers_update_fields`,
    MariaDB 10.11).

    Raises ReplicationError 1235 for tables that are versioned by transaction numbers, which each
    server makes up.
    """
    if column.type != "timestamp":
        raise ReplicationError(
            1235,
            f"column {column.name} holds transaction numbers of the server (BIGINT … AS ROW"
            f" {(column.system_time or '').upper()}); tables in memory have no such numbers",
            hint=(
                "leave the table out with --table, skip it with --skip-errors 1235, or replay into"
                " a test DB"
            ),
        )
    if column.system_time == "end" or session is None or not session.is_recorded:
        return END_OF_TIME
    return from_sql(column)(to_utc(session.now, session.zone).replace(tzinfo=None))


_BARE_NOW = re.compile(
    r"\(?\s*(?:(?:CURRENT_TIMESTAMP|LOCALTIME(?:STAMP)?)(?:\s*\(\s*\))?|NOW\s*\(\s*\))\s*\)?",
    re.IGNORECASE,
)


def now_with_digits(column: Column) -> Column:
    """A DATETIME or TIMESTAMP of MariaDB: CURRENT_TIMESTAMP without digits has those of the column
    (seen on 10.11.18; MySQL refuses the column, error 1067), but not that of ALTER … SET DEFAULT,
    which keeps whole seconds."""
    if column.type not in ("datetime", "timestamp") or not column.scale:
        return column
    now = f"CURRENT_TIMESTAMP({column.scale})"
    default, on_update = (
        now if text is not None and _BARE_NOW.fullmatch(text.strip()) else text
        for text in (column.default, column.on_update)
    )
    return replace(column, default=default, on_update=on_update)


def default_in_utc(column: Column, session: Session) -> Column:
    """The column of a statement whose session has a time zone: a TIMESTAMP's literal default is a
    moment, kept in UTC here. One that names a time zone is the session's time."""
    column = _in_session_time(column, session)
    if column.type != "timestamp" or column.default is None or session.zone is UTC:
        return column
    from applier.tables.expressions.row_expressions import literal_value

    value = literal_value(column.default, session)
    if value is None:
        return column
    try:
        stored = timestamp_from_sql(replace(column, scale=6), session.zone)(value)
    except ValueRefused:
        return column
    return replace(column, default=f"'{timestamp_to_text(replace(column, scale=6))(stored)}'")


_ZERO = (0, 0, 0, 0, 0, 0, 0)


def _in_session_time(column: Column, session: Session) -> Column:
    """A default is read with the rules of the server that made the table; rows are made of it with
    those of none. A time zone in it is settled here, and a zero month or day under NO_ZERO_IN_DATE,
    which makes the whole date zero outside of strict mode (seen on 5.7.29 and 9.7.4; MariaDB
    refuses it)."""
    if column.default is None or column.type not in ("date", "datetime", "timestamp"):
        return column
    from applier.tables.expressions.moment_rules import date_rules, session_parts
    from applier.tables.expressions.row_expressions import literal_value

    value = literal_value(column.default, session)
    if not isinstance(value, str):
        return column
    rules = date_rules(column, session.dialect)
    moment = text_moment(value, rules)
    if moment is None and rules.no_zero_in_date and not rules.mariadb and rules.fuzzy:
        lax = text_moment(value, replace(rules, no_zero_in_date=False))
        return column if lax is None else replace(column, default=f"'{parts_text(_ZERO, 0)}'")
    if moment is None or moment == text_moment(value, replace(rules, displacements=False)) == (
        text_moment(value, replace(rules, displacements=True))
    ):
        return column
    parts = session_parts(moment, moment.parts, session.zone)
    return replace(column, default=f"'{parts_text(parts, 6)}'")


@lru_cache(maxsize=256)
def _static_defaults(definition: TableDefinition) -> tuple[Any, ...] | None:
    """Defaults of all columns when none of them depends on the moment."""
    from applier.tables.expressions.operands import Session

    moving = ("uuid", "rand", "next")
    if any(
        column.default and any(word in column.default.lower() for word in moving)
        for column in definition.columns
    ):
        return None
    if any(column.system_time for column in definition.columns):
        return None
    values = tuple(
        column_default(column, Session(is_recorded=False)) for column in definition.columns
    )
    return None if any(value.__class__ is Unevaluated for value in values) else values


def default_row(definition: TableDefinition, session: Session | None = None) -> Row:
    """A row of defaults; generated columns are NULL in it."""
    fixed = _static_defaults(definition)
    if fixed is not None:
        return fixed
    return tuple(column_default(column, session) for column in definition.columns)


def missing_row(definition: TableDefinition, dialect: Dialect) -> Row:
    """What columns get that a row image does not have (`prepare_record`, sql/rpl_record.cc).

    For a DEFAULT of the moment MySQL takes the event's time in the replica's own time zone, which
    no log tells: it is one of `Unevaluated`. MariaDB takes NULL, or zero in a NOT NULL column (seen
    on 10.11.18).
    """
    from applier.tables.expressions.operands import Session

    timed = Session.at_utc(dialect)
    row = default_row(definition, replace(timed, is_recorded=False))
    if not dialect.mariadb:
        return row
    return tuple(
        (None if column.nullable else implicit_default(column))
        if value.__class__ is Unevaluated and then.__class__ is not Unevaluated
        else value
        for column, value, then in zip(
            definition.columns, row, default_row(definition, timed), strict=True
        )
    )


def complete_rows(
    definition: TableDefinition,
    columns: tuple[int, ...],
    rows: Iterable[tuple[Any, ...]],
    session: Session,
) -> Iterator[Row]:
    """Whole rows from rows of `columns`: defaults and generated columns filled in."""
    generate = row_generator(definition, session)
    if columns == tuple(range(len(definition.columns))) and generate is None:
        yield from rows
        return
    base = default_row(definition, session)
    for values in rows:
        row = list(base)
        for column, value in zip(columns, values, strict=True):
            row[column] = value
        yield generate(tuple(row)) if generate is not None else tuple(row)


def number_rows(
    definition: TableDefinition,
    rows: Iterable[Row],
    start: int,
    unnumbered: tuple[Any, ...] = (None, 0),
    steps: NumberSteps = ONE_BY_ONE,
) -> Iterator[Row]:
    """Rows with their AUTO_INCREMENT column filled: each of the values `unnumbered` in it becomes
    the next number.

    The first number is the first of the `steps` from `start` on, or above what the rows before have
    (`handler::update_auto_increment`, sql/handler.cc). In a column AUTO_INCREMENT NULL a NULL uses
    a number up and stays NULL (seen on 5.7.29, 9.7.4, MariaDB 10.11.18). Raises ReplicationError
    1235 for numbers of FLOAT and DOUBLE.
    """
    at = next((at for at, column in enumerate(definition.columns) if column.auto_increment), None)
    if at is None:
        yield from rows
        return
    column = definition.columns[at]
    may_be_null = column.nullable
    for row in rows:
        if row[at] is None and may_be_null:
            start += None in unnumbered
        elif row[at] in unnumbered:
            if "int" not in column.type:
                raise ReplicationError(
                    1235, f"AUTO_INCREMENT numbers of the {column.type} column `{column.name}`"
                )
            row = (*row[:at], steps.after(start - 1), *row[at + 1 :])
        if isinstance(row[at], int) and row[at] >= start:
            start = row[at] + 1
        yield row


def row_generator(
    definition: TableDefinition, session: Session, *, stored: bool = True
) -> Callable[[Row], Row] | None:
    """A function that computes the generated columns of a row, in the session's time zone; None for
    a table without any. `stored`: whether it computes those, too, or takes them as they are.

    NULL in one that is NOT NULL is what INSERT IGNORE makes of it: another statement would not be
    in a log. The function raises ReplicationError 1235 for a TIMESTAMP, which takes the moment or
    zero by the session's explicit_defaults_for_timestamp.
    """
    if not any(column.generated for column in definition.columns):
        return None
    from applier.tables.expressions.operands import unsupported
    from applier.tables.expressions.row_expressions import generated_columns

    generate = generated_columns(definition, session, stored=stored)
    needed = [
        (at, column)
        for at, column in enumerate(definition.columns)
        if column.generated and not column.nullable
    ]
    if not needed:
        return generate

    def filled(row: Row) -> Row:
        made = generate(row)
        for at, column in needed:
            if made[at] is not None:
                continue
            if column.type == "timestamp":
                raise unsupported(f"NULL for the generated TIMESTAMP `{column.name}`")
            made = (*made[:at], implicit_default(column), *made[at + 1 :])
        return made

    return filled
