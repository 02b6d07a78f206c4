"""What stands between quotes: text with its escapes, hexadecimal digits, the names of things; and
what stands behind all of them."""

from __future__ import annotations

import re

_INSIDE = {mark: re.compile(rf"\\(.)|{mark}{mark}", re.DOTALL) for mark in "'\""}
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[1] in "%_" else _ESCAPED.get(match[1], match[1])


def text_inside(body: str, mark: str, *, escapes: bool) -> str:
    """The text between two marks; a doubled mark stands for one."""
    if not escapes or "\\" not in body:
        return body.replace(mark * 2, mark)
    return _INSIDE[mark].sub(lambda match: mark if match[1] is None else _escaped(match), body)


def hex_bytes(literal: str) -> bytes:
    """The bytes of 0x… or x'…'; an odd digit counts as the low half of the first byte."""
    digits = literal[2:].rstrip("'")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


def quoted(name: str) -> str:
    """An identifier as every sql_mode reads it."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """What an identifier as it stands in a statement names; of doubled quotes inside one is
    meant."""
    mark = name[:1]
    return name[1:-1].replace(mark * 2, mark) if mark in ("`", '"') else name


def without_end(sql: str) -> str:
    """A NUL at the very end is no part of a statement (MY_LEX_EOL, sql/sql_lex.cc 9.7):
    MariaDB's mysqlslap sends one."""
    return sql.removesuffix("\0")
