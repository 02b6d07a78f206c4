"""Statement-format DML on tables in memory: INSERT, REPLACE, UPDATE and DELETE of one table.

The clauses are read here, the expressions in them by `expression_parser`. Joins, subqueries and
stored routines are refused by name, and so is an order of rows that the statement leaves open where
it decides which rows change: a log in statement format only says what was asked, and guessing what
came of it would be a silent divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from applier.binlog.types import ValueRefused, from_sql
from applier.errors import InputError, ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.row_selection import RowSelection
from applier.tables.engine import MemoryTable
from applier.tables.expressions.auto_numbers import stored_number
from applier.tables.expressions.defaults import (
    column_default,
    default_row,
    implicit_default,
    row_generator,
)
from applier.tables.expressions.expression_parser import ExpressionParser, sql_parser
from applier.tables.expressions.operands import (
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    unsupported,
)
from applier.tables.expressions.row_expressions import compile_expression
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from lookup.handler import DuplicateKey, NoReferencedRow, Row, RowError, RowIsReferenced, traits_of
from lookup.table import Column, TableDefinition

DML_STATEMENTS = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"})
JOINING_WORDS = frozenset({"USING", "JOIN", "INNER", "LEFT", "RIGHT"})

Write = Callable[[Scope], Any]
Assignment = tuple[int, Write | None]
"""A column and what is stored in it; None: its DEFAULT."""


@dataclass
class StatementSession:
    """What the events before a statement and its own status variables set."""

    expressions: Session = field(default_factory=Session)
    insert_id: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    files: dict[int, bytearray] = field(default_factory=dict)
    """LOAD DATA files by their number."""


def execute_statement(tables: Tables, sql: str, database: str, session: StatementSession) -> int:
    """Carries one DML statement out; returns the number of rows changed.

    Raises ReplicationError: the server's number for what the server refuses too, 1235 for what is
    not supported here. What the statement changed in tables with transactions is taken back then.
    """
    statement = Statement(tables, sql, database, session)
    word = statement.parser.word()
    handlers: dict[str, Callable[[], int]] = {
        "INSERT": lambda: statement.insert(replacing=False),
        "REPLACE": lambda: statement.insert(replacing=True),
        "UPDATE": statement.update,
        "DELETE": statement.delete,
    }
    if word not in handlers:
        raise unsupported(f"statement {word or sql[:40]}")
    statement.parser.at += 1
    return statement.carried_out(handlers[word])


class Statement:
    """One statement: a cursor over its SQL, and the table that it names."""

    def __init__(self, tables: Tables, sql: str, database: str, session: StatementSession) -> None:
        self.tables = tables
        self.sql = sql
        self.dialect: Dialect = session.expressions.dialect
        self.parser = sql_parser(sql, self.dialect)
        self.database = database
        self.session = session
        self.table_name: str | None = None
        self.ignore = False

    def carried_out(self, work: Callable[[], int]) -> int:
        """The result of `work`; its errors as ReplicationError, and then without its changes."""
        mark = self.tables.changes
        try:
            return work()
        except RowError as error:
            failure = ReplicationError(error.number, str(error), table=self.table_name)
        except ValueRefused as refused:
            failure = ReplicationError(refused.number, refused.message, table=self.table_name)
        except InputError as error:
            failure = unsupported(f"{self.sql[:80]!r}: {error.message}")
        except ReplicationError as error:
            failure = error
        self.tables.rollback_to_mark(mark)
        raise failure

    def table(self, *events: str) -> MemoryTable:
        """The table that stands at the cursor; `events`: those of triggers that the statement
        fires."""
        name = self.parser.table_name(self.database)
        self.table_name = ".".join(name)
        table = self.tables.get(*name)
        if table is None:
            self.tables.refuse_view(*name)
            raise ReplicationError(
                1146, f"Table '{self.table_name}' doesn't exist", table=self.table_name
            )
        self.tables.triggers.refuse(*name, *events)
        table.open()
        if any(column.system_time for column in table.definition.columns):
            raise unsupported(f"a statement on `{self.table_name}`, whose rows have a system time")
        return table

    def _reader(self, definition: TableDefinition) -> ExpressionParser:
        return ExpressionParser(self.parser, definition, self.dialect, self.session.expressions)

    # INSERT, REPLACE

    def insert(self, *, replacing: bool) -> int:
        """INSERT and REPLACE, behind their first word."""
        parser = self.parser
        while word := parser.accept_any(
            "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"
        ):
            self.ignore = self.ignore or word == "IGNORE"
        table = self.table("INSERT", "DELETE") if replacing else self.table("INSERT")
        definition = table.definition
        columns = self.column_list(definition)
        if parser.accept_any("VALUES", "VALUE"):
            rows = list(self._value_lists(definition, columns))
        elif parser.accept("SET"):
            rows = [self._assignments(definition)]
        else:
            raise unsupported("INSERT … SELECT")
        on_duplicate: list[Assignment] = []
        if parser.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
            self.tables.triggers.refuse(definition.database, definition.name, "UPDATE")
            on_duplicate = self._assignments(definition)
        self._at_end()
        return self.insert_rows(table, rows, replacing=replacing, on_duplicate=on_duplicate)

    def column_list(self, definition: TableDefinition) -> tuple[int, ...]:
        """The columns that stand in parentheses at the cursor, or all visible ones."""
        parser = self.parser
        if parser.accept("(", ")") or not parser.accept("("):
            return tuple(at for at, column in enumerate(definition.columns) if not column.invisible)
        found: list[int] = []
        while not parser.accept(")"):
            found.append(position(definition, self._column_name()))
            parser.accept(",")
        return tuple(found)

    def _column_name(self) -> str:
        name = self.parser.name()
        while self.parser.accept("."):
            name = self.parser.name()
        return name

    def _value_lists(
        self, definition: TableDefinition, columns: tuple[int, ...]
    ) -> Iterator[list[Assignment]]:
        while True:
            self.parser.expect("(")
            found: list[Assignment] = []
            while not self.parser.accept(")"):
                if len(found) < len(columns):
                    found.append(
                        (columns[len(found)], self._value(definition, columns[len(found)]))
                    )
                else:
                    raise _other_width(definition)
                self.parser.accept(",")
            if len(found) != len(columns) and found:
                raise _other_width(definition)
            yield found
            if not self.parser.accept(","):
                return

    def _value(self, definition: TableDefinition, at: int) -> Write | None:
        """What stands at the cursor, for a column; None for DEFAULT."""
        if self.parser.word() == "DEFAULT" and self.parser.op(1) not in ("(", "."):
            self.parser.at += 1
            return None
        operand = self._reader(definition).expression()
        return self.writer(definition.columns[at], operand)

    def writer(self, column: Column, operand: Operand) -> Write:
        """How an operand is stored; for a generated column nothing but DEFAULT or NULL may be."""
        if column.generated:
            if operand.kind is OperandKind.NULL or self.ignore:
                return lambda scope: None
            raise unsupported(f"a value for the generated column `{column.name}`")
        return storer(column, operand, self.dialect)

    def insert_rows(
        self,
        table: MemoryTable,
        rows: list[list[Assignment]],
        *,
        replacing: bool,
        on_duplicate: list[Assignment],
    ) -> int:
        """Inserts rows of assignments; returns how many rows changed.

        A number that a row took and did not need goes to the next one (`restore_auto_increment`,
        sql/handler.cc).
        """
        changed = 0
        generate = row_generator(table.definition, self.dialect)
        for at, assignments in enumerate(rows):
            next_number = self.session.insert_id
            row = self._new_row(table, assignments, alone=len(rows) == 1, first=at == 0)
            row = row if generate is None else generate(row)
            try:
                table.insert(row)
                changed += 1
            except DuplicateKey as duplicate:
                if replacing:
                    changed += self._replace(table, row, duplicate)
                    continue
                if not on_duplicate and not self.ignore:
                    raise
                self.session.insert_id = next_number
                if on_duplicate:
                    changed += self._update_row(table, duplicate.ref, on_duplicate, row)
            except NoReferencedRow:
                if not self.ignore:
                    raise
                self.session.insert_id = next_number
        return changed

    def _replace(self, table: MemoryTable, row: Row, duplicate: DuplicateKey) -> int:
        """Rows in the way go; the row of the last unique key is overwritten where nothing refers to
        it (`write_record`)."""
        uniques = [key for key in table.definition.sorted_keys if key.unique]
        while True:
            if duplicate.key is uniques[-1] and not table.is_referenced:
                table.update(duplicate.ref, row)
                return 1
            table.delete(duplicate.ref)
            try:
                table.insert(row)
                return 1
            except DuplicateKey as again:
                duplicate = again

    def _new_row(
        self, table: MemoryTable, assignments: list[Assignment], *, alone: bool, first: bool
    ) -> Row:
        definition = table.definition
        session = self.session.expressions
        base = default_row(definition, session)
        row = list(base)
        strict = self._strict(definition, first=first)
        for at, write in assignments:
            column = definition.columns[at]
            if write is None or column.generated:
                continue
            value = self._fitted(write, Scope(tuple(row), session), strict=strict)
            if value is None and not column.nullable and not column.auto_increment:
                value = self._instead_of_null(
                    column, definition, strict=strict or (alone and not self.ignore)
                )
            row[at] = value
        given = {at for at, write in assignments if write is not None}
        self._number(table, row, given)
        return tuple(row)

    def _strict(self, definition: TableDefinition, *, first: bool) -> bool:
        modes = self.dialect.sql_mode
        if self.ignore or not modes & SqlModeFlag.STRICT:
            return False
        return (
            bool(modes & SqlModeFlag.STRICT_ALL_TABLES)
            or first
            or traits_of(definition).transactional
        )

    def _fitted(self, write: Write, scope: Scope, *, strict: bool) -> Any:
        """The stored value; the closest to one that does not fit where the mode allows. Raises
        ValueRefused."""
        try:
            return write(scope)
        except ValueRefused as refused:
            if strict:
                raise
            if refused.closest is None:
                raise unsupported(refused.message) from None
            return refused.closest

    def _instead_of_null(self, column: Column, definition: TableDefinition, *, strict: bool) -> Any:
        """What a NOT NULL column takes for NULL. Raises ReplicationError 1048."""
        if column.type == "timestamp" and not self.session.explicit_defaults_for_timestamp:
            if self.session.explicit_defaults_for_timestamp is None and not self.dialect.old:
                raise unsupported(
                    f"NULL for the TIMESTAMP `{column.name}`, whose meaning "
                    "explicit_defaults_for_timestamp decides"
                )
            return column_default(
                replace(column, default=f"CURRENT_TIMESTAMP({column.scale})"),
                self.session.expressions,
            )
        if strict:
            raise ReplicationError(
                1048, f"Column '{column.name}' cannot be null", table=definition.full_name
            )
        return 0 if column.type == "enum" and not self.dialect.mariadb else implicit_default(column)

    def _number(self, table: MemoryTable, row: list[Any], given: set[int]) -> None:
        """Fills an AUTO_INCREMENT column from the INSERT_ID event, or from the table's own counter.

        NO_AUTO_VALUE_ON_ZERO is about a zero that is given; a column that is not among those gets a
        number.
        """
        at = next(
            (at for at, column in enumerate(table.definition.columns) if column.auto_increment),
            None,
        )
        if at is None:
            return
        session, column = self.session, table.definition.columns[at]
        if at not in given:
            row[at] = None
        zero = (
            None
            if self.dialect.sql_mode & SqlModeFlag.NO_AUTO_VALUE_ON_ZERO
            else from_sql(column)(0)
        )
        if row[at] is not None and row[at] != zero:
            if (
                session.insert_id is not None
                and isinstance(row[at], int)
                and row[at] >= session.insert_id
            ):
                session.insert_id = session.expressions.numbers.after(row[at])
            return
        number = session.insert_id if session.insert_id is not None else table.auto_increment
        if row[at] is not None or not column.nullable:
            # AUTO_INCREMENT NULL uses a number up and stays NULL
            row[at] = stored_number(
                column, number, mariadb=self.dialect.mariadb, ignoring=self.ignore
            )
        if session.insert_id is not None:
            session.insert_id = session.expressions.numbers.after(number)

    # UPDATE, DELETE

    def update(self) -> int:
        """UPDATE, behind its first word."""
        self.parser.accept_any("LOW_PRIORITY")
        self.ignore = self.parser.accept("IGNORE")
        table = self.table("UPDATE")
        self._alias()
        if not self.parser.accept("SET"):
            raise unsupported("UPDATE of several tables")
        assignments = self._assignments(table.definition)
        changed = 0
        for ref in self._matching(table):
            if table.get(ref) is not None:
                try:
                    changed += self._update_row(table, ref, assignments, None)
                except (DuplicateKey, NoReferencedRow, RowIsReferenced):
                    if self.ignore:
                        raise unsupported("UPDATE IGNORE over rows in the way") from None
                    raise
        return changed

    def _update_row(
        self, table: MemoryTable, ref: Any, assignments: list[Assignment], inserted: Row | None
    ) -> int:
        old = table.get(ref)
        assert old is not None
        new = self._assigned(table.definition, old, assignments, inserted)
        if new == old:
            return 0
        table.update(ref, new)
        return 1

    def delete(self) -> int:
        """DELETE, behind its first word."""
        while word := self.parser.accept_any("LOW_PRIORITY", "QUICK", "IGNORE"):
            self.ignore = self.ignore or word == "IGNORE"
        if not self.parser.accept("FROM"):
            raise unsupported("DELETE of several tables")
        table = self.table("DELETE")
        self._alias()
        if self.parser.op() == "," or self.parser.word() in JOINING_WORDS:
            raise unsupported("DELETE of several tables")
        refs = self._matching(table)
        for ref in refs:
            if table.get(ref) is not None:
                try:
                    table.delete(ref)
                except RowIsReferenced:
                    if self.ignore:
                        raise unsupported("DELETE IGNORE of rows that others refer to") from None
                    raise
        return len(refs)

    def _alias(self) -> None:
        following = self.parser.word()
        if self.parser.accept("AS") or (
            following and following not in ("SET", "WHERE", "ORDER", "LIMIT", "JOIN", "USING")
        ):
            raise unsupported("a table alias")

    def _assignments(self, definition: TableDefinition) -> list[Assignment]:
        found: list[Assignment] = []
        while True:
            at = position(definition, self._column_name())
            self.parser.expect("=")
            found.append((at, self._value(definition, at)))
            if not self.parser.accept(","):
                return found

    def _assigned(
        self,
        definition: TableDefinition,
        old: Row,
        assignments: list[Assignment],
        inserted: Row | None,
    ) -> Row:
        """The row after SET: each assignment sees the ones before it. ON UPDATE columns follow when
        anything changed."""
        session = self.session.expressions
        simultaneous = (
            self.dialect.mariadb and self.dialect.sql_mode & SqlModeFlag.SIMULTANEOUS_ASSIGNMENT
        )
        strict = self._strict(definition, first=True)
        row = list(old)
        for at, write in assignments:
            column = definition.columns[at]
            if column.generated:
                continue
            if write is None:
                row[at] = column_default(column, session)
                continue
            value = self._fitted(
                write, Scope(old if simultaneous else tuple(row), session, inserted), strict=strict
            )
            if value is None and not column.nullable:
                value = self._instead_of_null(column, definition, strict=strict)
            row[at] = value
        if tuple(row) != old:
            touched = {at for at, _ in assignments}
            for at, column in enumerate(definition.columns):
                if column.on_update is not None and at not in touched:
                    row[at] = storer(column, compile_expression(column.on_update), self.dialect)(
                        Scope(old, session)
                    )
        generate = row_generator(definition, self.dialect)
        return tuple(row) if generate is None else generate(tuple(row))

    def _matching(self, table: MemoryTable) -> list[Any]:
        selection = RowSelection.read(self._reader(table.definition))
        self._at_end()
        return selection.refs(table, self.session.expressions)

    def _at_end(self) -> None:
        """MariaDB's RETURNING makes a result only, as long as it calls no function and sets no
        variable."""
        if self.dialect.mariadb and self.parser.word() == "RETURNING":
            rest = self.parser.tokens[self.parser.at :]
            if not any(token.value in ("(", ":=") for token in rest):
                return
        if not self.parser.done:
            raise unsupported(self.parser.sql[self.parser.tokens[self.parser.at].start :][:60])


def _other_width(definition: TableDefinition) -> ReplicationError:
    return ReplicationError(
        1136, "Column count doesn't match value count at row 1", table=definition.full_name
    )


def position(definition: TableDefinition, name: str) -> int:
    """Where a column stands in the table. Raises ReplicationError 1054 when it has none of this
    name."""
    at = definition.positions.get(name.lower())
    if at is None:
        raise ReplicationError(
            1054, f"Unknown column '{name}' in 'field list'", table=definition.full_name
        )
    return at
