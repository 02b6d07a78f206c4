"""The SELECT of INSERT … SELECT, CREATE TABLE … SELECT and subqueries: expressions over the rows of
tables, or over none.

Groups and unions are refused, and so is whatever the order of the rows decides
where the statement leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.row_selection import RowSelection
from applier.tables.dml.table_references import NO_ALIAS, JoinedTables
from applier.tables.engine import MemoryTable
from applier.tables.expressions.comparisons import text_key
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    column_operand,
    unsupported,
)
from applier.tables.sql.sql_text import Parser, Token
from lookup.handler import traits_of

_AS_THEY_STAND = (
    "ALL", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_SMALL_RESULT", "SQL_BIG_RESULT",
    "STRAIGHT_JOIN",
)  # fmt: skip
"""Words behind SELECT that do not change its rows."""
_OTHER_ROWS = frozenset("DISTINCT DISTINCTROW SQL_BUFFER_RESULT SQL_CALC_FOUND_ROWS".split())
_EXACT = frozenset({OperandKind.INTEGER, OperandKind.TEXT})
_AS_A_VALUE = frozenset(
    {OperandKind.TEXT, OperandKind.DECIMAL, OperandKind.DATE, OperandKind.DATETIME}
)
"""Columns of which a subquery may be the value."""


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """One column of a SELECT. `tokens`: its expression, none for one of `*`; `outer`: whether an
    outer join may leave it NULL."""

    operand: Operand
    alias: str | None = None
    tokens: tuple[Token, ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The columns of a SELECT and the rows that they are computed of, in the server's order where
    `is_ordered`."""

    columns: list[SelectedColumn]
    scopes: list[Scope]
    is_ordered: bool

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
    *,
    reads_target: bool = True,
) -> SelectedRows:
    """The rows of the SELECT at the cursor, which passes it. `target`: the table that they go into,
    None for a new one. `reads_target`: whether they may come from there, too.

    Raises ReplicationError 1146 for a table that is not there, 1235 for what is not supported.
    """
    enclosed = parser.accept("(")
    if parser.word() == "WITH":
        raise unsupported("WITH before a SELECT")
    parser.expect("SELECT")
    while parser.accept_any(*_AS_THEY_STAND):
        pass
    if parser.word() in _OTHER_ROWS:
        raise unsupported(f"SELECT {parser.word()}")
    start = parser.at
    source = _tables_behind_from(parser, tables, database, session)
    behind, parser.at = parser.at, start
    subqueries = Subqueries(parser, tables, database, session, target)
    listed = _SelectList(parser, source, session, subqueries)
    listed.read()
    if source is None:
        parser.accept("FROM", "DUAL")
    else:  # nothing may be left between the list and FROM
        parser.expect("FROM")
        parser.at = behind
    selection = listed.selection()
    parser.accept("FOR", "UPDATE")
    parser.accept("LOCK", "IN", "SHARE", "MODE")
    if enclosed:
        parser.expect(")")
    if selection.order and listed.hides_a_column:
        raise unsupported("ORDER BY beside an alias that a column has as its name")
    draws = any(token.value.upper() == "RAND" for token in parser.tokens[start : parser.at])
    if draws and not reads_target:
        raise unsupported("RAND() in a subquery, which the server evaluates for each row")
    if source is None:
        scope = Scope((), session)
        is_chosen = selection.condition is None or selection.condition(scope)
        chosen = [scope][: selection.limit] if is_chosen else []
        return SelectedRows(listed.columns, chosen, is_ordered=True)
    if any(part.table is target for part in source.parts):
        if not reads_target:
            raise unsupported("a subquery that reads the table which the statement changes")
        if not listed.is_buffered_exactly:
            raise unsupported("INSERT … SELECT of expressions from the table itself")
    if draws:
        raise unsupported("RAND() in INSERT … SELECT")
    source.take_equalities(behind)
    found = [Scope(row, session) for _, row in selection.chosen(source.rows(), session)]
    ordered = len(found) < 2 or _is_ordered(source, selection, found)
    return SelectedRows(listed.columns, found, ordered)


class Subqueries:
    """The SELECTs in the expressions of a statement. Their rows are found once, before the
    statement changes one of `changed`. Implements `SubqueryReader`.

    Raises ReplicationError 1235 for a SELECT that names columns around it or reads the changed
    table, and for values whose type decides what becomes of them.
    """

    def __init__(
        self,
        parser: Parser,
        tables: Tables,
        database: str,
        session: Session,
        changed: MemoryTable | None = None,
    ) -> None:
        self.parser = parser
        self.tables = tables
        self.database = database
        self.session = session
        self.changed = changed

    def among(self, left: Operand) -> Operand:
        """IN (SELECT …): of no rows it is false, for NULL too; of rows with NULL it is not
        false."""
        own, values = self._values()
        key = _shared_key(left, own)
        keys = {key(value) for value in values if value is not None}
        otherwise = None if None in values else 0

        def value(scope: Scope) -> int | None:
            if not values:
                return 0
            found = left.value(scope)
            return None if found is None else 1 if key(found) in keys else otherwise

        return Operand(OperandKind.INTEGER, value, f"{left.sql} IN (SELECT …)")

    def scalar(self) -> Operand:
        """(SELECT …): NULL where there is no row. Raises ReplicationError 1242 for several."""
        own, values = self._values()
        if own.kind is not OperandKind.INTEGER and not (own.column and own.kind in _AS_A_VALUE):
            raise unsupported(f"(SELECT {own.sql} …)")
        if len(values) > 1:
            raise ReplicationError(1242, "Subquery returns more than 1 row")
        found = values[0] if values else None
        return replace(own, value=lambda scope: found, sql="(SELECT …)", literal=False, column=None)

    def _values(self) -> tuple[Operand, list[Value]]:
        """The one column of the SELECT at the cursor, which passes it."""
        try:
            chosen = read_select(
                self.parser, self.tables, self.database, self.changed, self.session,
                reads_target=False,
            )  # fmt: skip
        except ReplicationError as error:
            if error.number == 1054:
                raise unsupported("a subquery about columns around it") from None
            raise
        if len(chosen.columns) != 1:
            raise ReplicationError(1241, "Operand should contain 1 column(s)")
        own = chosen.columns[0].operand
        return own, [own.value(scope) for scope in chosen.scopes]


def _shared_key(left: Operand, own: Operand) -> Callable[[Any], Hashable]:
    """What is the same of two values that are equal, of both operands."""
    if left.kind is own.kind is OperandKind.INTEGER:
        return int
    if left.kind is own.kind is OperandKind.TEXT and left.collation == own.collation is not None:
        return text_key(own.collation)
    raise unsupported(f"{left.sql} IN (SELECT {own.sql} …)")


def _tables_behind_from(
    parser: Parser, tables: Tables, database: str, session: Session
) -> JoinedTables | None:
    """Passes FROM and its tables; None where there is none."""
    parser.skip_until("FROM")
    if not parser.accept("FROM") or parser.accept("DUAL"):
        return None
    joined = JoinedTables(parser, tables, database, session)
    joined.read()
    return joined


class _SelectList:
    """The expressions between SELECT and FROM."""

    def __init__(
        self,
        parser: Parser,
        source: JoinedTables | None,
        session: Session,
        subqueries: Subqueries,
    ) -> None:
        self.parser = parser
        self.source = source
        self.dialect = session.dialect
        columns = None if source is None else source.columns
        self.reader = ExpressionParser(parser, columns, self.dialect, session, subqueries)
        self.columns: list[SelectedColumn] = []
        self.joins_outer = source is not None and any(part.outer for part in source.parts)
        self.is_buffered_exactly = True
        """Whether a temporary table between the SELECT and the INSERT keeps all values."""
        self.hides_a_column = False
        self.has_aliases = False

    def read(self) -> None:
        """Passes the list."""
        while True:
            if not self._all_columns():
                self._one()
            if not self.parser.accept(","):
                return

    def _all_columns(self) -> bool:
        """`*` and `table.*`."""
        parser, source = self.parser, self.source
        if source is None:
            return False
        chosen = source.columns.tables
        if parser.op() == "*":
            if source.merges_columns:
                raise unsupported("SELECT * beside USING")
        elif parser.op(1) == "." and "*" in (parser.op(2), parser.op(4)):
            names = [parser.name()]
            while parser.accept(".") and parser.op() != "*":
                names.append(parser.name())
            chosen = [table for table in chosen if table.is_named(names)]
        if not parser.accept("*"):
            return False
        self.columns += [
            SelectedColumn(
                column_operand(column, table.start + at, self.dialect), outer=self.joins_outer
            )
            for table in chosen
            for at, column in enumerate(table.definition.columns)
            if not (column.invisible or column.hidden)
        ]
        return True

    def _one(self) -> None:
        parser, start = self.parser, self.parser.at
        operand = self.reader.expression()
        tokens, alias = tuple(parser.tokens[start : parser.at]), None
        exact = operand.literal or operand.kind in _EXACT or self._is_name(start)
        self.is_buffered_exactly = self.is_buffered_exactly and exact
        named = parser.accept("AS")
        if named or parser.at_alias(NO_ALIAS) or parser.at_string():
            self.has_aliases = True
            alias = parser.text() if parser.at_string() else parser.name()
            hidden = alias.lower()
            self.hides_a_column = self.hides_a_column or (
                self.source is not None
                and any(hidden in one.definition.positions for one in self.source.parts)
            )
        self.columns.append(SelectedColumn(operand, alias, tokens, self.joins_outer))

    def selection(self) -> RowSelection:
        """The clauses behind the tables. Raises ReplicationError 1235 where they may name an
        alias."""
        try:
            return RowSelection.read(self.reader, self._ordered_by)
        except ReplicationError as error:
            if error.number == 1054 and self.has_aliases:
                raise unsupported("ORDER BY an alias") from None
            raise

    def _ordered_by(self, token: Token) -> Operand | None:
        """The column that ORDER BY means by its place or its alias."""
        if token.kind == "number":
            if not token.value.isdigit() or not 0 < int(token.value) <= len(self.columns):
                raise unsupported(f"ORDER BY {token.value}")
            return self.columns[int(token.value) - 1].operand
        if token.kind not in ("word", "quoted"):
            return None
        name = token.value.lower()
        found = [one.operand for one in self.columns if (one.alias or "").lower() == name]
        if len(found) > 1:
            raise unsupported(f"ORDER BY {token.value}")
        return found[0] if found else None

    def _is_name(self, start: int) -> bool:
        return all(
            token.kind in ("word", "quoted") or token.value == "."
            for token in self.parser.tokens[start : self.parser.at]
        )


def _is_ordered(source: JoinedTables, selection: RowSelection, found: list[Scope]) -> bool:
    """Whether the server can only have the rows in this order: ORDER BY leaves nothing open, or
    InnoDB has no key but the primary one to read them by."""
    if selection.order:
        return len({tuple(key(scope) for key, _ in selection.order) for scope in found}) == len(
            found
        )
    definition = source.parts[0].table.definition
    return (
        len(source.parts) == 1
        and traits_of(definition).transactional
        and not definition.partitioned
        and all(key.is_primary for key in definition.keys)
    )
