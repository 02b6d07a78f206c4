"""Functions that make shapes of text in WKT, points of numbers and lines of points: the bytes that
a geometry column keeps, the SRID and WKB in little endian.

What is read here means the same to 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18; they differ in what
else they take, and MySQL 5.6 and MariaDB make NULL of what they cannot read.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Collection
from typing import TypeVar

from applier.tables.expressions.calls import (
    REAL_NUMBERS,
    WHOLE,
    Call,
    Domain,
    Function,
    binary_result,
    unchanged,
)
from applier.tables.expressions.operands import Operand, OperandKind, unsupported

_TOKEN = re.compile(r"[ \t\n]*([A-Za-z]+|-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?(?![\w.])|[(),])")
_EMPTY = re.compile(
    r"[ \t\n]*(MULTI)?(POINT|LINESTRING|POLYGON)[ \t\n]+EMPTY[ \t\n]*", re.IGNORECASE
)
"""What MySQL 5.6 and MariaDB make NULL of; later ones refuse it."""
_T = TypeVar("_T")
_LEAST_POINTS_OF_A_LINE, _LEAST_POINTS_OF_A_RING = 2, 4
_LARGEST_SRID = (1 << 32) - 1
_WGS_84 = 4326
"""Of whose texts MySQL 8.0 and later read the latitude first, and keep the longitude first."""
_LARGEST_LATITUDE, _LARGEST_LONGITUDE = 90, 180


class _NotRead(ValueError):
    """Text that servers differ about, or refuse."""


class _WellKnownText:
    """A cursor over WKT. `newer`: as MySQL 8.0 and later read it, where points of a MULTIPOINT may
    stand in parentheses, and collections in collections. `on_earth`: positions are a latitude and a
    longitude in degrees."""

    def __init__(self, text: str, *, newer: bool, on_earth: bool = False) -> None:
        self.newer = newer
        self.on_earth = on_earth
        self.tokens = _tokens(text)[::-1]

    def whole(self) -> tuple[int, bytes]:
        """Its one shape: the WKB type, and WKB."""
        found = self._shape(outermost=True)
        if self.tokens:
            raise _NotRead
        return found

    def _shape(self, *, outermost: bool = False) -> tuple[int, bytes]:
        word = self._next().upper()
        if word not in _SHAPES or (word == "GEOMETRYCOLLECTION" and not (outermost or self.newer)):
            raise _NotRead
        code, read = _SHAPES[word]
        return code, _wkb(code, read(self))

    def point(self) -> bytes:
        """(x y)"""
        self._expect("(")
        found = self._position()
        self._expect(")")
        return found

    def line(self) -> bytes:
        """(x y, …)"""
        return self._positions(_LEAST_POINTS_OF_A_LINE)

    def polygon(self) -> bytes:
        """(ring, …), each of which ends where it begins."""
        return _counted(self._listed(self._ring))

    def points(self) -> bytes:
        """(x y, …), or ((x y), …)"""
        in_parentheses = self.newer and self.tokens[-2:-1] == ["("]
        read = self.point if in_parentheses else self._position
        return _counted([_wkb(1, one) for one in self._listed(read)])

    def lines(self) -> bytes:
        """((x y, …), …)"""
        return _counted([_wkb(2, one) for one in self._listed(self.line)])

    def polygons(self) -> bytes:
        """((ring, …), …)"""
        return _counted([_wkb(3, one) for one in self._listed(self.polygon)])

    def collection(self) -> bytes:
        """(shape, …)"""
        return _counted([wkb for _, wkb in self._listed(self._shape)])

    def _ring(self) -> bytes:
        found = self._positions(_LEAST_POINTS_OF_A_RING)
        if found[4:20] != found[-16:]:
            raise _NotRead
        return found

    def _positions(self, least: int) -> bytes:
        found = self._listed(self._position)
        if len(found) < least:
            raise _NotRead
        return _counted(found)

    def _position(self) -> bytes:
        first, second = self._number(), self._number()
        if not self.on_earth:
            return _position(first, second)
        if abs(first) > _LARGEST_LATITUDE or not (
            -_LARGEST_LONGITUDE < second <= _LARGEST_LONGITUDE
        ):
            raise _NotRead
        return _position(second, first)

    def _listed(self, read: Callable[[], _T]) -> list[_T]:
        self._expect("(")
        found = [read()]
        while (token := self._next()) == ",":
            found.append(read())
        if token != ")":
            raise _NotRead
        return found

    def _number(self) -> float:
        found = float(self._next())
        if not math.isfinite(found):
            raise _NotRead
        return found

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise _NotRead

    def _next(self) -> str:
        if not self.tokens:
            raise _NotRead
        return self.tokens.pop()


_SHAPES: dict[str, tuple[int, Callable[[_WellKnownText], bytes]]] = {
    "POINT": (1, _WellKnownText.point),
    "LINESTRING": (2, _WellKnownText.line),
    "POLYGON": (3, _WellKnownText.polygon),
    "MULTIPOINT": (4, _WellKnownText.points),
    "MULTILINESTRING": (5, _WellKnownText.lines),
    "MULTIPOLYGON": (6, _WellKnownText.polygons),
    "GEOMETRYCOLLECTION": (7, _WellKnownText.collection),
}
"""The type in WKB, and what stands behind the name."""


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip(" \t\n")
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _NotRead
        found.append(token[1])
        at = token.end()
    return found


def _wkb(code: int, body: bytes) -> bytes:
    return struct.pack("<BI", 1, code) + body


def _counted(parts: Collection[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)


def _position(x: float, y: float) -> bytes:
    return struct.pack("<dd", x, y)


def _from_text(only: int | None = None, *, is_old: bool = False) -> Callable[[Call], Operand]:
    """A function of WKT and an SRID, which versions before 8.0 and MariaDB keep whatever it is.
    `only`: the one WKB type that it makes; `is_old`: 8.0 and later have it no more."""

    def build(call: Call) -> Operand:
        newer = call.dialect.is_modern
        if (newer and is_old) or any(one.kind is OperandKind.NULL for one in call.arguments[1:]):
            raise unsupported(call.sql)

        def made(text: str, srid: int = 0) -> bytes | None:
            if not newer and _EMPTY.fullmatch(text):
                return None
            on_earth = newer and srid == _WGS_84
            try:
                code, wkb = _WellKnownText(text, newer=newer, on_earth=on_earth).whole()
            except ValueError:
                raise unsupported(call.sql) from None
            known = srid in (0, _WGS_84) if newer else 0 <= srid <= _LARGEST_SRID
            if only not in (None, code) or not known:
                raise unsupported(call.sql)
            return struct.pack("<I", srid) + wkb

        return binary_result(made)(call)

    return build


def _point(x: float, y: float) -> bytes:
    return _POINT + _position(float(x), float(y))


def _line(call: Call) -> Operand:
    """LINESTRING of points without SRID."""

    def made(*points: bytes) -> bytes:
        if any(len(one) != _POINT_BYTES or one[: len(_POINT)] != _POINT for one in points):
            raise unsupported(call.sql)
        return bytes(4) + _wkb(2, _counted([one[len(_POINT) :] for one in points]))

    return binary_result(made)(call)


_POINT = bytes(4) + _wkb(1, b"")
_POINT_BYTES = len(_POINT) + 16
_BINARY = Domain(frozenset({OperandKind.BINARY}), unchanged)
_TEXTS = Domain(frozenset({OperandKind.TEXT}), unchanged)
_KINDS: dict[str, int | None] = {
    "GEOM": None, "GEOMETRY": None, "POINT": 1, "LINE": 2, "LINESTRING": 2, "POLY": 3, "POLYGON": 3,
    "MPOINT": 4, "MULTIPOINT": 4, "MLINE": 5, "MULTILINESTRING": 5, "MPOLY": 6, "MULTIPOLYGON": 6,
    "GEOMCOLL": 7, "GEOMETRYCOLLECTION": 7,
}  # fmt: skip
SHAPE_FUNCTIONS: dict[str, Function] = {
    "POINT": Function((REAL_NUMBERS,), binary_result(_point), 2, 2),
    "LINESTRING": Function((_BINARY,), _line, _LEAST_POINTS_OF_A_LINE),
    **{
        f"{prefix}{kind}FROMTEXT": Function(
            (_TEXTS, WHOLE), _from_text(only, is_old=not prefix), 1, 2
        )
        for kind, only in _KINDS.items()
        for prefix in ("ST_", "")
    },
}
