"""Rows of values beside each other: (a, b) = (1, 2), (a, b) IN ((1, 2), (3, 4)).

A pair after the other is compared (`Arg_comparator::compare_row`, sql/item_cmpfunc.cc): a pair that
differs decides, whatever stands beside it, and otherwise a NULL does.
"""

from __future__ import annotations

from functools import reduce

from applier.tables.expressions.comparisons import among, compared
from applier.tables.expressions.operands import Dialect, Operand, OperandKind, unsupported
from applier.tables.expressions.operators import both, either, inverse
from applier.tables.sql.sql_text import Parser

Row = list[Operand]


def at_row(parser: Parser) -> bool:
    """Whether a row of values stands at the cursor."""
    if parser.word() == "ROW" and parser.op(1) == "(":
        return True
    depth = 0
    for token in parser.tokens[parser.at :]:
        if token.kind == "op":
            depth += {"(": 1, ")": -1}.get(token.value, 0)
            if depth == 1 and token.value == ",":
                return True
        if depth == 0:
            return False
    return False


def row_compared(operator: str, one: Row, two: Row, dialect: Dialect) -> Operand:
    """=, <=> and <> of two rows. Raises ReplicationError 1235 for another operator."""
    if operator not in ("=", "<=>", "<>", "!="):
        raise unsupported(f"rows of values beside {operator or 'no operator'}")
    each = "<=>" if operator == "<=>" else "="
    same = reduce(both, (compared(each, left, right, dialect) for left, right in _pairs(one, two)))
    return same if operator == each else inverse(same)


def row_among(one: Row, rows: list[Row], dialect: Dialect) -> Operand:
    """IN (…). The servers compare by the types and collations of the left side alone
    (`cmp_item_row`); raises ReplicationError 1235 where others stand beside it."""
    several = len(rows) > 1
    found = (
        (_same(left, right, dialect, several) for left, right in _pairs(one, row)) for row in rows
    )
    return reduce(either, (reduce(both, pairs) for pairs in found))


def _same(one: Operand, two: Operand, dialect: Dialect, several: bool) -> Operand:
    if one.kind is not two.kind and OperandKind.NULL not in (one.kind, two.kind):
        raise unsupported(f"{one.sql} compared with {two.sql} in rows of values")
    if one.collation != two.collation and one.strength >= two.strength:
        raise unsupported(f"{one.sql} compared with {two.sql} in rows of values")
    return among(one, [two], dialect, of_several=several)


def _pairs(one: Row, two: Row) -> list[tuple[Operand, Operand]]:
    if len(one) != len(two):
        raise unsupported("rows of different lengths")
    return list(zip(one, two, strict=True))
