"""SQL text cut into statements as the `mysql` client cuts it: quotes, comments and DELIMITER are
minded.

A dump may be large: it is read in pieces, and only the statement at hand is held. The bounds of a
statement are found by one regular expression, whose repeats are possessive: what is passed over is
passed over once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from applier.dumps.patterns import IDENTIFIER, QUOTED, STRING, repeated
from applier.error_codes import Code
from applier.errors import InputError

CHUNK_BYTES = 1 << 20
_BEFORE = re.compile(
    repeated(
        rb"\s++|--(?:[ \t\r\x00-\x09\x0b-\x1f][^\n]*+)?(?:\n|\Z)|\#[^\n]*+(?:\n|\Z)|;"
        rb"|/\*M!999999[^*]*+\*/"
    )
)
"""White space, line comments and empty statements before a statement; so is MariaDB's comment for
no server, whose text is no SQL."""
_DELIMITER = re.compile(rb"DELIMITER[ \t]+(\S+)[^\n]*(?:\n|\Z)", re.IGNORECASE)
_WORD = b"DELIMITER"


class Readable(Protocol):
    """What can be read forwards."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class RawStatement:
    """One statement and the line it begins on. `complete`: its delimiter followed."""

    sql: bytes
    line: int
    complete: bool = True


@lru_cache(maxsize=64)
def _body(delimiter: bytes) -> re.Pattern[bytes]:
    """What a statement is made of, up to its delimiter or to what nobody closes. A version comment
    is code, not a comment."""
    first = re.escape(delimiter[:1])
    end = re.escape(delimiter)
    comment = rb"/\*(?!M?!)" + repeated(rb"[^*]++|\*(?!/)") + rb"\*/"
    piece = rb"|".join(
        (
            rb"[^'\"`/#\-" + first + rb"]++",
            STRING,
            QUOTED,
            IDENTIFIER,
            rb"(?!" + end + rb")(?:" + comment + rb"|/(?!\*(?!M?!))|\#[^\n]*+|--(?=\s|\Z)[^\n]*+"
            rb"|-(?!-(?:\s|\Z))|(?=" + first + rb")[^'\"`/#\-])",
        )
    )
    return re.compile(repeated(piece), re.DOTALL)


def split_statements(file: Readable) -> Iterator[RawStatement]:
    """The statements of a file, without the line comments before them.

    Raises InputError with the line where the file ends inside a quote or a comment.
    """
    return _Splitter(file).statements()


class _Splitter:
    def __init__(self, file: Readable) -> None:
        self._file = file
        self._data = b""
        self._at = 0
        self._line = 1
        self._ended = False

    def statements(self) -> Iterator[RawStatement]:
        delimiter = b";"
        self._more()
        self._data = self._data.removeprefix(b"\xef\xbb\xbf")
        while self._skip():
            changed = self._delimiter()
            if changed is not None:
                delimiter = changed
                continue
            end = self._end(delimiter)
            complete = self._data.startswith(delimiter, end)
            sql = self._data[self._at : end].rstrip()
            if sql:
                yield RawStatement(sql, self._line, complete)
            self._advance(end + len(delimiter) * complete)

    def _more(self) -> None:
        """Reads on: as much again as is held, so that a long statement is looked through a few
        times only."""
        piece = self._file.read(max(CHUNK_BYTES, len(self._data) - self._at))
        self._ended = not piece
        self._data = self._data[self._at :] + piece
        self._at = 0

    def _advance(self, to: int) -> None:
        self._line += self._data.count(b"\n", self._at, to)
        self._at = to

    def _skip(self) -> bool:
        """To where the next statement begins; False where none does."""
        while True:
            before = _BEFORE.match(self._data, self._at)
            assert before is not None
            if before.end() < len(self._data) - len(_WORD) - 2 or self._ended:
                self._advance(before.end())
                return self._at < len(self._data)
            self._more()

    def _delimiter(self) -> bytes | None:
        while True:
            found = _DELIMITER.match(self._data, self._at)
            is_whole = found is None or found.end() < len(self._data) or self._ended
            if found is None and self._data[self._at : self._at + len(_WORD)].upper() == _WORD:
                is_whole = self._ended or b"\n" in self._data[self._at :]
            if is_whole:
                break
            self._more()
        if found is None:
            return None
        self._advance(found.end())
        return found[1]

    def _end(self, delimiter: bytes) -> int:
        """Where the statement's delimiter stands, or the end of the file."""
        body = _body(delimiter)
        while True:
            match = body.match(self._data, self._at)
            assert match is not None
            end = match.end()
            if self._data.startswith(delimiter, end):
                return end
            if self._ended:
                break
            self._more()
        if end < len(self._data):
            raise InputError(
                f"line {self._line}: the dump ends in the middle of a statement",
                code=Code.DUMP_CUT_OFF,
            )
        return end
