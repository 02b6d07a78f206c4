"""Sort keys of texts, made of the weights of their characters.

A key is a run of bytes: the weights of level after level, with a zero byte between. The weights of
ASCII take one byte each, so that an ASCII text is weighed by one `bytes.translate`; those between
them take a byte that says between which, and their own two.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from applier.errors import ReplicationError
from applier.tables.collations.padding import Padding
from applier.tables.collations.weights import Levels, Weights

Characters = Callable[[bytes], Any]
"""Cuts stored bytes into characters: a string of code points, or a list of bytes."""
_CONTRACTED = 0xD800
"""Contractions stand in a text as lone surrogates, which no text has."""


class Incomparable(ReplicationError):
    """Error 1235: a text whose place in the order of a collation is not known."""

    def __init__(self, collation: str) -> None:
        super().__init__(
            1235,
            f"the order of this text in the collation {collation} is not known, and a guess might"
            " find another row",
            hint=(
                "leave the table out with --exclude-table, skip the event with --skip-errors 1235,"
                " or replay into a test DB"
            ),
        )
        self.collation = collation

    def in_key(self, key: str, table: str) -> Incomparable:
        """The same error, of a key of a table."""
        error = Incomparable(self.collation)
        error.message = f"key {key}: {error.message}"
        error.locate(table=table)
        return error


class Pads(NamedTuple):
    """Whether texts are compared as if they went on with spaces, at the first level and at the
    others."""

    first: bool
    others: bool


class WeightKeys:
    """The sort keys of one collation. `levels` count, in this order. `whole`: so many bytes are
    characters by themselves, from 0 on."""

    def __init__(
        self,
        collation: str,
        weights: Weights,
        levels: tuple[int, ...],
        characters: Characters,
        *,
        pads: Pads,
        whole: int,
    ) -> None:
        self._collation = collation
        self._characters = characters
        self._contractions = Contractions(weights) if weights.contractions else None
        self._levels = [_Level(weights, level) for level in levels]
        of_bytes = [[level[code] for code in range(max(whole, 128))] for level in self._levels]
        self._packings = [_Packing(weights.unit, found[:128]) for found in of_bytes]
        padded = [pads.first, *(pads.others for _ in levels[1:])]
        self._paddings = [
            Padding(found[ord(" ")]) if is_padded else None
            for found, is_padded in zip(of_bytes, padded, strict=True)
        ]
        self._of_bytes = of_bytes
        self._whole = whole
        self.unit = weights.unit

    def weigh(self, stored: bytes) -> list[str]:
        """The weights at each level, as WEIGHT_STRING gives them. Raises Incomparable."""
        try:
            text = self._characters(stored)
            characters = text if self._contractions is None else self._contractions.put_into(text)
            weights = ["".join(map(level.__getitem__, characters)) for level in self._levels]
            return (
                weights
                if self._contractions is None
                else self._contractions.in_context(text, weights, self._levels)
            )
        except (KeyError, UnicodeDecodeError):
            raise Incomparable(self._collation) from None

    def key(self, stored: bytes) -> bytes:
        """The sort key, of any text. Raises Incomparable."""
        levels = zip(self.weigh(stored), self._paddings, self._packings, strict=True)
        return b"\0".join(
            [
                packing.pack(weights if padding is None else padding.end(weights))
                for weights, padding, packing in levels
            ]
        )

    def function(self) -> Callable[[bytes], bytes]:
        """The same as `key`, quick where the text is all single bytes."""
        if not self._whole or any(
            len(weights) > 1 for found in self._of_bytes for weights in found
        ):
            return self.key
        quick = [
            _quick(*level)
            for level in zip(self._of_bytes, self._packings, self._paddings, strict=True)
        ]
        contraction = None if self._contractions is None else self._contractions.in_ascii
        if len(quick) == 1 and contraction is None:
            return _of_one_level(quick[0], self.key, self._whole)
        return _of_levels(quick, self.key, contraction)


Quick = Callable[[bytes], bytes | None]
"""Packed weights of a text of single bytes at one level; None when they need more than a table."""


def _quick(found: list[str], packing: _Packing, padding: Padding | None) -> Quick:
    packed = [packing.pack(weights) for weights in found]
    table = b"".join(weight or b"\0" for weight in packed).ljust(256, b"\0")
    ignored = bytes(code for code, weight in enumerate(packed) if not weight)
    if padding is None:
        return lambda stored: stored.translate(table, ignored)
    space = packed[ord(" ")]
    marked = bytes(0 if weight < space[0] else weight for weight in table)

    def padded(stored: bytes) -> bytes | None:
        weights = stored.translate(marked, ignored)
        return None if 0 in weights else weights.rstrip(space) + space

    return padded


def _of_one_level(
    quick: Quick, key: Callable[[bytes], bytes], whole: int
) -> Callable[[bytes], bytes]:
    def every(stored: bytes) -> bytes:
        return quick(stored) or key(stored)

    def of_ascii(stored: bytes) -> bytes:
        return (quick(stored) if stored.isascii() else None) or key(stored)

    return every if whole == 256 else of_ascii


def _of_levels(
    quick: list[Quick], key: Callable[[bytes], bytes], contraction: re.Pattern[bytes] | None
) -> Callable[[bytes], bytes]:
    def of_ascii(stored: bytes) -> bytes:
        if not stored.isascii() or (contraction is not None and contraction.search(stored)):
            return key(stored)
        parts = [weights for level in quick if (weights := level(stored)) is not None]
        return b"\0".join(parts) if len(parts) == len(quick) else key(stored)

    return of_ascii


class _Level(dict[Any, str]):
    """The weights of characters at one level, looked up when they are first met. Characters are
    strings, bytes or numbers."""

    def __init__(self, weights: Weights, level: int) -> None:
        super().__init__()
        self._weights = weights
        self._level = level
        self._contracted = list(weights.contractions.values())

    def __missing__(self, character: Any) -> str:
        found = self._find(character if isinstance(character, int) else number_of(character))
        if found is None:
            raise KeyError(character)
        weights = self[character] = found[self._level] if self._level < len(found) else ""
        return weights

    def _find(self, code: int) -> Levels | None:
        if self._contracted and _CONTRACTED <= code < _CONTRACTED + len(self._contracted):
            return self._contracted[code - _CONTRACTED]
        return self._weights.of(code)


def number_of(character: str | bytes) -> int:
    """The code of a character in the tables: its code point, or its bytes as a number; four bytes
    of gb18030 are counted through."""
    if isinstance(character, str):
        return ord(character)
    if len(character) < 4:
        return int.from_bytes(character, "big")
    first, second, third, fourth = character
    return (
        0x10000 + ((first - 0x81) * 10 + second - 0x30) * 1260 + (third - 0x81) * 10 + fourth - 0x30
    )


class Contractions:
    """Puts a lone surrogate in the place of each contraction, the longest first."""

    def __init__(self, weights: Weights) -> None:
        texts = list(weights.contractions)
        self._marks = {text: chr(_CONTRACTED + at) for at, text in enumerate(texts)}
        self._any = _any_of(texts)
        ascii_texts = [text for text in texts if text.isascii()]
        self._context = weights.context
        self.in_ascii = (
            re.compile(_any_of(ascii_texts).pattern.encode("ascii")) if ascii_texts else None
        )

    def put_into(self, text: str) -> str:
        """The text with its contractions."""
        return self._any.sub(lambda found: self._marks[found[0]], text)

    def in_context(self, text: str, weights: list[str], levels: list[_Level]) -> list[str]:
        """The weights as they are where the first character follows the last one.

        From level to level the scanner of 9.7.4 keeps the character that it has read last, and so
        it takes the text's last character for the one before its first at all levels but the first.
        """
        mark = self._marks.get(text[-1] + text[0]) if self._context and len(text) > 1 else None
        if mark is None:
            return weights
        cut = [
            level[mark].removeprefix(level[text[-1]]) + own.removeprefix(level[text[0]])
            for own, level in zip(weights, levels, strict=True)
        ]
        return [weights[0], *cut[1:]]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


class _Packing:
    """Weights of one level as bytes that sort alike. Zero bytes are kept for what stands between
    levels."""

    def __init__(self, unit: int, of_ascii: list[str]) -> None:
        self._known = (
            sorted({weight for weights in of_ascii for weight in weights}) if unit == 2 else []
        )
        self._packed: dict[str, bytes] = {
            weight: bytes([2 * at + 2]) for at, weight in enumerate(self._known)
        }
        self._unit = unit

    def pack(self, weights: str) -> bytes:
        if self._unit == 1:
            return weights.encode("latin-1")
        return b"".join([self._packed.get(weight) or self._between(weight) for weight in weights])

    def _between(self, weight: str) -> bytes:
        packed = self._packed[weight] = bytes(
            [2 * bisect_left(self._known, weight) + 1, *divmod(ord(weight), 256)]
        )
        return packed
