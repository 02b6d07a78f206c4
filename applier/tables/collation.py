"""Sort keys: stored values in the order, and with the equalities, that an index of the server has.

Integers, dates, decimals and packed times are their own sort keys. Text is folded by its collation: case and accents go as
the collation says, trailing spaces count only where it is NO PAD. For ASCII text the keys of the common collations are
exact; beyond ASCII letters fold to their base letter and other scripts sort by code point, which keeps equality right for
the scripts that the tests cover and order approximate. `is_exact` tells.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from applier.binlog.charsets import Charset, charset
from applier.binlog.types.numbers import float_codec
from applier.binlog.types.texts import TEXT_TYPES
from lookup.table import Column

SortKey = Callable[[Any], Any]

_UCA_ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
"""ASCII in the order of the default Unicode collation table; the other control characters are ignored."""
_UCA_TABLE = bytes(
    1 + _UCA_ORDER.index(chr(code).lower()) if chr(code).lower() in _UCA_ORDER else 0 for code in range(128)
) + bytes(range(128, 256))
_UCA_IGNORED = bytes(code for code in range(128) if chr(code).lower() not in _UCA_ORDER)
_UCA_SPACE = bytes([1 + _UCA_ORDER.index(" ")])
_STROKES = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ŧ": "t"})
_SWEDISH = {"Å": "[", "Ä": "\\", "Æ": "\\", "Ö": "]", "Ø": "]", "Ü": "Y", "Ð": "D", "Þ": "Þ"}


def sort_key(column: Column, prefix: int | None = None) -> SortKey | None:
    """A function from stored values (not NULL) to sort keys; None when a value is its own.

    `prefix` cuts to that many characters (bytes for binary types) first.
    """
    if column.type in TEXT_TYPES:
        return _text_key(column.charset, column.collation, prefix)
    if column.type in ("float", "double"):
        unpack = float_codec(column).unpack
        return lambda stored: unpack(stored)[0]
    if prefix is not None:
        return lambda stored: stored[:prefix]
    return None


def is_exact(collation: str | None) -> bool:
    """Whether keys of this collation are exact for all text, not only for ASCII."""
    return collation is not None and (collation == "binary" or collation.endswith("_bin"))


@lru_cache(maxsize=512)
def _text_key(charset_name: str | None, collation: str | None, prefix: int | None) -> SortKey:
    own = charset(charset_name)
    name = (collation or own.default_collation).lower()
    fold = _fold(own, name)
    if prefix is None:
        return fold
    return lambda stored: fold(own.cut(stored, prefix))


def _fold(own: Charset, name: str) -> SortKey:
    no_pad = "_0900_" in name or "nopad" in name or name == "binary"
    if name == "binary" or name.endswith("_bin"):
        return bytes if no_pad else _binary_padded(own.pad)
    ascii_alike = own.codec == "utf-8" or own.max_bytes == 1
    if "_0900_" in name or "unicode" in name or "uca1400" in name:
        return _unicode_key(own, ascii_alike, no_pad=no_pad, accents=_accents(name), case="_cs" in name)
    if name.endswith("_cs"):
        return _binary_padded(own.pad)
    return _general_key(own, ascii_alike, _swedish_letter if name == "latin1_swedish_ci" else _general_letter)


def _accents(name: str) -> bool:
    return "_as_" in name or name.endswith("_cs")


def _binary_padded(pad: bytes) -> SortKey:
    if len(pad) == 1:
        return lambda stored: stored.rstrip(b" ") + b" "
    return lambda stored: stored.rstrip(pad) + pad


def _general_key(own: Charset, ascii_alike: bool, letter: Callable[[str], str]) -> SortKey:
    """*_general_ci and its kin: upper case letter by letter, trailing spaces ignored."""
    decode = own.decode

    def key(stored: bytes) -> bytes:
        if ascii_alike and stored.isascii():
            return stored.upper().rstrip(b" ") + b" "
        text = "".join(map(letter, decode(stored).rstrip(" ")))
        return text.encode("utf-8", "surrogatepass") + b" "

    return key


def _general_letter(char: str) -> str:
    """One character folded as general_ci does: base letter in upper case; beyond the BMP all characters are alike."""
    if char > "\uffff":
        return "\ufffd"
    if char == "ß":
        return "S"
    base = unicodedata.normalize("NFD", char)[0] if char < "\u2000" else char
    upper = base.upper()
    return upper if len(upper) == 1 else base


def _swedish_letter(char: str) -> str:
    upper = char.upper()
    return _SWEDISH.get(upper) or (char if char == "ß" else _general_letter(char))


def _unicode_key(own: Charset, ascii_alike: bool, *, no_pad: bool, accents: bool, case: bool) -> SortKey:
    """UCA collations: base letters first, then accents, then case, as far as the collation looks at them."""
    decode = own.decode
    end = b"" if no_pad else _UCA_SPACE

    def key(stored: bytes) -> bytes:
        if ascii_alike and stored.isascii():
            text = ""
            primary = stored.translate(_UCA_TABLE, _UCA_IGNORED)
        else:
            text = decode(stored)
            primary = _primary(text)
        if not no_pad:
            primary = primary.rstrip(_UCA_SPACE)
        primary += end
        if not accents:
            return primary
        text = text or decode(stored)
        secondary = unicodedata.normalize("NFD", text.casefold()).encode("utf-8", "surrogatepass")
        tertiary = b"\0" + text.swapcase().encode("utf-8", "surrogatepass") if case else b""
        return primary + b"\0" + secondary + tertiary

    return key


def _primary(text: str) -> bytes:
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_STROKES))
    parts = []
    for char in letters:
        if char < "\x80":
            parts.append(char.encode().translate(_UCA_TABLE, _UCA_IGNORED))
        elif not unicodedata.combining(char):
            parts.append(b"\xff" + ord(char).to_bytes(3, "big"))
    return b"".join(parts)
