"""The SQL functions that defaults, generated columns and simple statements use, by name. Each takes the session first."""

from __future__ import annotations

import hashlib
import json as stdlib_json
import re
import zlib
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from applier.binlog.types import json
from applier.binlog.types.temporal import parse_datetime
from applier.tables.sql_values import Value, compare, number, remainder, text, unsupported
from lookup.table import Column

Function = Callable[..., Value]
_DATETIME = Column("", "datetime", scale=6)


def strict(function: Function) -> Function:
    """NULL in, NULL out."""

    def call(session: Any, *arguments: Value) -> Value:
        return None if any(argument is None for argument in arguments) else function(session, *arguments)

    return call


def _now(session: Any, digits: Value = 0) -> datetime:
    keep = 10 ** (6 - int(digits or 0))
    moment: datetime = session.now
    return moment.replace(microsecond=moment.microsecond // keep * keep)


def _substring(_session: Any, value: Value, start: Value, length: Value = None) -> str:
    data, at = text(value), int(start)
    begin = at - 1 if at > 0 else len(data) + at if at < 0 else len(data)
    if begin < 0:
        return ""
    return data[begin:] if length is None else data[begin : begin + max(int(length), 0)]


def _round(_session: Any, value: Value, places: Value = 0) -> Value:
    if isinstance(value, float):
        return round(value, int(places))
    number = Decimal(text(value))
    rounded = number.quantize(Decimal(1).scaleb(-int(places)), ROUND_HALF_UP)
    return int(rounded) if isinstance(value, int) or int(places) <= 0 else rounded


def _json_extract(_session: Any, document: Value, path: Value) -> Value:
    found: Any = [json.parse_text(text(document))]
    for leg in [0, *json.path_legs(text(path))]:
        inner = json.child(found, leg)
        if inner is None:
            return None
        found = inner[0]
    return JsonText(json.to_text(found), found)


class JsonText(str):
    """JSON text together with the value it stands for."""

    value: Any

    def __new__(cls, text: str, value: Any) -> JsonText:
        self = super().__new__(cls, text)
        self.value = value
        return self


def _json_unquote(_session: Any, value: Value) -> Value:
    if isinstance(value, JsonText):
        return value.value if isinstance(value.value, str) else str(value)
    plain = text(value)
    return str(stdlib_json.loads(plain)) if plain.startswith('"') and plain.endswith('"') and len(plain) > 1 else plain


def _cast(session: Any, value: Value, kind: str) -> Value:
    if value is None:
        return None
    base = kind.split("(", maxsplit=1)[0].strip()
    plain = value.value if isinstance(value, JsonText) else value
    unsigned = base.startswith("u") or base.endswith("unsigned")
    if unsigned or base in ("signed", "bigint", "int", "signed integer"):
        number = Decimal(_leading_number(plain)).to_integral_value(ROUND_HALF_UP)
        return int(number) % (1 << 64) if unsigned and number < 0 else int(number)
    if base in ("char", "varchar", "text", "nchar"):
        limit = kind.partition("(")[2].rstrip(")").strip()
        return text(plain)[: int(limit)] if limit.isdigit() else text(plain)
    if base in ("decimal", "numeric"):
        scale = int(kind.partition(",")[2].rstrip(") ") or 0)
        return Decimal(_leading_number(plain)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if base in ("double", "float", "real"):
        return float(_leading_number(plain))
    if base == "date":
        return date(*parse_datetime(text(plain), _DATETIME)[:3])
    if base in ("datetime", "timestamp"):
        return datetime(*parse_datetime(text(plain), _DATETIME))
    if base in ("binary", "varbinary"):
        return text(plain).encode("utf-8", "surrogateescape")
    if base == "json":
        return JsonText(json.to_text(json.parse_text(text(plain))), json.parse_text(text(plain)))
    raise unsupported(f"CAST(… AS {kind})")


def _leading_number(value: Value) -> str:
    found = number(value)
    return text(found if found is not None else 0) if not isinstance(found, float) else repr(found)


def _concat(_session: Any, *values: Value) -> str:
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return "".join(map(text, flat))


def _concat_ws(_session: Any, separator: Value, *values: Value) -> Value:
    return None if separator is None else text(separator).join(text(value) for value in values if value is not None)


def _digest(name: str) -> Function:
    return strict(lambda session, value: hashlib.new(name, _raw(value)).hexdigest())


def _raw(value: Value) -> bytes:
    return value if isinstance(value, bytes) else text(value).encode("utf-8", "surrogateescape")


def _hex(_session: Any, value: Value) -> str:
    return f"{value:X}" if isinstance(value, int) else _raw(value).hex().upper()


def _part(name: str) -> Function:
    places = {"YEAR": 0, "MONTH": 1, "DAY": 2, "HOUR": 3, "MINUTE": 4, "SECOND": 5}
    return strict(lambda session, value: parse_datetime(text(value), _DATETIME)[places[name]])


def like(value: str, pattern: str) -> bool:
    """LIKE without regard to case. What stands between two % has a fixed length, so the leftmost place for each is the right one.

    One regular expression for the whole would try every place of every part: %a%a%a%a%b never ends.
    """
    pieces: list[list[str]] = [[]]
    for part in re.findall(r"\\.|.", pattern, re.DOTALL):
        if part == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if part == "_" else re.escape(part[-1]))
    first, *others = (re.compile("".join(piece), re.DOTALL | re.IGNORECASE) for piece in pieces)
    start = first.match(value)
    if start is None or not others:
        return start is not None and start.end() == len(value)
    at, last = start.end(), len(value) - len(pieces[-1])
    for piece in others[:-1]:
        found = piece.search(value, at)
        if found is None:
            return False
        at = found.end()
    return last >= at and others[-1].match(value, last) is not None


def _coalesce(_session: Any, *values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _nullif(_session: Any, one: Value, two: Value) -> Value:
    return None if compare(one, two) == 0 else one


def _mod(one: Value, two: Value) -> Value:
    dividend, divisor = number(one), number(two)
    if not divisor:
        return None
    return remainder(dividend, divisor)


def _extreme(choose: Callable[..., Value]) -> Function:
    return strict(lambda session, *values: choose(values))


FUNCTIONS: dict[str, Function] = {
    "RAND": lambda session, *seed: session.random(),
    "NOW": _now,
    "CURRENT_TIMESTAMP": _now,
    "LOCALTIME": _now,
    "LOCALTIMESTAMP": _now,
    "SYSDATE": _now,
    "CURRENT_DATE": lambda session: session.now.date(),
    "CURDATE": lambda session: session.now.date(),
    "CURRENT_TIME": lambda session, digits=0: timedelta(hours=session.now.hour, minutes=session.now.minute, seconds=session.now.second),
    "UNIX_TIMESTAMP": lambda session: int((session.now - session.offset - datetime(1970, 1, 1)).total_seconds()),
    "LAST_INSERT_ID": lambda session: session.last_insert_id,
    "CONCAT": strict(_concat),
    "CONCAT_WS": _concat_ws,
    "UPPER": strict(lambda session, value: text(value).upper()),
    "LOWER": strict(lambda session, value: text(value).lower()),
    "UCASE": strict(lambda session, value: text(value).upper()),
    "LCASE": strict(lambda session, value: text(value).lower()),
    "LEFT": strict(lambda session, value, count: text(value)[: max(int(count), 0)]),
    "RIGHT": strict(lambda session, value, count: text(value)[-int(count) :] if int(count) > 0 else ""),
    "SUBSTRING": strict(_substring),
    "SUBSTR": strict(_substring),
    "MID": strict(_substring),
    "LENGTH": strict(lambda session, value: len(_raw(value))),
    "CHAR_LENGTH": strict(lambda session, value: len(text(value))),
    "CHARACTER_LENGTH": strict(lambda session, value: len(text(value))),
    "REPEAT": strict(lambda session, value, count: _repeated(text(value), int(count))),
    "REVERSE": strict(lambda session, value: text(value)[::-1]),
    "REPLACE": strict(lambda session, value, old, new: text(value).replace(text(old), text(new))),
    "TRIM": strict(lambda session, value: text(value).strip(" ")),
    "LTRIM": strict(lambda session, value: text(value).lstrip(" ")),
    "RTRIM": strict(lambda session, value: text(value).rstrip(" ")),
    "LPAD": strict(lambda session, value, size, pad: _pad(text(value), int(size), text(pad), left=True)),
    "RPAD": strict(lambda session, value, size, pad: _pad(text(value), int(size), text(pad), left=False)),
    "HEX": strict(_hex),
    "UNHEX": strict(lambda session, value: bytes.fromhex(text(value))),
    "MD5": _digest("md5"),
    "SHA": _digest("sha1"),
    "SHA1": _digest("sha1"),
    "CRC32": strict(lambda session, value: zlib.crc32(_raw(value))),
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _nullif,
    "ABS": strict(lambda session, value: abs(value)),
    "ROUND": strict(_round),
    "FLOOR": strict(lambda session, value: int(Decimal(text(value)).to_integral_value("ROUND_FLOOR"))),
    "CEIL": strict(lambda session, value: int(Decimal(text(value)).to_integral_value("ROUND_CEILING"))),
    "MOD": strict(lambda session, one, two: _mod(one, two)),
    "GREATEST": _extreme(max),
    "LEAST": _extreme(min),
    "YEAR": _part("YEAR"),
    "MONTH": _part("MONTH"),
    "DAY": _part("DAY"),
    "HOUR": _part("HOUR"),
    "MINUTE": _part("MINUTE"),
    "SECOND": _part("SECOND"),
    "DATE": strict(lambda session, value: date(*parse_datetime(text(value), _DATETIME)[:3])),
    "JSON_EXTRACT": strict(_json_extract),
    "JSON_UNQUOTE": strict(_json_unquote),
    "CAST": _cast,
}
FUNCTIONS["JSON_EXTRACT_SCALAR"] = strict(lambda session, document, path: _json_unquote(session, _json_extract(session, document, path)))


MAX_PACKET = 64 << 20
"""max_allowed_packet: a longer result is NULL (warning 1301)."""


def _repeated(value: str, count: int) -> str | None:
    return None if len(value) * count > MAX_PACKET else value * max(count, 0)


def _pad(value: str, size: int, pad: str, *, left: bool) -> str | None:
    if size < 0 or size > MAX_PACKET or (not pad and len(value) < size):
        return None if size < 0 or size > MAX_PACKET else ""
    if len(value) >= size:
        return value[:size]
    filler = (pad * size)[: size - len(value)]
    return filler + value if left else value + filler
