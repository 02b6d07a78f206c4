"""A SELECT: expressions over the rows of tables, over groups of them, or over none; and the
subqueries in expressions.

Whatever the order of the rows decides where the statement leaves it open is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.derived_tables import derived_table
from applier.tables.dml.grouping import Aggregates, Grouping, grouping_key, of_groups
from applier.tables.dml.row_selection import RowSelection, ordered_by
from applier.tables.dml.table_references import NO_ALIAS, JoinedTables, is_in_key_order
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
from applier.tables.expressions.special_calls import SPECIAL_CALLS
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Parser, Token
from lookup.handler import Row
from lookup.table import Key, TableDefinition

_AS_THEY_STAND = (
    "ALL", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_SMALL_RESULT", "SQL_BIG_RESULT",
    "STRAIGHT_JOIN",
)  # fmt: skip
"""Words behind SELECT that do not change its rows."""
_DISTINCT = ("DISTINCT", "DISTINCTROW")
_OTHER_ROWS = frozenset("SQL_BUFFER_RESULT SQL_CALC_FOUND_ROWS".split())
_EXACT = frozenset({OperandKind.INTEGER, OperandKind.TEXT})
_AS_A_VALUE = frozenset(
    {OperandKind.TEXT, OperandKind.DECIMAL, OperandKind.DATE, OperandKind.DATETIME}
)
"""Columns of which a subquery may be the value."""
_OWN = "the table which the statement changes"
_T = TypeVar("_T")
Unreadable = Mapping[tuple[str, str], str]
"""Database and name of tables, and what keeps a subquery from reading each."""


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """One column of a SELECT. `tokens`: its expression, none for one of `*`; `nullable`: whether it
    is a column that may be NULL, also by an outer join; `is_aggregate`: one aggregate function."""

    operand: Operand
    alias: str | None = None
    tokens: tuple[Token, ...] = ()
    nullable: bool = False
    is_aggregate: bool = False


class Select:
    """The SELECT at the cursor, which passes it. `unreadable` as of `Subqueries`; `around`: the
    columns that a subquery may name beside its own.

    Raises ReplicationError 1146 for a table that is not there, 1235 for what is not supported.
    """

    def __init__(
        self,
        parser: Parser,
        tables: Tables,
        database: str,
        unreadable: Unreadable,
        session: Session,
        around: VisibleColumns | None = None,
    ) -> None:
        self.session = session
        enclosed = parser.accept("(")
        if parser.word() == "WITH":
            raise unsupported("WITH before a SELECT")
        parser.expect("SELECT")
        distinct = _passes_options(parser)
        start = parser.at
        self.source = joined_tables(parser, tables, database, session, around)
        behind = self._read_tables(parser)
        subqueries = Subqueries(parser, tables, database, session, unreadable, self.source.columns)
        self.listed = _SelectList(parser, self.source, session, subqueries)
        self.listed.read()
        if self.source.parts:  # nothing may be left between the list and FROM
            parser.expect("FROM")
            parser.at = behind
        else:
            parser.accept("FROM", "DUAL")
        self.where, self.grouping, self.behind = self.listed.clauses(distinct=distinct)
        parser.accept("FOR", "UPDATE")
        parser.accept("LOCK", "IN", "SHARE", "MODE")
        if enclosed:
            parser.expect(")")
        self.draws = any(
            token.value.upper() == "RAND" for token in parser.tokens[start : parser.at]
        )

    def _read_tables(self, parser: Parser) -> int:
        """Reads FROM and its tables, which stand behind the list, where the cursor stays; returns
        the place behind them."""
        start = parser.at
        parser.skip_until("FROM", "UNION")
        if parser.accept("FROM") and not parser.accept("DUAL"):
            self.source.read()
        behind, parser.at = parser.at, start
        return behind

    @property
    def read_tables(self) -> list[MemoryTable]:
        """Those of FROM."""
        return [part.table for part in self.source.parts]

    @property
    def reads_around(self) -> bool:
        """Whether its rows are others for each row around it."""
        return self.source.columns.reads_around

    def scopes(self, around: Row = ()) -> list[Scope]:
        """The rows that its columns are computed of, beside a row of what is around it, whose
        values do not matter where `reads_around` is false."""
        rows = self.where.chosen(self.source.rows(around), self.session)
        if self.grouping is not None:
            found = [Scope(row, self.session) for _, row in rows]
            groups = self.grouping.rows(found, around, self.session)
            rows = self.behind.chosen([(None, row) for row in groups], self.session)
        return [Scope(row, self.session) for _, row in rows]

    def is_ordered(self, found: list[Scope]) -> bool:
        """Whether the server can only have the rows in this order: ORDER BY leaves nothing open, or
        InnoDB has no key but the primary one to read them by, or may use no other."""
        order = self.behind.order
        if order:
            return len({tuple(key(scope) for key, _ in order) for scope in found}) == len(found)
        if self.grouping is not None or len(self.source.parts) != 1:
            return False
        return is_in_key_order(self.source.parts[0].table.definition, self._usable_keys())

    def _usable_keys(self) -> list[Key]:
        """The keys by which a server may read the only table: those that a condition may be about,
        or that have all columns that are read, beside those of the primary key."""
        part = self.source.parts[0]
        definition = part.table.definition
        if part.by_primary:
            return []
        if self.where.condition is not None or definition.primary is None:
            return list(definition.keys)
        read = {at - part.start for at in self.source.columns.read}
        return [
            key for key in definition.keys if read <= {*key.columns, *definition.primary.columns}
        ]


def joined_tables(
    parser: Parser,
    tables: Tables,
    database: str,
    session: Session,
    around: VisibleColumns | None = None,
) -> JoinedTables:
    """The tables that stand at the cursor once it is read, and SELECTs in place of tables."""

    def derived() -> MemoryTable:
        select = Select(parser, tables, database, {}, session)
        if select.draws:
            raise unsupported("RAND() in a derived table")
        columns = select.listed.columns
        names = [one.alias or (one.operand.column and one.operand.column.name) for one in columns]
        if not all(names):
            raise unsupported("a derived table with a column that has no name")
        operands = [column.operand for column in columns]
        return derived_table(list(map(str, names)), operands, select.scopes(), session)

    return JoinedTables(parser, tables, database, session, around, derived)


def _passes_options(parser: Parser) -> bool:
    """Passes the words behind SELECT; returns whether DISTINCT is one of them."""
    distinct = False
    while word := parser.accept_any(*_AS_THEY_STAND, *_DISTINCT):
        distinct = distinct or word in _DISTINCT
    if parser.word() in _OTHER_ROWS:
        raise unsupported(f"SELECT {parser.word()}")
    return distinct


class Subqueries:
    """The SELECTs in the expressions of a statement. The rows of their tables are those before the
    statement changes any, so that it may not change those: `unreadable` has the tables for which
    that is not so, and why. A SELECT that names no column `around` it is read once. Implements
    `SubqueryReader`.

    Raises ReplicationError 1235 for a SELECT from such a table, and for values whose type decides
    what becomes of them.
    """

    def __init__(
        self,
        parser: Parser,
        tables: Tables,
        database: str,
        session: Session,
        unreadable: Unreadable = MappingProxyType({}),
        around: VisibleColumns | None = None,
    ) -> None:
        self.parser = parser
        self.tables = tables
        self.database = database
        self.session = session
        self.unreadable = unreadable
        self.around = around
        self.may_read_own = False
        """MariaDB's UPDATE and DELETE of one table read it, too, where no column is one of the row
        around."""

    def among(self, left: Operand) -> Operand:
        """IN (SELECT …): of no rows it is false, for NULL too; of rows with NULL it is not
        false."""
        select, own = self._one_column()
        key = _shared_key(left, own)

        def keyed(scopes: list[Scope]) -> set[Hashable]:
            values = (own.value(scope) for scope in scopes)
            return {None if value is None else key(value) for value in values}

        keys_beside = self._beside(select, keyed)

        def value(scope: Scope) -> int | None:
            keys = keys_beside(scope)
            if not keys:
                return 0
            found = left.value(scope)
            if found is None:
                return None
            return 1 if key(found) in keys else None if None in keys else 0

        return Operand(OperandKind.INTEGER, value, f"{left.sql} IN (SELECT …)")

    def scalar(self) -> Operand:
        """(SELECT …): NULL where there is no row. Raises ReplicationError 1242 for several."""
        select, own = self._one_column()
        is_known = own.column is not None or select.listed.columns[0].is_aggregate
        if own.kind is not OperandKind.INTEGER and not (is_known and own.kind in _AS_A_VALUE):
            raise unsupported(f"(SELECT {own.sql} …)")

        values_beside = self._beside(select, lambda scopes: [own.value(one) for one in scopes])

        def value(scope: Scope) -> Value:
            values = values_beside(scope)
            if len(values) > 1:
                raise ReplicationError(1242, "Subquery returns more than 1 row")
            return values[0] if values else None

        return replace(own, value=value, sql="(SELECT …)", literal=False, column=None)

    def exists(self) -> Operand:
        """EXISTS (SELECT …)."""
        value = self._beside(self._select(), lambda scopes: int(bool(scopes)))
        return Operand(OperandKind.INTEGER, value, "EXISTS (SELECT …)")

    def _beside(self, select: Select, make: Callable[[list[Scope]], _T]) -> Callable[[Scope], _T]:
        """What is made of the rows of the SELECT, beside each row around it."""
        width = select.source.columns.start
        if not select.reads_around:
            once = make(select.scopes((None,) * width))
            return lambda scope: once
        return lambda scope: make(select.scopes(scope.row[:width]))

    def _one_column(self) -> tuple[Select, Operand]:
        """The SELECT at the cursor, which passes it, and its one column."""
        select = self._select()
        if len(select.listed.columns) != 1:
            raise ReplicationError(1241, "Operand should contain 1 column(s)")
        return select, select.listed.columns[0].operand

    def _select(self) -> Select:
        try:
            select = Select(
                self.parser, self.tables, self.database, self.unreadable, self.session, self.around
            )
        except ReplicationError as error:
            if error.number == 1054:
                raise unsupported("a subquery about columns around it") from None
            raise
        if select.draws:
            raise unsupported("RAND() in a subquery, which the server evaluates for each row")
        for table in select.read_tables:
            reason = self.unreadable.get((table.definition.database, table.definition.name))
            if reason == _OWN and self.may_read_own and not select.reads_around:
                continue  # it is read before the statement changes it
            if reason is not None:
                raise unsupported(f"a subquery that reads {reason}")
        return select


def changed_tables(
    tables: Tables, definitions: Iterable[TableDefinition], *actions: str
) -> Unreadable:
    """Those of a statement that changes tables, and those that foreign keys change with them;
    `actions`: on_delete, on_update."""
    found: dict[tuple[str, str], str] = {}
    for definition in definitions:
        name = definition.database, definition.name
        followers = tables.foreign_keys.followers(name, *actions)
        found |= dict.fromkeys(followers, "a table which a foreign key changes")
        found[name] = _OWN
    return found


def _shared_key(left: Operand, own: Operand) -> Callable[[Any], Hashable]:
    """What is the same of two values that are equal, of both operands."""
    if left.kind is own.kind is OperandKind.INTEGER:
        return int
    if left.kind is own.kind is OperandKind.TEXT and left.collation == own.collation is not None:
        return text_key(own.collation)
    raise unsupported(f"{left.sql} IN (SELECT {own.sql} …)")


class _SelectList:
    """The expressions between SELECT and FROM."""

    def __init__(
        self,
        parser: Parser,
        source: JoinedTables,
        session: Session,
        subqueries: Subqueries,
    ) -> None:
        self.parser = parser
        self.source = source
        self.dialect = session.dialect
        self.aggregates = Aggregates(source.columns)
        self.reader = _NamingParser(
            parser, source.columns, self.dialect, session, subqueries,
            {**SPECIAL_CALLS, **self.aggregates.calls},
        )  # fmt: skip
        self.columns: list[SelectedColumn] = []
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
        if not source.parts:
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
                column_operand(column, table.start + at, self.dialect),
                nullable=column.nullable or table.outer,
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
            self.hides_a_column = self.hides_a_column or self._hides(alias.lower(), operand)
        is_aggregate = self.aggregates.is_result(operand)
        nullable = operand.column is not None and self._may_be_null(tokens)
        self.columns.append(SelectedColumn(operand, alias, tokens, nullable, is_aggregate))

    def _hides(self, alias: str, operand: Operand) -> bool:
        """Whether an alias is the name of another column."""
        named = (
            one.definition.columns[at]
            for one in self.source.parts
            if (at := one.definition.positions.get(alias)) is not None
        )
        return any(column is not operand.column for column in named)

    def clauses(self, *, distinct: bool) -> tuple[RowSelection, Grouping | None, RowSelection]:
        """What stands behind the tables: the condition for their rows, the groups, and what is
        chosen of those; the same twice without groups. Raises ReplicationError 1235 where they may
        name an alias."""
        try:
            return self._clauses(distinct=distinct)
        except ReplicationError as error:
            if error.number == 1054 and self.has_aliases:
                raise unsupported("ORDER BY an alias") from None
            raise

    def _clauses(self, *, distinct: bool) -> tuple[RowSelection, Grouping | None, RowSelection]:
        start = self.parser.at
        where = RowSelection.read_condition(self.reader, "WHERE")
        self.source.take_equalities(start)
        keys = self._group_by()
        if distinct and keys is None and not self.aggregates.operands:
            keys = [one.operand for one in self.columns]
        elif distinct and keys is not None:
            raise unsupported("DISTINCT beside GROUP BY")
        self.reader.aliases = {one.alias.lower(): one.operand for one in self.columns if one.alias}
        having = RowSelection.read_condition(self.reader, "HAVING")
        self.reader.aliases = {}
        behind = having.read_order(self.reader, self._ordered_by)
        is_grouped = keys is not None or bool(self.aggregates.operands)
        if (behind.order or is_grouped) and self.hides_a_column:
            raise unsupported("ORDER BY beside an alias that a column has as its name")
        if not is_grouped:
            if having.condition is not None:
                raise unsupported("HAVING without groups")
            chosen = replace(where, order=behind.order, limit=behind.limit)
            return chosen, None, chosen
        if keys is None:  # one row, whatever its order
            behind = replace(behind, order=[])
        read = [one.operand.value for one in self.columns] + [key for key, _ in behind.order]
        if having.condition is not None:
            read.append(having.condition)
        self.columns = [
            one if one.operand.column else replace(one, operand=of_groups(one.operand))
            for one in self.columns
        ]
        by = None if keys is None else [grouping_key(key) for key in keys]
        return where, Grouping(self.aggregates, by, read), behind

    def _group_by(self) -> list[Operand] | None:
        if not self.parser.accept("GROUP", "BY"):
            return None
        keys = [operand for operand, _ in ordered_by(self.reader, self._ordered_by)]
        if self.parser.word() == "WITH":
            raise unsupported("WITH ROLLUP")
        return keys

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

    def _may_be_null(self, tokens: tuple[Token, ...]) -> bool:
        names = [token.value for token in tokens if token.kind in ("word", "quoted")]
        return self.source.columns.may_be_null(names)

    def _is_name(self, start: int) -> bool:
        return all(
            token.kind in ("word", "quoted") or token.value == "."
            for token in self.parser.tokens[start : self.parser.at]
        )


class _NamingParser(ExpressionParser):
    """`aliases`: what HAVING may name beside columns, by the name in lower case."""

    aliases: Mapping[str, Operand] = {}

    def column(self, names: list[str], *, inserted: bool = False) -> Operand:
        found = self.aliases.get(names[0].lower()) if len(names) == 1 else None
        return found or super().column(names, inserted=inserted)
