"""Values as MySQL's operators and functions see them: as text, as a number, as a truth value, compared with one another."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from applier.binlog.types.numbers import double_text
from applier.binlog.types.temporal import time_text
from applier.errors import ReplicationError
from applier.tables.collation import sort_key
from lookup.table import Column

Value = Any
"""None, int, Decimal, float, str, bytes, date, datetime or timedelta."""


def unsupported(what: str) -> ReplicationError:
    """The error of what is not computed here: 1235, and nothing is guessed."""
    return ReplicationError(
        1235,
        f"this expression is not supported in memory: {what}",
        hint="skip the statement with --skip-errors 1235, or replay into a test DB",
    )


def text(value: Value) -> str:
    """A value as the server prints it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, timedelta):
        return time_text(value // timedelta(microseconds=1), 6 if value.microseconds else 0)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def number(value: Value) -> int | Decimal | float | None:
    """A value as a number: text counts as far as it starts like one, bytes as text."""
    if value is None or isinstance(value, (int, Decimal, float)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, datetime):
        return Decimal(value.strftime("%Y%m%d%H%M%S"))
    if isinstance(value, date):
        return int(value.strftime("%Y%m%d"))
    match = re.match(r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", text(value))
    return float(match[0]) if match else 0.0


def truth(value: Value) -> bool | None:
    """What a value is as a condition; None for NULL."""
    result = number(value)
    return None if result is None else result != 0


def remainder(one: Any, two: Any) -> Any:
    """Of numbers; it has the sign of the dividend."""
    result = abs(one) % abs(two)
    return -result if one < 0 else result


def compare(one: Value, two: Value, column: Column | None = None) -> int | None:
    """-1, 0 or 1; None when one is NULL. Text with text goes by the column's collation, everything else by value."""
    if one is None or two is None:
        return None
    if isinstance(one, (str, bytes)) and isinstance(two, (str, bytes)):
        key = sort_key(column or Column("", "varchar", charset="utf8mb4"))
        first, second = text(one).encode("utf-8", "surrogateescape"), text(two).encode("utf-8", "surrogateescape")
        if key is not None:
            first, second = key(first), key(second)
        return (first > second) - (first < second)
    if isinstance(one, (date, timedelta)) or isinstance(two, (date, timedelta)):
        first_text, second_text = text(one), text(two)
        return (first_text > second_text) - (first_text < second_text)
    first_number, second_number = number(one), number(two)
    assert first_number is not None and second_number is not None
    return (first_number > second_number) - (first_number < second_number)
