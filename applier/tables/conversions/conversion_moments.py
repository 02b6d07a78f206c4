"""The new value of a conversion, where that is a date or a time (`Field_temporal::store`,
sql/field.cc)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from applier.binlog.time_zone import to_utc
from applier.binlog.types.temporal import Parts, pack_datetime, pack_time, pack_timestamp
from applier.binlog.types.temporal_parse import (
    ZERO,
    DateTimeValue,
    number_time,
    round_moment,
    round_time,
    text_moment,
)
from applier.tables.conversions.conversion_rules import ConversionRules, MakeStore, Store, raw_text
from applier.tables.expressions.moment_rules import (
    number_of_column,
    session_parts,
    time_of_text,
)
from lookup.table import Column

_LAST_DATE = 99991231
_EPOCH = datetime(1970, 1, 1)
_LAST_SECOND = (1 << 31) - 1


def _rounder(
    new: Column, rules: ConversionRules, *, truncate: bool
) -> Callable[[DateTimeValue | None], Parts | None]:
    """A moment with the digits that the column has; None for one that it may not hold."""
    dates = rules.dates(new)

    def rounded(moment: DateTimeValue | None) -> Parts | None:
        if moment is None or not dates.allow(moment.parts):
            return None
        parts = round_moment(moment, new.scale, truncate=truncate, mariadb=rules.rounds_as_mariadb)
        return None if parts is None else session_parts(moment, parts, rules.zone)

    return rounded


def _date_of_moment(_old: Column, new: Column, rules: ConversionRules) -> Store:
    rounded = _rounder(new, rules, truncate=rules.truncates or rules.rounds_as_mariadb)

    def store(moment: DateTimeValue | None) -> int:
        parts = rounded(moment) or ZERO
        return parts[0] << 9 | parts[1] << 5 | parts[2]

    return store


def _datetime_of_moment(_old: Column, new: Column, rules: ConversionRules) -> Store:
    rounded = _rounder(new, rules, truncate=rules.truncates)
    return lambda moment: pack_datetime(rounded(moment) or ZERO, new.scale)


def _timestamp_of_moment(old: Column, new: Column, rules: ConversionRules) -> Store:
    rounded, zero = _rounder(new, rules, truncate=rules.truncates), pack_timestamp(0, new.scale)
    cut_at_end = rules.rounds_as_mariadb and old.type == "timestamp"

    def store(moment: DateTimeValue | None) -> bytes:
        parts = rounded(moment)
        if parts is None or not any(parts[:3]):
            return zero
        outside = pack_timestamp(parts[6], new.scale) if rules.flavour == "mariadb" else zero
        try:
            since = to_utc(datetime(*parts), rules.zone).replace(tzinfo=None) - _EPOCH
        except (ValueError, OverflowError):
            return outside
        seconds = since.days * 86400 + since.seconds
        if cut_at_end and moment is not None and seconds > _LAST_SECOND:
            return pack_timestamp(_LAST_SECOND * 1_000_000 + moment.parts[6], new.scale)
        if not 0 < seconds <= _LAST_SECOND:
            return outside
        return pack_timestamp(seconds * 1_000_000 + since.microseconds, new.scale)

    return store


def _time_of_time(_old: Column, new: Column, rules: ConversionRules) -> Store:
    def store(value: Any) -> bytes:
        microseconds, nanoseconds = value if isinstance(value, tuple) else (value, 0)
        rounded = round_time(
            microseconds,
            nanoseconds,
            new.scale,
            truncate=rules.truncates,
            most=rules.longest_time,
        )
        return pack_time(rounded, new.scale)

    return store


def _parsed(make: MakeStore, parse: Callable[[Any, Column, ConversionRules], Any]) -> MakeStore:
    def made(old: Column, new: Column, rules: ConversionRules) -> Store:
        store = make(old, new, rules)
        return lambda value: store(parse(value, new, rules))

    return made


def _moment_of_text(value: Any, new: Column, rules: ConversionRules) -> DateTimeValue | None:
    return text_moment(raw_text(value), rules.dates(new))


def _moment_of_number(value: Any, new: Column, rules: ConversionRules) -> DateTimeValue | None:
    return number_of_column(value, rules.dates(new))


def _moment_of_decimal(value: Decimal, new: Column, rules: ConversionRules) -> DateTimeValue | None:
    """The fraction of a number is that of its second; a date without a time has none."""
    whole = int(value)
    found = _moment_of_number(whole, new, rules) if value >= 0 else None
    if found is None or 0 < whole <= _LAST_DATE:
        return found
    nanoseconds = int((value - whole).scaleb(9))
    return DateTimeValue((*found.parts[:6], nanoseconds // 1000), nanoseconds % 1000)


def _time_of_text(value: Any, new: Column, rules: ConversionRules) -> tuple[int, int]:
    return time_of_text(raw_text(value), new.scale, rules.dialect, cuts=rules.truncates)


_MOMENTS: dict[str, MakeStore] = {
    "date": _date_of_moment,
    "datetime": _datetime_of_moment,
    "timestamp": _timestamp_of_moment,
}


def _moments(parse: Callable[[Any, Column, ConversionRules], Any]) -> dict[str, MakeStore]:
    return {family: _parsed(make, parse) for family, make in _MOMENTS.items()}


def _times(parse: Callable[[Any, Column, ConversionRules], Any]) -> dict[str, MakeStore]:
    return {"time": _parsed(_time_of_time, parse)}


MOMENTS_OF: dict[str, dict[str, MakeStore]] = {
    "integer": _moments(_moment_of_number) | _times(lambda value, new, rules: number_time(value)),
    "decimal": _moments(_moment_of_decimal),
    "text": _moments(_moment_of_text) | _times(_time_of_text),
    "moment": _MOMENTS,
    "time": {"time": _time_of_time},
}
"""Route -> family of the new type -> what stores it."""
