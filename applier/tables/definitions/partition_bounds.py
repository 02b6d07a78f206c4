"""Bounds of partitions that depend on the time zone of the session that says them."""

from __future__ import annotations

from applier.errors import ReplicationError
from applier.tables.expressions.operands import INTEGERS, Scope, Session
from applier.tables.expressions.row_expressions import compile_expression
from applier.tables.sql.sql_text import Lexis, Parser


def with_settled_bounds(options: dict[str, str], lexis: Lexis, session: Session) -> dict[str, str]:
    """The options of a table, whose PARTITION BY has the number in place of each UNIX_TIMESTAMP of
    a constant.

    A server keeps the number that the session made of it, so a later ALTER TABLE under another
    time zone does not move the bound (SHOW CREATE TABLE of 5.7.29, 9.7.4 and MariaDB 10.11.18).
    A call that is not exact here stays as it is.
    """
    text = options.get("PARTITION", "")
    if "UNIX_TIMESTAMP" not in text.upper():
        return options
    parser = Parser(text, lexis)
    pieces, end = [], 0
    while not parser.done:
        token = parser.next()
        if (token.kind, token.value) != ("word", "UNIX_TIMESTAMP") or parser.op() != "(":
            continue
        parser.parenthesized()
        behind = parser.tokens[parser.at - 1].end
        number = _number(text[token.start : behind], session)
        if number is not None:
            pieces += [text[end : token.start], str(number)]
            end = behind
    return {**options, "PARTITION": "".join([*pieces, text[end:]])}


def _number(sql: str, session: Session) -> int | None:
    """What the session makes of a call; None for one that names a column, or is not exact."""
    try:
        operand = compile_expression(sql, None, session.dialect)
        found = operand.value(Scope((), session))
    except ReplicationError:
        return None
    return found if operand.kind in INTEGERS and isinstance(found, int) else None
