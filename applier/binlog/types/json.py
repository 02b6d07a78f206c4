"""MySQL's binary JSON: documents to text as the server prints them, text to documents, and partial
updates.

Format and text: sql-common/json_binary.h, json_dom.cc, json_diff.cc, 5.7 to 9.7. A document out of
the log is never trusted: offsets, sizes and depth are checked.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from dataclasses import dataclass
from functools import partial
from typing import Any

from applier.binlog.cursor import Cursor
from applier.binlog.types.base import ValueRefused
from applier.binlog.types.numbers import decimal_to_text, double_text
from applier.binlog.types.temporal import parts_text, time_text
from applier.binlog.wire import DIGITS_IN_JSON, decimal_bytes
from applier.error_codes import Code
from applier.errors import NOT_SUPPORTED, InputError, ReplicationError

(
    SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL, INT16, UINT16, INT32, UINT32,
    INT64, UINT64, DOUBLE, STRING,
) = range(13)  # fmt: skip
OPAQUE = 15
MAX_DEPTH = 100
SCALARS = {
    INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q", DOUBLE: "<d",
}  # fmt: skip
LITERALS = {0: None, 1: True, 2: False}
NEWDECIMAL, DATE, TIME, DATETIME, TIMESTAMP = 246, 10, 11, 12, 7
_ESCAPES = str.maketrans({chr(code): f"\\u{code:04x}" for code in range(32)} | {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
})  # fmt: skip
REPLACE, INSERT, REMOVE = 0, 1, 2


class Unsigned(int):
    """An integer that the document keeps as unsigned."""


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """A value of a MySQL type that JSON does not have."""

    type_code: int
    data: bytes


Document = Any
"""dict, list, str, None, bool, int, Unsigned, float or Opaque. Text may hold bytes that are not
UTF-8, which servers take with a warning (1300): as `surrogateescape` has them."""


def corrupt(what: str) -> InputError:
    """The error of a document that cannot be read."""
    return InputError(f"a JSON document is corrupt: {what}", code=Code.BAD_VALUE)


# bytes to document


class _Budget:
    """Bytes that a document may still account for: no two values share theirs, so a decoder never
    sees more than there are.

    Without it a few hundred bytes of arrays that point to the same array twice would unfold to any
    size.
    """

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise corrupt("values that share their bytes")


def decode(data: bytes) -> Document:
    """An empty document stands for JSON null. Raises InputError."""
    if not data:
        return None
    try:
        return _value(data[0], memoryview(data)[1:], 0, _Budget(len(data)))
    except (struct.error, IndexError):
        raise corrupt("it ends too early") from None


def _value(kind: int, data: memoryview, depth: int, budget: _Budget) -> Document:
    if kind in SCALARS:
        number = struct.unpack_from(SCALARS[kind], data)[0]
        return Unsigned(number) if kind in (UINT16, UINT32, UINT64) else number
    if kind == STRING:
        return bytes(_sized(data, budget)).decode("utf-8", "surrogateescape")
    if kind == LITERAL:
        if data[0] not in LITERALS:
            raise corrupt(f"literal {data[0]}")
        return LITERALS[data[0]]
    if kind == OPAQUE:
        return OpaqueValue(data[0], bytes(_sized(data[1:], budget)))
    if kind in (SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY):
        if depth >= MAX_DEPTH:
            raise corrupt("nested too deeply")
        return _container(kind, data, depth + 1, budget)
    raise corrupt(f"value type {kind}")


def _sized(data: memoryview, budget: _Budget) -> memoryview:
    """A variable-length size (7 bits a byte), then that many bytes."""
    size = at = 0
    while True:
        byte = data[at]
        size |= (byte & 0x7F) << 7 * at
        at += 1
        if not byte & 0x80:
            break
        if at == 5:
            raise corrupt("a length of more than five bytes")
    if at + size > len(data):
        raise corrupt("a string runs past the end")
    budget.spend(size)
    return data[at : at + size]


def _container(kind: int, data: memoryview, depth: int, budget: _Budget) -> Document:
    large = kind in (LARGE_OBJECT, LARGE_ARRAY)
    is_object = kind in (SMALL_OBJECT, LARGE_OBJECT)
    width, number = (4, "<I") if large else (2, "<H")
    (count,), (size,) = struct.unpack_from(number, data), struct.unpack_from(number, data, width)
    entries = 2 * width + (count * (width + 2) if is_object else 0)
    if size > len(data) or entries + count * (width + 1) > size:
        raise corrupt(f"a container of {count} elements claims {size} bytes")
    budget.spend(entries + count * (width + 1))
    values = [
        _entry(data[:size], entries + at * (width + 1), width, number, depth, budget)
        for at in range(count)
    ]
    if not is_object:
        return values
    keys = []
    for at in range(count):
        offset, length = struct.unpack_from(number + "H", data, 2 * width + at * (width + 2))
        if offset + length > size:
            raise corrupt("a key runs past the end")
        budget.spend(length)
        keys.append(bytes(data[offset : offset + length]).decode("utf-8", "surrogateescape"))
    if len(set(keys)) != count:
        raise corrupt("a key stands twice in an object")
    return dict(zip(keys, values, strict=True))


def _entry(
    data: memoryview, at: int, width: int, number: str, depth: int, budget: _Budget
) -> Document:
    kind = data[at]
    if kind == LITERAL or kind in (INT16, UINT16) or (width == 4 and kind in (INT32, UINT32)):
        return _value(kind, data[at + 1 :], depth, budget)
    (offset,) = struct.unpack_from(number, data, at + 1)
    if offset >= len(data):
        raise corrupt("a value stands past the end")
    return _value(kind, data[offset:], depth, budget)


# document to bytes


def encode(document: Document) -> bytes:
    """The document as the server would serialize it from scratch."""
    kind, body = _encode(document, 0)
    return bytes([kind]) + body


def canonical(data: bytes) -> bytes:
    """The same document serialized from scratch: without the gaps that updates in place leave."""
    return encode(decode(data))


def _encode(value: Document, depth: int) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return LITERAL, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, Unsigned):
        kind = UINT16 if value <= 0xFFFF else UINT32 if value <= 0xFFFFFFFF else UINT64
        return kind, struct.pack(SCALARS[kind], value)
    if isinstance(value, int):
        kind = (
            INT16
            if -(1 << 15) <= value < 1 << 15
            else INT32
            if -(1 << 31) <= value < 1 << 31
            else INT64
        )
        return kind, struct.pack(SCALARS[kind], value)
    if isinstance(value, float):
        return DOUBLE, struct.pack("<d", value)
    if isinstance(value, str):
        data = _bytes(value)
        return STRING, _size(len(data)) + data
    if isinstance(value, OpaqueValue):
        return OPAQUE, bytes([value.type_code]) + _size(len(value.data)) + value.data
    if depth >= MAX_DEPTH:
        raise ValueRefused(3157, "The JSON document exceeds the maximum depth.")
    return _encode_container(value, depth + 1)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _place(pair: tuple[str, Document]) -> tuple[int, bytes]:
    """Members of an object are ordered by the length of the key, then by its bytes."""
    key = _bytes(pair[0])
    return len(key), key


def _size(length: int) -> bytes:
    parts = bytearray()
    while True:
        low, length = length & 0x7F, length >> 7
        parts.append(low | (0x80 if length else 0))
        if not length:
            return bytes(parts)


def _encode_container(value: Any, depth: int) -> tuple[int, bytes]:
    is_object = isinstance(value, dict)
    keys: list[bytes] = []
    items = value
    if is_object:
        pairs = sorted(value.items(), key=_place)
        keys, items = [_bytes(key) for key, _ in pairs], [item for _, item in pairs]
    encoded = [_encode(item, depth) for item in items]
    for large in (False, True):
        body = _layout(keys, encoded, large=large)
        if body is not None:
            return (LARGE_OBJECT if large else SMALL_OBJECT) if is_object else (
                LARGE_ARRAY if large else SMALL_ARRAY
            ), body
    raise ValueRefused(3150, "The JSON document is too large.")


def _layout(keys: list[bytes], values: list[tuple[int, bytes]], *, large: bool) -> bytes | None:
    """One container with two- or four-byte offsets; None when it does not fit the two-byte form."""
    width, number = (4, "<I") if large else (2, "<H")
    inline = {LITERAL, INT16, UINT16} | ({INT32, UINT32} if large else set())
    key_at = 2 * width + len(keys) * (width + 2) + len(values) * (width + 1)
    value_at = key_at + sum(map(len, keys))
    total = value_at + sum(len(body) for kind, body in values if kind not in inline)
    if total >= 1 << 8 * width:
        return None
    parts = [struct.pack(number, len(values)), struct.pack(number, total)]
    for key in keys:
        parts.append(struct.pack(number + "H", key_at, len(key)))
        key_at += len(key)
    for kind, body in values:
        if kind in inline:
            parts.append(bytes([kind]) + body.ljust(width, b"\0"))
        else:
            parts.append(bytes([kind]) + struct.pack(number, value_at))
            value_at += len(body)
    return b"".join(parts + keys + [body for kind, body in values if kind not in inline])


# text


def to_text(document: Document, *, point: bool = True) -> str:
    """The text that the server prints for the document. `point`: a whole double shows it (1.0; 5.7
    prints 1)."""
    if isinstance(document, dict):
        return (
            "{"
            + ", ".join(
                f"{_quoted(key)}: {to_text(item, point=point)}" for key, item in document.items()
            )
            + "}"
        )
    if isinstance(document, list):
        return "[" + ", ".join(to_text(item, point=point) for item in document) + "]"
    if document is None or isinstance(document, bool):
        return {None: "null", True: "true", False: "false"}[document]
    if isinstance(document, int):
        return str(int(document))
    if isinstance(document, float):
        text = double_text(document)
        return text if not point or "." in text or "e" in text else text + ".0"
    if isinstance(document, str):
        return _quoted(document)
    return _opaque_text(document)


def _quoted(text: str) -> str:
    return f'"{text if text.isalnum() else text.translate(_ESCAPES)}"'


def _opaque_text(value: OpaqueValue) -> str:
    if value.type_code == NEWDECIMAL and len(value.data) > 2:
        precision, scale = value.data[0], value.data[1]
        size = decimal_bytes(precision, scale, DIGITS_IN_JSON, DIGITS_IN_JSON)
        if size != len(value.data) - 2:
            raise corrupt(f"a DECIMAL({precision},{scale}) of {len(value.data) - 2} bytes")
        return decimal_to_text(precision, scale)(value.data[2:])
    if value.type_code in (DATE, DATETIME, TIMESTAMP, TIME) and len(value.data) == 8:
        packed = int.from_bytes(value.data, "little", signed=True)
        return f'"{_packed_text(value.type_code, packed)}"'
    encoded = (
        base64.encodebytes(value.data).decode().rstrip("\n")
        if len(value.data) > 57
        else base64.b64encode(value.data).decode()
    )
    return _quoted(f"base64:type{value.type_code}:{encoded}")


def _packed_text(type_code: int, packed: int) -> str:
    if type_code == TIME:
        magnitude = abs(packed)
        whole = magnitude >> 24
        seconds = (whole >> 12 & 0x3FF) * 3600 + (whole >> 6 & 0x3F) * 60 + (whole & 0x3F)
        microseconds = seconds * 1_000_000 + (magnitude & 0xFFFFFF)
        return time_text(-microseconds if packed < 0 else microseconds, 6)
    whole = packed >> 24
    year_month = whole >> 22
    parts = (
        year_month // 13, year_month % 13, whole >> 17 & 0x1F,
        whole >> 12 & 0x1F, whole >> 6 & 0x3F, whole & 0x3F, packed & 0xFFFFFF,
    )  # fmt: skip
    text = parts_text(parts, 6)
    return text[:10] if type_code == DATE else text


_HALVES = re.compile(
    r"""\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    |\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.""",
    re.DOTALL | re.VERBOSE,
)
"""Escapes; the group is one that stands for half a character, which servers refuse."""


def parse_text(text: str, *, first: bool | None = None) -> Document:
    """JSON text as the server reads it: integers of up to 64 bits stay exact. `first`: of two
    members of one name the first stands, as in 5.7, or the last (8.0.3 and later); None: nobody
    knows which.

    Raises ValueRefused (3140), and ReplicationError 1235 for such members where nobody knows.
    """
    try:
        if any(escape[1] for escape in _HALVES.finditer(text)):
            raise ValueError("an escape is half a character")
        document = json.loads(
            text,
            parse_int=_integer,
            parse_constant=_no_constant,
            object_pairs_hook=partial(_object, first=first),
        )
    except (ValueError, RecursionError) as error:
        raise ValueRefused(3140, f"Invalid JSON text: {error}") from None
    return document


def _object(pairs: list[tuple[str, Document]], first: bool | None) -> dict[str, Document]:
    found = dict(reversed(pairs) if first else pairs)
    if first is None and len(found) < len(pairs):
        raise ReplicationError(
            NOT_SUPPORTED,
            "a JSON object with two members of one name, of which 5.7 takes the first",
        )
    return dict(sorted(found.items(), key=_place))


def _integer(text: str) -> int | float:
    number = int(text)
    if text.startswith("-"):
        return number if number >= -(1 << 63) else float(text)
    if number >= 1 << 64:
        return float(text)
    return Unsigned(number) if number > 0xFFFFFFFF else number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


# partial updates


@dataclass(frozen=True, slots=True)
class JsonDiff:
    """The after image of a JSON column that the log holds as changes to the before image."""

    data: bytes

    def apply(self, document: bytes) -> bytes:
        """The new document. Raises ReplicationError 3648 when a change does not fit, InputError
        when it cannot be read."""
        root = [decode(document)]
        cursor = Cursor(self.data)
        while cursor.left:
            operation = cursor.u8()
            path = cursor.take(cursor.packed()).decode("utf-8", "surrogateescape")
            value = decode(cursor.take(cursor.packed())) if operation != REMOVE else None
            if operation not in (REPLACE, INSERT, REMOVE) or not _change(
                root, operation, path_legs(path), value
            ):
                raise ReplicationError(3648, f"Could not apply JSON diff at {path}")
        try:
            return encode(root[0])
        except ValueRefused as refused:
            raise ReplicationError(refused.number, refused.message) from None


Leg = str | int | tuple[str, int]
"""A member's name, a cell's number, or ("last", n): the n-th cell from the end."""


_LEG = re.compile(
    r"""\s*(?:\[\s*(?:(?P<cell>[0-9]{1,1000})\s*|last\s*(?:-\s*(?P<last>[0-9]{1,1000})\s*)?)\]
    |\.\s*(?:(?P<quoted>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<name>[^\s.\]\["*]+)))\s*""",
    re.DOTALL | re.VERBOSE,
)


def path_legs(path: str) -> list[Leg]:
    """The steps of a JSON path. Raises InputError for wildcards and ranges, which no single value
    has, and for what is no path."""
    refused = InputError(f"the JSON path {path!r} names no single value", code=Code.BAD_VALUE)
    legs: list[Leg] = []
    at = path.find("$") + 1
    if path[:at].strip() != "$":
        raise refused
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise refused
        at = leg.end()
        if leg["name"] is not None:
            legs.append(leg["name"])
        elif leg["quoted"] is not None:
            try:
                legs.append(json.loads(leg["quoted"], strict=False))
            except ValueError:
                raise refused from None
        else:
            legs.append(
                int(leg["cell"]) if leg["cell"] is not None else ("last", int(leg["last"] or 0))
            )
    return legs


def _change(root: list[Document], operation: int, legs: list[Leg], value: Document) -> bool:
    parent: Any = root
    steps: list[Leg] = [0, *legs]
    for leg in steps[:-1]:
        found = child(parent, leg)
        if found is None:
            return False
        parent = found[0]
    last = cell_of(parent, steps[-1])
    if operation == INSERT:
        if isinstance(parent, list) and isinstance(last, int) and len(steps) > 1:
            parent.insert(min(last, len(parent)), value)
            return True
        if isinstance(parent, dict) and isinstance(last, str) and last not in parent:
            parent[last] = value
            pairs = sorted(parent.items(), key=_place)
            parent.clear()
            parent.update(pairs)
            return True
        return False
    if child(parent, last) is None or (operation == REMOVE and len(steps) == 1):
        return False
    if operation == REMOVE:
        del parent[last]
    else:
        parent[last] = value
    return True


def cell_of(parent: Any, leg: Leg) -> str | int:
    """A leg with the number of its cell in place of "last", -1 where there is none."""
    if isinstance(leg, tuple):
        return len(parent) - 1 - leg[1] if isinstance(parent, list) else -1
    return leg


def child(parent: Any, leg: Leg) -> tuple[Document] | None:
    """The value at a leg in a tuple, None when there is none."""
    leg = cell_of(parent, leg)
    if isinstance(parent, dict) and isinstance(leg, str) and leg in parent:
        return (parent[leg],)
    if isinstance(parent, list) and isinstance(leg, int) and 0 <= leg < len(parent):
        return (parent[leg],)
    return None
