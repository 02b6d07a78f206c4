"""One column of a server's table as bytes that compare with those of a stored value.

Nothing may be lost on the way: text comes in the column's own character set (character_set_results
is NULL), ENUM and SET as numbers, a FLOAT as a DOUBLE. The session must have SETTINGS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from applier.binlog.types import TYPES, json, nullable, to_text
from applier.binlog.types.numbers import double_text, float_to_python
from applier.tables.sql.quoting import quoted
from lookup.table import Column

SETTINGS = "SET SESSION character_set_results = NULL, time_zone = '+00:00', sql_mode = ''"
"""An empty sql_mode: a CHAR comes without its padding, a zero date is a date."""

Cell = Callable[[Any], bytes | None]


@dataclass(frozen=True, slots=True)
class DisplayRules:
    """How one server version shows doubles and JSON. A double that is computed has all its digits,
    whatever its column shows.

    A sum loses the sign of zero, which the column's own text has; MariaDB's has not.
    """

    double: str
    signed_zero: bool
    json_point: bool


_SUM = "IF({0} = 0 AND {0} LIKE '%-%', '-0', {0} + 0e0)"
_OLD = DisplayRules(_SUM, signed_zero=True, json_point=False)
_NEW = DisplayRules("CAST({} AS DOUBLE)", signed_zero=True, json_point=True)
DIALECTS: dict[str, DisplayRules] = {
    "5.6": _OLD,
    "5.7": _OLD,
    "mariadb": DisplayRules("{} + 0e0", signed_zero=False, json_point=False),
    "8.0": DisplayRules(_SUM, signed_zero=True, json_point=True),  # CAST AS DOUBLE came with 8.0.17
    "8.4": _NEW,
    "9.7": _NEW,
}
"""Name of the rules in lookup.versions -> dialect."""

_AS_NUMBER = frozenset({"enum", "set", "bit"})
_PLUS_ZERO = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal"})
"""ZEROFILL pads what is shown; a sum has no such thing."""


def expression(column: Column, dialect: DisplayRules) -> str:
    """What to SELECT for a column."""
    name = quoted(column.name)
    if column.type in _AS_NUMBER:
        return f"CAST({name} AS UNSIGNED)"
    if column.type in _PLUS_ZERO:
        return f"{name} + 0"
    return dialect.double.format(name) if column.type in ("float", "double") else name


def cell(column: Column, dialect: DisplayRules) -> Cell:
    """A function from the stored value to the bytes that `expression` gives for it."""
    return nullable(_converter(column, dialect))


def _converter(column: Column, dialect: DisplayRules) -> Callable[[Any], bytes]:
    kind = column.type
    if kind in _AS_NUMBER or (kind in _PLUS_ZERO and kind != "decimal"):
        return lambda stored: b"%d" % stored
    if kind in ("float", "double"):
        read = float_to_python(column)
        if dialect.signed_zero:
            return lambda stored: double_text(read(stored)).encode()
        return lambda stored: double_text(read(stored) + 0.0).encode()
    if kind == "json":
        return lambda stored: json.to_text(json.decode(stored), point=dialect.json_point).encode(
            "utf-8", "surrogateescape"
        )
    if kind == "binary":
        width = 1 if column.length is None else column.length
        return lambda stored: stored.ljust(width, b"\0")
    encoding = TYPES[kind].encoding
    if encoding == "hex" or column.charset is not None:
        return bytes
    text = to_text(column)
    return lambda stored: text(stored).encode("utf-8", "surrogateescape")
