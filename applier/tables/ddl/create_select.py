"""CREATE TABLE … SELECT in statement format: what INSERT … SELECT reads, into columns that are
declared or that the SELECT makes.

A log in row format has a CREATE TABLE without the SELECT, and the rows follow as events.
"""

from __future__ import annotations

from dataclasses import replace

from applier.binlog.types import ValueRefused
from applier.errors import InputError
from applier.tables.catalog import Tables, table_of
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.derived_columns import derived_column, derived_name
from applier.tables.dml.insert_select import SelectedRows, read_select
from applier.tables.dml.row_writer import StatementRows, StatementSession, of_row
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import unsupported
from applier.tables.expressions.visible_columns import VisibleColumns
from applier.tables.sql.sql_text import Parser
from lookup.handler import RowError
from lookup.table import Column, TableDefinition


def create_from_select(
    tables: Tables, definition: TableDefinition, select: str, database: str, session: DdlSession
) -> None:
    """Makes the table and fills it. Raises ReplicationError 1235 for a SELECT that is not
    supported; there is no table then."""
    chosen, named = _chosen(tables, select, database, session)
    columns, names = _columns(definition, chosen, named, select, session)
    made = reordered(definition, columns)
    rows = _filled(table_of(made), chosen, names, session).stored_rows()
    tables.create(made).load(rows)


def _chosen(
    tables: Tables, select: str, database: str, session: DdlSession
) -> tuple[SelectedRows, VisibleColumns]:
    """The rows, and the columns that their expressions name."""
    parser = Parser(select, session.lexis)
    parser.accept("AS")
    try:
        chosen = read_select(parser, tables, database, None, session.expressions, {})
    except InputError:
        raise unsupported(f"CREATE TABLE … {select[:60]}") from None
    if not parser.done or chosen.named is None:
        raise unsupported(f"CREATE TABLE … {select[:60]}")
    return chosen, chosen.named


def _columns(
    definition: TableDefinition,
    chosen: SelectedRows,
    named: VisibleColumns,
    select: str,
    session: DdlSession,
) -> tuple[tuple[Column, ...], list[str]]:
    """The table's columns, those that are only declared first and hidden ones last, and the names
    of the SELECT's."""
    declared = {column.name.lower(): column for column in definition.columns}
    found: dict[str, Column] = {}
    for one in chosen.columns:
        name = derived_name(one, select)
        if name is None or name.lower() in found:
            raise unsupported(f"CREATE TABLE … {select[:60]}")
        column = declared.get(name.lower())
        if column is None:
            column = derived_column(one, name, named, session)
        if column is None:
            raise unsupported(f"CREATE TABLE … SELECT, the type of `{name}` ({one.operand.sql})")
        found[name.lower()] = column
    for at, column in enumerate(found.values()):
        if column.auto_increment and not chosen.numbers_itself(at):
            raise unsupported(f"CREATE TABLE … SELECT that numbers `{column.name}`")
    only_declared = [column for name, column in declared.items() if name not in found]
    if any(column.auto_increment for column in only_declared):
        raise unsupported("CREATE TABLE … SELECT that numbers its rows")
    shown = [column for column in only_declared if not column.hidden]
    hidden = [column for column in only_declared if column.hidden]
    return (*shown, *found.values(), *hidden), list(found)


def _filled(
    table: MemoryTable, chosen: SelectedRows, names: list[str], session: DdlSession
) -> MemoryTable:
    """The table with the rows, as INSERT … SELECT stores them."""
    definition = table.definition
    rows = StatementRows(
        StatementSession(
            session.expressions,
            explicit_defaults_for_timestamp=session.explicit_defaults_for_timestamp,
        )
    )
    writes = [
        (at, rows.writer(definition.columns[at], operand))
        for at, operand in zip(
            map(definition.positions.__getitem__, names), chosen.operands, strict=True
        )
    ]
    try:
        rows.insert(
            table,
            [[(at, of_row(write, scope)) for at, write in writes] for scope in chosen.scopes],
            replacing=False,
            on_duplicate=[],
            alone=False,
        )
    except (RowError, ValueRefused) as error:  # the source would not have logged the statement
        raise unsupported(f"CREATE TABLE … SELECT of rows that it refuses: {error}") from None
    return table


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
