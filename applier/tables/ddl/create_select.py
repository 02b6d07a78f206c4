"""CREATE TABLE … SELECT in statement format: plain columns of one table, with WHERE, ORDER BY and
LIMIT.

A log in row format has a CREATE TABLE without the SELECT, and the rows follow as events. What a
SELECT's expressions make for columns is a matter of the server's type derivation, so anything but
columns is refused.
"""

from __future__ import annotations

from dataclasses import replace

from applier.errors import InputError
from applier.tables.catalog import Tables
from applier.tables.dml.row_selection import RowSelection
from applier.tables.dml.table_references import NO_ALIAS
from applier.tables.engine import MemoryTable
from applier.tables.expressions.defaults import complete_rows
from applier.tables.expressions.expression_parser import ExpressionParser
from applier.tables.expressions.operands import Session, unsupported
from applier.tables.sql.sql_text import Lexis, Parser
from lookup.table import Column, TableDefinition

STORED_ALIKE = ("type", "length", "scale", "unsigned", "charset", "labels", "srid")
"""What two columns have in common when a value of the one is stored in the other as it is."""


def create_from_select(
    tables: Tables,
    definition: TableDefinition,
    select: str,
    database: str,
    lexis: Lexis,
    session: Session,
) -> None:
    """Makes the table and fills it. Raises ReplicationError 1235 for a SELECT that is more than
    columns of one table."""
    try:
        parser = Parser(select, lexis)
        source, alias, pairs = _columns(tables, parser, database)
        selection = _selection(parser, source, alias, session)
    except InputError:
        raise unsupported(f"CREATE TABLE … {select[:60]}") from None
    found = map(source.get, selection.refs(source, session))
    rows = [tuple(row[at] for at, _ in pairs) for row in found if row is not None]
    own = {column.name.lower(): column for column in definition.columns}
    chosen = {name.lower() for _, name in pairs}
    if len(chosen) < len(pairs):
        raise unsupported(f"CREATE TABLE … {select[:60]}")
    columns = [column for column in definition.columns if column.name.lower() not in chosen]
    for at, name in pairs:
        declared, taken = own.get(name.lower()), source.definition.columns[at]
        if declared is not None and not _stores(declared, taken):
            raise unsupported(
                f"CREATE TABLE … SELECT of `{taken.name}` into a column of another type"
            )
        columns.append(_plain(taken, name) if declared is None else declared)
    table = tables.create(reordered(definition, tuple(columns)))
    targets = tuple(table.definition.positions[name.lower()] for _, name in pairs)
    table.load(complete_rows(table.definition, targets, rows, session))


def _selection(parser: Parser, source: MemoryTable, alias: str, session: Session) -> RowSelection:
    """What stands behind the table. Raises InputError, and ReplicationError 1235 for what is not
    exact."""
    if any(token.value.upper() == "RAND" for token in parser.tokens[parser.at :]):
        raise parser.refuse("RAND() in a SELECT")
    definition = replace(source.definition, name=alias)
    selection = RowSelection.read(ExpressionParser(parser, definition, session.dialect, session))
    if not parser.done:
        raise parser.refuse("one table was expected")
    return selection


def _columns(
    tables: Tables, parser: Parser, database: str
) -> tuple[MemoryTable, str, list[tuple[int, str]]]:
    """The table that is read, its alias and, for each column chosen, its position there and its new
    name. Raises InputError."""
    parser.accept("AS")
    parser.expect("SELECT")
    listed: list[tuple[str, str, str]] = []
    if not parser.accept("*"):
        while True:
            qualifier, name = "", parser.name()
            if parser.accept("."):
                qualifier, name = name, parser.name()
            listed.append((qualifier, name, parser.name() if parser.accept("AS") else name))
            if not parser.accept(","):
                break
    parser.expect("FROM")
    source = tables.get(*parser.table_name(database))
    if source is None:
        raise parser.refuse("a table that is there was expected")
    definition = source.definition
    named = parser.accept("AS") or parser.at_alias(NO_ALIAS)
    alias = parser.name() if named else definition.name
    if not listed:
        return (
            source,
            alias,
            [
                (at, column.name)
                for at, column in enumerate(definition.columns)
                if not column.invisible
            ],
        )
    positions = definition.positions
    if any(
        name.lower() not in positions or qualifier.lower() not in ("", alias.lower())
        for qualifier, name, _ in listed
    ):
        raise parser.refuse("columns were expected")
    return source, alias, [(positions[name.lower()], new) for _, name, new in listed]


def _stores(column: Column, source: Column) -> bool:
    alike = all(getattr(column, name) == getattr(source, name) for name in STORED_ALIKE)
    return (
        alike
        and column.generated is None
        and (column.nullable or not source.nullable)
        and not column.auto_increment
    )


def _plain(column: Column, name: str) -> Column:
    """The column without what belongs to its table: the counter, the expression of a generated one,
    its place out of sight."""
    default = "0" if column.auto_increment else column.default
    return replace(
        column,
        name=name,
        auto_increment=False,
        generated=None,
        expression=None,
        default=default,
        invisible=False,
        system_time=None,
    )


def reordered(definition: TableDefinition, columns: tuple[Column, ...]) -> TableDefinition:
    """The definition with its columns in another order and others among them; its keys follow."""
    places = {column.name.lower(): at for at, column in enumerate(columns)}
    moved = [places[column.name.lower()] for column in definition.columns]
    keys = tuple(
        replace(
            key,
            parts=tuple(
                part if part.column is None else replace(part, column=moved[part.column])
                for part in key.parts
            ),
        )
        for key in definition.keys
    )
    return replace(definition, columns=columns, keys=keys)
