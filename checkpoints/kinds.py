"""How a value stands in a line of an info file and in a cell of an info table.

Files hold text, one value per line (sql/rpl_info_file.cc, do_set_info): integers in decimal, the
heartbeat period with three decimals, booleans as 0 and 1, an enumeration as the number of its
label, a list of server ids as its length and its members. The tables hold the same values in
columns of their own types (sql/rpl_info_table.cc); only an enumeration is shown there by its label.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

_DECIMAL = re.compile(rb"-?(?:0|[1-9][0-9]{0,19})\Z")
_THREE_DECIMALS = re.compile(rb"-?(?:0|[1-9][0-9]{0,19})\.[0-9]{3}\Z")
_INTEGER_PREFIX = re.compile(rb"\s*([+-]?[0-9]{1,20})")
_FLOAT_PREFIX = re.compile(rb"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))")
_MAX_SERVER_IDS = 1 << 16


@dataclass(frozen=True, slots=True)
class FieldKind:
    """One sort of value; its functions raise ValueError with a reason. `scan` is what a server's
    scanf makes of a damaged line, `convert` what strtoul does."""

    name: str
    to_line: Callable[[Any], bytes]
    from_line: Callable[[bytes], Any]
    to_cell: Callable[[Any], Any]
    from_cell: Callable[[Any], Any]
    scan: Callable[[bytes], Any]
    convert: Callable[[bytes], Any] | None = None
    """None: `scan`."""


def _same(value: Any) -> Any:
    return value


def _text_line(value: str | None) -> bytes:
    line = (value or "").encode("utf-8", "surrogateescape")
    if b"\n" in line or b"\0" in line:
        raise ValueError("a text with a line feed or a zero byte has no place in a file of lines")
    return line


def _line_text(line: bytes) -> str:
    if b"\0" in line:
        raise ValueError("zero bytes where a text should be, as a crash of the machine leaves them")
    return line.decode("utf-8", "surrogateescape")


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    if not isinstance(cell, str):
        raise ValueError(f"{cell!r} is not text")
    return cell


def _cell_or_null(cell: Any) -> str | None:
    return None if cell is None else _cell_text(cell)


def _line_or_null(line: bytes) -> str | None:
    return _line_text(line) or None


def _integer(name: str, low: int, high: int, *, wraps: bool = False) -> FieldKind:
    def checked(value: Any) -> int:
        if not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{value!r} is no {name} between {low} and {high}")
        return int(value)

    def from_line(line: bytes) -> int:
        if not _DECIMAL.match(line):
            raise ValueError(f"{_shown(line)} is not a number as a server writes it")
        return checked(int(line))

    def scan(line: bytes) -> int:
        found = _INTEGER_PREFIX.match(line)
        if found is None:
            raise ValueError(f"{_shown(line)} does not begin with a number")
        return checked(int(found[1]))

    def convert(line: bytes) -> int:
        """What is below 0 counts from the other end."""
        value = _converted_int(line)
        return checked(value + high + 1 if wraps and value < 0 else value)

    return FieldKind(
        name, lambda value: b"%d" % checked(value), from_line, checked, checked, scan, convert
    )


def _converted_int(line: bytes) -> int:
    """Without a number in front, 0."""
    found = _INTEGER_PREFIX.match(line)
    return int(found[1]) if found is not None else 0


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _boolean_cell(cell: Any) -> bool:
    if cell not in (0, 1):
        raise ValueError(f"{cell!r} is neither 0 nor 1")
    return bool(cell)


def _boolean_line(line: bytes) -> bool:
    if line not in (b"0", b"1"):
        raise ValueError(f"{_shown(line)} is neither 0 nor 1")
    return line == b"1"


def _three_decimals(line: bytes) -> float:
    if not _THREE_DECIMALS.match(line):
        raise ValueError(f"{_shown(line)} is not a number with three decimals")
    return float(line)


def _scan_float(line: bytes) -> float:
    found = _FLOAT_PREFIX.match(line)
    if found is None:
        raise ValueError(f"{_shown(line)} does not begin with a number")
    return float(found[1])


def _float_cell(cell: Any) -> float:
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        raise ValueError(f"{cell!r} is not a number")
    return float(cell)


def _pack_server_ids(ids: tuple[int, ...]) -> bytes:
    return b" ".join(b"%d" % number for number in (len(ids), *ids))


def _unpack_server_ids(line: bytes) -> tuple[int, ...]:
    words = line.split(b" ")
    if not all(_DECIMAL.match(word) for word in words):
        raise ValueError(f"{_shown(line)} is not a list of server ids")
    count, *ids = map(int, words)
    if (
        count != len(ids)
        or count > _MAX_SERVER_IDS
        or any(not 0 <= number < 1 << 32 for number in ids)
    ):
        raise ValueError(f"{_shown(line)} announces {count} server ids and lists {len(ids)}")
    return tuple(ids)


def _scan_server_ids(line: bytes) -> tuple[int, ...]:
    """No more ids than announced, but fewer will do; none where the first word is no number."""
    words = line.split()
    if words and not words[0][:1].isdigit():
        return ()
    if not words or not all(map(bytes.isdigit, words)):
        raise ValueError(f"{_shown(line)} is not a list of server ids")
    return tuple(int(word) for word in words[1 : 1 + int(words[0])])


def _scan_all_ids(line: bytes) -> tuple[int, ...]:
    ids = _scan_server_ids(line)
    if len(ids) != _converted_int(line):
        raise ValueError(f"{_shown(line)} announces more ids than it lists")
    return ids


def _ids_cell(cell: Any) -> tuple[int, ...]:
    return _unpack_server_ids(_text_line(_cell_text(cell)) or b"0")


def _bytes_cell(cell: Any) -> bytes:
    if not isinstance(cell, (bytes, bytearray)):
        raise ValueError(f"{cell!r} are no bytes")
    return bytes(cell)


def enumeration(*labels: str, first: int = 1) -> FieldKind:
    """Labels numbered from 1, as ENUM columns are, or from `first`. Its functions raise
    ValueError."""
    number = _integer("number of a label", first, first + len(labels) - 1)

    def checked(cell: Any) -> str:
        if cell not in labels:
            raise ValueError(f"{cell!r} is none of {', '.join(labels)}")
        return str(cell)

    return FieldKind(
        "enumeration",
        lambda label: number.to_line(labels.index(checked(label)) + first),
        lambda line: labels[number.from_line(line) - first],
        checked,
        checked,
        lambda line: labels[number.scan(line) - first],
    )


def reserved(line: bytes) -> FieldKind:
    """A line that a server writes and never reads. Its functions raise ValueError."""

    def from_line(found: bytes) -> None:
        if found != line:
            raise ValueError(f"{_shown(found)} in a line that the server keeps free")

    return FieldKind("reserved", lambda _: line, from_line, _same, _same, lambda _: None)


TEXT = FieldKind("text", _text_line, _line_text, _same, _cell_text, _line_text)
NULLABLE_TEXT = FieldKind(
    "text or NULL", _text_line, _line_or_null, _same, _cell_or_null, _line_or_null
)
"""In a file NULL is an empty line (8.0 rpl_info_file.cc do_set_info(nullptr)), so an empty text
comes back as NULL."""
UNSIGNED = _integer("unsigned number", 0, (1 << 32) - 1)
UNSIGNED_LONG = _integer("unsigned number", 0, (1 << 64) - 1, wraps=True)
SIGNED = _integer("number", -(1 << 31), (1 << 31) - 1)
BOOLEAN = FieldKind(
    "boolean",
    lambda value: b"%d" % bool(value),
    _boolean_line,
    int,
    _boolean_cell,
    lambda line: bool(UNSIGNED.scan(line)),
    lambda line: bool(_converted_int(line)),
)
SECONDS = FieldKind(
    "seconds", lambda value: b"%.3f" % value, _three_decimals, _same, _float_cell, _scan_float
)
SERVER_IDS = FieldKind(
    "server ids",
    _pack_server_ids,
    _unpack_server_ids,
    lambda ids: _pack_server_ids(ids).decode(),
    _ids_cell,
    _scan_server_ids,
)
ALL_IDS = replace(SERVER_IDS, name="ids", scan=_scan_all_ids)
"""As MariaDB reads them: none may be missing."""
BITMAP = FieldKind("bitmap", bytes, bytes, bytes, _bytes_cell, bytes)
"""The only value that is no line: raw bytes, as many as the line before says, and no line feed
after them."""
