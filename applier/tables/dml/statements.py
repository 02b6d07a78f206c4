"""Statement-format DML on tables in memory: INSERT, REPLACE, UPDATE and DELETE.

The clauses are read here, the expressions in them by `expression_parser`, statements on several
tables by `joined_statements`. Stored routines are refused by name, and so is an order of rows that
the statement leaves open where it decides which rows change: a log in statement format only says
what was asked, and guessing what came of it would be a silent divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from applier.binlog.types import ValueRefused
from applier.errors import InputError, ReplicationError
from applier.tables.catalog import Tables
from applier.tables.dml.insert_select import read_select
from applier.tables.dml.joined_statements import JoinedStatement
from applier.tables.dml.row_selection import RowSelection
from applier.tables.dml.row_writer import (
    Assignment,
    StatementRows,
    StatementSession,
    Write,
    of_row,
    of_value,
)
from applier.tables.dml.selects import Subqueries, changed_tables
from applier.tables.dml.table_references import JOINING, NO_ALIAS, is_in_key_order
from applier.tables.dml.trigger_programs import fired_triggers, refuse_cascades
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import implicit_default, is_evaluated
from applier.tables.expressions.expression_parser import (
    EXACT_FUNCTIONS,
    ExpressionParser,
    sql_parser,
)
from applier.tables.expressions.operands import (
    Dialect,
    unsupported,
)
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.partitioning.subpartitions import named_partitions
from applier.tables.sql.sql_text import Token
from applier.tables.triggers import not_run
from lookup.handler import DuplicateKey, NoReferencedRow, RowError, RowIsReferenced, traits_of
from lookup.table import Key, TableDefinition

_SEVERAL_ROWS = 1242
_ACTIONS = {"UPDATE": "on_update", "DELETE": "on_delete"}
DML_STATEMENTS = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"})


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
        self.rows = StatementRows(session)
        self.subqueries = Subqueries(self.parser, tables, database, session.expressions)

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
            if error.number == _SEVERAL_ROWS and self.rows.ignore:
                failure = unsupported("IGNORE of a subquery with several rows")
        self.tables.rollback_to_mark(mark)
        raise failure

    def table(self, *events: str, fires: bool = False) -> MemoryTable:
        """The table that stands at the cursor; `events`: what the statement does to its rows, for
        triggers and foreign keys; `fires`: it runs its triggers."""
        name = self.parser.table_name(self.database)
        self.table_name = ".".join(name)
        table = self.tables.named(*name)
        actions = [_ACTIONS[event] for event in events if event in _ACTIONS]
        self.subqueries.unreadable = changed_tables(self.tables, [table.definition], *actions)
        refuse_cascades(self.tables, self.session, [table.definition], *actions)
        if not fires or self.rows.ignore:
            self.tables.triggers.refuse(*name, *events)
        self.rows.nulls_wait = self.tables.triggers.has_before(*name)
        if name in self.session.changing:
            raise unsupported(f"a trigger that changes `{self.table_name}`, which fired it")
        table.open()
        if any(column.system_time for column in table.definition.columns):
            raise unsupported(f"a statement on `{self.table_name}`, whose rows have a system time")
        self._partitions(table)
        return table

    def _partitions(self, table: MemoryTable) -> None:
        """PARTITION (…), which stands before an alias or, in a DELETE of MySQL, behind it."""
        session = self.session.expressions
        self.rows.within = self.rows.within or named_partitions(
            self.parser, table.definition, session
        )

    def _fire(
        self, table: MemoryTable, event: str, unseen: Callable[[], frozenset[int]] = frozenset
    ) -> None:
        """From here on the statement's rows fire their triggers, if there are any. `unseen` gives
        that of `fired_triggers`. Raises ReplicationError 1235 where these are not run."""
        definition = table.definition
        triggers = self.tables.triggers.fired(definition.database, definition.name, event)
        if not triggers:
            return
        execute = partial(execute_statement, self.tables)
        fired = fired_triggers(triggers, event, definition, self.session, execute, unseen())
        words = {one.value.upper() for one in self.parser.tokens if one.kind == "word"}
        reads = fired.changes_tables and "SELECT" in words
        reads |= fired.sets_variables and any(word.startswith("@") for word in words)
        if reads:
            raise not_run(triggers[0], event, "which is not run in memory by such a statement")
        self.rows.triggers = fired

    def _reader(self, columns: TableDefinition | VisibleColumns) -> ExpressionParser:
        session = self.session.expressions
        return ExpressionParser(self.parser, columns, self.dialect, session, self.subqueries)

    # INSERT, REPLACE

    def insert(self, *, replacing: bool) -> int:
        """INSERT and REPLACE, behind their first word."""
        parser = self.parser
        while word := parser.accept_any(
            "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"
        ):
            self.rows.ignore = self.rows.ignore or word == "IGNORE"
        events = ("INSERT", "DELETE") if replacing else ("INSERT",)
        table = self.table(*events, fires=not replacing)
        definition = table.definition
        is_listed = parser.op() == "("
        columns = self.column_list(definition)
        if parser.accept_any("VALUES", "VALUE"):
            unread = [] if is_listed or self.dialect.mariadb else _unread_defaults(definition)
            rows = [row and [*row, *unread] for row in self._value_lists(definition, columns)]
        elif parser.accept("SET"):
            rows = [self._assignments(definition)]
            columns = tuple(at for at, _ in rows[0])
        else:
            self._fire(table, "INSERT", lambda: _unseen(definition, [columns]))
            return self._insert_selected(table, columns, replacing=replacing)
        visible = self._beside_new_row(definition, columns)
        on_duplicate: list[Assignment] = []
        if parser.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
            self.tables.triggers.refuse(definition.database, definition.name, "UPDATE", "INSERT")
            refuse_cascades(self.tables, self.session, [definition], "on_update")
            on_duplicate = self._assignments(definition, visible)
        self._at_end()
        given = ([at for at, write in row if write] for row in rows)
        self._fire(table, "INSERT", lambda: _unseen(definition, given))
        return self.rows.insert(table, rows, replacing=replacing, on_duplicate=on_duplicate)

    def _beside_new_row(
        self, definition: TableDefinition, columns: tuple[int, ...]
    ) -> VisibleColumns:
        """What ON DUPLICATE KEY UPDATE may name: the table's columns, and behind AS alias [(names)]
        those of the new row that the statement fills (8.0.19, opt_values_reference of
        sql_yacc.yy)."""
        found = VisibleColumns.of(definition)
        if self.parser.accept("AS"):
            alias = self.parser.name()
            names = {at: definition.columns[at].name for at in columns}
            if self.parser.accept("("):
                for at in columns:
                    names[at] = self.parser.name()
                    self.parser.accept(",")
                self.parser.expect(")")
            named = (
                replace(column, name=names.get(at, ""))
                for at, column in enumerate(definition.columns)
            )
            found.add(replace(definition, name=alias, columns=tuple(named)))
        return found

    def _insert_selected(
        self, table: MemoryTable, columns: tuple[int, ...], *, replacing: bool
    ) -> int:
        """INSERT … SELECT: the rows are read before one of them is stored."""
        definition = table.definition
        chosen = read_select(
            self.parser,
            self.tables,
            self.database,
            table,
            self.session.expressions,
            self.subqueries.unreadable,
        )
        self._at_end()
        if len(chosen.operands) != len(columns):
            raise _other_width(definition)
        numbered = any(
            column.auto_increment
            and not (at in columns and chosen.numbers_itself(columns.index(at)))
            for at, column in enumerate(definition.columns)
        )
        if not chosen.is_ordered and (replacing or self.rows.ignore or numbered):
            raise unsupported("INSERT … SELECT of rows whose order the statement leaves open")
        writes = [
            (at, self.rows.writer(definition.columns[at], operand))
            for at, operand in zip(columns, chosen.operands, strict=True)
        ]
        rows: list[list[Assignment]] = [
            [(at, of_row(write, scope)) for at, write in writes] for scope in chosen.scopes
        ]
        try:
            return self.rows.insert(table, rows, replacing=replacing, on_duplicate=[], alone=False)
        except (RowError, ValueRefused, ReplicationError):
            if chosen.is_ordered or traits_of(definition).transactional:
                raise
            # the rows before the one that failed stay in the table
            raise unsupported(
                "INSERT … SELECT that fails at a row, in an order left open"
            ) from None

    def column_list(self, definition: TableDefinition) -> tuple[int, ...]:
        """The columns that stand in parentheses at the cursor, or all visible ones."""
        parser = self.parser
        if (
            parser.word(1) in ("SELECT", "WITH")
            or parser.accept("(", ")")
            or not parser.accept("(")
        ):
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

    def _value(
        self, definition: TableDefinition, at: int, visible: VisibleColumns | None = None
    ) -> Write | None:
        """What stands at the cursor, for a column; None for DEFAULT."""
        if self.parser.word() == "DEFAULT" and self.parser.op(1) not in ("(", "."):
            self.parser.at += 1
            return None
        operand = self._reader(visible or definition).expression()
        return self.rows.writer(definition.columns[at], operand)

    # UPDATE, DELETE

    def update(self) -> int:
        """UPDATE, behind its first word."""
        self.parser.accept_any("LOW_PRIORITY")
        self.rows.ignore = self.parser.accept("IGNORE")
        if self._stands_before(("SET",), (",", *JOINING)):
            return self._joined().update()
        self.subqueries.may_read_own = self.dialect.mariadb
        table = self.table("UPDATE", fires=True)
        self.rows.refuse_checks(table.definition)
        named = self._under_alias(table.definition)
        self.subqueries.around = VisibleColumns.of(named)
        self.parser.expect("SET")
        assignments = self._assignments(named)
        self._fire(table, "UPDATE")
        changed = 0
        for ref in self._matching(table, named):
            if table.get(ref) is not None:
                try:
                    changed += self.rows.update(table, ref, assignments, None)
                except (DuplicateKey, NoReferencedRow, RowIsReferenced):
                    if self.rows.ignore:
                        raise unsupported("UPDATE IGNORE over rows in the way") from None
                    raise
        return changed

    def delete(self) -> int:
        """DELETE, behind its first word."""
        while word := self.parser.accept_any("LOW_PRIORITY", "QUICK", "IGNORE"):
            self.rows.ignore = self.rows.ignore or word == "IGNORE"
        if not self.parser.accept("FROM") or self._stands_before(
            ("WHERE", "ORDER", "LIMIT", "RETURNING"), (",", "USING")
        ):
            return self._joined().delete()
        self.subqueries.may_read_own = self.dialect.mariadb
        table = self.table("DELETE", fires=True)
        named = self._under_alias(table.definition)
        self.subqueries.around = VisibleColumns.of(named)
        self._partitions(table)
        self._fire(table, "DELETE")
        refs = self._matching(table, named)
        for ref in refs:
            if table.get(ref) is not None:
                try:
                    self.rows.delete(table, ref)
                except RowIsReferenced:
                    if self.rows.ignore:
                        raise unsupported("DELETE IGNORE of rows that others refer to") from None
                    raise
        return len(refs)

    def _stands_before(self, ends: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
        """Whether one of the words `wanted` stands before one of `ends`."""
        start = self.parser.at
        self.parser.skip_until(*ends, *wanted)
        found = (self.parser.word() or self.parser.op()) in wanted
        self.parser.at = start
        return found

    def _joined(self) -> JoinedStatement:
        return JoinedStatement(
            self.parser, self.tables, self.database, self.session, self.rows, self.subqueries
        )

    def _under_alias(self, definition: TableDefinition) -> TableDefinition:
        """The definition under the alias that stands at the cursor, whose columns have no other
        name."""
        if self.parser.accept("AS") or self.parser.at_alias(NO_ALIAS):
            return replace(definition, name=self.parser.name())
        return definition

    def _assignments(
        self, definition: TableDefinition, visible: VisibleColumns | None = None
    ) -> list[Assignment]:
        found: list[Assignment] = []
        while True:
            at = position(definition, self._column_name())
            self.parser.expect("=")
            found.append((at, self._value(definition, at, visible)))
            if not self.parser.accept(","):
                return found

    def _matching(self, table: MemoryTable, named: TableDefinition) -> list[Any]:
        start = self.parser.at
        selection = RowSelection.read(self._reader(named))
        end = self.parser.at
        self._at_end()
        if self.rows.within and selection.limit is not None and self.dialect.mariadb:
            # 10.11.18 now and then finds no row by the order of a key there, with rows in it
            raise unsupported("LIMIT among the rows of partitions that are named")
        refs = selection.refs(table, self.session.expressions, self.rows.within)
        if len(refs) > 1 and self.rows.triggers.needs_order:
            usable = _keys_of(table.definition, self.parser.tokens[start:end])
            if selection.order or not is_in_key_order(table.definition, usable):
                raise unsupported("triggers that depend on the order of the rows")
        return refs

    def _at_end(self) -> None:
        """MariaDB's RETURNING makes a result only, as long as it sets no variable and calls no
        function that may do more than compute a value."""
        parser = self.parser
        returns = self.dialect.mariadb and parser.word() == "RETURNING"
        if not (parser.done or (returns and _only_computes(parser.tokens[parser.at :]))):
            raise unsupported(parser.sql[parser.tokens[parser.at].start :][:60])


def _keys_of(definition: TableDefinition, read: Sequence[Token]) -> list[Key]:
    """The keys that clauses may have rows found by: those with a column that they name."""
    names = {token.value.lower() for token in read if token.kind in ("word", "quoted")}
    return [
        key
        for key in definition.keys
        if any(definition.columns[at].name.lower() in names for at in key.columns)
    ]


def _unseen(definition: TableDefinition, rows: Iterable[Iterable[int]]) -> frozenset[int]:
    """Columns whose value a BEFORE INSERT trigger sees before their default is known: 5.6 shows
    the implicit default of a NOT NULL column, later servers NULL. `rows`: the columns that each row
    gives."""
    given = set.intersection(*map(set, rows))
    return frozenset(
        at
        for at, one in enumerate(definition.columns)
        if at not in given
        and (is_evaluated(one.default) if one.default is not None else not one.nullable)
    )


def _only_computes(tokens: Sequence[Token]) -> bool:
    """Whether expressions neither set a variable nor call a function that is not known here."""
    words = {token.value.upper() for token in tokens if token.kind in ("op", "word")}
    if words & {":=", "SELECT", "FOR"}:  # NEXT VALUE FOR
        return False
    return all(
        called.value.upper() in EXACT_FUNCTIONS and before.value != "."
        for before, called, token in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if (token.kind, token.value) == ("op", "(") and called.kind in ("word", "quoted")
    )


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


def _unread_defaults(definition: TableDefinition) -> list[Assignment]:
    """What VALUES without a list of columns leaves in invisible columns whose DEFAULT is an
    expression or the moment: NULL or zero, since MySQL does not evaluate it (seen on 9.7.4)."""
    return [
        (at, of_value(None if one.nullable else implicit_default(one)))
        for at, one in enumerate(definition.columns)
        if one.invisible and one.default is not None and is_evaluated(one.default)
    ]
