"""The VALUES lists of dumps that hold more than literals, as stored values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from applier.binlog.types import ValueRefused
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.tables.expressions.defaults import default_row
from applier.tables.expressions.operands import Scope, Session
from applier.tables.expressions.row_expressions import compile_expression, unevaluated
from applier.tables.expressions.storing import storer
from applier.tables.sql.sql_text import Parser
from lookup.table import TableDefinition


def split_commas(text: str) -> list[str]:
    """The pieces between commas that stand outside of parentheses and quotes."""
    parser = Parser(text)
    pieces = []
    while not parser.done:
        pieces.append(parser.skip_until(","))
        parser.accept(",")
    return pieces


def value_rows(
    definition: TableDefinition, columns: tuple[int, ...], text: str, session: Session
) -> Iterator[tuple[Any, ...]]:
    """The rows of a VALUES list that holds expressions, as stored values of `columns`.

    A value that cannot be had, such as NOW() in a dump, is one of `Unevaluated`. Raises InputError
    for what cannot be read, and for rows of another width.
    """
    parser = Parser(text)
    dialect = session.dialect
    defaults = default_row(definition, session)
    scope = Scope(defaults, session)

    def stored(piece: str, at: int) -> Any:
        if piece.upper() == "DEFAULT":
            return defaults[at]
        column = definition.columns[at]
        try:
            operand = compile_expression(piece, definition, dialect)
            return storer(column, operand, dialect)(scope)
        except ReplicationError as error:
            return unevaluated(column, error)
        except ValueRefused as refused:
            if refused.closest is None:
                raise
            return refused.closest

    while not parser.done:
        pieces = split_commas(parser.parenthesized())
        if len(pieces) != len(columns):
            raise InputError(
                f"{len(pieces)} values for {len(columns)} columns of {definition.full_name}",
                code=Code.SCHEMA_ROWS,
            )
        yield tuple(stored(piece, at) for at, piece in zip(columns, pieces, strict=True))
        if not parser.accept(","):
            break
    if not parser.done:
        raise InputError(
            f"cannot read {parser.sql[parser.tokens[parser.at].start :][:60]!r}",
            code=Code.SCHEMA_SQL,
        )
