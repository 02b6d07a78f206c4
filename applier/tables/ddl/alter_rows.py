"""The rows of a table under the definition that an ALTER TABLE makes: values carried over, defaults
filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from applier.binlog.types import Unevaluated, ValueRefused, from_sql
from applier.errors import ReplicationError
from applier.tables.conversions.column_conversion import conversion, instead_of_null
from applier.tables.conversions.conversion_rules import ConversionRules
from applier.tables.ddl.session_columns import settled
from applier.tables.definitions.altered_columns import names_in
from applier.tables.expressions.defaults import (
    column_default,
    implicit_default,
    number_rows,
    row_generator,
)
from applier.tables.expressions.row_expressions import Scope, Session, compile_expression
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.virtual_columns import OF_SETTINGS, OF_THE_SESSION
from lookup.handler import Row
from lookup.table import Column, TableDefinition


def row_converter(
    old: TableDefinition,
    new: TableDefinition,
    sources: list[int | None],
    session: Session,
    rules: ConversionRules,
    *,
    copied: bool | None,
) -> Callable[[Row], Row]:
    """A function from rows of the old definition to rows of the new one. `copied`: whether the
    server surely copies them, None where that is not known."""
    sources = [*sources, *[None] * (len(new.columns) - len(sources))]
    steps: list[Callable[[Row], Any]] = []
    for source, column in zip(sources, new.columns, strict=True):
        if source is None or column.generated:
            steps.append(_always(None if column.generated else column_default(column, session)))
        else:
            steps.append(_carried(source, old.columns[source], column, rules))
    generate = row_generator(new, session)
    kept = _kept_values(old, new, sources)
    settle = settled(old, new, sources, copied)
    decided = _defaults_of_columns(new, sources, session)

    def convert(row: Row) -> Row:
        values = tuple(step(row) for step in steps)
        for at, write in decided:
            values = (*values[:at], write(Scope(values, session)), *values[at + 1 :])
        if generate is None:
            return values
        made = generate(values)
        made = tuple(
            row[kept[at]] if value.__class__ is Unevaluated and at in kept else value
            for at, value in enumerate(made)
        )
        return made if settle is None else settle(row, made)

    return convert


def _kept_values(
    old: TableDefinition, new: TableDefinition, sources: list[int | None]
) -> dict[int, int]:
    """Generated columns whose value stays what the log brought, where it is not exact here: the
    column and all that its expression names are as before. Position in `new` -> in `old`.

    A stored column may be computed anew by the session of the ALTER TABLE, so one that hangs on
    a session is not among them.
    """
    same = {
        column.name.lower(): source
        for column, source in zip(new.columns, sources, strict=True)
        if source is not None and old.columns[source] == column
    }
    known = {column.name.lower() for column in (*old.columns, *new.columns)}
    moments = {column.name.lower() for column in new.columns if column.type == "timestamp"}
    kept = {}
    for at, column in enumerate(new.columns):
        source = same.get(column.name.lower())
        expression = column.expression or ""
        named = names_in(expression)
        of_session = named & (OF_THE_SESSION | OF_SETTINGS | moments) or "/" in expression
        unchanged = all(name in same for name in named & known)
        settled = column.is_virtual or not of_session
        if column.generated and source is not None and unchanged and settled:
            kept[at] = source
    return kept


def _defaults_of_columns(
    new: TableDefinition, sources: list[int | None], session: Session
) -> list[tuple[int, Callable[[Scope], Any]]]:
    """New columns whose default names other columns, which have their values first, with what
    computes them. One that names a generated column is left out."""
    names = {column.name.lower() for column in new.columns}
    generated = {column.name.lower() for column in new.columns if column.generated}
    found = []
    for at, (source, column) in enumerate(zip(sources, new.columns, strict=True)):
        if source is not None or column.generated or not column.default:
            continue
        named = names_in(column.default) & names
        if not named or named & generated:
            continue
        try:
            operand = compile_expression(column.default, new, session.dialect)
            if not operand.literal:
                found.append((at, _new_value(column, storer(column, operand, session.dialect))))
        except ReplicationError:
            continue
    return found


def _new_value(column: Column, write: Callable[[Scope], Any]) -> Callable[[Scope], Any]:
    """What computes a new column's value. Where the server took a value that does not fit, or NULL
    for NOT NULL, the session was not in strict mode, and it stored the nearest."""

    def value(scope: Scope) -> Any:
        try:
            made = write(scope)
        except ValueRefused as refused:
            if refused.closest is None:
                raise
            made = refused.closest
        return implicit_default(column) if made is None and not column.nullable else made

    return value


def _always(value: Any) -> Callable[[Row], Any]:
    return lambda row: value


def _carried(source: int, old: Column, new: Column, rules: ConversionRules) -> Callable[[Row], Any]:
    """What takes an old column's value out of a row, in the new column's form."""
    convert = value_converter(old, new, rules)
    if convert is None:
        return itemgetter(source)
    change = convert
    return lambda row: change(row[source])


def numbered(
    old: TableDefinition,
    new: TableDefinition,
    sources: list[int | None],
    rows: Iterable[Row],
    start: int,
    session: Session,
    *,
    copied: bool,
) -> Iterable[Row]:
    """A column that becomes AUTO_INCREMENT numbers the rows in their order; one that was it keeps
    even its zeros. `start`: the table option AUTO_INCREMENT, 0 without it.

    Of a column that was there, NO_AUTO_VALUE_ON_ZERO keeps the zeros (`copy_data_between_tables`,
    sql/sql_table.cc).
    """
    for at, (source, column) in enumerate(zip(sources, new.columns, strict=False)):
        if column.auto_increment and source is None and not (copied or column.nullable):
            numbers = session.numbers.in_place(start)
            return _within_type(
                ((*row[:at], next(numbers), *row[at + 1 :]) for row in rows), at, column
            )
        if column.auto_increment and source is None:
            return _within_type(
                number_rows(new, rows, start or 1, steps=session.numbers), at, column
            )
        if column.auto_increment and source is not None and not old.columns[source].auto_increment:
            return number_rows(
                new,
                rows,
                start or 1,
                (None,) if SqlModeFlag.NO_AUTO_VALUE_ON_ZERO in session.sql_mode else (None, 0),
                session.numbers,
            )
    return rows


def _within_type(rows: Iterable[Row], at: int, column: Column) -> Iterator[Row]:
    """The rows, whose column `at` got its number. A number beyond the column's type wraps around or
    not by the way the server took; raises ReplicationError 1235 (seen on MariaDB 10.11.18)."""
    store = from_sql(column)
    for row in rows:
        try:
            store(row[at])
        except ValueRefused:
            raise ReplicationError(
                1235,
                f"AUTO_INCREMENT number {row[at]} in column {column.name} of type {column.type} is"
                " not supported in memory: what servers store there is not known",
                hint="skip the statement with --skip-errors 1235, or replay into a test DB",
            ) from None
        yield row


def _numbered_null(old: Column, rules: ConversionRules) -> int | None:
    """What NULL is until the rows are numbered, in a column that becomes AUTO_INCREMENT.

    MariaDB makes it a zero first, which gets a number even where the column may be NULL.
    """
    return 0 if rules.flavour == "mariadb" and not old.auto_increment else None


def _is_numbered(column: Column, rules: ConversionRules) -> bool:
    """Whether NULL becomes a number of AUTO_INCREMENT; the SQL mode may keep MariaDB's zero."""
    kept = rules.flavour == "mariadb" and SqlModeFlag.NO_AUTO_VALUE_ON_ZERO in rules.sql_mode
    return column.auto_increment and not kept


def value_converter(
    old: Column, new: Column, rules: ConversionRules
) -> Callable[[Any], Any] | None:
    """A function that carries stored values from one column definition to another; None when they
    stay as they are.

    Raises ReplicationError 1235 for types that no table of conversions has; the function does for
    NULL where the new column has none to give.
    """
    convert = conversion(old, new, rules)
    numbers = _is_numbered(new, rules)
    missing = (
        _numbered_null(old, rules)
        if numbers
        else None
        if new.nullable
        else instead_of_null(new, rules)
    )
    if convert is None and (missing is None or not old.nullable):
        return None

    def carried(value: Any) -> Any:
        if value is None:
            return missing
        return value if convert is None else convert(value)

    return carried
