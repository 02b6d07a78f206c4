"""REGEXP of the patterns that mean the same to every engine: Henry Spencer's (5.x), ICU (8.0 and
later, sql/regexp) and PCRE2 (MariaDB, sql/item_cmpfunc.cc).

Whether a pattern matches anywhere does not hang on which match an engine prefers. What else they
differ in is refused: classes by name, escapes of letters, line ends, and what is not ASCII.
"""

from __future__ import annotations

import re
from functools import lru_cache

from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    unsupported,
)
from applier.tables.expressions.operators import null_or
from applier.tables.expressions.patterns.pattern_texts import pattern_texts

_TOKEN = re.compile(
    r"(?P<atom>[A-Za-z0-9 _,:;@#%&!\"'<>=~/`-]|\.|\\[.^$*+?()\[\]{}|\\]"
    r"|\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9 _.,;@#%!=/$*+?()|])+-?\])"
    r"|(?P<times>[*+?]|\{[0-9]{1,2}(?:,(?:[0-9]{1,2})?)?\})"
    r"|(?P<mark>[()|^$])"
)
_LINE_ENDS = re.compile(r"[\n\r\v\f]")
_LONGEST_PATTERN = 1000


def regexp_operand(one: Operand, pattern: Operand, dialect: Dialect) -> Operand:
    """REGEXP. Raises ReplicationError 1235 for collations that match other characters than
    themselves and ASCII's other case, and for patterns and texts that engines may read
    differently."""
    texts, collation, folded = pattern_texts(one, pattern, "REGEXP", dialect)
    if collation == "binary":
        raise unsupported("REGEXP in the collation binary")

    def matches(text: str, given: str) -> int:
        compiled = _compiled(given, folded=folded)
        if compiled is None:
            raise unsupported(f"REGEXP '{given[:60]}'")
        if not text.isascii() or _LINE_ENDS.search(text):
            raise unsupported(f"REGEXP of '{text[:40]}'")
        return int(compiled.search(text) is not None)

    return Operand(OperandKind.INTEGER, null_or(texts, matches), f"{one.sql} REGEXP {pattern.sql}")


@lru_cache(maxsize=64)
def _compiled(pattern: str, *, folded: bool) -> re.Pattern[str] | None:
    if not (0 < len(pattern) <= _LONGEST_PATTERN and _is_shared(pattern)):
        return None
    try:
        return re.compile(pattern, re.ASCII | re.IGNORECASE if folded else re.ASCII)
    except re.error:  # a bound or a range that goes backwards
        return None


def _is_shared(pattern: str) -> bool:
    """Whether a pattern is made of what all engines read alike. What repeats holds no repetition,
    which might take forever here."""
    at, before = 0, "start"
    repeats = [False]
    """Of each open group: whether something in it repeats."""
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return False
        at = token.end()
        mark = token["mark"]
        if token["atom"]:
            before = "atom"
        elif token["times"]:
            if before != "atom":
                return False
            before, repeats[-1] = "repeated", True
        elif mark == "(":
            before = "start"
            repeats.append(False)
        elif mark == "^":
            if before != "start":
                return False
            before = "anchor"
        elif mark == "$":
            if pattern[at : at + 1] not in ("", ")", "|"):
                return False
            before = "anchor"
        elif before == "start":
            return False
        elif mark == "|":
            before = "start"
        else:
            inner = repeats.pop()
            if not repeats:
                return False
            repeats[-1] |= inner
            before = "repeated" if inner else "atom"
    return len(repeats) == 1 and before != "start"
