"""Literals of SQL as operands, in the character set that they are in, and user variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from applier.binlog.charsets import Charset, charset, charset_of_collation_name, literal_bytes
from applier.tables.expressions.comparisons import moment_of
from applier.tables.expressions.operands import (
    COLUMN,
    Dialect,
    Operand,
    OperandKind,
    Value,
    constant,
    unsupported,
)

_VARIABLE_KINDS: Mapping[type, OperandKind] = {
    int: OperandKind.INTEGER,
    Decimal: OperandKind.DECIMAL,
    float: OperandKind.DOUBLE,
    str: OperandKind.TEXT,
    bytes: OperandKind.BINARY,
}


def number_literal(text: str) -> Operand:
    """An INTEGER, DECIMAL or DOUBLE as it is written."""
    if text.isdigit():
        value = int(text)
        if value < 1 << 64:
            return constant(OperandKind.INTEGER, value, sql=text, unsigned=value >= 1 << 63)
        raise unsupported(f"the number {text[:80]}")
    if "e" in text.lower():
        number = float(text)
        if number - number != 0:
            raise unsupported(f"the number {text[:80]}")
        return constant(OperandKind.DOUBLE, number, sql=text)
    decimal = Decimal(text)
    digits = max(-int(decimal.as_tuple().exponent), 0)
    if len(decimal.as_tuple().digits) > 65 or digits > 30:
        raise unsupported(f"the number {text[:80]}")
    return constant(OperandKind.DECIMAL, decimal, sql=text[:40], digits=digits)


def user_variable(word: str, value: Value) -> Operand:
    """@word with its value, which gives it a type."""
    if value is None:
        return constant(OperandKind.NULL, None, sql=word)
    kind = _VARIABLE_KINDS[type(value)]
    digits = max(-int(value.as_tuple().exponent), 0) if isinstance(value, Decimal) else 0
    unsigned = isinstance(value, int) and value >= 1 << 63
    return replace(
        constant(kind, value, sql=word, digits=digits, unsigned=unsigned, strength=COLUMN),
        literal=False,
    )


def bit_bytes(literal: str) -> bytes:
    """The bytes of b'…' and 0b…."""
    bits_text = literal[2:].rstrip("'")
    return int(bits_text, 2).to_bytes((len(bits_text) + 7) // 8, "big") if bits_text else b""


SWE7_LETTERS = frozenset("@[\\]^`{|}~")
"""Where swe7 has letters and ASCII has none."""


def string_literal(text: str, dialect: Dialect) -> Operand:
    """A text in the connection's collation; what its character set lacks is refused.

    Bytes that are no text, as the log has them of a prepared statement's BLOB parameter, are good
    for columns of bytes only.
    """
    own = charset(charset_of_collation_name(dialect.collation))
    if own.name == "binary":
        return constant(
            OperandKind.BINARY, literal_bytes(dialect.client, text), sql=f"'{text[:40]}'"
        )
    if dialect.client == "swe7" and SWE7_LETTERS.intersection(text):
        raise unsupported(f"the text {text[:40]!r} of a client with the character set swe7")
    if not text.isascii():
        try:
            lost = own.decode(own.encode(text)) != text or any(
                "\ud800" <= char <= "\udfff" for char in text
            )
        except UnicodeError:
            lost = True
        if lost and dialect.client == own.name and own.codec == "utf-8":
            return constant(
                OperandKind.OTHER, text.encode("utf-8", "surrogateescape"), sql=f"'{text[:40]}'"
            )
        if lost:
            raise unsupported(f"the text {text[:40]!r} in the character set {own.name}")
    return constant(OperandKind.TEXT, text, sql=f"'{text[:40]}'", collation=dialect.collation)


def introduced(name: str, data: bytes, dialect: Dialect) -> Operand:
    """_charset and the bytes of a literal. Raises ReplicationError 1235 for bytes that are no text
    of the character set."""
    own = charset(name)
    if own.name == "binary":
        return constant(OperandKind.BINARY, data, sql="_binary …")
    if own.pad != b" ":
        data = b"\0" * (-len(data) % len(own.pad)) + data
    text = well_formed(own, data)
    if text is None:
        raise unsupported(f"_{name} 0x{data.hex()[:40]}")
    return constant(
        OperandKind.TEXT,
        text,
        sql=f"_{name}'{text[:40]}'",
        collation=literal_collation(own, dialect),
    )


def well_formed(own: Charset, data: bytes) -> str | None:
    """The text that bytes are in a character set; None where they are none."""
    text = own.decode(data)
    try:
        wrong = own.encode(text) != data or any("\ud800" <= char <= "\udfff" for char in text)
    except UnicodeError:
        wrong = True
    return None if wrong else text


def literal_collation(own: Charset, dialect: Dialect) -> str:
    """The collation that a character set has where an expression names it alone."""
    if own.name != "utf8mb4":
        return own.default_collation
    return "utf8mb4_0900_ai_ci" if dialect.is_modern else "utf8mb4_general_ci"


def moment_literal(word: str, text: str) -> Operand:
    """DATE '…', TIME '…', TIMESTAMP '…'."""
    value = moment_of(text)
    kind = {"DATE": OperandKind.DATE, "TIME": OperandKind.TIME, "TIMESTAMP": OperandKind.DATETIME}[
        word
    ]
    if isinstance(value, int) != (kind is OperandKind.TIME) or (kind is OperandKind.DATE) != bool(
        re.fullmatch(r"[\d-]+", text)
    ):
        raise unsupported(f"{word} '{text[:40]}'")
    digits = len(text.partition(".")[2])
    return constant(kind, value, sql=f"{word} '{text}'", digits=digits)
