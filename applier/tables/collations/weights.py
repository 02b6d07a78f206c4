"""The comparison weights of characters: what WEIGHT_STRING says for each code point, as ranges in
weights.zip.

`scripts/collation_weights.py` asks real servers (9.7.4, MariaDB 10.11.18) and writes the archive. A
member holds one table of weights: a line `unit BYTES base NAME`, then a line for each range of
codes, `gap count step weights`: so many codes after the last range, so many codes, and by how much
the weight grows from code to code. The levels of a weight are separated by commas. `+ code code …
weights` is a contraction: characters that are weighed together; `?` where MySQL and MariaDB differ.
`context` at the end of the first line: a contraction says what a character weighs after another
one. A table with a base says only what it has of its own. Codes are code points for the character
sets of Unicode, and the bytes of the character as a number for others.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from zipfile import ZipFile

Levels = tuple[str, ...]
"""The weights of a character at each level; a weight is one character of the string, U+0000 to
U+FFFF."""

ARCHIVE = "weights.zip"


@dataclass(frozen=True, slots=True)
class Weights:
    """One table. `unit`: bytes of a weight, 1 or 2. `contractions`: characters -> what they weigh
    together, None if not known."""

    unit: int
    base: Weights | None
    contractions: dict[str, Levels | None]
    context: bool
    _first: list[int]
    _ranges: list[tuple[int, int, str]]

    def of(self, code: int) -> Levels | None:
        """What a character weighs; None when it is not in the character set."""
        at = bisect_right(self._first, code) - 1
        if at >= 0:
            count, step, weights = self._ranges[at]
            grown = code - self._first[at]
            if grown < count:
                return _levels(weights, self.unit, grown * step)
        return None if self.base is None else self.base.of(code)


def _levels(weights: str, unit: int, grown: int) -> Levels:
    """The hexadecimal digits of all levels as strings of weights; the first level has grown by a
    number."""
    first, *others = weights.split(",")
    if grown:
        first = f"{int(first, 16) + grown:0{len(first)}X}"
    return tuple(_string(digits, unit) for digits in (first, *others))


def _string(digits: str, unit: int) -> str:
    raw = bytes.fromhex(digits)
    return raw.decode("latin-1") if unit == 1 else raw.decode("utf-16-be", "surrogatepass")


@cache
def names() -> frozenset[str]:
    """The tables that there are."""
    with _archive() as archive:
        return frozenset(archive.namelist())


@cache
def weights(name: str) -> Weights:
    """A table by its name. Raises KeyError when there is none."""
    with _archive() as archive:
        head, *lines = archive.read(name).decode("ascii").splitlines()
    _, unit, _, base, *flags = head.split(" ")
    first: list[int] = []
    ranges: list[tuple[int, int, str]] = []
    contractions: dict[str, Levels | None] = {}
    end = 0
    for line in lines:
        gap, *rest = line.split(" ")
        if gap == "+":
            text = "".join(chr(int(code, 16)) for code in rest[:-1])
            contractions[text] = None if rest[-1] == "?" else _levels(rest[-1], int(unit), 0)
            continue
        count = int(rest[0])
        start = end + int(gap)
        first.append(start)
        ranges.append((count, int(rest[1]), rest[2]))
        end = start + count
    below = None if base == "-" else weights(base)
    return Weights(
        int(unit),
        below,
        {**(below.contractions if below else {}), **contractions},
        bool(flags),
        first,
        ranges,
    )


def _archive() -> ZipFile:
    return ZipFile(BytesIO(files("applier.tables.collations").joinpath(ARCHIVE).read_bytes()))
