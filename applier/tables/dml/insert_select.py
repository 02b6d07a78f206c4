"""The rows of INSERT … SELECT and CREATE TABLE … SELECT: those of one SELECT, or of several that
UNION puts one behind the other (`Item_type_holder`, sql/item.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from applier.tables.catalog import Tables
from applier.tables.dml.grouping import distinct_scopes, of_groups
from applier.tables.dml.selects import Select, SelectedColumn, Unreadable
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    rounded_half_up,
    shared_collation,
    unsupported,
)
from applier.tables.expressions.operators import worked_out_of
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Parser

_JOINED_KINDS = frozenset(
    {
        OperandKind.NULL,
        OperandKind.INTEGER,
        OperandKind.DECIMAL,
        OperandKind.DOUBLE,
        OperandKind.TEXT,
        OperandKind.BINARY,
        OperandKind.DATE,
        OperandKind.DATETIME,
        OperandKind.TIME,
        OperandKind.YEAR,
    }
)
"""Types that a column of a UNION has where all SELECTs have them, whatever their lengths."""


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The columns of a SELECT and the rows that they are computed of, in the server's order where
    `is_ordered`."""

    columns: list[SelectedColumn]
    scopes: list[Scope]
    is_ordered: bool
    named: VisibleColumns | None = None
    """The columns of tables that its expressions name; None of a UNION and of derived tables."""

    @property
    def operands(self) -> list[Operand]:
        """The expressions of the columns."""
        return [column.operand for column in self.columns]

    def numbers_itself(self, at: int) -> bool:
        """Whether a column, which becomes an AUTO_INCREMENT one, has a number in each row."""
        operand = self.columns[at].operand
        return operand.kind is OperandKind.INTEGER and all(
            operand.value(scope) for scope in self.scopes
        )


def read_select(
    parser: Parser,
    tables: Tables,
    database: str,
    target: MemoryTable | None,
    session: Session,
    unreadable: Unreadable,
) -> SelectedRows:
    """The rows of the SELECT at the cursor, which passes it, and of those behind UNION. `target`:
    the table that they go into, None for a new one; `unreadable`: tables that a subquery may not
    read.

    Raises ReplicationError 1146 for a table that is not there, 1235 for what is not supported.
    """
    selects, distinct = [Select(parser, tables, database, unreadable, session)], False
    while parser.accept("UNION"):
        if parser.accept_any("ALL", "DISTINCT") != "ALL":
            distinct = True
        elif distinct:
            raise unsupported("UNION ALL behind UNION")
        selects.append(Select(parser, tables, database, unreadable, session))
    found = [_rows(select, target) for select in selects]
    return _united(selects, found, session, distinct=distinct) if len(found) > 1 else found[0]


def _rows(select: Select, target: MemoryTable | None) -> SelectedRows:
    if target in select.read_tables and not select.listed.is_buffered_exactly:
        raise unsupported("INSERT … SELECT of expressions from the table itself")
    if select.draws and select.read_tables:
        raise unsupported("RAND() in INSERT … SELECT")
    found = select.scopes()
    is_ordered = len(found) < 2 or select.is_ordered(found)
    is_of_tables = all(part.definition.database for part in select.source.parts)
    named = select.source.columns if is_of_tables else None
    return SelectedRows(select.listed.columns, found, is_ordered, named)


def _united(
    selects: Sequence[Select], found: Sequence[SelectedRows], session: Session, *, distinct: bool
) -> SelectedRows:
    """The rows of all, as values of the types that they share. ORDER BY and LIMIT behind the last
    one would be for all of them."""
    if selects[-1].behind.order or selects[-1].behind.limit is not None:
        raise unsupported("ORDER BY and LIMIT of a UNION")
    if len({len(one.columns) for one in found}) > 1:
        raise unsupported("UNION of SELECTs with different numbers of columns")
    columns = [
        _united_column(at, [one.columns[at] for one in found])
        for at in range(len(found[0].columns))
    ]
    scopes = [
        Scope(tuple(operand.value(scope) for operand in one.operands), session)
        for one in found
        for scope in one.scopes
    ]
    if not distinct:
        ordered = all(one.is_ordered for one in found)
        return SelectedRows(columns, scopes, ordered)
    kept = distinct_scopes([column.operand for column in columns], scopes)
    return SelectedRows(columns, kept, len(kept) < 2)


def _united_column(at: int, columns: Sequence[SelectedColumn]) -> SelectedColumn:
    """A column in the type that all of its expressions have; NULL has none."""
    operands = [column.operand for column in columns]
    typed = [operand for operand in operands if operand.kind is not OperandKind.NULL] or operands
    types = {(operand.kind, operand.digits, operand.unsigned) for operand in typed}
    sql = f"UNION of {', '.join(operand.sql for operand in operands)}"[:80]
    if len(types) > 1 or typed[0].kind not in _JOINED_KINDS:
        raise unsupported(sql)
    collation, strength = typed[0].collation, typed[0].strength
    if typed[0].kind is OperandKind.TEXT:
        collation, strength = shared_collation(typed)
    digits = typed[0].digits

    def value(scope: Scope) -> Value:
        found = scope.row[at]
        return rounded_half_up(found, digits) if isinstance(found, Decimal) else found

    united = replace(
        typed[0],
        value=value,
        sql=sql,
        collation=collation,
        strength=strength,
        literal=False,
        column=None,
    )
    return SelectedColumn(of_groups(worked_out_of(operands, united)))
