"""WHERE, ORDER BY and LIMIT of a statement: the rows that it changes or reads, and in which
order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from applier.tables.dml.equalities import Wanted, refs_by_unique_key, wanted_values
from applier.tables.engine import MemoryTable
from applier.tables.expressions.comparisons import text_key
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    condition,
    truth,
    unsupported,
)
from applier.tables.expressions.special_calls import ExpressionGrammar
from applier.tables.sql.sql_text import Token
from lookup.handler import Row

_BEHIND_A_NAME = ("", ",", ")", "ASC", "DESC", "HAVING", "ORDER", "LIMIT", "FOR")
NULL_RANK = (0, 0)
"""What `sort_key` makes of NULL."""
SortKey = tuple[Callable[[Scope], Any], bool]
"""The value that rows are sorted by, and whether the largest comes first."""


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The clauses behind the assignments of an UPDATE, or behind the table of a DELETE."""

    condition: Callable[[Scope], bool | None] | None
    order: list[SortKey]
    limit: int | None
    wanted: Wanted

    @classmethod
    def read(
        cls, reader: ExpressionParser, selected: Callable[[Token], Operand | None] | None = None
    ) -> RowSelection:
        """The clauses that stand at the cursor, which passes them. `selected`: the column of a
        SELECT that ORDER BY means by a number or a name; None for what is no such column."""
        return cls.read_condition(reader, "WHERE").read_order(reader, selected)

    @classmethod
    def read_condition(cls, reader: ExpressionParser, word: str) -> RowSelection:
        """WHERE or HAVING at the cursor, which passes it, without an order."""
        parser, start = reader.parser, reader.parser.at
        if not parser.accept(word):
            return cls(None, [], None, {})
        chosen = truth(condition(reader.expression(), reader.dialect))
        tokens = parser.tokens[start + 1 : parser.at]
        return cls(chosen, [], None, wanted_values(tokens, reader.columns, reader.dialect))

    def read_order(
        self, reader: ExpressionParser, selected: Callable[[Token], Operand | None] | None = None
    ) -> RowSelection:
        """The same with ORDER BY and LIMIT, as `read`."""
        parser = reader.parser
        order = []
        if parser.accept("ORDER", "BY"):
            for operand, word in ordered_by(reader, selected):
                if operand.literal:
                    raise unsupported(f"ORDER BY {operand.sql}")
                order.append((sort_key(operand), word == "DESC"))
        return replace(
            self, order=order, limit=parser.integer() if parser.accept("LIMIT") else None
        )

    def refs(
        self,
        table: MemoryTable,
        session: Session,
        within: Callable[[Row], bool] | None = None,
    ) -> list[Any]:
        """The refs that WHERE, ORDER BY and LIMIT leave, in the order in which the server would
        change them. `within`: whether a row is looked at."""
        table.open()
        refs = refs_by_unique_key(table, self.wanted)
        found = ((ref, row) for ref in refs or () if (row := table.get(ref)) is not None)
        rows = table.scan() if refs is None else found
        if within is not None:
            rows = ((ref, row) for ref, row in rows if within(row))
        return [ref for ref, _ in self.chosen(rows, session)]

    def chosen(self, rows: Iterable[tuple[Any, Row]], session: Session) -> list[tuple[Any, Row]]:
        """What the clauses leave of rows with their refs, in the order of `rows` where ORDER BY
        does not say."""
        order, limit = self.order, self.limit
        found = []
        for ref, row in rows:
            scope = Scope(row, session)
            if self.condition is None or self.condition(scope):
                found.append((ref, tuple(key(scope) for key, _ in order), row))
        for at in range(len(order) - 1, -1, -1):
            found.sort(key=lambda item: item[1][at], reverse=order[at][1])
        if limit is not None and 0 < limit < len(found):
            tied = {row for _, key, row in found if key == found[limit][1]}
            # equal rows may stand in for each other
            if len(tied) > 1 and found[limit - 1][1] == found[limit][1]:
                raise unsupported("LIMIT among rows whose order the statement leaves open")
        return [(ref, row) for ref, _, row in found[:limit]]


def ordered_by(
    reader: ExpressionGrammar, selected: Callable[[Token], Operand | None] | None = None
) -> Iterator[tuple[Operand, str]]:
    """The list of ORDER BY or GROUP BY at the cursor, which passes it: each expression with ASC,
    DESC or nothing. `selected` as of `RowSelection.read`."""
    while True:
        operand = _selected(reader, selected) or reader.expression()
        yield operand, reader.parser.accept_any("DESC", "ASC")
        if not reader.parser.accept(","):
            return


def _selected(
    reader: ExpressionGrammar, selected: Callable[[Token], Operand | None] | None
) -> Operand | None:
    """A column of the SELECT that stands alone at the cursor, which passes it."""
    parser = reader.parser
    if selected is None or parser.done:
        return None
    is_alone = (parser.op(1) or parser.word(1)) in _BEHIND_A_NAME
    found = selected(parser.tokens[parser.at]) if is_alone else None
    parser.at += found is not None
    return found


def sort_key(operand: Operand) -> Callable[[Scope], Any]:
    """NULL first, then by value."""
    if operand.kind in (OperandKind.LABELS, OperandKind.JSON, OperandKind.OTHER):
        raise unsupported(f"ORDER BY {operand.sql}")
    key = (
        text_key(operand.collation)
        if operand.kind is OperandKind.TEXT and operand.collation
        else None
    )

    def of(scope: Scope) -> Any:
        value = operand.value(scope)
        return NULL_RANK if value is None else (1, value if key is None else key(value))

    return of
