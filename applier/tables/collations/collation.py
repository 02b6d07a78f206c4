"""Sort keys: stored values in the order, and with the equalities, that an index of the server has.

Integers, dates, decimals and packed times are their own sort keys. Text is weighed by its collation
as real servers weigh it (`applier.tables.collations.weights`), character by character and level by
level; where the collation pads, trailing spaces do not count. What is not known is refused: keys
raise `Incomparable` rather than guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from applier.binlog.charsets import ALIASES, CHARSETS, Charset, charset
from applier.binlog.types.numbers import float_codec
from applier.binlog.types.texts import TEXT_TYPES
from applier.tables.collations import weights as tables
from applier.tables.collations.padding import Padding
from applier.tables.collations.weight_keys import Incomparable, Pads, WeightKeys
from lookup.table import Column

SortKey = Callable[[Any], Any]

UNICODE = {
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
"""Character sets whose characters are weighed as code points, and their codecs."""
_TWO_BYTES = rb"[\x80-\xff].|."
_THREE_BYTES = rb"\x8f..|[\x80-\xff].|."
_CHARACTERS = {
    name: re.compile(pattern, re.DOTALL)
    for name, pattern in {
        "big5": _TWO_BYTES, "euckr": _TWO_BYTES, "gb2312": _TWO_BYTES, "gbk": _TWO_BYTES,
        "ujis": _THREE_BYTES, "eucjpms": _THREE_BYTES,
        "sjis": rb"[\x81-\x9f\xe0-\xfc].|.", "cp932": rb"[\x81-\x9f\xe0-\xfc].|.",
        "gb18030": rb"[\x81-\xfe][0-9]..|[\x81-\xfe].|.",
    }.items()
}  # fmt: skip
"""How the bytes of the other character sets are cut into characters; one byte each where it is not
said."""


def sort_key(column: Column, prefix: int | None = None) -> SortKey | None:
    """A function from stored values (not NULL) to sort keys; None when a value is its own.

    `prefix` cuts to that many characters (bytes for binary types) first. The function raises
    Incomparable.
    """
    if column.type in TEXT_TYPES:
        key = _text_key(column.charset, column.collation, prefix)
        return (
            _whole_char(column, prefix, key)
            if column.type == "char" and "nopad_" in (column.collation or "")
            else key
        )
    if column.type in ("float", "double"):
        unpack = float_codec(column).unpack
        return lambda stored: unpack(bytes(stored))[0]
    if prefix is not None:
        return lambda stored: stored[:prefix]
    return None


def _whole_char(column: Column, prefix: int | None, key: SortKey) -> SortKey:
    """MariaDB compares a CHAR of a NOPAD collation with its spaces (seen on 10.11.18).

    In CHAR(5) 'ss' and 'ß', which is one character shorter, are two keys then.
    """
    own, width = charset(column.charset), prefix or column.length or 1

    def padded(stored: bytes) -> Any:
        cut = own.cut(stored, width)
        return key(cut + own.pad * (width - len(own.decode(cut))))

    return padded


def is_exact(collation: str | None) -> bool:
    """Whether the order of a collation is known, for all texts that are well formed in its
    character set."""
    return collation is not None and rule_of(full_name(collation.lower(), "")) is not None


@cache
def _text_key(charset_name: str | None, collation: str | None, prefix: int | None) -> SortKey:
    own = charset(charset_name)
    key = collation_key(full_name((collation or own.default_collation).lower(), own.name))
    if prefix is None:
        return key
    cut = _cut(own, prefix)
    return lambda stored: key(cut(stored))


def _cut(own: Charset, prefix: int) -> Callable[[bytes], bytes]:
    characters = _CHARACTERS.get(own.name)
    if characters is None:
        return lambda stored: own.cut(stored, prefix)
    return lambda stored: (
        stored[:prefix] if stored.isascii() else b"".join(characters.findall(stored)[:prefix])
    )


# names


def full_name(collation: str, charset_name: str) -> str:
    """With the character set in front: MariaDB's `uca1400_ai_ci` goes with several. utf8 is
    utf8mb3."""
    if collation.startswith("uca1400_"):
        return f"{charset_name or 'utf8mb4'}_{collation}"
    first, _, rest = collation.partition("_")
    return f"{ALIASES[first]}_{rest}" if first in ALIASES else collation


@dataclass(frozen=True, slots=True)
class CollationRule:
    """How a collation is made of a table: `table` None: by the bytes. `levels`: which levels count,
    in their order."""

    charset: str
    table: str | None
    levels: tuple[int, ...]
    pads: Pads


_LEVELS = {
    "ai_ci": (0,),
    "as_ci": (0, 1),
    "ai_cs": (0, 2),
    "as_cs": (0, 1, 2),
    "as_cs_ks": (0, 1, 2, 3),
}
_SEVERAL_LEVELS = re.compile(r"(.*(?:0900|uca1400(?:_\w+?)?))_(ai_ci|as_ci|ai_cs|as_cs|as_cs_ks)")


def pads_with_spaces(collation: str) -> bool:
    """PAD SPACE, by the collation's name; the others compare spaces at the end like any
    character."""
    return "nopad_" not in collation and "0900_" not in collation


@cache
def rule_of(collation: str) -> CollationRule | None:
    """None when the collation is not known."""
    if collation == "binary":
        return CollationRule("binary", None, (), Pads(False, False))
    own, _, rest = collation.partition("_")
    # MariaDB's NOPAD is of the first level only
    pads = Pads(pads_with_spaces(rest), "0900_" not in rest)
    rest = rest.replace("nopad_", "")
    if rest in ("bin", "0900_bin"):
        return CollationRule(own, None, (), pads) if own in CHARSETS else None
    table = rest if own in UNICODE else f"{own}_{rest}"
    levels: tuple[int, ...] = (0,)
    several = _SEVERAL_LEVELS.fullmatch(table)
    if several is not None:
        table, levels = several[1], _LEVELS[several[2]]
    return CollationRule(own, table, levels, pads) if table in tables.names() else None


# keys


@cache
def collation_key(collation: str) -> SortKey:
    """The function from stored bytes to sort keys, of a collation by its full name; it raises
    Incomparable."""
    rule = rule_of(collation)
    if rule is None:
        return _refusal(collation)
    if rule.table is not None:
        return weight_keys(collation, rule).function()
    if rule.charset in UNICODE and UNICODE[rule.charset] != "utf-8":
        return _code_point_key(collation, UNICODE[rule.charset], pads=rule.pads.first)
    return _byte_key() if rule.pads.first else bytes


def weight_keys(collation: str, rule: CollationRule) -> WeightKeys:
    """The keys of a collation that has a table."""
    assert rule.table is not None
    table = tables.weights(rule.table)
    if rule.charset in UNICODE:
        codec = UNICODE[rule.charset]
        return WeightKeys(
            collation,
            table,
            rule.levels,
            lambda stored: stored.decode(codec),
            pads=rule.pads,
            whole=128 * (codec == "utf-8"),
        )
    characters = _CHARACTERS.get(rule.charset)
    if characters is not None:
        return WeightKeys(
            collation, table, rule.levels, characters.findall, pads=rule.pads, whole=128
        )
    return WeightKeys(
        collation,
        table,
        rule.levels,
        lambda stored: stored,
        pads=rule.pads,
        whole=256 if table.unit == 1 else 128,
    )


def _byte_key() -> SortKey:
    padding = Padding(" ")
    marked = bytes(0 if byte < ord(" ") else byte for byte in range(256))

    def key(stored: bytes) -> bytes:
        weights = stored.rstrip(b" ")
        return (
            padding.end(weights.decode("latin-1")).encode("latin-1")
            if 0 in weights.translate(marked)
            else weights + b" "
        )

    return key


def _code_point_key(collation: str, codec: str, *, pads: bool) -> SortKey:
    padding = Padding(" ")

    def key(stored: bytes) -> bytes:
        try:
            text = stored.decode(codec)
        except UnicodeDecodeError:
            raise Incomparable(collation) from None
        return (padding.end(text) if pads else text).encode("utf-32-be")

    return key


def _refusal(collation: str) -> SortKey:
    def key(stored: bytes) -> bytes:
        raise Incomparable(collation)

    return key
