"""SQL functions about the bits and digits of integers, with their domains; see
`applier.tables.expressions.functions`."""

from __future__ import annotations

import re
from dataclasses import replace

from applier.tables.expressions.calls import (
    TEXTS,
    WHOLE,
    WORDS,
    Call,
    Function,
    integer_result,
    plain_text,
    text_result,
)
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Value,
)

_ALL_BITS = (1 << 64) - 1
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_BASE = len(_DIGITS)
_SPACES = " \t\n\v\f\r"


def _converted(text: str, source: int, target: int) -> str | None:
    """CONV: digits of one base as those of another; a negative base is one with a sign
    (`Item_func_conv::val_str`, sql/item_strfunc.cc)."""
    if not (2 <= abs(source) <= _MOST_BASE and 2 <= abs(target) <= _MOST_BASE) or not text:
        return None
    number = _number_at_head(text, abs(source), signed=source < 0)
    sign = "-" if target < 0 and number >> 63 else ""
    return sign + _digits((1 << 64) - number if sign else number, abs(target))


def _number_at_head(text: str, base: int, *, signed: bool) -> int:
    """The 64 bits that `my_strntoll` and `my_strntoull` read; what goes beyond them is cut."""
    rest = text.lstrip(_SPACES)
    negative = rest.startswith("-")
    found = 0
    for letter in rest[1:] if rest[:1] in ("-", "+") else rest:
        digit = _DIGITS.find(letter.upper()) if letter.isascii() else -1
        if not 0 <= digit < base:
            break
        found = found * base + digit
    if signed:
        least, most = -(1 << 63), (1 << 63) - 1
        return min(max(-found if negative else found, least), most) & _ALL_BITS
    if found > _ALL_BITS:
        return _ALL_BITS
    return -found & _ALL_BITS if negative else found


def _digits(number: int, base: int) -> str:
    found = ""
    while number >= base:
        number, digit = divmod(number, base)
        found = _DIGITS[digit] + found
    return _DIGITS[number] + found


def _address(call: Call) -> Operand:
    most = None if call.dialect.mariadb else 4
    return integer_result(lambda text: _address_number(text, most), unsigned=True)(call)


def _address_number(text: str, most: int | None) -> int | None:
    """INET_ATON; 127.1 is 127.0.0.1 (`Item_func_inet_aton`). MariaDB takes more than four parts."""
    if not re.fullmatch(r"(?:[0-9]*\.)*[0-9]+", text):
        return None
    parts = [int(part or 0) for part in text.split(".")]
    if len(parts) > (most or len(parts)) or any(part > 255 for part in parts):
        return None
    head = 0
    for part in parts[:-1]:
        head = (head << 8) + part
    missing = {2: 2, 3: 1}.get(len(parts), 0)
    return ((head << 8 * missing) << 8) + parts[-1] & _ALL_BITS


def _address_text(number: int) -> str | None:
    if not 0 <= number < 1 << 32:
        return None
    return ".".join(str(byte) for byte in number.to_bytes(4, "big"))


def _make_set(call: Call) -> Operand:
    """MAKE_SET: the texts whose bits are set; NULLs are left out."""
    bits, *texts = call.arguments

    def value(scope: Scope) -> Value:
        chosen = bits.value(scope)
        if chosen is None:
            return None
        found = (text.value(scope) for at, text in enumerate(texts) if chosen >> at & 1)
        return ",".join(text for text in found if text is not None)

    return replace(text_result(lambda *values: None)(call), value=value)


def _exported(bits: int, on: str, off: str, between: str = ",", count: int = 64) -> str:
    """EXPORT_SET: one text for each bit that is set, another for the others."""
    width = count if 0 <= count <= 64 else 64
    return between.join(on if bits >> at & 1 else off for at in range(width))


def _characters(call: Call) -> Operand:
    """CHAR without USING: bytes; NULLs are left out."""

    def value(scope: Scope) -> Value:
        numbers = (argument.value(scope) for argument in call.arguments)
        return b"".join(_bytes_of(number & 0xFFFFFFFF) for number in numbers if number is not None)

    return Operand(OperandKind.BINARY, value, call.sql)


def _bytes_of(number: int) -> bytes:
    return number.to_bytes(max((number.bit_length() + 7) // 8, 1), "big")


def _set_bits(bits: int) -> int:
    return (bits & _ALL_BITS).bit_count()


BIT_FUNCTIONS: dict[str, Function] = {
    "BIT_COUNT": Function((WHOLE,), integer_result(_set_bits), 1, 1),
    "CONV": Function((TEXTS, WHOLE), plain_text(_converted), 3, 3),
    "INET_ATON": Function((WORDS,), _address, 1, 1),
    "INET_NTOA": Function((WHOLE,), plain_text(_address_text), 1, 1),
    "MAKE_SET": Function((WHOLE, WORDS), _make_set, 2),
    "EXPORT_SET": Function((WHOLE, WORDS, WORDS, WORDS, WHOLE), text_result(_exported), 3, 5),
    "CHAR": Function((WHOLE,), _characters, 1),
}
