"""SQL expressions over rows of a table: defaults, generated columns, functional keys, and what
statements compute.

An expression is compiled to an operand (`applier.tables.expressions.expression_parser`), whose type
is known before any row is read. What is not exact is refused with 1235; a generated column or
default of that sort is refused where its value is needed first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from functools import lru_cache
from typing import Any

from applier.binlog.types import Unevaluated, ValueRefused
from applier.errors import InputError, ReplicationError
from applier.tables.expressions.comparisons import text_key
from applier.tables.expressions.expression_parser import ExpressionParser, sql_parser
from applier.tables.expressions.operands import (
    PLAIN,
    Dialect,
    Operand,
    OperandKind,
    Scope,
    Session,
    Value,
    unsupported,
)
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_mode_flags import NO_MODES, SqlModeFlag
from lookup.handler import Row
from lookup.table import Column, KeyPart, TableDefinition

SPELLING = SqlModeFlag.ANSI_QUOTES | SqlModeFlag.NO_BACKSLASH_ESCAPES | SqlModeFlag.PIPES_AS_CONCAT
"""Modes that say how text is read, not what it does."""


@lru_cache(maxsize=1024)
def compile_expression(
    sql: str, definition: TableDefinition | None = None, dialect: Dialect = PLAIN
) -> Operand:
    """An expression of a definition: its text is spelled without modes, whatever the session's are
    (`Parser.text_since`).

    Raises ReplicationError: 1235 where the expression is not exact here, 1054 for an unknown
    column.
    """
    spelled = SPELLING | (SqlModeFlag.EMPTY_STRING_IS_NULL if dialect.mariadb else NO_MODES)
    dialect = replace(dialect, sql_mode=dialect.sql_mode & ~spelled)
    try:
        parser = sql_parser(_plain(sql), dialect)
        if dialect.old and any(token.value.upper() == "ESCAPE" for token in parser.tokens):
            # Item_func_like::print leaves it out: 5.7 forgets it (seen of 5.7.29)
            raise unsupported("ESCAPE in the expression of a generated column")
        operand = ExpressionParser(parser, definition, dialect).expression()
        if not parser.done:
            raise unsupported(f"{sql[:80]!r}")
    except (InputError, RecursionError) as error:
        raise unsupported(
            f"{sql[:80]!r} ({getattr(error, 'message', 'nested too deeply')})"
        ) from None
    return operand


def _plain(sql: str) -> str:
    """An expression may stand in parentheses of its own."""
    return re.sub(r"(?i)^current_timestamp\(\)$", "CURRENT_TIMESTAMP", sql.strip())


def constant_value(column: Column, sql: str, session: Session | None = None) -> Any:
    """The stored form of an expression without columns, such as a DEFAULT.

    A literal TIMESTAMP is in UTC (`applier.tables.expressions.defaults.default_in_utc`). A value
    that cannot be had is one of `Unevaluated`. Raises ValueRefused for one that does not fit.
    """
    session = session or Session()
    try:
        operand = compile_expression(sql, None, session.dialect)
        if operand.literal:
            session = replace(session, zone=UTC)
        return storer(column, operand, session.dialect)(Scope((), session))
    except ReplicationError as error:
        if error.number == 1054:
            error = unsupported(f"the default of `{column.name}`, which other columns decide")
        return unevaluated(column, error)


def literal_value(sql: str, session: Session) -> str | int | None:
    """The text or number that stands in a DEFAULT clause; None for anything else."""
    try:
        operand = compile_expression(sql, None, session.dialect)
    except ReplicationError:
        return None
    value = operand.value(Scope((), session)) if operand.literal else None
    return value if isinstance(value, (str, int)) else None


def unevaluated(column: Column, error: ReplicationError) -> Unevaluated:
    """What stands for a value that is refused with 1235. Raises any other error."""
    if error.number != 1235:
        raise error
    return Unevaluated(column.name, error)


def generated_columns(
    definition: TableDefinition, session: Session, *, stored: bool = True
) -> Callable[[Row], Row]:
    """A function that sets the generated columns of a row, in column order, as the session computes
    them.

    A value that cannot be had is one of `Unevaluated`.
    """
    steps = [
        (at, column, _generator(column, definition, session.dialect))
        for at, column in enumerate(definition.columns)
        if column.generated and (stored or column.is_virtual)
    ]

    def generate(row: Row) -> Row:
        new = list(row)
        for at, column, write in steps:
            try:
                new[at] = write(Scope(tuple(new), session))
            except ValueRefused as refused:
                if refused.closest is None:
                    raise
                new[at] = refused.closest
            except ReplicationError as error:
                new[at] = unevaluated(column, error)
        return tuple(new)

    return generate


def _generator(
    column: Column, definition: TableDefinition, dialect: Dialect
) -> Callable[[Scope], Any]:
    try:
        return storer(
            column, compile_expression(column.expression or "NULL", definition, dialect), dialect
        )
    except ReplicationError as error:
        unknown = unevaluated(column, error)
        return lambda scope: unknown


def key_expression(definition: TableDefinition, part: KeyPart) -> Callable[[Row], Any]:
    """A function from a row to the value of a functional key part. It raises ReplicationError 1235
    for what is not exact."""
    compiled: list[Callable[[Scope], Value]] = []
    session = Session()

    def value(row: Row) -> Any:
        if not compiled:
            compiled.append(_comparable(compile_expression(part.expression or "NULL", definition)))
        return compiled[0](Scope(row, session))

    return value


def _comparable(operand: Operand) -> Callable[[Scope], Value]:
    if operand.kind is not OperandKind.TEXT or operand.collation is None:
        return operand.value
    key = text_key(operand.collation)

    def value(scope: Scope) -> Value:
        found = operand.value(scope)
        return None if found is None else key(found)

    return value


__all__ = [
    "PLAIN",
    "Scope",
    "Session",
    "compile_expression",
    "constant_value",
    "generated_columns",
    "key_expression",
]
