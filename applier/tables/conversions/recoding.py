"""Text on its way into another character set: characters that it lacks, bytes that are no text."""

from __future__ import annotations

from applier.binlog.charsets import LONE_SURROGATE, Charset
from applier.tables.conversions.conversion_rules import ConversionRules

WIDE_CHARSETS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Those without characters of one byte."""


def encoded(own: Charset, text: str) -> bytes:
    """Text in a character set; what it lacks becomes a question mark.

    So does a surrogate that stands alone, unless the character set is UTF-8.
    """
    if own.codec != "utf-8":
        text = LONE_SURROGATE.sub("?", text)
    try:
        return own.encode(text)
    except UnicodeError:
        return b"".join(_character(own, char) for char in text)


def _character(own: Charset, char: str) -> bytes:
    try:
        return own.encode(char)
    except UnicodeError:
        return own.encode("?")


def well_formed(own: Charset, data: bytes, rules: ConversionRules) -> bytes:
    """The bytes up to the first that are no text of the character set; one of single bytes takes
    all."""
    if own.max_bytes == 1 and (own.name != "ascii" or rules.flavour != "8.0+"):
        return data
    text = own.decode(data)
    lacks = 0x10000 if own.name in ("utf8mb3", "ucs2") else 0x110000
    bad = next(
        (at for at, char in enumerate(text) if "\ud800" <= char <= "\udfff" or ord(char) >= lacks),
        None,
    )
    return data if bad is None else encoded(own, text[:bad])


def with_questions(own: Charset, data: bytes) -> bytes:
    """MariaDB puts a question mark for each byte that is no text."""
    if own.max_bytes == 1 or own.name in WIDE_CHARSETS:
        return data
    text = own.decode(data)
    astral = "????" if own.name == "utf8mb3" else None
    return encoded(
        own,
        "".join(
            "?" if "\ud800" <= char <= "\udfff" else astral if astral and char > "\uffff" else char
            for char in text
        ),
    )
