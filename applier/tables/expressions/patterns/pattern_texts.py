"""A text and a pattern, and how they are compared."""

from __future__ import annotations

from applier.tables.expressions.comparisons import ASCII_EXACT
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    as_text,
    shared_collation,
    unsupported,
)


def pattern_texts(
    one: Operand, pattern: Operand, operator: str, dialect: Dialect
) -> tuple[list[Operand], str, bool]:
    """Both as texts, their collation, and whether it ignores case. Raises ReplicationError 1235 for
    one that matches other characters than themselves and ASCII's other case."""
    texts = [as_text(one, dialect), as_text(pattern, dialect)]
    collation, _ = shared_collation(texts)
    folded = not (collation.endswith(("_bin", "_cs")) or collation == "binary")
    if folded and ASCII_EXACT.fullmatch(collation) is None:
        raise unsupported(f"{operator} in the collation {collation}")
    return texts, collation, folded
