"""The SQL functions that are exact here, by name, each with its domain: the types of arguments for
which it is.

A function that is not in the table, and arguments outside of its domain, are refused with 1235.
Held against real servers by tests/tables/test_functions_servers.py.
"""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from typing import Any

from applier.tables.expressions.calls import (
    ANY,
    EXACT_NUMBERS,
    PRINTED,
    RAW,
    REAL_NUMBERS,
    STRINGS,
    TEXTS,
    WHOLE,
    WORDS,
    Call,
    Domain,
    Function,
    as_bytes,
    binary_result,
    integer_result,
    plain_text,
    string_result,
    text_result,
    unchanged,
)
from applier.tables.expressions.choices import coalesce, elt, extreme, nullif
from applier.tables.expressions.comparisons import comparison, text_key
from applier.tables.expressions.operands import (
    EXPLICIT,
    NUMERIC,
    Operand,
    OperandKind,
    Scope,
    Value,
    constant,
    shared_collation,
    unsupported,
)
from applier.tables.expressions.operators import (
    EXACT,
    arithmetic,
    checked_integer,
    null_or,
    signed_zero,
)

MAX_PACKET = 64 << 20
"""max_allowed_packet: a longer result is NULL (warning 1301)."""


# text


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    """Case of other letters is the character set's."""

    def of(text: str) -> str:
        if not text.isascii():
            raise unsupported(f"another case of '{text[:40]}'")
        return change(text)

    return of


def _substring(value: Any, start: int, length: int | None = None) -> Any:
    begin = start - 1 if start > 0 else len(value) + start if start < 0 else len(value)
    if begin < 0 or (length is not None and length <= 0):
        return value[:0]
    return value[begin:] if length is None else value[begin : begin + length]


def _left(value: Any, count: int) -> Any:
    return value[: max(count, 0)]


def _right(value: Any, count: int) -> Any:
    return value[-count:] if count > 0 else value[:0]


def _replaced(value: str, old: str, new: str) -> str:
    return value.replace(old, new) if old else value


def _replace(call: Call) -> Operand:
    """REPLACE. 5.x and MariaDB look for the text before they look at a replacement that is NULL,
    where they search byte by byte (`Item_func_replace::val_str`)."""
    found = text_result(_replaced)(call)
    if call.dialect.is_modern:
        return found
    text, wanted, _ = call.arguments
    collation = found.collation or ""
    by_bytes = collation.endswith("_bin") or found.charset.max_bytes == 1

    def value(scope: Scope) -> Value:
        given, search = text.value(scope), wanted.value(scope)
        if given is None or search is None:
            return None
        is_there = search in given if by_bytes else True
        return found.value(scope) if search and is_there else given

    return replace(found, value=value)


def _repeated(value: Any, count: int) -> Any:
    return None if len(value) * count > MAX_PACKET else value * max(count, 0)


def _padded(*, left: bool) -> Callable[[Call], Operand]:
    """LPAD and RPAD. Filled with nothing a short text is NULL in 5.x and MariaDB, and itself in
    9.7.4: raises ReplicationError 1235 for 8.0 and later, as it may not be so in all of them."""

    def build(call: Call) -> Operand:
        def fill(value: str, size: int, pad: str) -> str | None:
            if size < 0 or size > MAX_PACKET:
                return None
            if len(value) >= size:
                return value[:size]
            if not pad and call.dialect.is_modern:
                raise unsupported(call.sql)
            filler = (pad * size)[: size - len(value)]
            return (filler + value if left else value + filler) if pad else None

        return text_result(fill)(call)

    return build


def trimmed(text: str, cut: str, side: str) -> str:
    """TRIM."""
    while cut and side != "TRAILING" and text.startswith(cut):
        text = text[len(cut) :]
    while cut and side != "LEADING" and text.endswith(cut):
        text = text[: -len(cut)]
    return text


def _concat_ws(call: Call) -> Operand:
    texts = [argument for argument in call.arguments if argument.kind is OperandKind.TEXT]
    collation, strength = shared_collation(texts) if texts else (call.dialect.collation, NUMERIC)
    separator, *others = call.arguments

    def value(scope: Scope) -> Value:
        between = separator.value(scope)
        if between is None:
            return None
        found = [other.value(scope) for other in others]
        return between.join(text for text in found if text is not None)

    return Operand(OperandKind.TEXT, value, call.sql, collation=collation, strength=strength)


def _unhex(value: bytes) -> bytes | None:
    digits = value.decode("ascii", "replace")
    try:
        return bytes.fromhex("0" * (len(digits) % 2) + digits) if " " not in digits else None
    except ValueError:
        return None


def _hex(call: Call) -> Operand:
    (argument,) = call.arguments
    if argument.kind in (OperandKind.INTEGER, OperandKind.YEAR):
        return plain_text(lambda value: f"{value & (1 << 64) - 1:X}")(call)
    if argument.kind in (
        OperandKind.DECIMAL,
        OperandKind.DOUBLE,
        OperandKind.FLOAT,
        OperandKind.DATE,
        OperandKind.DATETIME,
        OperandKind.TIME,
    ):
        raise unsupported(call.sql)
    raw = replace(
        call,
        arguments=[
            argument if argument.kind is OperandKind.NULL else as_bytes(argument, call.dialect)
        ],
    )
    return plain_text(lambda value: value.hex().upper())(raw)


def _locate(call: Call) -> Operand:
    texts, start = call.arguments[:2], call.arguments[-1]
    if (len(call.arguments) > 2 and not start.literal) or start.kind is OperandKind.NULL:
        raise unsupported(call.sql)
    if call.dialect.is_modern and any(text.strength == EXPLICIT for text in texts):
        # INSTR('ABC', 'a' COLLATE utf8mb4_bin) is 1 on 9.7.4
        raise unsupported(f"{call.sql}: an explicit collation")
    plain = constant(OperandKind.TEXT, "", collation="utf8mb4_bin")
    collation, _ = shared_collation(
        [text for text in texts if text.kind is OperandKind.TEXT] or [plain]
    )
    folded = not collation.endswith(("_bin", "_cs"))
    if folded:
        text_key(collation)

    def find(wanted: str, value: str, start: int = 1) -> int:
        if folded:
            if not (
                wanted.isascii()
                and value.isascii()
                and wanted.isprintable()
                and value.isprintable()
            ):
                raise unsupported(f"the place of '{wanted[:40]}' in the collation {collation}")
            wanted, value = wanted.lower(), value.lower()
        if start < 1 or start > len(value) + 1:
            return 0
        return value.find(wanted, start - 1) + 1

    return integer_result(find)(call)


def _instr(call: Call) -> Operand:
    return _locate(replace(call, arguments=call.arguments[::-1]))


def _field(call: Call) -> Operand:
    wanted, *others = call.arguments
    if len({argument.kind for argument in call.arguments} - {OperandKind.NULL}) > 1:
        raise unsupported(call.sql)
    orders = [comparison(wanted, other, call.dialect) for other in others]
    return Operand(
        OperandKind.INTEGER,
        lambda scope: next((at for at, order in enumerate(orders, 1) if order(scope) == 0), 0),
        call.sql,
    )


def _sha2(value: bytes, size: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(size)
    return None if name is None else hashlib.new(name, value).hexdigest()


def _known(build: Callable[[Call], Operand]) -> Callable[[Call], Operand]:
    """The last argument must be a number that stands in the statement: MariaDB takes NULL for
    one."""

    def checked(call: Call) -> Operand:
        if call.arguments[-1].kind is OperandKind.NULL or not call.arguments[-1].literal:
            raise unsupported(call.sql)
        return build(call)

    return checked


def _to_base64(value: bytes) -> str:
    text = base64.b64encode(value).decode()
    return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))


# numbers


def _kept(compute: Callable[[Any], Any]) -> Callable[[Call], Operand]:
    """A number of the argument's own type."""

    def build(call: Call) -> Operand:
        (argument,) = call.arguments
        return replace(
            argument, value=null_or([argument], compute), sql=call.sql, literal=False, column=None
        )

    return build


def _absolute(call: Call) -> Operand:
    (argument,) = call.arguments
    if argument.kind is OperandKind.INTEGER:
        return _kept(
            lambda value: checked_integer(abs(value), call.sql, unsigned=argument.unsigned)
        )(call)
    return _kept(EXACT.abs if argument.kind is OperandKind.DECIMAL else abs)(call)


def _pi(call: Call) -> Operand:
    return Operand(OperandKind.DOUBLE, lambda scope: math.pi, call.sql)


def _sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


def _modulo(call: Call) -> Operand:
    return arithmetic("%", call.arguments[0], call.arguments[1], call.dialect)


def _square_root(call: Call) -> Operand:
    root = null_or(call.arguments, lambda value: math.sqrt(value) if value >= 0 else None)
    return Operand(OperandKind.DOUBLE, root, call.sql)


def _whole_double(turn: Callable[[float], int], value: float, call: Call) -> float:
    """A DOUBLE without digits: it keeps its sign when it is zero."""
    return signed_zero(math.copysign(abs(turn(value)), value), call.sql, call.dialect)


def _to_whole(rounding: str) -> Callable[[Call], Operand]:
    """FLOOR and CEILING. A DOUBLE stays one."""

    def build(call: Call) -> Operand:
        (argument,) = call.arguments
        if argument.kind is OperandKind.DOUBLE:
            turn = math.floor if rounding == ROUND_FLOOR else math.ceil
            return replace(
                argument,
                value=null_or([argument], lambda value: _whole_double(turn, value, call)),
                sql=call.sql,
                column=None,
            )

        def compute(value: Any) -> Value:
            whole = int(Decimal(value).to_integral_value(rounding))
            return checked_integer(whole, call.sql, unsigned=argument.unsigned)

        return Operand(
            OperandKind.INTEGER, null_or([argument], compute), call.sql, unsigned=argument.unsigned
        )

    return build


def _to_places(rounding: str) -> Callable[[Call], Operand]:
    """ROUND and TRUNCATE of exact numbers, to places that stand in the statement."""

    def build(call: Call) -> Operand:
        argument = call.arguments[0]
        given = call.arguments[1] if len(call.arguments) > 1 else constant(OperandKind.INTEGER, 0)
        if not given.literal or given.kind is OperandKind.NULL or argument.kind is OperandKind.NULL:
            raise unsupported(call.sql)
        wanted = int(given.value(Scope((), _NO_SESSION)))
        if argument.kind is OperandKind.DECIMAL and wanted > argument.digits:
            raise unsupported(call.sql)
        digits = max(min(wanted, argument.digits), 0)
        places = Decimal(1).scaleb(-max(min(wanted, argument.digits), -66))
        final = Decimal(1).scaleb(-digits)

        def compute(value: Any) -> Value:
            number = Decimal(value)
            if rounding != ROUND_DOWN:
                return number.quantize(places, context=EXACT).quantize(final, context=EXACT)
            found = number.quantize(places, ROUND_DOWN, EXACT).quantize(final, context=EXACT)
            if not found and found.is_signed():
                raise unsupported(f"{call.sql}: a negative zero")
            return found

        def whole(value: Any) -> Value:
            return checked_integer(int(compute(value)), call.sql, unsigned=argument.unsigned)

        if argument.kind is OperandKind.INTEGER:
            return Operand(
                OperandKind.INTEGER,
                null_or([argument], whole),
                call.sql,
                unsigned=argument.unsigned,
            )
        return Operand(OperandKind.DECIMAL, null_or([argument], compute), call.sql, digits)

    return build


_NO_SESSION: Any = None


# NULL


def _is_null(call: Call) -> Operand:
    (one,) = call.arguments
    return Operand(OperandKind.INTEGER, lambda scope: int(one.value(scope) is None), call.sql)


PRINTED_OR_BYTES = Domain(PRINTED | {OperandKind.BINARY, OperandKind.HEX}, unchanged)
TEXT_OR_INTEGER = Domain(frozenset({OperandKind.TEXT, OperandKind.INTEGER}), unchanged)
_ALIASES = {
    "UCASE": "UPPER", "LCASE": "LOWER", "SUBSTR": "SUBSTRING", "MID": "SUBSTRING",
    "CHARACTER_LENGTH": "CHAR_LENGTH", "OCTET_LENGTH": "LENGTH", "SHA": "SHA1",
    "IFNULL": "COALESCE", "NVL": "COALESCE", "CEIL": "CEILING",
}  # fmt: skip
FUNCTIONS: dict[str, Function] = {
    "CONCAT": Function((STRINGS,), string_result(lambda *values: values[0][:0].join(values)), 1),
    "CONCAT_WS": Function((TEXTS,), _concat_ws, 2),
    "UPPER": Function((WORDS,), text_result(_ascii(str.upper)), 1, 1),
    "LOWER": Function((WORDS,), text_result(_ascii(str.lower)), 1, 1),
    "LEFT": Function((STRINGS, WHOLE), string_result(_left, sources=1), 2, 2),
    "RIGHT": Function((STRINGS, WHOLE), string_result(_right, sources=1), 2, 2),
    "SUBSTRING": Function((STRINGS, WHOLE), string_result(_substring, sources=1), 2, 3),
    "CHAR_LENGTH": Function((TEXTS,), integer_result(len), 1, 1),
    "LENGTH": Function((RAW,), integer_result(len), 1, 1),
    "BIT_LENGTH": Function((RAW,), integer_result(lambda value: len(value) * 8), 1, 1),
    "REPEAT": Function((STRINGS, WHOLE), string_result(_repeated, sources=1), 2, 2),
    "SPACE": Function((WHOLE,), plain_text(lambda count: _repeated(" ", count)), 1, 1),
    "REVERSE": Function((STRINGS,), string_result(lambda value: value[::-1]), 1, 1),
    "REPLACE": Function((TEXTS,), _replace, 3, 3),
    "TRIM": Function((TEXTS,), text_result(lambda value: value.strip(" ")), 1, 1),
    "LTRIM": Function((TEXTS,), text_result(lambda value: value.lstrip(" ")), 1, 1),
    "RTRIM": Function((TEXTS,), text_result(lambda value: value.rstrip(" ")), 1, 1),
    "LPAD": Function((TEXTS, WHOLE, TEXTS), _padded(left=True), 3, 3),
    "RPAD": Function((TEXTS, WHOLE, TEXTS), _padded(left=False), 3, 3),
    "ASCII": Function((RAW,), integer_result(lambda value: value[0] if value else 0), 1, 1),
    "LOCATE": Function((TEXTS, TEXTS, WHOLE), _locate, 2, 3),
    "INSTR": Function((TEXTS,), _instr, 2, 2),
    "ELT": Function((WHOLE, TEXTS), elt, 2),
    "FIELD": Function((TEXT_OR_INTEGER,), _field, 2),
    "HEX": Function((PRINTED_OR_BYTES,), _hex, 1, 1),
    "UNHEX": Function((RAW,), binary_result(_unhex), 1, 1),
    "BIN": Function((WHOLE,), plain_text(lambda value: f"{value & (1 << 64) - 1:b}"), 1, 1),
    "OCT": Function((WHOLE,), plain_text(lambda value: f"{value & (1 << 64) - 1:o}"), 1, 1),
    "MD5": Function((RAW,), plain_text(lambda value: hashlib.md5(value).hexdigest()), 1, 1),
    "SHA1": Function((RAW,), plain_text(lambda value: hashlib.sha1(value).hexdigest()), 1, 1),
    "SHA2": Function((RAW, WHOLE), _known(plain_text(_sha2)), 2, 2),
    "CRC32": Function((RAW,), integer_result(zlib.crc32, unsigned=True), 1, 1),
    "TO_BASE64": Function((RAW,), plain_text(_to_base64), 1, 1),
    "ABS": Function((REAL_NUMBERS,), _absolute, 1, 1),
    "SIGN": Function((REAL_NUMBERS,), integer_result(_sign), 1, 1),
    "FLOOR": Function((REAL_NUMBERS,), _to_whole(ROUND_FLOOR), 1, 1),
    "CEILING": Function((REAL_NUMBERS,), _to_whole(ROUND_CEILING), 1, 1),
    "ROUND": Function((EXACT_NUMBERS, WHOLE), _to_places("ROUND_HALF_UP"), 1, 2),
    "TRUNCATE": Function((EXACT_NUMBERS, WHOLE), _to_places(ROUND_DOWN), 2, 2),
    "PI": Function((ANY,), _pi, 0, 0),
    "MOD": Function((REAL_NUMBERS,), _modulo, 2, 2),
    "SQRT": Function((REAL_NUMBERS,), _square_root, 1, 1),
    "GREATEST": Function((ANY,), extreme(1), 2),
    "LEAST": Function((ANY,), extreme(-1), 2),
    "COALESCE": Function((ANY,), coalesce, 1),
    "NULLIF": Function((ANY,), nullif, 2, 2),
    "ISNULL": Function((ANY,), _is_null, 1, 1),
}  # fmt: skip
FUNCTIONS |= {alias: FUNCTIONS[name] for alias, name in _ALIASES.items()}
