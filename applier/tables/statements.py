"""Statement-format DML on tables in memory: INSERT, REPLACE, UPDATE, DELETE and LOAD DATA of one table.

The clauses are cut apart here, the expressions in them go to `expressions`. Joins, subqueries and stored routines are refused
by name: a log in statement format only says what was asked, and guessing what came of it would be a silent divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types import ValueRefused, from_sql
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.tables.catalog import Tables
from applier.tables.defaults import complete_rows, default_row, row_generator
from applier.tables.engine import MemoryTable
from applier.tables.expressions import Evaluate, Scope, Session, compile_expression, row_scope
from applier.tables.sql_text import Parser, unescape
from applier.tables.sql_values import truth, unsupported
from lookup.handler import DuplicateKey, Row, RowError
from lookup.table import Column, TableDefinition

DML_STATEMENTS = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"})


@dataclass
class StatementSession:
    """What the events before a statement and its own status variables set."""

    expressions: Session = field(default_factory=Session)
    insert_id: int | None = None
    auto_increment_increment: int = 1
    files: dict[int, bytearray] = field(default_factory=dict)
    """LOAD DATA files by their number."""


def execute_statement(tables: Tables, sql: str, database: str, session: StatementSession) -> int:
    """Carries one DML statement out; returns the number of rows changed.

    Raises ReplicationError: the server's number for what the server refuses too, 1235 for what is not supported here.
    """
    statement = _Statement(tables, sql, database, session)
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
    try:
        return handlers[word]()
    except RowError as error:
        raise ReplicationError(error.number, str(error), table=statement.table_name) from None
    except ValueRefused as refused:
        raise ReplicationError(refused.number, refused.message, table=statement.table_name) from None
    except InputError as error:
        raise unsupported(f"{sql[:80]!r}: {error.message}") from None


class _Statement:
    def __init__(self, tables: Tables, sql: str, database: str, session: StatementSession) -> None:
        self.tables = tables
        self.parser = Parser(sql)
        self.database = database
        self.session = session
        self.table_name: str | None = None

    def _table(self) -> MemoryTable:
        name = self.parser.table_name(self.database)
        self.table_name = ".".join(name)
        table = self.tables.get(*name)
        if table is None:
            raise ReplicationError(1146, f"Table '{self.table_name}' doesn't exist", table=self.table_name)
        return table

    # INSERT, REPLACE

    def insert(self, *, replacing: bool) -> int:
        parser = self.parser
        ignore = False
        while word := parser.accept_any("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"):
            ignore = ignore or word == "IGNORE"
        table = self._table()
        definition = table.definition
        columns = self._column_list(definition)
        assignments: list[tuple[int, Evaluate]] = []
        if parser.accept_any("VALUES", "VALUE"):
            rows = [self._expressions(parser.parenthesized()) for _ in self._list()]
        elif parser.accept("SET"):
            pairs = self._assignments(definition, parser.skip_until("ON"))
            columns, rows = tuple(at for at, _ in pairs), [[evaluate for _, evaluate in pairs]]
        else:
            raise unsupported("INSERT … SELECT")
        if parser.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
            assignments = self._assignments(definition, parser.skip_until())
        return self._insert_rows(table, columns, rows, ignore=ignore, replacing=replacing, on_duplicate=assignments)

    def _list(self) -> Iterator[None]:
        yield
        while self.parser.accept(","):
            yield

    def _column_list(self, definition: TableDefinition) -> tuple[int, ...]:
        if self.parser.op() != "(":
            return tuple(at for at, column in enumerate(definition.columns) if not column.invisible)
        names = [Parser(piece).name() for piece in split_commas(self.parser.parenthesized())]
        return tuple(position(definition, name) for name in names)

    def _expressions(self, text: str) -> list[Evaluate | None]:
        return [None if piece.upper() == "DEFAULT" else compile_expression(piece) for piece in split_commas(text)]

    def _insert_rows(
        self,
        table: MemoryTable,
        columns: tuple[int, ...],
        rows: list[Any],
        *,
        ignore: bool,
        replacing: bool,
        on_duplicate: list[tuple[int, Evaluate]],
    ) -> int:
        changed = 0
        for expressions in rows:
            row = self._new_row(table, columns, expressions)
            try:
                table.insert(row)
                changed += 1
            except DuplicateKey as duplicate:
                if replacing:
                    changed += self._replace(table, row, duplicate)
                elif on_duplicate:
                    old = table.get(duplicate.ref)
                    assert old is not None
                    table.update(duplicate.ref, self._assigned(table.definition, old, on_duplicate, row))
                    changed += 1
                elif not ignore:
                    raise
        return changed

    def _replace(self, table: MemoryTable, row: Row, duplicate: DuplicateKey) -> int:
        while True:
            table.delete(duplicate.ref)
            try:
                table.insert(row)
                return 1
            except DuplicateKey as again:
                duplicate = again

    def _new_row(self, table: MemoryTable, columns: tuple[int, ...], expressions: list[Evaluate | None]) -> Row:
        definition = table.definition
        session = self.session.expressions
        base = default_row(definition, session)
        row = list(base)
        scope = row_scope(definition, base, session)
        if len(columns) != len(expressions) and expressions:
            raise ReplicationError(1136, "Column count doesn't match value count at row 1", table=definition.full_name)
        for at, evaluate in zip(columns, expressions, strict=False):
            if evaluate is not None and not definition.columns[at].generated:
                row[at] = store(definition.columns[at], evaluate(scope))
        self._number(table, row)
        generate = row_generator(definition)
        return tuple(row) if generate is None else generate(tuple(row))

    def _number(self, table: MemoryTable, row: list[Any]) -> None:
        """Fills an AUTO_INCREMENT column from the INSERT_ID event, or from the table's own counter."""
        at = next((at for at, column in enumerate(table.definition.columns) if column.auto_increment), None)
        if at is None or row[at] not in (None, 0):
            return
        number = self.session.insert_id if self.session.insert_id is not None else table.auto_increment
        row[at] = number
        self.session.insert_id = number + self.session.auto_increment_increment if self.session.insert_id is not None else None
        self.session.expressions.last_insert_id = number

    # UPDATE, DELETE

    def update(self) -> int:
        self.parser.accept_any("LOW_PRIORITY")
        self.parser.accept_any("IGNORE")
        table = self._table()
        self._alias()
        if not self.parser.accept("SET"):
            raise unsupported("UPDATE of several tables")
        assignments = self._assignments(table.definition, self.parser.skip_until("WHERE", "ORDER", "LIMIT"))
        changed = 0
        for ref in self._matching(table):
            old = table.get(ref)
            if old is None:
                continue
            new = self._assigned(table.definition, old, assignments, None)
            if new != old:
                table.update(ref, new)
                changed += 1
        return changed

    def delete(self) -> int:
        while self.parser.accept_any("LOW_PRIORITY", "QUICK", "IGNORE"):
            pass
        if not self.parser.accept("FROM"):
            raise unsupported("DELETE of several tables")
        table = self._table()
        self._alias()
        if self.parser.op() == "," or self.parser.word() in ("USING", "JOIN", "INNER", "LEFT", "RIGHT"):
            raise unsupported("DELETE of several tables")
        refs = self._matching(table)
        for ref in refs:
            table.delete(ref)
        return len(refs)

    def _alias(self) -> None:
        following = self.parser.word()
        if self.parser.accept("AS") or (following and following not in ("SET", "WHERE", "ORDER", "LIMIT", "JOIN", "USING")):
            raise unsupported("a table alias")

    def _assignments(self, definition: TableDefinition, text: str) -> list[tuple[int, Evaluate]]:
        pairs = []
        for piece in split_commas(text):
            inner = Parser(piece)
            name = inner.table_name("")[1]
            inner.expect("=")
            expression = inner.rest().strip()
            at = position(definition, name)
            if expression.upper() == "DEFAULT":
                default = default_row(definition, self.session.expressions)[at]
                raise unsupported(f"SET {name} = DEFAULT ({default!r})")
            pairs.append((at, compile_expression(expression)))
        return pairs

    def _assigned(self, definition: TableDefinition, old: Row, assignments: list[tuple[int, Evaluate]], inserted: Row | None) -> Row:
        """The row after SET: each assignment sees the ones before it. ON UPDATE columns follow when anything changed."""
        session = self.session.expressions
        row = list(old)
        offered = dict(row_scope(definition, inserted, session).values) if inserted is not None else None
        for at, evaluate in assignments:
            scope = replace(row_scope(definition, tuple(row), session), inserted=offered)
            value, column = evaluate(scope), definition.columns[at]
            if value is None and not column.nullable:
                raise ReplicationError(1048, f"Column '{column.name}' cannot be null", table=definition.full_name)
            row[at] = store(column, value)
        if tuple(row) != old:
            touched = {at for at, _ in assignments}
            for at, column in enumerate(definition.columns):
                if column.on_update is not None and at not in touched:
                    row[at] = store(column, compile_expression(column.on_update)(Scope({}, session, {})))
        generate = row_generator(definition)
        return tuple(row) if generate is None else generate(tuple(row))

    def _matching(self, table: MemoryTable) -> list[Any]:
        """The refs that WHERE, ORDER BY and LIMIT leave, in the order in which the server would change them."""
        parser, session = self.parser, self.session.expressions
        condition = compile_expression(parser.skip_until("ORDER", "LIMIT")) if parser.accept("WHERE") else None
        order: list[tuple[Evaluate, bool]] = []
        if parser.accept("ORDER", "BY"):
            for piece in split_commas(parser.skip_until("LIMIT")):
                down = piece.upper().endswith(" DESC")
                order.append((compile_expression(piece.rsplit(None, 1)[0] if down or piece.upper().endswith(" ASC") else piece), down))
        limit = parser.integer() if parser.accept("LIMIT") else None
        if not parser.done:
            raise unsupported(parser.sql[parser.tokens[parser.at].start :][:60])
        found = []
        for ref, row in table.scan():
            scope = row_scope(table.definition, row, session)
            if condition is None or truth(condition(scope)):
                found.append((ref, scope))
        for evaluate, down in reversed(order):
            found.sort(key=lambda item: _sortable(evaluate(item[1])), reverse=down)
        return [ref for ref, _ in found[:limit]]


def _sortable(value: Any) -> tuple[int, Any]:
    return (0, 0) if value is None else (1, value)


def position(definition: TableDefinition, name: str) -> int:
    """Where a column stands in the table. Raises ReplicationError 1054 when it has none of this name."""
    at = definition.positions.get(name.lower())
    if at is None:
        raise ReplicationError(1054, f"Unknown column '{name}' in 'field list'", table=definition.full_name)
    return at


def store(column: Column, value: Any) -> Any:
    """An expression's value as the column stores it; out of range clamps as without strict mode.

    Raises ReplicationError 1048 for a NULL in a NOT NULL column.
    """
    if value is None and not column.nullable and not column.auto_increment:
        raise ReplicationError(1048, f"Column '{column.name}' cannot be null")
    if isinstance(value, bytes) and column.charset is not None and charset(column.charset).codec == "utf-8":
        value = _well_formed(value)
    try:
        return from_sql(column)(value)
    except ValueRefused as refused:
        if refused.closest is None:
            raise
        return refused.closest


def _well_formed(value: bytes) -> bytes:
    """Binary data in a UTF-8 column is cut at the first byte that is not UTF-8 (warning 1366 without strict mode)."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError as error:
        return value[: error.start]
    return value


def split_commas(text: str) -> list[str]:
    """The pieces between commas that stand outside of parentheses and quotes."""
    parser = Parser(text)
    pieces = []
    while not parser.done:
        pieces.append(parser.skip_until(","))
        parser.accept(",")
    return pieces


def value_rows(definition: TableDefinition, columns: tuple[int, ...], text: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a VALUES list that holds expressions, as stored values of `columns`.

    Raises InputError for what cannot be read, and for rows of another width.
    """
    parser = Parser(text)
    session = Session()
    scope = row_scope(definition, default_row(definition), session)
    defaults = default_row(definition)
    while not parser.done:
        pieces = split_commas(parser.parenthesized())
        if len(pieces) != len(columns):
            raise InputError(f"{len(pieces)} values for {len(columns)} columns of {definition.full_name}", code=Code.SCHEMA_ROWS)
        yield tuple(
            defaults[at] if piece.upper() == "DEFAULT" else store(definition.columns[at], compile_expression(piece)(scope))
            for at, piece in zip(columns, pieces, strict=True)
        )
        if not parser.accept(","):
            break
    if not parser.done:
        raise InputError(f"cannot read {parser.sql[parser.tokens[parser.at].start :][:60]!r}", code=Code.SCHEMA_SQL)


def create_from_select(tables: Tables, definition: TableDefinition, select: str, database: str, session: Any) -> None:
    """CREATE TABLE … SELECT of plain columns of one table; a log in row format holds the rows as events instead.

    Raises ReplicationError 1235 for any other.
    """
    parser = Parser(select)
    parser.accept("AS")
    parser.expect("SELECT")
    listed = parser.skip_until("FROM")
    parser.expect("FROM")
    source = tables.get(*parser.table_name(database))
    if source is None or not parser.done:
        raise unsupported(f"CREATE TABLE … {select[:60]}")
    every = [column.name for column in source.definition.columns]
    names = every if listed == "*" else [Parser(piece).name() for piece in split_commas(listed)]
    places = [position(source.definition, name) for name in names]
    own = {column.name.lower() for column in definition.columns}
    new = [at for at, name in zip(places, names, strict=True) if name.lower() not in own]
    added = tuple(replace(source.definition.columns[at], auto_increment=False) for at in new)
    table = tables.create(replace(definition, columns=definition.columns + added))
    targets = tuple(table.definition.positions[name.lower()] for name in names)
    rows = [tuple(row[at] for at in places) for _, row in source.scan()]
    table.load(complete_rows(table.definition, targets, rows))


# LOAD DATA


def load_data(tables: Tables, sql: str, database: str, data: bytes, session: StatementSession) -> int:
    """LOAD DATA INFILE … INTO TABLE with FIELDS and LINES options over the file that the log carried along.

    Raises ReplicationError 1235 for LOAD DATA … SET.
    """
    statement = _Statement(tables, sql, database, session)
    parser = statement.parser
    parser.skip_until("INTO")
    replacing, ignore = " REPLACE " in f" {sql.upper()} ", " IGNORE " in f" {sql.upper().split('LINES')[0]} "
    parser.expect("INTO")
    parser.expect("TABLE")
    table = statement._table()
    options = _LoadOptions.read(parser)
    columns = statement._column_list(table.definition)
    if parser.accept("SET"):
        raise unsupported("LOAD DATA … SET")
    rows = []
    for fields in options.records(data):
        row = [None if field is None else _literal(field) for field in fields]
        rows.append(row[: len(columns)] + [None] * (len(columns) - len(row)))
    return statement._insert_rows(table, columns, rows, ignore=ignore, replacing=replacing, on_duplicate=[])


def _literal(field: str) -> Evaluate:
    value = None if field == "\0NULL" else field
    return lambda scope: value


@dataclass
class _LoadOptions:
    terminated: str = "\t"
    enclosed: str = ""
    escaped: str = "\\"
    starting: str = ""
    ending: str = "\n"
    skipped: int = 0

    @classmethod
    def read(cls, parser: Parser) -> _LoadOptions:
        options = cls()
        while True:
            if parser.accept("CHARACTER", "SET") or parser.accept("CHARSET"):
                parser.name()
            elif parser.accept_any("FIELDS", "COLUMNS"):
                while word := parser.accept_any("TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"):
                    if word != "OPTIONALLY":
                        parser.expect("BY")
                        setattr(options, word.lower(), parser.text())
            elif parser.accept("LINES"):
                while word := parser.accept_any("STARTING", "TERMINATED"):
                    parser.expect("BY")
                    setattr(options, "starting" if word == "STARTING" else "ending", parser.text())
            elif parser.accept("IGNORE"):
                options.skipped = parser.integer()
                parser.accept_any("LINES", "ROWS")
            else:
                return options

    def records(self, data: bytes) -> Iterator[list[str | None]]:
        lines = data.decode("utf-8", "surrogateescape").split(self.ending)
        for line in lines[self.skipped : len(lines) - (not lines[-1])]:
            yield [self._field(field) for field in line.removeprefix(self.starting).split(self.terminated)]

    def _field(self, field: str) -> str:
        if self.escaped and field == f"{self.escaped}N":
            return "\0NULL"
        if self.enclosed and field.startswith(self.enclosed) and field.endswith(self.enclosed) and len(field) > 1:
            field = field[1:-1]
        return unescape(field) if self.escaped == "\\" else field
