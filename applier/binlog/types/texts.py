"""Text, binary strings, ENUM, SET, BIT, and MariaDB's UUID and INET types: stored value <-> Python
<-> the server's text."""

from __future__ import annotations

import ipaddress
import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from applier.binlog.charsets import charset
from applier.binlog.types.base import ValueRefused, text_of
from applier.binlog.types.numbers import double_text
from lookup.table import Column

TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
MAX_BYTES = {"tinytext": 255, "text": 65535, "mediumtext": (1 << 24) - 1, "longtext": (1 << 32) - 1}
MAX_BYTES |= {name.replace("text", "blob"): size for name, size in MAX_BYTES.items()}
UUID_ORDER = (slice(10, 16), slice(8, 10), slice(6, 8), slice(4, 6), slice(0, 4))
"""MariaDB before 10.11.5 logged a UUID of RFC 4122's versions 1 to 5 in the order of its index,
last group first (sql_type_uuid.h)."""


def _is_turned(raw: bytes) -> bool:
    """Whether the bytes of a UUID can only stand in the order of the index. A real 10.11.19 refuses
    text that reads like that."""
    return raw[6] & 0xC0 == 0x80 and 1 <= raw[8] >> 4 <= 5


def text_to_python(column: Column) -> Callable[[bytes], str | bytes]:
    """CHAR, VARCHAR and TEXT as str; as the stored bytes where they are no text of the character
    set."""
    decode = charset(column.charset).decode

    def convert(stored: bytes) -> str | bytes:
        text = decode(stored)
        return stored if any("\ud800" <= char <= "\udfff" for char in text) else text

    return convert


def text_to_text(column: Column) -> Callable[[bytes], str]:
    """CHAR, VARCHAR and TEXT as a server shows them; bytes that are no text become surrogates."""
    return charset(column.charset).shown


def text_from_sql(column: Column) -> Callable[[object], bytes]:
    """CHAR, VARCHAR and TEXT from SQL values, in the column's character set; spaces beyond the end
    go. The function raises ValueRefused 1406 or 1366."""
    own = charset(column.charset)
    is_char, limit, width = column.type == "char", column.length, MAX_BYTES.get(column.type)
    plain_utf8 = own.codec == "utf-8"

    def convert(value: object) -> bytes:
        if isinstance(value, bytes):
            data = value
        else:
            text = (
                double_text(value)
                if isinstance(value, float)
                else format(value, "f")
                if isinstance(value, Decimal)
                else text_of(value)
            )
            try:
                data = own.encode(text)
            except UnicodeError:
                raise ValueRefused(
                    1366, f"Incorrect string value for column '{column.name}'"
                ) from None
        if is_char:
            data = strip_pad(data, own.pad)
        if limit is not None and width is None and len(data) > limit:
            count = len(own.decode(data)) if plain_utf8 or own.max_bytes > 1 else len(data)
            if count > limit:
                kept = own.cut(data, limit)
                if strip_pad(data[len(kept) :], own.pad):
                    kept = strip_pad(kept, own.pad) if is_char else kept
                    raise ValueRefused(1406, f"Data too long for column '{column.name}'", kept)
                return kept
        if width is not None and len(data) > width:
            kept = own.whole(data, width)
            if strip_pad(data[len(kept) :], own.pad):
                raise ValueRefused(1406, f"Data too long for column '{column.name}'", kept)
            return kept
        return data

    return convert


def strip_pad(data: bytes, pad: bytes) -> bytes:
    """Takes pad characters off the end; `pad` may have several bytes (UCS-2)."""
    if len(pad) == 1:
        return data.rstrip(pad)
    while data.endswith(pad):
        data = data[: -len(pad)]
    return data


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else text_of(value).encode("utf-8", "surrogateescape")


def binary_from_sql(column: Column) -> Callable[[object], bytes]:
    """BINARY, VARBINARY and BLOB from SQL values. The function raises ValueRefused 1406, too
    long."""
    fixed, limit = column.type == "binary", column.length or MAX_BYTES.get(column.type)

    def convert(value: object) -> bytes:
        data = _bytes_of(value)
        if limit is not None and len(data) > limit:
            raise ValueRefused(1406, f"Data too long for column '{column.name}'", data[:limit])
        return data.rstrip(b"\0") if fixed else data

    return convert


def vector_from_sql(column: Column) -> Callable[[object], bytes]:
    """VECTOR from the bytes of its floats (`Field_vector::store`; seen on 9.7.4). The function
    raises ValueRefused 1406, too many dimensions, which become none, and 6136 for what is no
    vector."""
    limit = 4 * (column.length or 0)

    def convert(value: object) -> bytes:
        data = _bytes_of(value)
        count, rest = divmod(len(data), 4)
        if not count or rest or not all(map(math.isfinite, struct.unpack(f"<{count}f", data))):
            raise ValueRefused(6136, f"'{column.name}' cannot be converted to 'vector' type")
        if len(data) > limit:
            raise ValueRefused(1406, f"Data too long for column '{column.name}'", b"")
        return data

    return convert


def binary_to_python(column: Column) -> Callable[[bytes], bytes]:
    """BINARY with its zero bytes, VARBINARY and BLOB as they are."""
    if column.type != "binary":
        return bytes
    width = 1 if column.length is None else column.length
    return lambda stored: stored.ljust(width, b"\0")


def binary_to_text(column: Column) -> Callable[[bytes], str]:
    """BINARY, VARBINARY and BLOB in hexadecimal digits."""
    to_python = binary_to_python(column)
    return lambda stored: to_python(stored).hex().upper()


# ENUM, SET, BIT


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of an ENUM or SET as keys: exactly, and in whatever case and without spaces at the
    end. Numbers begin with 1."""

    exact: dict[str, int]
    folded: dict[str, int]
    is_ascii: bool


@lru_cache(maxsize=256)
def labels_of(labels: tuple[str, ...]) -> Labels:
    """Made once for all values of a column: there may be 65,535 labels, and a statement may have as
    many values."""
    numbers = {
        label.rstrip(" ").casefold(): at for at, label in reversed(list(enumerate(labels, 1)))
    }
    return Labels(
        {label: at for at, label in enumerate(labels, 1)},
        numbers,
        all(label.isascii() for label in labels),
    )


def enum_to_text(column: Column) -> Callable[[int], str]:
    """ENUM's label; "" for the error value 0."""
    labels = column.labels
    return lambda stored: labels[stored - 1] if 0 < stored <= len(labels) else ""


def enum_to_python(column: Column) -> Callable[[int], str | int]:
    """ENUM's label; its index where the labels are not known."""
    return enum_to_text(column) if column.labels else int


def enum_from_sql(column: Column) -> Callable[[object], int]:
    """ENUM from a label or an index. The function raises ValueRefused 1265 for another one."""
    labels = labels_of(column.labels)
    decode = charset(column.charset).decode

    def convert(value: object) -> int:
        if isinstance(value, int):
            return int(value)
        text = (
            decode(value)
            if isinstance(value, bytes) and column.charset not in ("utf8", "utf8mb3")
            else text_of(value)
        )
        found = labels.exact.get(text) or labels.folded.get(text.rstrip(" ").casefold())
        if found is None and text.isdigit() and int(text) <= len(labels.exact):
            found = int(text)
        if found is None and text == "":
            return 0
        if found is None:
            raise ValueRefused(1265, f"Data truncated for column '{column.name}'", 0)
        return found

    return convert


def set_to_text(column: Column) -> Callable[[int], str]:
    """SET's labels, joined by commas."""
    labels = column.labels
    return lambda stored: ",".join(label for at, label in enumerate(labels) if stored >> at & 1)


def set_to_python(column: Column) -> Callable[[int], str | int]:
    """SET's labels, joined by commas; the mask where the labels are not known."""
    return set_to_text(column) if column.labels else int


def set_from_sql(column: Column) -> Callable[[object], int]:
    """SET from labels or a mask; spaces count but at the text's end. The function raises
    ValueRefused 1265 for other ones, which the server leaves out (`find_set`, sql/strfunc.cc)."""
    labels, pad = labels_of(column.labels), "" if column.charset == "binary" else " "

    def convert(value: object) -> int:
        if isinstance(value, int):
            return int(value)
        text = text_of(value)
        text = text.rstrip(pad)
        mask, missing = 0, False
        for label in text.split(",") if text else ():
            number = labels.exact.get(label)
            if number is None and not label.endswith(" "):
                number = labels.folded.get(label.casefold())
            missing = missing or number is None
            mask |= 0 if number is None else 1 << (number - 1)
        if missing and text.isdigit():
            return int(text)
        if missing:
            raise ValueRefused(1265, f"Data truncated for column '{column.name}'", mask)
        return mask

    return convert


def bit_from_sql(column: Column) -> Callable[[object], int]:
    """BIT from numbers and bit strings. The function raises ValueRefused 1406, too long."""
    most = (1 << (column.length or 1)) - 1

    def convert(value: object) -> int:
        number = (
            int(value)
            if isinstance(value, (int, Decimal))
            else int.from_bytes(_bytes_of(value), "big")
        )
        if not 0 <= number <= most:
            raise ValueRefused(1406, f"Data too long for column '{column.name}'", most)
        return number

    return convert


# MariaDB


def uuid_to_text(_column: Column) -> Callable[[bytes], str]:
    """The text of a UUID in either stored order."""

    def convert(stored: bytes) -> str:
        raw = stored.ljust(16, b"\0")
        if _is_turned(raw):
            raw = b"".join(raw[part] for part in UUID_ORDER)
        return str(uuid.UUID(bytes=raw))

    return convert


def uuid_from_sql(column: Column) -> Callable[[object], bytes]:
    """Stored as the log of a real 10.11.19 has it: in the order of the text, whatever the
    version."""

    def convert(value: object) -> bytes:
        refused = ValueRefused(
            1292, f"Incorrect uuid value: '{text_of(value)}' for column '{column.name}'"
        )
        try:
            raw = (
                value
                if isinstance(value, bytes) and len(value) == 16
                else uuid.UUID(text_of(value)).bytes
            )
        except ValueError:
            raise refused from None
        if _is_turned(raw):
            raise refused
        return raw.rstrip(b"\0")

    return convert


def address_to_text(column: Column) -> Callable[[bytes], str]:
    """MariaDB's INET4 and INET6 as the server prints them."""
    if column.type == "inet4":
        return lambda stored: str(ipaddress.IPv4Address(stored.ljust(4, b"\0")))
    return lambda stored: _inet6_text(stored.ljust(16, b"\0"))


def _inet6_text(raw: bytes) -> str:
    """As MariaDB prints it: IPv4 addresses keep their dots, and a single group of zeros is left
    out, too (10.11.18)."""
    address = ipaddress.IPv6Address(raw)
    if (
        raw[:10] == bytes(10)
        and raw[10:12] in (b"\xff\xff", b"\0\0")
        and (raw[10:12] != b"\0\0" or raw[12:14] != b"\0\0")
    ):
        return f"::{'ffff:' if raw[10] else ''}{ipaddress.IPv4Address(raw[12:])}"
    text = str(address)
    groups = text.split(":")
    if "::" in text or "0" not in groups:
        return text
    at = groups.index("0")
    return f"{':'.join(groups[:at])}::{':'.join(groups[at + 1 :])}"


def _inet6(value: bytes | str) -> ipaddress.IPv6Address:
    """An IPv4 address goes into an INET6 column as a mapped one (Inet4 to Inet6,
    sql_type_inet.cc)."""
    address = ipaddress.ip_address(value)
    return (
        address
        if isinstance(address, ipaddress.IPv6Address)
        else ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
    )


def address_from_sql(column: Column) -> Callable[[object], bytes]:
    """MariaDB's INET4 and INET6 from text or bytes. The function raises ValueRefused 1292 for what
    is no address."""
    size, kind = (4, ipaddress.IPv4Address) if column.type == "inet4" else (16, _inet6)

    def convert(value: object) -> bytes:
        try:
            address = kind(
                value if isinstance(value, bytes) and len(value) == size else text_of(value)
            )
        except ValueError:
            raise ValueRefused(
                1292,
                f"Incorrect {column.type} value: '{text_of(value)}' for column '{column.name}'",
            ) from None
        return address.packed.rstrip(b"\0")

    return convert
