"""Statements about accounts in which CURRENT_USER stands for the account of the session.

Servers log DROP USER, RENAME USER, GRANT, … as they were written, and the account beside them
(`Q_INVOKER`; 9.7.4, MariaDB 10.11.18). A replica takes that one; a client's session has another.
"""

from __future__ import annotations

from applier.binlog.charsets import charset_of_collation, literal_bytes, statement_text
from applier.binlog.events import Query
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import tokenize

CURRENT_USER = ("word", "CURRENT_USER")


def with_invoker(query: Query, sql: bytes) -> bytes:
    """The statement `sql` of the event with the source's account in the place of CURRENT_USER."""
    assert query.variables.invoker is not None
    user, host = (part.decode("utf-8", "surrogateescape") for part in query.variables.invoker)
    account = f"{quoted(user)}@{quoted(host)}" if host else quoted(user)
    number = query.variables.client_collation
    text = statement_text(number, sql)
    tokens = tokenize(text)
    pieces, end = list[str](), 0
    for at, token in enumerate(tokens):
        if (token.kind, token.value.upper()) == CURRENT_USER:
            called = [one.value for one in tokens[at + 1 : at + 3]] == ["(", ")"]
            pieces += [text[end : token.start], account]
            end = tokens[at + 2].end if called else token.end
    if not pieces:
        return sql
    return literal_bytes(charset_of_collation(number).name, "".join([*pieces, text[end:]]))
