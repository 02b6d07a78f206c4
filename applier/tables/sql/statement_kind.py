"""What a statement is, and which one is carried out where another stands before it."""

from __future__ import annotations

import re

from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError
from applier.tables.sql.sql_text import NO_SERVERS, tokenize

_SKIPPED = re.compile(r"\s+|#[^\n]*|--(?=\s|\Z)[^\n]*|/\*M?!\d*|\*/|\(")
_WORD = re.compile(r"\w+")
_GAP = r"(?:\s|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/)+"
_TEMPORARY = re.compile(
    rf"(?:CREATE(?:{_GAP}OR{_GAP}REPLACE)?|DROP){_GAP}TEMPORARY\b", re.IGNORECASE | re.DOTALL
)
_GARBLED = re.compile(r"\s*\w*\0")


def statement_start(sql: str) -> int:
    """Where the first word of the statement stands that is carried out: behind comments, and
    parentheses before a SELECT."""
    at = 0
    while True:
        if sql.startswith("/*", at) and (
            sql.startswith(NO_SERVERS, at) or not sql.startswith(("/*!", "/*M!"), at)
        ):
            end = sql.find("*/", at + 2)
            if end < 0:
                return len(sql)
            at = end + 2
            continue
        skipped = _SKIPPED.match(sql, at)
        if skipped is None:
            return at
        at = skipped.end()


def statement_kind(sql: str) -> str:
    """The first word of the statement that is carried out in upper case."""
    word = _WORD.match(sql, statement_start(sql))
    if word is None:
        return ""
    if word[0].upper() in _PREFIXES and (inner := executed_statement(sql)) is not sql:
        return statement_kind(inner)
    return word[0].upper()


def is_temporary(sql: str) -> bool:
    """CREATE or DROP TEMPORARY TABLE: no commit, and nothing of it outlives the session. ALTER and
    TRUNCATE of such a table commit. Servers log DROP /*!40005 TEMPORARY */ TABLE at the end of a
    session."""
    sql = executed_statement(sql)
    return _TEMPORARY.match(sql, statement_start(sql)) is not None


_PREFIXES = ("SET", "ANALYZE")
_SET_STATEMENT = re.compile(r"SET\s+STATEMENT\s", re.IGNORECASE)
_ANALYZE = re.compile(
    r"(?:\s|/\*(?!M?!).*?\*/)*ANALYZE\s+(?:FORMAT\s*=\s*['\"]?\w+['\"]?\s+)?"
    r"(?=(?:INSERT|REPLACE|UPDATE|DELETE|WITH)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""MariaDB carries the statement behind it out, shows its plan, and logs both words."""


def set_statement_names(sql: str) -> list[str]:
    """The variables of MariaDB's SET STATEMENT … FOR, in lower case; none for any other
    statement."""
    return _set_statement(sql)[0]


def executed_statement(sql: str) -> str:
    """The statement behind SET STATEMENT … FOR and behind MariaDB's ANALYZE; `sql` itself where
    there is no such prefix."""
    return _set_statement(sql)[1]


def _set_statement(sql: str) -> tuple[list[str], str]:
    if _SET_STATEMENT.search(sql[:1000]) is None:
        return [], _without_analyze(sql)
    tokens = tokenize(sql)
    if [token.value.upper() for token in tokens[:2]] != ["SET", "STATEMENT"]:
        return [], _without_analyze(sql)
    names, depth = [tokens[2].value.lower()] if len(tokens) > 2 else [], 0
    for at, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.value == "(") - (token.value == ")")
            if token.value == "," and not depth and at + 1 < len(tokens):
                names.append(tokens[at + 1].value.lower())
        elif token.kind == "word" and token.value.upper() == "FOR" and not depth:
            inner_names, inner = _set_statement(sql[token.end :].lstrip())
            return names + inner_names, inner
    return [], sql


def _without_analyze(sql: str) -> str:
    prefix = _ANALYZE.match(sql)
    return sql if prefix is None else sql[prefix.end() :]


def unknown_statement(sql: str) -> BinlagError:
    """The error of a statement that nothing here carries out. No word of a statement holds a NUL
    byte: 1064 on every server (seen of 5.6.24 and 5.7.29 with relay logs that end in zeros)."""
    if _GARBLED.match(sql):
        return ReplicationError(1064, f"a NUL byte in the statement {sql[:80]!r}")
    return InputError(f"statement that is not known: {sql[:80]!r}", code=Code.SCHEMA_SQL)
