"""Shapes as servers keep them: well-known text to WKB.

A shape is kept as its SRID in four bytes and WKB in little endian (sql/spatial.h). Texts that a
server may refuse, or make NULL of (rings that are not closed, lines of one point), are not known.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

POINT, LINE, POLYGON, POINTS, LINES, POLYGONS, COLLECTION = range(1, 8)
"""WKB's numbers of shapes (`wkbType`)."""
SHAPE_WORDS = {
    "POINT": POINT, "LINESTRING": LINE, "POLYGON": POLYGON, "MULTIPOINT": POINTS,
    "MULTILINESTRING": LINES, "MULTIPOLYGON": POLYGONS, "GEOMETRYCOLLECTION": COLLECTION,
}  # fmt: skip
_LEAST_LINE, _LEAST_RING = 2, 4
_TOKEN = re.compile(
    r"\s*(?:([A-Za-z]+)|([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|([(),]))\s*", re.ASCII
)


class UnknownShape(Exception):
    """A text of which it is not known what a server makes."""


class _ShapeText:
    """Well-known text to WKB."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise UnknownShape
            self.tokens.append(match[0].strip())
            at = match.end()
        self.at = 0

    def whole(self) -> tuple[int, bytes]:
        """The shape that the text is: its number and its WKB."""
        found = self._shape()
        if self.at < len(self.tokens):
            raise UnknownShape
        return found

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise UnknownShape
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise UnknownShape

    def _shape(self) -> tuple[int, bytes]:
        kind = SHAPE_WORDS.get(self._next().upper())
        if kind is None:
            raise UnknownShape
        return kind, wkb(kind, self._body(kind))

    def _body(self, kind: int) -> bytes:
        if kind == POINT:
            self._expect("(")
            point = self._point()
            self._expect(")")
            return point
        if kind == LINE:
            return self._line(_LEAST_LINE)
        if kind == POLYGON:
            return _counted(self._listed(self._ring))
        inner: Callable[[], bytes] = {
            POINTS: lambda: wkb(POINT, self._point()),
            LINES: lambda: wkb(LINE, self._body(LINE)),
            POLYGONS: lambda: wkb(POLYGON, self._body(POLYGON)),
            COLLECTION: self._member,
        }[kind]
        return _counted(self._listed(inner))

    def _member(self) -> bytes:
        """5.6.24 makes NULL of a collection in a collection."""
        kind, shape = self._shape()
        if kind == COLLECTION:
            raise UnknownShape
        return shape

    def _listed(self, one: Callable[[], bytes]) -> list[bytes]:
        self._expect("(")
        found = [one()]
        while (token := self._next()) == ",":
            found.append(one())
        if token != ")":
            raise UnknownShape
        return found

    def _point(self) -> bytes:
        return coordinates(*(self._number() for _ in "xy"))

    def _number(self) -> float:
        try:
            number = float(self._next())
        except ValueError:
            raise UnknownShape from None
        if number - number != 0:
            raise UnknownShape
        return number

    def _line(self, least: int) -> bytes:
        points = self._listed(self._point)
        if len(points) < least:
            raise UnknownShape
        return _counted(points)

    def _ring(self) -> bytes:
        ring = self._line(_LEAST_RING)
        if ring[4:20] != ring[-16:]:
            raise UnknownShape
        return ring


def wkb(kind: int, body: bytes) -> bytes:
    """A shape behind its byte order and number."""
    return struct.pack("<BI", 1, kind) + body


def _counted(parts: list[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)


def coordinates(x: float, y: float) -> bytes:
    """A point in WKB."""
    return struct.pack("<dd", x, y)


def kept_shape(srid: int, shape: bytes) -> bytes:
    """WKB behind its SRID."""
    return struct.pack("<I", srid) + shape


def shape_of_text(text: str) -> tuple[int, bytes]:
    """The shape that a well-known text is: its number and its WKB. Raises UnknownShape."""
    return _ShapeText(text).whole()
