"""Aggregate functions, and the groups of rows that GROUP BY, HAVING and DISTINCT make (`Item_sum`
and its classes, sql/item_sum.cc).

A group stands for its rows as one of them, with the values of the functions behind its columns.
Which of its rows that is hangs on how a server reads them. So a SELECT is refused where the rows of
a group do not all give it the same values, or where equal values are written in several ways.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial, reduce
from operator import and_, or_, xor
from typing import Any, TypeVar

from applier.tables.dml.row_selection import NULL_RANK, SortKey, ordered_by, sort_key
from applier.tables.expressions.comparisons import text_key
from applier.tables.expressions.operands import (
    INTEGERS,
    NUMBERS,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    as_number,
    constant,
    unsupported,
)
from applier.tables.expressions.operators import (
    EXACT,
    REALS,
    arithmetic,
    checked_decimal,
    digits_behind_point,
    worked_out_of,
)
from applier.tables.expressions.special_calls import ExpressionGrammar
from applier.tables.expressions.visible_columns import VisibleColumns
from lookup.handler import Row

_ALL_BITS = (1 << 64) - 1
_BITS = {"BIT_AND": (and_, _ALL_BITS), "BIT_OR": (or_, 0), "BIT_XOR": (xor, 0)}
AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", *_BITS})
"""Those whose arguments have no grammar of their own. Others are refused as unknown."""
_COMPARED_AS_THEY_ARE = frozenset(
    {
        OperandKind.INTEGER,
        OperandKind.DECIMAL,
        OperandKind.DOUBLE,
        OperandKind.BINARY,
        OperandKind.DATE,
        OperandKind.DATETIME,
        OperandKind.TIME,
        OperandKind.YEAR,
    }
)
_GROUPED_AS_THEY_ARE = _COMPARED_AS_THEY_ARE | {OperandKind.BIT, OperandKind.LABELS}
_DOUBLE_BITS = 53
_MOST_COMPARED = 255
"""Characters or bytes, below a max_sort_length and a group_concat_max_len of 1024 in each character
set."""

_T = TypeVar("_T")
Key = Callable[[Value], Hashable]


class Aggregates:
    """The aggregate functions that one SELECT calls. `columns`: those of its tables."""

    def __init__(self, columns: VisibleColumns) -> None:
        self.columns = columns
        self.operands: list[Operand] = []
        self._functions: list[Callable[[Sequence[Scope]], Value]] = []

    @property
    def calls(self) -> Mapping[str, Callable[[ExpressionGrammar], Operand]]:
        """How an expression reads them: by name, behind which the cursor stands."""
        numbers = {name: partial(self._call, name) for name in sorted(AGGREGATES)}
        return {**numbers, "GROUP_CONCAT": self._joined}

    def is_result(self, operand: Operand) -> bool:
        """Whether the operand is what one of the functions returns."""
        return any(operand is one for one in self.operands)

    def behind(self, row: Row, scopes: Sequence[Scope]) -> Row:
        """The row, and behind it the values of the functions over rows."""
        return row[: self.columns.width] + tuple(compute(scopes) for compute in self._functions)

    def _call(self, name: str, rules: ExpressionGrammar) -> Operand:
        start = rules.parser.at
        distinct, arguments = self._own(rules, _arguments)
        sql = f"{name}({', '.join(one.sql for one in arguments) or '*'})"
        if name == "COUNT":
            return self._count(arguments, sql, distinct=distinct)
        if len(arguments) != 1:
            raise unsupported(sql)
        if name in _BITS:
            return self._bits(arguments[0], sql, *_BITS[name])
        if name in ("MIN", "MAX"):
            inner = rules.parser.tokens[start : rules.parser.at]
            # 9.7.4 may encode such texts twice when it groups them
            odd = rules.dialect.is_modern and any(one.value.upper() == "CAST" for one in inner)
            return self._extreme(arguments[0], sql, min if name == "MIN" else max, odd=odd)
        total = self._sum(arguments[0], sql, distinct=distinct)
        if name == "SUM":
            return total
        count = self._count(arguments, sql, distinct=distinct)
        # 8.0 and later keep the digits of a quotient here, as others do everywhere
        found = replace(arithmetic("/", total, count, replace(rules.dialect, old=True)), sql=sql)
        self.operands.append(found)
        return found

    def _joined(self, rules: ExpressionGrammar) -> Operand:
        """GROUP_CONCAT. Raises ReplicationError 1235 where its order is left open, and for a text
        that group_concat_max_len may cut, which no log has."""
        distinct, pieces, order, separator = self._own(rules, _pieces)
        text = rules.call("CONCAT", pieces)
        if text.kind is not OperandKind.TEXT:
            raise unsupported(f"GROUP_CONCAT({text.sql})")
        keys = [grouping_key(one) for one in pieces] if distinct else []

        def compute(scopes: Sequence[Scope]) -> Value:
            full = [scope for scope in scopes if text.value(scope) is not None]
            if distinct:
                full = _one_of_each(keys, [text.value, *(key for key, _ in order)], full)
            for key, falls in reversed(order):
                full.sort(key=key, reverse=falls)
            texts = [text.value(scope) for scope in full]
            ranks = [tuple(key(scope) for key, _ in order) for scope in full]
            # a NULL is sorted as zero or as a text without letters (seen on 9.7.4)
            is_open = len(full) > 1 and any(NULL_RANK in rank for rank in ranks)
            # texts that are the same may stand in for each other
            if is_open or len(set(ranks)) < len(set(zip(ranks, texts, strict=True))):
                raise unsupported(f"GROUP_CONCAT({text.sql}) in an order that is left open")
            found = separator.join(texts)
            if len(found) > _MOST_COMPARED:
                raise unsupported(f"GROUP_CONCAT({text.sql}) of more than {_MOST_COMPARED} letters")
            return found if full else None

        return self._added(compute, text, f"GROUP_CONCAT({text.sql})")

    def _own(self, rules: ExpressionGrammar, read: Callable[[ExpressionGrammar], _T]) -> _T:
        """What stands in the parentheses of a function of this SELECT. Raises ReplicationError 1235
        for one of a SELECT around it, and for a window."""
        before, self.columns.read = self.columns.read, set()
        found = read(rules)
        own, self.columns.read = self.columns.read, before | self.columns.read
        if own and max(own) < self.columns.start:
            raise unsupported("an aggregate function of columns around a subquery")
        if rules.parser.word() == "OVER":
            raise unsupported("an aggregate function OVER a window")
        return found

    def _added(
        self, compute: Callable[[Sequence[Scope]], Value], like: Operand, sql: str
    ) -> Operand:
        """One more function, whose results are of the type of `like`."""
        at = self.columns.width + len(self._functions)
        self._functions.append(compute)
        found = replace(
            like, value=lambda scope: scope.row[at], sql=sql[:80], literal=False, column=None
        )
        self.operands.append(found)
        return found

    def _count(self, arguments: list[Operand], sql: str, *, distinct: bool) -> Operand:
        keys = [grouping_key(one) for one in arguments] if distinct else []

        def compute(scopes: Sequence[Scope]) -> int:
            full = [one for one in scopes if None not in (of.value(one) for of in arguments)]
            return len({tuple(key(one) for key in keys) for one in full}) if distinct else len(full)

        return self._added(compute, constant(OperandKind.INTEGER, 0), sql)

    def _sum(self, argument: Operand, sql: str, *, distinct: bool) -> Operand:
        """Of integers and DECIMALs a DECIMAL. Raises ReplicationError 1235 for doubles whose sum
        hangs on their order."""
        if argument.kind not in NUMBERS | {OperandKind.NULL}:
            raise unsupported(sql)
        number = as_number(argument)
        is_real = number.kind in REALS
        add = _exact_double_sum if is_real else _decimal_sum

        def compute(scopes: Sequence[Scope]) -> Value:
            values = [value for scope in scopes if (value := number.value(scope)) is not None]
            if distinct:
                values = list(dict.fromkeys(values))
            if any(not is_real and digits_behind_point(value) > number.digits for value in values):
                raise unsupported(f"{sql} of quotients")
            return add(values, sql) if values else None

        kind = OperandKind.DOUBLE if is_real else OperandKind.DECIMAL
        like = Operand(kind, number.value, digits=number.digits, of_groups=not is_real)
        return self._added(compute, worked_out_of([argument], like), sql)

    def _bits(
        self, argument: Operand, sql: str, join: Callable[[int, int], int], neutral: int
    ) -> Operand:
        """Of 64 bits, `neutral` of no rows."""
        if argument.kind not in INTEGERS:
            raise unsupported(sql)

        def compute(scopes: Sequence[Scope]) -> int:
            values = (argument.value(scope) for scope in scopes)
            return reduce(join, (one & _ALL_BITS for one in values if one is not None), neutral)

        return self._added(compute, constant(OperandKind.INTEGER, 0, unsigned=True), sql)

    def _extreme(
        self, argument: Operand, sql: str, pick: Callable[[Iterable[Any]], Any], *, odd: bool
    ) -> Operand:
        """The least or the greatest. `odd`: texts beyond ASCII are refused."""
        if argument.kind not in _COMPARED_AS_THEY_ARE | {OperandKind.TEXT}:
            raise unsupported(sql)
        key = _equality(argument)

        def compute(scopes: Sequence[Scope]) -> Value:
            values = [value for scope in scopes if (value := argument.value(scope)) is not None]
            if not values:
                return None
            best = pick(map(key, values))
            equal = [value for value in values if key(value) == best]
            if not _are_the_same(equal):
                raise unsupported(f"{sql} of equal values whose order decides")
            if odd and isinstance(equal[0], str) and not equal[0].isascii():
                raise unsupported(f"{sql} of letters beyond ASCII")
            return equal[0]

        return self._added(compute, argument, sql)


def _arguments(rules: ExpressionGrammar) -> tuple[bool, list[Operand]]:
    """DISTINCT, and the arguments; none for COUNT(*)."""
    rules.parser.expect("(")
    if rules.parser.accept("*"):
        rules.parser.expect(")")
        return False, []
    return rules.parser.accept("DISTINCT"), rules.arguments()


def _pieces(rules: ExpressionGrammar) -> tuple[bool, list[Operand], list[SortKey], str]:
    """DISTINCT, the pieces, their order and the separator of GROUP_CONCAT."""
    parser = rules.parser
    parser.expect("(")
    distinct, pieces = parser.accept("DISTINCT"), [rules.expression()]
    while parser.accept(","):
        pieces.append(rules.expression())
    order = []
    if parser.accept("ORDER", "BY"):
        order = [(sort_key(one), word == "DESC") for one, word in ordered_by(rules)]
    separator = parser.text() if parser.accept("SEPARATOR") else ","
    parser.expect(")")
    return distinct, pieces, order, separator


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a SELECT makes groups. `keys`: what is the same of the rows of a group; None where all
    rows are one, even without rows. `read`: what is read of a group."""

    aggregates: Aggregates
    keys: Sequence[Callable[[Scope], Hashable]] | None
    read: Sequence[Callable[[Scope], Any]]

    def rows(self, scopes: list[Scope], around: Row, session: Session) -> list[Row]:
        """A row for each group. Raises ReplicationError 1235 where rows of a group differ in what
        is read of it."""
        width = self.aggregates.columns.width
        if self.keys is None and not scopes:
            return [self.aggregates.behind(around + (None,) * (width - len(around)), [])]
        rows = []
        for group in _groups(self.keys or (), scopes):
            rows.append(row := self.aggregates.behind(group[0].row, group))
            others = {one.row for one in group} - {group[0].row}
            beside = [Scope(other + row[width:], session) for other in others]
            _refuse_differences(self.read, [Scope(row, session), *beside])
        return rows


def of_groups(operand: Operand) -> Operand:
    """An operand whose values come out of a temporary table, in which a DECIMAL has its digits."""
    return replace(operand, of_groups=operand.kind is OperandKind.DECIMAL)


def distinct_scopes(operands: Sequence[Operand], scopes: list[Scope]) -> list[Scope]:
    """The rows that differ in one of the operands. Raises ReplicationError 1235 where equal ones
    are written in several ways."""
    keys = [grouping_key(operand) for operand in operands]
    return _one_of_each(keys, [operand.value for operand in operands], scopes)


def _one_of_each(
    keys: Sequence[Callable[[Scope], Hashable]],
    read: Sequence[Callable[[Scope], Any]],
    scopes: list[Scope],
) -> list[Scope]:
    """The first row of each group. Raises ReplicationError 1235 where others differ from it in what
    is read."""
    groups = _groups(keys, scopes)
    for group in groups:
        _refuse_differences(read, group)
    return [group[0] for group in groups]


def _groups(
    keys: Sequence[Callable[[Scope], Hashable]], scopes: list[Scope]
) -> Collection[list[Scope]]:
    groups: dict[Hashable, list[Scope]] = defaultdict(list)
    for scope in scopes:
        groups[tuple(key(scope) for key in keys)].append(scope)
    return groups.values()


def _refuse_differences(read: Sequence[Callable[[Scope], Any]], group: Sequence[Scope]) -> None:
    for one in read if len(group) > 1 else ():
        if not _are_the_same([one(scope) for scope in group]):
            raise unsupported("groups of rows whose order decides what is read of one")


def grouping_key(operand: Operand) -> Callable[[Scope], Hashable]:
    """What rows of a group have in common: NULLs are the same, and texts that are equal in their
    collation.

    Raises ReplicationError 1235, or the function does, for values of which a server may compare
    less or more: long texts (max_sort_length), quotients, and TIMESTAMPs that look the same in a
    zone with summer time.
    """
    if operand.literal:
        return lambda scope: None
    if operand.kind in REALS:
        raise unsupported(f"groups of floating-point numbers ({operand.sql})")
    key, inner = _equality(operand), operand.value
    is_timestamp = operand.column is not None and operand.column.type == "timestamp"

    def of(scope: Scope) -> Hashable:
        found = inner(scope)
        if found is None:
            return None
        is_long = isinstance(found, str | bytes) and len(found) > _MOST_COMPARED
        is_quotient = isinstance(found, Decimal) and digits_behind_point(found) > operand.digits
        if (
            is_long
            or is_quotient
            or (is_timestamp and not isinstance(scope.session.zone, timezone))
        ):
            raise unsupported(f"groups of {operand.sql}")
        return key(found)

    return of


def _are_the_same(values: Sequence[Value]) -> bool:
    """Whether values are written in one way: 1.0 and 1.00 are equal and not the same."""
    return all(value == values[0] and str(value) == str(values[0]) for value in values[1:])


def _equality(operand: Operand) -> Key:
    """What is the same of equal values, in their order."""
    if operand.kind is OperandKind.TEXT and operand.collation:
        return text_key(operand.collation)
    if operand.kind in _GROUPED_AS_THEY_ARE | {OperandKind.NULL}:
        return lambda value: value
    raise unsupported(f"{operand.sql} in groups")


def _decimal_sum(values: list[Any], sql: str) -> Decimal:
    with localcontext(EXACT):
        return checked_decimal(sum(map(Decimal, values), Decimal(0)), sql)


def _exact_double_sum(values: list[float], sql: str) -> float:
    """Doubles of which each sum is exact, in any order."""
    exact = list(map(Fraction, values))
    unit = max(one.denominator for one in exact)
    if sum(map(abs, exact)) * unit >= 1 << _DOUBLE_BITS:
        raise unsupported(f"{sql} of doubles whose order decides")
    return math.fsum(values)
