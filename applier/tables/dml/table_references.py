"""The tables of a statement that reads or changes several: names, joins and their conditions
(`table_references` of sql/sql_yacc.yy).

The rows of a join are those of its tables side by side. Outer joins to the right, NATURAL and joins
in parentheses are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from applier.tables.catalog import Tables
from applier.tables.dml.equalities import equal_names
from applier.tables.dml.number_tables import number_table
from applier.tables.engine import MemoryTable
from applier.tables.expressions.comparisons import compared, text_key
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import (
    Operand,
    OperandKind,
    Scope,
    Session,
    column_operand,
    condition,
    truth,
    unsupported,
)
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Parser
from lookup.handler import Ref, Row, traits_of
from lookup.table import Column, Key, TableDefinition

JOINING = frozenset("JOIN INNER CROSS LEFT RIGHT NATURAL STRAIGHT_JOIN".split())
NO_ALIAS = JOINING | frozenset(
    """
        FROM WHERE ORDER LIMIT GROUP HAVING UNION EXCEPT INTERSECT FOR LOCK ON PROCEDURE WINDOW
        PARTITION USE FORCE IGNORE RETURNING SET USING
    """.split()
)
"""Words behind an expression or a table that are not an alias of it."""
Refs = tuple[Ref | None, ...]
"""The row of each table; None: an outer join found none."""
Condition = Callable[[Scope], bool | None]


@dataclass(frozen=True, slots=True)
class _Equality:
    """Two columns that are equal in each row of the join: `earlier` of the tables before, `own`
    of the one that is joined."""

    earlier: Callable[[Scope], Any]
    own: Callable[[Scope], Any]


@dataclass(slots=True)
class JoinedTable:
    """One table of a join. `outer`: LEFT JOIN; `conditions`: of ON and USING; `by_primary`: a hint
    leaves the server no key but the primary one."""

    table: MemoryTable
    definition: TableDefinition
    start: int
    outer: bool = False
    by_primary: bool = False
    conditions: list[Condition] = field(default_factory=list)
    equalities: list[_Equality] = field(default_factory=list)
    candidates: Callable[[Row], Iterable[tuple[Ref, Row]]] | None = None
    """The rows that may go with a row of the tables before, once they are read."""

    def joined(
        self, found: Iterable[tuple[Refs, Row]], session: Session
    ) -> Iterator[tuple[Refs, Row]]:
        """The rows so far with each row of this table that its conditions take."""
        candidates = self.candidates = self.candidates or self._candidates(session)
        for refs, row in found:
            matched = False
            for ref, own in candidates(row):
                scope = Scope(row + own, session)
                if all(condition(scope) for condition in self.conditions):
                    matched = True
                    yield (*refs, ref), scope.row
            if self.outer and not matched:
                yield (*refs, None), row + (None,) * len(self.definition.columns)

    def _candidates(self, session: Session) -> Callable[[Row], Iterable[tuple[Ref, Row]]]:
        """The rows that may go with a row of the tables before: those whose equal columns are."""
        if not self.equalities:
            rows = list(self.table.scan())
            return lambda row: rows
        by_values: dict[Hashable, list[tuple[Ref, Row]]] = defaultdict(list)
        for ref, own in self.table.scan():
            scope = Scope(own, session)
            by_values[tuple(one.own(scope) for one in self.equalities)].append((ref, own))

        def of(row: Row) -> Iterable[tuple[Ref, Row]]:
            scope = Scope(row, session)
            values = tuple(one.earlier(scope) for one in self.equalities)
            return () if None in values else by_values.get(values, ())

        return of


class JoinedTables:
    """The tables of a FROM clause, or between UPDATE and SET; none of a SELECT without FROM.
    `around`: what they may name in conditions, too. `read_derived`: passes a SELECT that stands in
    place of a table."""

    def __init__(
        self,
        parser: Parser,
        tables: Tables,
        database: str,
        session: Session,
        around: VisibleColumns | None = None,
        read_derived: Callable[[], MemoryTable] | None = None,
    ) -> None:
        self.parser = parser
        self.tables = tables
        self.database = database
        self.session = session
        self.columns = VisibleColumns(around)
        self.read_derived = read_derived
        self.parts: list[JoinedTable] = []
        self.merges_columns = False
        """Whether USING makes one column of two."""

    def read(self) -> None:
        """Passes the tables that stand at the cursor. Raises ReplicationError: 1146 for one that is
        not there, 1235 for what is not supported."""
        self._table(outer=False)
        parser = self.parser
        while True:
            if parser.accept(","):
                self._table(outer=False)
            elif parser.accept("LEFT"):
                parser.accept("OUTER")
                parser.expect("JOIN")
                self._table(outer=True)
                self._condition(required=True)
            elif parser.word() in ("RIGHT", "NATURAL"):
                raise unsupported(f"{parser.word()} JOIN")
            elif parser.word() in JOINING:
                if parser.accept_any("INNER", "CROSS", "STRAIGHT_JOIN") != "STRAIGHT_JOIN":
                    parser.expect("JOIN")
                self._table(outer=False)
                self._condition(required=False)
            else:
                return

    def reader(self) -> ExpressionParser:
        """Of expressions over these tables."""
        return ExpressionParser(self.parser, self.columns, self.session.dialect, self.session)

    def take_equalities(self, start: int) -> None:
        """Uses the columns that WHERE, whose tokens begin at `start`, wants to be equal: rows of
        which they are not need not be joined."""
        self._equalities(start, of_outer=False)

    def rows(self, around: Row = ()) -> Iterator[tuple[Refs, Row]]:
        """The rows of the join behind a row of what is around it, in no order that means anything.
        The tables are read once."""
        found: Iterator[tuple[Refs, Row]] = iter([((), around)])
        for part in self.parts:
            found = part.joined(found, self.session)
        return found

    def _table(self, *, outer: bool) -> None:
        parser = self.parser
        if parser.op() == "(" and parser.word(1) == "SELECT" and self.read_derived is not None:
            parser.expect("(")
            table = self.read_derived()
            parser.expect(")")
            parser.accept("AS")
            self._add(table, replace(table.definition, name=parser.name()), outer=outer)
            return
        if parser.op() in ("(", "{"):
            raise unsupported("joins in parentheses")
        if parser.word() == "JSON_TABLE" and parser.op(1) == "(":
            raise unsupported("JSON_TABLE")
        name = parser.table_name(self.database)
        table = readable(self.tables, name)
        definition = table.definition
        if parser.accept("AS") or parser.at_alias(NO_ALIAS):
            definition = replace(definition, name=parser.name())
        by_primary = _pass_index_hints(parser)
        if parser.word() in ("PARTITION", "FOR"):
            raise unsupported(f"`{name[1]}` {parser.word()} …")
        self._add(table, definition, outer=outer).by_primary = by_primary

    def _add(self, table: MemoryTable, definition: TableDefinition, *, outer: bool) -> JoinedTable:
        start = self.columns.add(definition, outer=outer).start
        self.parts.append(JoinedTable(table, definition, start, outer))
        return self.parts[-1]

    def _condition(self, *, required: bool) -> None:
        parser, part = self.parser, self.parts[-1]
        if parser.accept("ON"):
            start = parser.at
            holds = condition(self.reader().expression(), self.session.dialect)
            part.conditions.append(truth(holds))
            self._equalities(start, of_outer=True)
        elif parser.accept("USING"):
            parser.expect("(")
            while not parser.accept(")"):
                self._shared(part, parser.name())
                parser.accept(",")
        elif required:
            raise parser.refuse("expected ON or USING")

    def _shared(self, part: JoinedTable, name: str) -> None:
        own = name.lower()
        if own not in part.definition.positions:
            raise unsupported(f"USING ({name})")
        earlier = [
            column_operand(one.definition.columns[at], one.start + at, self.session.dialect)
            for one in self.parts[:-1]
            if (at := one.definition.positions.get(own)) is not None
        ]
        if len(earlier) != 1 and own not in self.columns.shared:
            raise unsupported(f"USING ({name})")
        at = part.definition.positions[own]
        mine = column_operand(part.definition.columns[at], part.start + at, self.session.dialect)
        part.conditions.append(truth(compared("=", earlier[0], mine, self.session.dialect)))
        self.columns.shared.add(own)
        self.merges_columns = True

    # equal columns

    def _equalities(self, start: int, *, of_outer: bool) -> None:
        """`of_outer`: of the last table only; otherwise of those that no outer join brings in."""
        tokens = self.parser.tokens[start : self.parser.at]
        for one, two in equal_names(tokens):
            earlier, own = self.columns.place(one), self.columns.place(two)
            if earlier is None or own is None:
                continue
            if earlier[0] > own[0]:
                earlier, own = own, earlier
            part = next((part for part in reversed(self.parts) if part.start <= own[0]), None)
            if part is None or part.start <= earlier[0]:
                continue
            if part is self.parts[-1] if of_outer else not part.outer:
                self._note_equality(part, earlier, own)

    def _note_equality(
        self, part: JoinedTable, earlier: tuple[int, Column], own: tuple[int, Column]
    ) -> None:
        dialect = self.session.dialect
        one = column_operand(earlier[1], earlier[0], dialect)
        two = column_operand(own[1], own[0] - part.start, dialect)
        if one.kind is two.kind is OperandKind.INTEGER:
            part.equalities.append(_Equality(one.value, two.value))
        elif one.kind is two.kind is OperandKind.TEXT and one.collation == two.collation:
            part.equalities.append(_Equality(_keyed(one), _keyed(two)))


def _keyed(operand: Operand) -> Callable[[Scope], Any]:
    key, inner = text_key(operand.collation or ""), operand.value

    def value(scope: Scope) -> Any:
        found = inner(scope)
        return None if found is None else key(found)

    return value


def _pass_index_hints(parser: Parser) -> bool:
    """USE, FORCE and IGNORE INDEX, which change no rows; whether they are FORCE INDEX (PRIMARY)."""
    hints: list[tuple[str, str]] = []
    while parser.word() in ("USE", "FORCE", "IGNORE") and parser.word(1) in ("INDEX", "KEY"):
        word, purpose = parser.word(), ""
        parser.at += 2
        if parser.accept("FOR"):
            purpose = parser.skip_until("(")
        hints.append((word + purpose, parser.parenthesized().strip("`").upper()))
    return hints == [("FORCE", "PRIMARY")]


def is_in_key_order(definition: TableDefinition, usable: Iterable[Key]) -> bool:
    """Whether a server can only read the table in the order of its primary key, where these are the
    keys that it may use: what they do not narrow down is scanned in that order by InnoDB."""
    return (
        traits_of(definition).clustered
        and not definition.partitioned
        and all(key.is_primary for key in usable)
    )


def readable(tables: Tables, name: tuple[str, str]) -> MemoryTable:
    """The table of this name, whose rows may be read. Raises ReplicationError."""
    table = None
    if tables.dialect.mariadb and tables.get(*name) is None:
        table = number_table(*name)
    if table is None:
        table = tables.named(*name)
    table.open()
    if any(column.system_time for column in table.definition.columns):
        raise unsupported(f"a SELECT from `{name[1]}`, whose rows have a system time")
    return table
