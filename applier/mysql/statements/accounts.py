"""Statements that do something with the account of their session: CURRENT_USER, CURRENT_ROLE, and
the definer that ALTER EVENT leaves out.

Servers log DROP USER, RENAME USER, GRANT, ALTER EVENT, … as they were written, and the account
beside them (`Q_INVOKER`; 5.7.29, 9.7.4, MariaDB 10.11.18). A replica takes that one; a client's
session has another.
"""

from __future__ import annotations

from collections.abc import Iterator

from applier.binlog.charsets import charset_of_collation, literal_bytes, statement_text
from applier.binlog.events import Query
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import Token, tokenize

OWN_ACCOUNT = ("CURRENT_USER", "CURRENT_ROLE")
"""MariaDB takes a role for an account; the log's invoker is the role then (seen on 10.11.18)."""


def with_invoker(query: Query, sql: bytes) -> bytes:
    """The statement `sql` of the event, with the source's account where it means its own."""
    assert query.variables.invoker is not None
    user, host = (part.decode("utf-8", "surrogateescape") for part in query.variables.invoker)
    number = query.variables.client_collation
    text = statement_text(number, sql)
    edits = list(_edits(tokenize(text), f"{quoted(user)}@{quoted(host)}" if host else quoted(user)))
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return literal_bytes(charset_of_collation(number).name, text) if edits else sql


def _edits(tokens: list[Token], account: str) -> Iterator[tuple[int, int, str]]:
    """Where in the text what is to be written instead."""
    match [token.value.upper() for token in tokens[:2]]:
        case ["ALTER", "EVENT"]:
            yield tokens[0].end, tokens[0].end, f" DEFINER={account}"
            return
        case ["ALTER", "DEFINER"]:
            tokens = tokens[:6]  # behind them is what the event does, as the account that it gets
    for at, token in enumerate(tokens):
        if token.kind == "word" and token.value.upper() in OWN_ACCOUNT:
            called = [one.value for one in tokens[at + 1 : at + 3]] == ["(", ")"]
            yield token.start, tokens[at + 2].end if called else token.end, account
