"""LIKE (`Item_func_like`, sql/item_cmpfunc.cc)."""

from __future__ import annotations

import re

from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    unsupported,
)
from applier.tables.expressions.operators import null_or
from applier.tables.expressions.patterns.pattern_texts import pattern_texts


def like_operand(one: Operand, pattern: Operand, escape: str, dialect: Dialect) -> Operand:
    """LIKE. Raises ReplicationError 1235 for collations that match other characters than themselves
    and ASCII's other case."""
    texts, collation, folded = pattern_texts(one, pattern, "LIKE", dialect)

    def matches(text: str, given: str) -> int:
        if folded and not (text.isascii() and given.isascii()):
            raise unsupported(f"LIKE of '{text[:40]}' in the collation {collation}")
        return int(like(text, given, escape, folded=folded))

    return Operand(OperandKind.INTEGER, null_or(texts, matches), f"{one.sql} LIKE {pattern.sql}")


def like(value: str, pattern: str, escape: str = "\\", *, folded: bool = True) -> bool:
    """LIKE. What stands between two % has a fixed length, so the leftmost place for each is the
    right one.

    One regular expression for the whole would try every place of every part: %a%a%a%a%b never ends.
    """
    pieces: list[list[str]] = [[]]
    escaped = f"{re.escape(escape)}.|." if escape else "."
    for part in re.findall(escaped, pattern, re.DOTALL):
        if part == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if part == "_" else re.escape(part[-1]))
    flags = re.DOTALL | re.IGNORECASE if folded else re.DOTALL
    first, *others = (re.compile("".join(piece), flags) for piece in pieces)
    start = first.match(value)
    if start is None or not others:
        return start is not None and start.end() == len(value)
    at, last = start.end(), len(value) - len(pieces[-1])
    for piece in others[:-1]:
        found = piece.search(value, at)
        if found is None:
            return False
        at = found.end()
    return last >= at and others[-1].match(value, last) is not None
