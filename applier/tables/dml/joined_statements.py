"""UPDATE and DELETE of several tables, or of one by the rows of others (`Sql_cmd_update`,
`Sql_cmd_delete`, sql/sql_update.cc and sql/sql_delete.cc).

The rows of the join are found before one of them changes. In which order a server joins the tables
is not in the log; so a statement is refused where that decides: a row that takes several values,
columns of several tables that are set and read, and keys in each other's way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.binlog.types import ValueRefused
from applier.errors import ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.row_selection import RowSelection
from applier.tables.dml.row_writer import Assignment, StatementRows, StatementSession, Write
from applier.tables.dml.selects import Subqueries, changed_tables, joined_tables
from applier.tables.dml.table_references import JoinedTable, Refs
from applier.tables.dml.trigger_programs import refuse_cascades
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import Scope, unsupported
from applier.tables.sql.sql_text import Parser
from lookup.handler import Ref, Row, RowError, RowIsReferenced, traits_of
from lookup.table import Column, TableDefinition


@dataclass(slots=True)
class _Set:
    """What SET gives a column of one table; None: its DEFAULT. `read`: positions in the row."""

    at: int
    write: Write | None
    read: frozenset[int]


@dataclass(slots=True)
class _ChangedTable:
    """A table that changes: its place among the joined ones, and the rows that change it."""

    place: int
    part: JoinedTable
    assignments: list[_Set] = field(default_factory=list)
    rows: dict[Ref, Row] = field(default_factory=dict)

    @property
    def written(self) -> set[int]:
        """Positions in the row that SET changes, generated columns with them."""
        own = {one.at for one in self.assignments}
        own |= {at for at, one in enumerate(self.part.definition.columns) if one.generated}
        return {self.part.start + at for at in own}


class JoinedStatement:
    """One statement; the cursor stands behind its first words."""

    def __init__(
        self, parser: Parser, tables: Tables, database: str, session: StatementSession,
        rows: StatementRows, subqueries: Subqueries,
    ) -> None:  # fmt: skip
        self.parser = parser
        self.tables = tables
        self.session = session
        self.rows = rows
        self.database = database
        self.joined = joined_tables(parser, tables, database, session.expressions)
        self.subqueries = subqueries

    def update(self) -> int:
        """`tables SET assignments [WHERE …]`; returns how many rows changed."""
        self._read_tables("on_update")
        self.parser.expect("SET")
        targets = self._assignments()
        found = self._matching()
        self._refuse_cascades(targets, "on_update")
        for target in targets:
            self.rows.refuse_checks(target.part.table.definition)
            self._refuse_order(target, targets)
            self._take_rows(target, found)
        return sum(self._changed(target, ref, row) for target in targets
                   for ref, row in target.rows.items())  # fmt: skip

    def delete(self) -> int:
        """`tables FROM joined [WHERE …]` and, behind FROM, `tables USING joined [WHERE …]`."""
        names = [self.parser.dotted_name()]
        while self.parser.accept(","):
            names.append(self.parser.dotted_name())
        if not self.parser.accept_any("FROM", "USING"):
            raise self.parser.refuse("expected FROM or USING")
        self._read_tables("on_delete")
        targets = [self._named(name) for name in names]
        found = self._matching()
        self._refuse_cascades(targets, "on_delete")
        for target in targets:
            self._refuse_triggers(target, "DELETE")
            target.rows = {
                ref: row for refs, row in found if (ref := refs[target.place]) is not None
            }
        if self.rows.ignore:
            raise unsupported("DELETE IGNORE of several tables")
        return self._deleted([(one.part, ref) for one in targets for ref in one.rows])

    # the tables that change

    def _read_tables(self, action: str) -> None:
        self.joined.read()
        self.subqueries.around = self.joined.columns
        definitions = [part.table.definition for part in self.joined.parts]
        self.subqueries.unreadable = changed_tables(self.tables, definitions, action)
        refuse_cascades(self.tables, self.session, definitions, action)

    def _reader(self) -> ExpressionParser:
        session = self.session.expressions
        return ExpressionParser(
            self.parser, self.joined.columns, session.dialect, session, self.subqueries
        )

    def _named(self, names: list[str]) -> _ChangedTable:
        found = [
            (place, one)
            for place, (one, visible) in enumerate(
                zip(self.joined.parts, self.joined.columns.tables, strict=True)
            )
            if visible.is_named(names)
        ]
        if len(found) != 1:
            raise unsupported(f"DELETE of `{'.'.join(names)}`, which is not one of the tables")
        return _ChangedTable(*found[0])

    def _assignments(self) -> list[_ChangedTable]:
        targets: dict[int, _ChangedTable] = {}
        columns = self.joined.columns
        while True:
            names = [self.parser.name()]
            while self.parser.accept("."):
                names.append(self.parser.name())
            at, column = columns.find(names)
            place, part = self._owner(at)
            target = targets.setdefault(place, _ChangedTable(place, part))
            self._refuse_triggers(target, "UPDATE")
            self.parser.expect("=")
            before, columns.read = columns.read, set()
            write = self._value(column)
            target.assignments.append(_Set(at - part.start, write, frozenset(columns.read)))
            columns.read = columns.read | before
            if not self.parser.accept(","):
                return list(targets.values())

    def _owner(self, at: int) -> tuple[int, JoinedTable]:
        parts = list(enumerate(self.joined.parts))
        return next((place, part) for place, part in reversed(parts) if part.start <= at)

    def _value(self, column: Column) -> Write | None:
        if self.parser.word() == "DEFAULT" and self.parser.op(1) not in ("(", "."):
            self.parser.at += 1
            return None
        return self.rows.writer(column, self._reader().expression())

    def _refuse_triggers(self, target: _ChangedTable, event: str) -> None:
        own = target.part.table.definition
        self.tables.triggers.refuse(own.database, own.name, event)

    # the rows that change

    def _matching(self) -> list[tuple[Refs, Row]]:
        start = self.parser.at
        if any(token.value.upper() == "RAND" for token in self.parser.tokens):
            raise unsupported("RAND() in a statement on several tables")
        selection = RowSelection.read(self._reader())
        if selection.order or selection.limit is not None or not self.parser.done:
            raise unsupported(self.parser.sql[self.parser.tokens[start].start :][:60])
        self.joined.take_equalities(start)
        return selection.chosen(self.joined.rows(), self.session.expressions)

    def _refuse_order(self, target: _ChangedTable, targets: list[_ChangedTable]) -> None:
        """Raises ReplicationError 1235 where a value hangs on what was set before."""
        places = [one.at for one in target.assignments]
        reads = [
            (one.at, target.part.start + other.at in one.read)
            for one in target.assignments
            for other in target.assignments
            if other is not one
        ]
        if len(set(places)) < len(places) or any(found for _, found in reads):
            raise unsupported("UPDATE of several tables that reads what it has set")
        same = [one for one in self.joined.parts if one.table is target.part.table]
        if len(targets) > 1 and (len(same) > 1 or target.written & self.joined.columns.read):
            raise unsupported("UPDATE of several tables that reads what it has set")

    def _refuse_cascades(self, targets: list[_ChangedTable], action: str) -> None:
        """Raises ReplicationError 1235 where a foreign key may change rows of the join while a
        server still reads them."""
        for target in targets:
            changed = _name(target.part.table.definition)
            reached = self.tables.foreign_keys.followers(changed, action)
            for part in self.joined.parts:
                is_other = len(targets) > 1 or part is not target.part
                if is_other and _name(part.table.definition) in reached:
                    raise unsupported(f"{action.replace('_', ' ').upper()} among joined tables")

    def _take_rows(self, target: _ChangedTable, found: list[tuple[Refs, Row]]) -> None:
        """The row of the join that gives each row its values. Several must give the same ones."""
        own = range(target.part.start, target.part.start + len(target.part.definition.columns))
        others = sorted({at for one in target.assignments for at in one.read} - set(own))
        for refs, row in found:
            ref = refs[target.place]
            if ref is None:
                continue
            first = target.rows.setdefault(ref, row)
            if any(first[at] != row[at] for at in others):
                raise unsupported("UPDATE of a row for which the other tables have several values")

    def _changed(self, target: _ChangedTable, ref: Ref, row: Row) -> int:
        table, scope = target.part.table, Scope(row, self.session.expressions)
        if table.get(ref) is None:
            raise unsupported("UPDATE of rows that a foreign key moves")
        assignments: list[Assignment] = [
            (one.at, None if one.write is None else _bound(one.write, scope))
            for one in target.assignments
        ]
        try:
            return self.rows.update(table, ref, assignments, None)
        except RowError:
            raise unsupported("UPDATE of several tables over rows in the way") from None
        except (ValueRefused, ReplicationError):
            if traits_of(table.definition).transactional:
                raise
            # the rows before the one that failed stay as they are
            raise unsupported("UPDATE of several tables that fails at a row") from None

    def _deleted(self, rows: list[tuple[JoinedTable, Ref]]) -> int:
        """A row that others refer to goes after them."""
        left = rows
        while left:
            kept: list[tuple[JoinedTable, Ref]] = []
            refusal: ReplicationError | RowIsReferenced | None = None
            for part, ref in left:
                if part.table.get(ref) is None:
                    continue
                try:
                    part.table.delete(ref)
                except RowIsReferenced as error:
                    refusal = error
                    kept.append((part, ref))
            if refusal is not None and len(kept) == len(left):
                raise refusal
            left = kept
        return len(rows)


def _name(definition: TableDefinition) -> tuple[str, str]:
    return definition.database, definition.name


def _bound(write: Write, read: Scope) -> Write:
    """Stores what the row of the join gives, whatever the row that is written."""
    return lambda scope: write(read)
