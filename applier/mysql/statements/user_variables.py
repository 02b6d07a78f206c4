"""Events that only set something up for the next statement, as the statements that do so on the
target: INSERT_ID and LAST_INSERT_ID, seeds of RAND(), user variables."""

from __future__ import annotations

import struct
from typing import Any

from applier.binlog.charsets import charset_of_collation, collation_name
from applier.binlog.cursor import Cursor
from applier.binlog.describe import DECIMAL, INTEGER, REAL
from applier.binlog.events import Intvar, Rand, UserVar
from applier.binlog.types.numbers import decimal_to_text
from applier.errors import NOT_SUPPORTED, ReplicationError
from applier.mysql.client.dialect import TargetDialect
from applier.mysql.client.session_state import hex_literal, quoted
from applier.mysql.statements.literals import double_literal

_SRID_BYTES = 4
_SHAPES = {
    2: "LINESTRING", 3: "POLYGON", 4: "MULTIPOINT", 5: "MULTILINESTRING", 6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}  # fmt: skip
"""Type in WKB -> the function that makes such a shape of its parts."""


def preparation(parsed: Any, dialect: TargetDialect) -> bytes:
    """INTVAR, RAND and USER_VAR events as what they do to the next statement. Raises
    ReplicationError 1235 for a value that nothing makes in its type."""
    if isinstance(parsed, Intvar):
        return (
            f"SET {'INSERT_ID' if parsed.type == 2 else 'LAST_INSERT_ID'}={parsed.value}".encode()
        )
    if isinstance(parsed, Rand):
        return f"SET @@rand_seed1={parsed.seed1}, @@rand_seed2={parsed.seed2}".encode()
    assert isinstance(parsed, UserVar)
    return b"SET @" + quoted(parsed.name) + b":=" + _value(parsed, dialect).encode()


def _value(variable: UserVar, dialect: TargetDialect) -> str:
    """The value of a user variable as a literal of its own type and collation."""
    raw = variable.value
    if raw is None:
        return "NULL"
    if variable.type == REAL:
        return double_literal(struct.unpack("<d", raw)[0])
    if variable.type == INTEGER:
        number = int.from_bytes(raw, "little", signed=not variable.unsigned)
        return f"CAST({number} AS UNSIGNED)" if variable.unsigned else str(number)
    if variable.type == DECIMAL:
        return decimal_to_text(raw[0], raw[1])(raw[2:])
    if variable.data_type and dialect.is_mariadb:
        return _shape_expression(raw, variable.data_type)
    own = collation_name(variable.collation), charset_of_collation(variable.collation).name
    collation, charset = dialect.collations.get(variable.collation, own)
    return f"_{charset} {hex_literal(raw)} COLLATE `{collation}`"


def _shape_expression(raw: bytes, data_type: str) -> str:
    """`raw`: SRID and WKB in little endian, as columns keep them. `data_type`: "geometry", or a
    shape's own, which only its function makes, and without an SRID (seen on 10.11.18)."""
    srid = int.from_bytes(raw[:_SRID_BYTES], "little")
    if data_type == "geometry":
        return f"ST_GeomFromWKB({hex_literal(raw[_SRID_BYTES:])}, {srid})"
    if srid:
        raise ReplicationError(
            NOT_SUPPORTED, f"a user variable of type {data_type} with the SRID {srid}"
        )
    return _shape(Cursor(raw, _SRID_BYTES))


def _shape(wkb: Cursor) -> str:
    wkb.skip(1)
    code = wkb.u32()
    if code == 1:
        return _point(wkb)
    if code not in _SHAPES:
        raise ReplicationError(NOT_SUPPORTED, f"a user variable with a shape of the type {code}")
    part = {2: _point, 3: _line}.get(code, _shape)
    return f"{_SHAPES[code]}({', '.join(part(wkb) for _ in range(wkb.u32()))})"


def _line(wkb: Cursor) -> str:
    return f"LINESTRING({', '.join(_point(wkb) for _ in range(wkb.u32()))})"


def _point(wkb: Cursor) -> str:
    return f"POINT({', '.join(map(double_literal, struct.unpack('<dd', wkb.take(16))))})"
