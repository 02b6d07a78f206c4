"""The SELECT of INSERT … SELECT: expressions over the rows of one table, or over none.

Joins, subqueries, groups and unions are refused, and so is whatever the order of the rows decides
where the statement leaves it open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from applier.tables.catalog import Tables
from applier.tables.dml.number_tables import number_table
from applier.tables.dml.row_selection import RowSelection
from applier.tables.engine import MemoryTable
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    column_operand,
    unsupported,
)
from applier.tables.sql.sql_text import Parser
from lookup.handler import traits_of
from lookup.table import TableDefinition

_AS_THEY_STAND = ("ALL", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_SMALL_RESULT")
"""Words behind SELECT that do not change its rows."""
_OTHER_ROWS = frozenset("DISTINCT DISTINCTROW SQL_BUFFER_RESULT SQL_CALC_FOUND_ROWS".split())
_JOINING = frozenset("JOIN INNER CROSS LEFT RIGHT NATURAL STRAIGHT_JOIN".split())
NO_ALIAS = _JOINING | frozenset(
    """
        FROM WHERE ORDER LIMIT GROUP HAVING UNION EXCEPT INTERSECT FOR LOCK ON PROCEDURE WINDOW
        PARTITION USE FORCE IGNORE RETURNING
    """.split()
)
"""Words behind an expression or a table that are not an alias of it."""
_EXACT = frozenset({OperandKind.INTEGER, OperandKind.TEXT})


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The columns of a SELECT and the rows that they are computed of, in the server's order where
    `is_ordered`."""

    operands: list[Operand]
    scopes: list[Scope]
    is_ordered: bool

    def numbers_itself(self, at: int) -> bool:
        """Whether a column, which becomes an AUTO_INCREMENT one, has a number in each row."""
        operand = self.operands[at]
        return operand.kind is OperandKind.INTEGER and all(
            operand.value(scope) for scope in self.scopes
        )


def read_select(
    parser: Parser, tables: Tables, database: str, target: MemoryTable, session: Session
) -> SelectedRows:
    """The rows of the SELECT at the cursor, which passes it.

    Raises ReplicationError 1146 for a table that is not there, 1235 for what is not supported.
    """
    enclosed = parser.accept("(")
    parser.expect("SELECT")
    while parser.accept_any(*_AS_THEY_STAND):
        pass
    if parser.word() in _OTHER_ROWS:
        raise unsupported(f"SELECT {parser.word()}")
    start = parser.at
    source = _table_behind_from(parser, tables, database)
    behind, parser.at = parser.at, start
    listed = _SelectList(parser, source, session)
    listed.read()
    if source is None:
        parser.accept("FROM", "DUAL")
    else:  # nothing may be left between the list and FROM
        parser.expect("FROM")
        parser.at = behind
    selection = RowSelection.read(listed.reader)
    parser.accept("FOR", "UPDATE")
    parser.accept("LOCK", "IN", "SHARE", "MODE")
    if enclosed:
        parser.expect(")")
    if selection.order and listed.hides_a_column:
        raise unsupported("ORDER BY beside an alias that a column has as its name")
    if source is None:
        scope = Scope((), session)
        is_chosen = selection.condition is None or selection.condition(scope)
        chosen = [scope][: selection.limit] if is_chosen else []
        return SelectedRows(listed.operands, chosen, is_ordered=True)
    if source.table is target and not listed.is_buffered_exactly:
        raise unsupported("INSERT … SELECT of expressions from the table itself")
    if any(parser.tokens[at].value.upper() == "RAND" for at in range(start, parser.at)):
        raise unsupported("RAND() in INSERT … SELECT")
    rows = [source.table.get(ref) for ref in selection.refs(source.table, session)]
    found = [Scope(row, session) for row in rows if row is not None]
    ordered = len(found) < 2 or _is_ordered(source.table, selection, found)
    return SelectedRows(listed.operands, found, ordered)


@dataclass(frozen=True, slots=True)
class _SelectedTable:
    """A table, and its definition under the name that qualifies its columns."""

    table: MemoryTable
    definition: TableDefinition


def _table_behind_from(parser: Parser, tables: Tables, database: str) -> _SelectedTable | None:
    """Passes FROM and its table; None where there is none."""
    parser.skip_until("FROM")
    if not parser.accept("FROM") or parser.accept("DUAL"):
        return None
    name = parser.table_name(database)
    table = None
    if tables.dialect.mariadb and tables.get(*name) is None:
        table = number_table(*name)
    if table is None:
        table = tables.named(*name)
    table.open()
    if any(column.system_time for column in table.definition.columns):
        raise unsupported(f"a SELECT from `{name[1]}`, whose rows have a system time")
    definition = table.definition
    if parser.accept("AS") or parser.at_alias(NO_ALIAS):
        definition = replace(definition, name=parser.name())
    if parser.op() == "," or parser.word() in _JOINING:
        raise unsupported("a SELECT from several tables")
    return _SelectedTable(table, definition)


class _SelectList:
    """The expressions between SELECT and FROM."""

    def __init__(self, parser: Parser, source: _SelectedTable | None, session: Session) -> None:
        self.parser = parser
        self.definition = None if source is None else source.definition
        self.dialect = session.dialect
        self.reader = ExpressionParser(parser, self.definition, self.dialect, session)
        self.operands: list[Operand] = []
        self.is_buffered_exactly = True
        """Whether a temporary table between the SELECT and the INSERT keeps all values."""
        self.hides_a_column = False

    def read(self) -> None:
        """Passes the list."""
        while True:
            if not self._all_columns():
                self._one()
            if not self.parser.accept(","):
                return

    def _all_columns(self) -> bool:
        """`*` and `table.*`."""
        parser, definition = self.parser, self.definition
        if definition is None:
            return False
        if parser.op() != "*" and parser.op(1) == "." and parser.op(2) == "*":
            if parser.name().lower() != definition.name.lower():
                raise unsupported("a SELECT from several tables")
            parser.accept(".")
        if not parser.accept("*"):
            return False
        self.operands += [
            column_operand(column, at, self.dialect)
            for at, column in enumerate(definition.columns)
            if not (column.invisible or column.hidden)
        ]
        return True

    def _one(self) -> None:
        parser, start = self.parser, self.parser.at
        operand = self.reader.expression()
        self.operands.append(operand)
        exact = operand.literal or operand.kind in _EXACT or self._is_name(start)
        self.is_buffered_exactly = self.is_buffered_exactly and exact
        if parser.accept("AS") or parser.at_alias(NO_ALIAS):
            alias = parser.name().lower()
            self.hides_a_column = self.hides_a_column or (
                self.definition is not None and alias in self.definition.positions
            )

    def _is_name(self, start: int) -> bool:
        return all(
            token.kind in ("word", "quoted") or token.value == "."
            for token in self.parser.tokens[start : self.parser.at]
        )


def _is_ordered(table: MemoryTable, selection: RowSelection, found: list[Scope]) -> bool:
    """Whether the server can only have the rows in this order: ORDER BY leaves nothing open, or
    InnoDB has no key but the primary one to read them by."""
    if selection.order:
        return len({tuple(key(scope) for key, _ in selection.order) for scope in found}) == len(
            found
        )
    definition = table.definition
    return (
        traits_of(definition).transactional
        and not definition.partitioned
        and all(key.is_primary for key in definition.keys)
    )
