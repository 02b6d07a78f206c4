"""The old value of a conversion, read along its route: as a number, as text, as a moment
(`Field::val_int`, `val_str`, …)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from applier.binlog.time_zone import from_utc
from applier.binlog.types import json, to_python, to_text
from applier.binlog.types.names import zerofill_width
from applier.binlog.types.numbers import double_text, float_to_python
from applier.binlog.types.temporal import (
    Parts,
    date_parts,
    datetime_parts,
    parts_text,
    time_microseconds,
    timestamp_microseconds,
)
from applier.binlog.types.temporal_parse import DateTimeValue
from applier.tables.conversions.conversion_rules import ConversionRules
from applier.tables.conversions.conversion_stores import text_number
from lookup.table import Column

Read = Callable[[Any], Any]
MakeRead = Callable[[Column, ConversionRules], Read]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([-+]?[0-9]+)")


# moments


def _timestamp_parts(column: Column, rules: ConversionRules) -> Callable[[bytes], Parts]:
    """A TIMESTAMP in the session's time zone; the zero timestamp is the zero date."""

    def read(stored: bytes) -> Parts:
        microseconds = timestamp_microseconds(stored)
        if microseconds == 0:
            return (0, 0, 0, 0, 0, 0, 0)
        local = from_utc(_EPOCH + timedelta(microseconds=microseconds), rules.zone)
        return (
            local.year,
            local.month,
            local.day,
            local.hour,
            local.minute,
            local.second,
            local.microsecond,
        )

    return read


def _parts(column: Column, rules: ConversionRules) -> Callable[[Any], Parts]:
    if column.type == "timestamp":
        return _timestamp_parts(column, rules)
    if column.type == "date":
        return lambda stored: (*date_parts(stored), 0, 0, 0, 0)
    if column.type == "time":
        return lambda stored: _day_of(rules.now.date(), time_microseconds(stored))
    return datetime_parts


def _day_of(day: date, microseconds: int) -> Parts:
    """A TIME on the statement's day."""
    found = datetime(day.year, day.month, day.day) + timedelta(microseconds=microseconds)
    return (
        found.year,
        found.month,
        found.day,
        found.hour,
        found.minute,
        found.second,
        found.microsecond,
    )


def _moment(column: Column, rules: ConversionRules) -> Read:
    read = _parts(column, rules)
    return lambda stored: DateTimeValue(read(stored), is_date=column.type == "date")


def _time(column: Column, rules: ConversionRules) -> Read:
    if column.type == "time":
        return time_microseconds
    read = _parts(column, rules)

    def convert(stored: Any) -> int:
        parts = read(stored)
        return ((parts[3] * 60 + parts[4]) * 60 + parts[5]) * 1_000_000 + parts[6]

    return convert


def _digits_of(parts: Parts) -> int:
    year, month, day, hour, minute, second, _ = parts
    return ((((year * 100 + month) * 100 + day) * 100 + hour) * 100 + minute) * 100 + second


def _temporal_decimal(column: Column, rules: ConversionRules) -> Callable[[Any], Decimal]:
    """YYYYMMDDhhmmss.ffffff, hhmmss.ffffff, YYYYMMDD."""
    if column.type == "time":

        def clock(stored: bytes) -> Decimal:
            microseconds = time_microseconds(stored)
            seconds, fraction = divmod(abs(microseconds), 1_000_000)
            digits = seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60
            found = Decimal(digits) + Decimal(fraction).scaleb(-6)
            return -found if microseconds < 0 else found

        return clock
    read = _parts(column, rules)
    if column.type == "date":
        return lambda stored: Decimal(_digits_of(read(stored)) // 1_000_000)

    def moment(stored: Any) -> Decimal:
        parts = read(stored)
        return Decimal(_digits_of(parts)) + Decimal(parts[6]).scaleb(-6)

    return moment


def _temporal_integer(column: Column, rules: ConversionRules) -> Read:
    """Rounded to whole seconds, carried into minutes and days
    (`TIME_to_ulonglong_datetime_round`)."""
    if column.type == "date":
        read_date = _temporal_decimal(column, rules)
        return lambda stored: int(read_date(stored))
    if column.type == "time":
        return lambda stored: _clock_digits(_whole_seconds(time_microseconds(stored), rules))
    read = _parts(column, rules)

    def moment(stored: Any) -> int:
        parts = read(stored)
        if parts[6] < 500_000 or rules.flavour == "mariadb":
            return _digits_of(parts)
        if parts[5] < 59:
            return _digits_of(parts) + 1
        try:
            later = datetime(*parts[:6]) + timedelta(seconds=1)
        except (ValueError, OverflowError):
            return _digits_of(parts)
        return _digits_of(
            (later.year, later.month, later.day, later.hour, later.minute, later.second, 0)
        )

    return moment


def _whole_seconds(microseconds: int, rules: ConversionRules) -> int:
    """Rounded in MySQL, cut in MariaDB."""
    size = (abs(microseconds) + (0 if rules.flavour == "mariadb" else 500_000)) // 1_000_000
    return -size if microseconds < 0 else size


def _clock_digits(seconds: int) -> int:
    size = abs(seconds)
    digits = size // 3600 * 10000 + size // 60 % 60 * 100 + size % 60
    return -digits if seconds < 0 else digits


# text


def _float_text(column: Column) -> Callable[[float], str]:
    """A FLOAT has six digits, a DOUBLE what reads back; (M,D) has D behind the point."""
    if column.length is not None:
        return lambda value: f"{value:.{column.scale}f}"
    if column.type == "float":
        return lambda value: double_text(float(f"{value:.6g}"))
    return double_text


def _real_text(column: Column, rules: ConversionRules) -> Read:
    read, text, width = float_to_python(column), _float_text(column), zerofill_width(column)
    return lambda stored: text(read(stored)).rjust(width, "0")


def _number_text(column: Column, rules: ConversionRules) -> Read:
    text, width = to_text(column), zerofill_width(column)
    return lambda stored: text(stored).rjust(width, "0")


def _bit_bytes(column: Column, rules: ConversionRules) -> Read:
    size = ((column.length or 1) + 7) // 8
    return lambda stored: int(stored).to_bytes(size, "big")


def _timestamp_text(column: Column, rules: ConversionRules) -> Read:
    read = _timestamp_parts(column, rules)
    return lambda stored: parts_text(read(stored), column.scale)


def _plain_text(column: Column, rules: ConversionRules) -> Read:
    return to_text(column)


def _bytes(column: Column, rules: ConversionRules) -> Read:
    return to_python(column)


# JSON


def _json_text(column: Column, rules: ConversionRules) -> Read:
    point = rules.flavour != "5.x"
    return lambda stored: json.to_text(json.decode(stored), point=point)


def _json_number(column: Column, rules: ConversionRules) -> Read:
    """A number, true as 1, a string as far as it reads like a number; everything else is 0."""

    def read(stored: bytes) -> Any:
        value = json.decode(stored)
        if isinstance(value, str):
            return text_number(value)
        if isinstance(value, json.Unsigned) and value >= 1 << 63:
            return int(value) - (1 << 64)
        return value if isinstance(value, (bool, int, float, Decimal)) else 0

    return read


def _real_integer(column: Column, rules: ConversionRules) -> Read:
    """Half goes to the even number. What is beyond 64 bits is the nearest end, of a FLOAT in MySQL
    always the least."""
    read, single = float_to_python(column), column.type == "float" and rules.flavour != "mariadb"

    def convert(stored: bytes) -> int:
        value = read(stored)
        if -(2.0**63) <= value < 2.0**63:
            return round(value)
        return -(1 << 63) if single or value < 0 else (1 << 63) - 1

    return convert


def _text_integer(column: Column, rules: ConversionRules) -> Read:
    """The digits that a text begins with, cut at 64 bits."""
    text = to_python(column)

    def convert(stored: Any) -> int:
        value = text(stored)
        match = _INTEGER.match(value.decode("latin-1") if isinstance(value, bytes) else value)
        number = int(match[1]) if match else 0
        return min(max(number, -(1 << 63)), (1 << 63) - 1)

    return convert


# tables


def _integer(column: Column, rules: ConversionRules) -> Read:
    return int


def _year(column: Column, rules: ConversionRules) -> Read:
    return lambda stored: stored + 1900 if stored else 0


def _float(column: Column, rules: ConversionRules) -> Read:
    return float_to_python(column)


def _decimal(column: Column, rules: ConversionRules) -> Read:
    text = to_text(column)
    return lambda stored: Decimal(text(stored))


def _half_up(column: Column, rules: ConversionRules) -> Read:
    """Cut at 64 bits, with a sign unless the column has none; MariaDB looks at the new column's
    sign."""
    read = _decimal(column, rules)
    low, high = (0, (1 << 64) - 1) if column.unsigned else (-(1 << 63), (1 << 63) - 1)
    if rules.flavour == "mariadb":
        high = (1 << 64) - 1
    return lambda stored: min(max(int(read(stored).to_integral_value(ROUND_HALF_UP)), low), high)


def _signed(column: Column, rules: ConversionRules) -> Read:
    """The highest of 64 bits is a sign."""
    return lambda stored: stored - (1 << 64) if stored >> 63 else stored


def _unsigned(column: Column, rules: ConversionRules) -> Read:
    read = _half_up(column, rules)
    return lambda stored: max(read(stored), 0)


def _as(make: MakeRead, change: Callable[[Any], Any]) -> MakeRead:
    def made(column: Column, rules: ConversionRules) -> Read:
        read = make(column, rules)
        return lambda stored: change(read(stored))

    return made


_STRINGS = ("text", "clob", "binary", "blob")
_TEMPORAL = ("date", "time", "datetime", "timestamp")
READS: dict[str, dict[str, MakeRead]] = {
    "integer": {
        **dict.fromkeys(("integer", "bit", "enum", "set"), _integer),
        "year": _year,
        "real": _real_integer,
        "decimal": _half_up,
        **dict.fromkeys(_STRINGS, _text_integer),
        "json": _as(_json_number, lambda value: min(max(round(value), -(1 << 63)), (1 << 63) - 1)),
        **dict.fromkeys(_TEMPORAL, _temporal_integer),
    },
    "real": {
        **dict.fromkeys(("integer", "enum", "set"), _as(_integer, float)),
        "year": _as(_year, float),
        "real": _float,
        "decimal": _as(_decimal, float),
        **dict.fromkeys(_TEMPORAL, _as(_temporal_decimal, float)),
    },
    "decimal": {
        **dict.fromkeys(("integer", "bit", "enum", "set"), _as(_integer, Decimal)),
        "year": _as(_year, Decimal),
        "real": _as(_float, lambda value: Decimal(repr(value))),
        "decimal": _decimal,
        "json": _as(
            _json_number,
            lambda value: Decimal(repr(value)) if isinstance(value, float) else Decimal(value),
        ),
        **dict.fromkeys(_TEMPORAL, _temporal_decimal),
    },
    "text": {
        **dict.fromkeys(("integer", "decimal"), _number_text),
        "real": _real_text,
        "bit": _bit_bytes,
        "timestamp": _timestamp_text,
        "json": _json_text,
        **dict.fromkeys(("binary", "blob"), _bytes),
        **dict.fromkeys(
            ("text", "clob", "year", "date", "time", "datetime", "enum", "set"), _plain_text
        ),
    },
    "moment": dict.fromkeys(_TEMPORAL, _moment),
    "time": dict.fromkeys(_TEMPORAL, _time),
    "bits": {"decimal": _unsigned},
    "signed": {"bit": _signed},
    "number": {"bit": _as(_integer, str)},
}
"""Route -> family of the old type -> what reads it."""
