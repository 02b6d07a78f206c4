"""Column values. One module per type family; here the table of types that says which functions a
type uses.

The stored value of a column is what the row image holds, in a form that compares with == as the
server compares bytes: an int for integers, ENUM, SET, BIT, DATE and YEAR, bytes for everything
else, None for NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from applier.binlog.types import json, numbers, temporal, texts
from applier.binlog.types.base import Unevaluated, ValueRefused
from lookup.table import Column

Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class TypeRules:
    """Each function takes the Column and gives a function on single values that are not NULL.

    `encoding` is how a dump writes the type: text, hex, uint or double.
    """

    encoding: str
    to_python: Callable[[Column], Converter]
    to_text: Callable[[Column], Converter]
    from_sql: Callable[[Column], Converter]


def _same(_column: Column) -> Converter:
    return int


def _number_text(_column: Column) -> Converter:
    return str


def _decimal_text(column: Column) -> Converter:
    return numbers.decimal_to_text(column.length or 10, column.scale)


def _decimal_from_sql(column: Column) -> Converter:
    return numbers.decimal_from_sql(column.length or 10, column.scale)


def _json_text(_column: Column) -> Converter:
    return lambda stored: json.to_text(json.decode(stored))


def _json_from_sql(_column: Column) -> Converter:
    def convert(value: object) -> bytes:
        text = value.decode("utf-8") if isinstance(value, bytes) else str(value)
        return json.encode(json.parse_text(text))

    return convert


INTEGER = TypeRules("text", _same, _number_text, numbers.integer_from_sql)
FLOATING = TypeRules(
    "double", numbers.float_to_python, numbers.float_to_text, numbers.float_from_sql
)
TEXT = TypeRules("text", texts.text_to_python, texts.text_to_text, texts.text_from_sql)
BINARY = TypeRules("hex", texts.binary_to_python, texts.binary_to_text, texts.binary_from_sql)
ADDRESS = TypeRules("text", texts.address_to_text, texts.address_to_text, texts.address_from_sql)

TYPES: dict[str, TypeRules] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), INTEGER),
    **dict.fromkeys(("float", "double"), FLOATING),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), BINARY),
    **dict.fromkeys(
        (
            "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
            "multipolygon", "geometrycollection",
        ),
        BINARY,
    ),
    "vector": TypeRules("hex", texts.binary_to_python, texts.binary_to_text,
        texts.vector_from_sql),
    **dict.fromkeys(("inet4", "inet6"), ADDRESS),
    "decimal": TypeRules("text", numbers.decimal_to_python, _decimal_text, _decimal_from_sql),
    "bit": TypeRules("uint", _same, _number_text, texts.bit_from_sql),
    "year": TypeRules("text", temporal.year_to_python, temporal.year_to_text,
        temporal.year_from_sql),
    "date": TypeRules("text", temporal.date_to_python, temporal.date_to_text,
        temporal.date_from_sql),
    "datetime": TypeRules("text", temporal.datetime_to_python, temporal.datetime_to_text,
        temporal.datetime_from_sql),
    "timestamp": TypeRules("text", temporal.timestamp_to_python, temporal.timestamp_to_text,
        temporal.timestamp_from_sql),
    "time": TypeRules("text", temporal.time_to_python, temporal.time_to_text,
        temporal.time_from_sql),
    "enum": TypeRules("text", texts.enum_to_python, texts.enum_to_text, texts.enum_from_sql),
    "set": TypeRules("text", texts.set_to_python, texts.set_to_text, texts.set_from_sql),
    "json": TypeRules("text", _json_text, _json_text, _json_from_sql),
    "uuid": TypeRules("text", texts.uuid_to_text, texts.uuid_to_text, texts.uuid_from_sql),
}  # fmt: skip


def nullable(convert: Converter) -> Converter:
    """The same for NULL, and for a value that could not be computed, which raises its refusal."""

    def converted(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is Unevaluated:
            value.refuse()
        return convert(value)

    return converted


def to_python(column: Column) -> Converter:
    """Stored value -> Python value: int, float, Decimal, str, bytes, date, datetime, timedelta or
    None."""
    return nullable(TYPES[column.type].to_python(column))


def to_text(column: Column) -> Converter:
    """Stored value -> the server's text (hex digits for binary types), None for NULL."""
    return nullable(TYPES[column.type].to_text(column))


def from_sql(column: Column) -> Converter:
    """A SQL literal's value (str, bytes, int, Decimal, float, None) -> stored value. Raises
    ValueRefused."""
    return nullable(TYPES[column.type].from_sql(column))


__all__ = [
    "TYPES",
    "TypeRules",
    "Unevaluated",
    "ValueRefused",
    "from_sql",
    "nullable",
    "to_python",
    "to_text",
]
