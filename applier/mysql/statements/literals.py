"""Stored values as SQL: an expression that makes the value again, and conditions that only rows
with this very value meet.

Text is hexadecimal behind its character set's name, so that no character set or SQL mode of the
session changes it. Equality is that of bytes, as the server compares a before image with a row;
collations decide nothing but where an index leads. The session must have row_sql.SETTINGS: UTC,
zero dates and impossible dates allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from applier.binlog.cursor import Cursor
from applier.binlog.types import json, to_text
from applier.binlog.types.numbers import float_to_python
from applier.error_codes import Code
from applier.errors import InputError
from applier.mysql.statements.column_bytes import DIALECTS
from applier.tables.expressions.operands import OLD_SERVERS
from applier.tables.sql.quoting import quoted
from lookup.table import Column

Literal = Callable[[Any], str]
Condition = Callable[[Any], str]

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "enum", "set", "bit"})
QUOTED = frozenset({"date", "datetime", "timestamp", "time", "uuid", "inet4", "inet6"})
SPATIAL = frozenset(
    """
        geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection
    """.split()
)
OLD_NAMES = {"utf8mb3": "utf8"}
"""Character set -> its name for 5.6 and 5.7."""
DIFF_FUNCTIONS = {
    json.REPLACE: "JSON_REPLACE",
    json.INSERT: "JSON_INSERT",
    json.REMOVE: "JSON_REMOVE",
}
MOST_DIGITS, MOST_DIGITS_BEHIND = 65, 30
DECIMAL_HEAD = 2
"""Bytes of precision and scale before a DECIMAL in a JSON document."""


def literal(column: Column, rules_version: str) -> Literal:
    """A function from stored values to SQL that makes them; None is NULL."""
    make = _maker(column, rules_version)
    return lambda stored: "NULL" if stored is None else make(stored)


def _maker(column: Column, rules_version: str) -> Literal:
    kind = column.type
    if kind in INTEGERS:
        return str
    if kind == "year":
        # 0 means 2000 in a YEAR(2)
        return lambda stored: str(stored + 1900) if stored else "'0000'"
    if kind in ("float", "double"):
        read = float_to_python(column)
        return lambda stored: _number(read(stored))
    if kind == "decimal":
        text: Literal = to_text(column)
        return text
    if kind in QUOTED:
        return _temporal(column)
    if kind == "json":
        return lambda stored: json_expression(json.decode(stored), rules_version)
    if kind == "binary":
        width = 1 if column.length is None else column.length
        return lambda stored: f"_binary X'{stored.hex().ljust(2 * width, '0')}'"
    if kind in SPATIAL:
        return _geometry
    introducer = "binary" if column.charset is None else column.charset
    if rules_version in OLD_SERVERS:
        introducer = OLD_NAMES.get(introducer, introducer)
    return lambda stored: f"_{introducer} X'{stored.hex()}'"


def _geometry(stored: bytes) -> str:
    """Raises NotExpressible for no bytes at all, which a NOT NULL column has by default: a server
    takes them from no statement (1416)."""
    if not stored:
        raise NotExpressible("no literal makes an empty geometry")
    return f"_binary X'{stored.hex()}'"


def _number(value: float) -> str:
    """Raises NotExpressible for infinity, which an overflow of 5.7 may store."""
    if not math.isfinite(value):
        raise NotExpressible(f"no literal makes the number {value}")
    return double_literal(value)


def _temporal(column: Column) -> Literal:
    """Raises NotExpressible for a second of 1,000,000 microseconds, which 5.7 may store: a literal
    of it is another value."""
    shown, dot = to_text(column), -1 - column.scale

    def make(stored: Any) -> str:
        text = shown(stored)
        if column.scale and text[dot] != ".":
            raise NotExpressible(f"no literal makes the {column.type} {text}")
        return f"'{text}'"

    return make


def double_literal(value: float) -> str:
    """All its digits. The exponent makes it a DOUBLE, which is compared exactly; without one it
    would be a DECIMAL."""
    text = repr(value)
    return text if "e" in text else text + "e0"


def equals(column: Column, rules_version: str) -> Condition:
    """A function from stored values to a condition that holds for rows with the same bytes.

    A SET is compared with a number as a DOUBLE, in which two sets of more than 53 labels may be the
    same. Documents are compared by their values, in which 1 is 1.0: `exact_order` tells such apart.
    """
    name = quoted(column.name)
    make = _maker(column, rules_version)
    if _shows_signed_zero(column, rules_version):
        side = _side(column)
        return lambda stored: (
            f"{name} IS NULL"
            if stored is None
            else f"{side(stored)} = {make(stored)}{_sign_of_zero(name, stored)}"
        )
    if column.type == "set":
        return lambda stored: (
            f"{name} IS NULL" if stored is None else f"CAST({name} AS UNSIGNED) = {stored}"
        )
    if column.type in SPATIAL or column.type == "vector":
        return lambda stored: (
            f"{name} IS NULL" if stored is None else f"HEX({name}) = '{stored.hex().upper()}'"
        )
    if column.charset is not None and column.type not in ("enum", "set"):
        return lambda stored: (
            f"{name} IS NULL"
            if stored is None
            else f"CAST({name} AS BINARY) = _binary X'{stored.hex()}'"
        )
    return lambda stored: f"{name} IS NULL" if stored is None else f"{name} = {make(stored)}"


def _side(column: Column) -> Literal:
    """What of the column to compare. A FLOAT(M,D) may hold more than (M,D) says, since its greatest
    number is rounded: 99999.99999 is 100000. 8.0.18 and later take no literal beyond (M,D) for
    equal, but a sum is a DOUBLE (`fold_condition`, seen on 9.7.4).
    """
    name = quoted(column.name)
    if column.type != "float" or column.length is None:
        return lambda stored: name
    read = float_to_python(column)
    limit = 10.0 ** (column.length - column.scale) - 10.0**-column.scale
    return lambda stored: f"{name} + 0e0" if abs(read(stored)) > limit else name


def key_equals(column: Column, rules_version: str) -> Condition:
    """The condition that an index on the column answers: equal as its collation says."""
    name = quoted(column.name)
    if column.type in SPATIAL or column.type in ("set", "vector"):
        return equals(column, rules_version)
    make, side = _maker(column, rules_version), _side(column)
    return lambda stored: (
        f"{name} IS NULL" if stored is None else f"{side(stored)} = {make(stored)}"
    )


def compares_bytes(column: Column, rules_version: str) -> bool:
    """Whether `equals` says more than `key_equals`."""
    return (
        column.charset is not None and column.type not in ("enum", "set")
    ) or _shows_signed_zero(column, rules_version)


def exact_order(column: Column, rules_version: str) -> Condition | None:
    """What to ORDER BY so that the row with these very bytes comes before others that `equals`
    takes for the same; None: there are none."""
    if column.type != "json":
        return None
    name, point = quoted(column.name), DIALECTS[rules_version].json_point

    def order(stored: Any) -> str:
        return (
            f"CAST({name} AS CHAR) = {utf8_literal(json.to_text(json.decode(stored), point=point))}"
            " DESC"
        )

    return lambda stored: "" if stored is None else order(stored)


def _shows_signed_zero(column: Column, rules_version: str) -> bool:
    """-0 equals 0; as text it has its sign. MariaDB shows it without, and makes it only from
    numbers too small for a FLOAT."""
    return column.type in ("float", "double") and rules_version != "mariadb"


def _sign_of_zero(name: str, stored: bytes) -> str:
    if any(stored[:-1]) or stored[-1] & 0x7F:
        return ""
    return f" AND {name}{'' if stored[-1] else ' NOT'} LIKE '%-%'"


# JSON


class NotExpressible(Exception):
    """No statement that the server takes carries these values; the text says why."""


BINARY_TYPES: dict[str, dict[int, str]] = {
    "5.7": {15: "_binary X'{}'", 16: "X'{}'", 253: "CAST(X'{}' AS BINARY)"},
    "8.0": {15: "_binary X'{}'"},
    "8.4": {15: "_binary X'{}'"},
    "9.7": {15: "_binary X'{}'"},
}
"""What a binary string must be to get a type code in a JSON document; the codes of columns (BLOB,
BIT, ...) come from columns only."""
TIMES_BREAK = frozenset({"5.7"})
"""5.7 takes a TIME for a DATETIME when it puts it into a document, and loses its days."""


def json_expression(document: json.Document, rules_version: str) -> str:
    """A document as SQL. Text makes it unless it holds values of MySQL's own types, which text
    would turn into strings.

    Raises NotExpressible for a value that only a column can bring into a document.
    """
    if not _has_opaque(document):
        return f"CAST({utf8_literal(json.to_text(document))} AS JSON)"
    if isinstance(document, dict):
        members = (
            f"{utf8_literal(key)}, {_element(item, rules_version)}"
            for key, item in document.items()
        )
        return f"JSON_OBJECT({', '.join(members)})"
    if isinstance(document, list):
        return f"JSON_ARRAY({', '.join(_element(item, rules_version) for item in document)})"
    return (  # CAST takes no binary string
        f"JSON_EXTRACT(JSON_ARRAY({_element(document, rules_version)}), '$[0]')"
    )


def _element(document: json.Document, rules_version: str) -> str:
    """A value inside of a document."""
    return (_opaque_expression if isinstance(document, json.OpaqueValue) else json_expression)(
        document, rules_version
    )


def _has_opaque(document: json.Document) -> bool:
    if isinstance(document, dict):
        return any(map(_has_opaque, document.values()))
    if isinstance(document, list):
        return any(map(_has_opaque, document))
    return isinstance(document, json.OpaqueValue)


def _opaque_expression(value: json.OpaqueValue, rules_version: str) -> str:
    """A value of the very type that the document keeps."""
    text = json.to_text(value)
    kind = value.type_code
    if kind == json.NEWDECIMAL and len(value.data) > DECIMAL_HEAD:
        if value.data[0] > MOST_DIGITS or value.data[1] > MOST_DIGITS_BEHIND:
            raise NotExpressible(f"no literal makes the DECIMAL {text} of a JSON document")
        return f"CAST({text} AS DECIMAL({value.data[0]},{value.data[1]}))"
    made = BINARY_TYPES.get(rules_version, {}).get(kind)
    if made is not None:
        return made.format(value.data.hex())
    temporal = {json.DATE: "DATE", json.TIME: "TIME(6)", json.DATETIME: "DATETIME(6)"}.get(kind)
    if (
        temporal is None
        or text.startswith('"base64:')
        or (kind == json.TIME and rules_version in TIMES_BREAK)
    ):
        raise NotExpressible(
            f"a JSON document holds a value of type {kind}, which no expression makes"
        )
    return f"CAST('{text[1:-1]}' AS {temporal})"


def diff_expression(column: Column, diff: json.JsonDiff, rules_version: str) -> str:
    """Changes to a document that is known to the server only. Raises InputError for changes that
    cannot be read."""
    expression = quoted(column.name)
    cursor = Cursor(diff.data)
    while cursor.left:
        operation = cursor.u8()
        if operation not in DIFF_FUNCTIONS:
            raise InputError(
                f"a partial update holds the operation {operation}", code=Code.BAD_VALUE
            )
        path = cursor.take(cursor.packed()).decode("utf-8", "surrogateescape")
        arguments = [expression, utf8_literal(path)]
        function = DIFF_FUNCTIONS[operation]
        if operation != json.REMOVE:
            arguments.append(
                json_expression(json.decode(cursor.take(cursor.packed())), rules_version)
            )
            legs = json.path_legs(path)
            if operation == json.INSERT and legs and not isinstance(legs[-1], str):
                function = "JSON_ARRAY_INSERT"
        expression = f"{function}({', '.join(arguments)})"
    return expression


def utf8_literal(text: str) -> str:
    """Text that is compared and stored as UTF-8. Raises NotExpressible for bytes that are not."""
    try:
        return f"_utf8mb4 X'{text.encode().hex()}'"
    except UnicodeEncodeError:
        raise NotExpressible("a JSON document holds text that is not UTF-8") from None
