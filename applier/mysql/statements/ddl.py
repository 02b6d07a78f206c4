"""Statements that commit by themselves: which they are, and whether one that was under way at a
crash was carried out.

The position cannot be written in the same transaction as such a statement. So a marker is committed
before it, with a fingerprint of whatever the statement names: tables, views, routines, triggers,
databases, and the numbers that InnoDB gives its tables. On resume a fingerprint that differs says
that the statement was done.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

from applier.errors import ReplicationError
from applier.mysql.client.connection import Server
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import Parser, tokenize
from applier.tables.sql.statement_kind import (
    executed_statement,
    is_temporary,
    statement_kind,
    statement_start,
)

IMPLICIT_COMMIT = frozenset(
    """
    ALTER ANALYZE CACHE CHECK CREATE DROP FLUSH GRANT INSTALL LOAD_INDEX OPTIMIZE RENAME REPAIR
    RESET REVOKE TRUNCATE UNINSTALL
    LOCK UNLOCK""".split()
)
_SET_PASSWORD = re.compile(r"SET\s+(PASSWORD|DEFAULT\s+ROLE)\b", re.IGNORECASE)
_TAKES_ACCOUNT = re.compile(
    r"(GRANT|REVOKE|SET\s+(PASSWORD|DEFAULT\s+ROLE)|ALTER\s+(DEFINER|EVENT)"
    r"|(CREATE(\s+OR\s+REPLACE)?|ALTER|DROP|RENAME)\s+(USER|ROLE))\b",
    re.IGNORECASE,
)
_ATOMIC_CREATE = re.compile(r"\bSTART\s+TRANSACTION\b", re.IGNORECASE)
ALREADY_DONE = frozenset(
    {
        1007,
        1008,
        1050,
        1051,
        1060,
        1061,
        1068,
        1091,
        1146,
        1304,
        1305,
        1359,
        1360,
        1396,
        1507,
        1517,
        1537,
        1539,
        3552,
        4161,
    }
)
"""It exists already, or exists no more: what a statement says that is carried out a second time."""
MOST_NAMES = 60
_DDL_NOUNS = (
    ("DATABASE SCHEMA", "SCHEMATA", "SCHEMA_NAME", "SCHEMA_NAME, DEFAULT_COLLATION_NAME"),
    (
        "TRIGGER", "TRIGGERS", "TRIGGER_NAME",
        "TRIGGER_SCHEMA, TRIGGER_NAME, MD5(ACTION_STATEMENT)",
    ),
    (
        "PROCEDURE FUNCTION PACKAGE LIBRARY", "ROUTINES", "ROUTINE_NAME",
        "ROUTINE_SCHEMA, ROUTINE_NAME, LAST_ALTERED",
    ),
    ("EVENT", "EVENTS", "EVENT_NAME", "EVENT_SCHEMA, EVENT_NAME, LAST_ALTERED"),
)  # fmt: skip
"""Words of statements about something, its view of information_schema, the column that the
statement's names are looked up in, what is taken into the fingerprint. Of other statements the
view tells nothing, and 5.x opens every table of the server for TRIGGERS."""
_MAKES_ANEW = frozenset({"ALTER", "OPTIMIZE", "RENAME", "REPAIR", "REPLACE", "TRUNCATE"})
"""Words of statements behind which a table may have the same name and definition as before. The
view of InnoDB's numbers is read whole for each."""
_INNODB_VIEWS = ("INNODB_TABLES", "INNODB_SYS_TABLES")
FORMULA = "2:"
"""What a fingerprint begins with. Another number for each change of what is taken into it: those
of two formulas differ though nothing was carried out."""


def commits_by_itself(sql: str) -> bool:
    """Whether the server commits before and after this statement."""
    if is_temporary(sql):
        return False
    sets_password = _SET_PASSWORD.match(sql, statement_start(sql)) is not None
    return statement_kind(sql) in IMPLICIT_COMMIT or sets_password


def is_atomic_create(sql: str) -> bool:
    """CREATE TABLE ... SELECT as 8.0.21 and later log it: the table, its rows, and the end of the
    transaction.

    START TRANSACTION stands behind the columns there, before the table's options (seen on 9.7.4).
    """
    if statement_kind(sql) != "CREATE" or _ATOMIC_CREATE.search(sql) is None:
        return False
    tokens, depth = tokenize(sql), 0
    for token, following in pairwise(tokens):
        if token.kind == "op":
            depth += (token.value == "(") - (token.value == ")")
        elif not depth and (token.kind, token.value.upper(), following.value.upper()) == (
            "word",
            "START",
            "TRANSACTION",
        ):
            return True
    return False


def temporary_drop(sql: str, database: str) -> str:
    """DROP TEMPORARY TABLE with a database before each table; "" for any other statement.

    A server logs it at the end of a session whose default database may be gone by then. A replica
    does not ask for that (`set_thd_db`, sql/log_event.cc); USE would fail with 1049.
    """
    if not is_temporary(sql) or statement_kind(sql) != "DROP" or executed_statement(sql) is not sql:
        return ""
    parser = Parser(sql)
    if not parser.accept("DROP", "TEMPORARY", "TABLE"):
        return ""
    condition = "IF EXISTS " if parser.accept("IF", "EXISTS") else ""
    names = [parser.table_name(database)]
    while parser.accept(","):
        names.append(parser.table_name(database))
    tables = ", ".join(f"{quoted(schema)}.{quoted(table)}" for schema, table in names)
    return f"DROP TEMPORARY TABLE {condition}{tables}"


def drops_database(sql: str) -> bool:
    """Whether the statement is a DROP DATABASE, or DROP SCHEMA."""
    return _begins(sql) in (["DROP", "DATABASE"], ["DROP", "SCHEMA"])


def takes_account(sql: str) -> bool:
    """Whether the statement may do something with the account of its session: it is about accounts,
    roles or their privileges, or gives an event a new definer."""
    return _TAKES_ACCOUNT.match(sql, statement_start(sql)) is not None


def passed_by_replica(sql: str) -> frozenset[int]:
    """The errors that a replica of MariaDB makes warnings of where the source's statement ended
    without one: as if IF EXISTS stood there (slave_ddl_exec_mode=IDEMPOTENT,
    mysql_execute_command). A DROP of several tables of which some were missing is logged without
    its error (seen of 10.11.18)."""
    match _begins(sql):
        case ["DROP", "TABLE" | "TABLES" | "TEMPORARY"]:
            return frozenset({1051})
        case ["DROP", "SEQUENCE"]:
            return frozenset({4091})
        case ["DROP", "DATABASE" | "SCHEMA"]:
            return frozenset({1008})
        case ["CREATE", "DATABASE" | "SCHEMA"]:
            return frozenset({1007})
    return frozenset()


def _begins(sql: str) -> list[str]:
    """Its first two words, in upper case."""
    sql = executed_statement(sql)
    return sql[statement_start(sql) :].upper().split(None, 2)[:2]


def names_in(sql: str, database: str) -> list[tuple[str, str]]:
    """(database, name) of everything outside of parentheses that may be the name of something."""
    found: dict[tuple[str, str], None] = {}
    depth = 0
    before: str | None = None
    tokens = tokenize(sql)
    for at, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.value == "(") - (token.value == ")")
            continue
        if token.kind not in ("word", "quoted") or depth:
            continue
        dotted = at >= 2 and tokens[at - 1].value == "." and before is not None
        found[(before if dotted and before is not None else database, token.value)] = None
        before = token.value
        if len(found) >= MOST_NAMES:
            break
    return list(found)


def fingerprint(side: Server, sql: str, database: str) -> str:
    """A hash of all that the statement names as it is now."""
    names = names_in(sql, database)
    parts: list[object] = []
    for schema, name in _existing(side, names):
        parts.append((schema, name, _definition(side, schema, name)))
    words = {name.upper() for _, name in names}
    literals = ",".join(sorted({_literal(name) for _, name in names})) or "''"
    for nouns, view, column, columns in _DDL_NOUNS:
        if not words.isdisjoint(nouns.split()):
            parts += _rows(
                side,
                f"SELECT {columns} FROM information_schema.{view} WHERE {column} IN ({literals}) "
                "ORDER BY 1, 2",
            )
    if not words.isdisjoint(_MAKES_ANEW):
        for schema in sorted({schema for schema, _ in names if schema}):
            parts += _innodb_tables(side, schema)
    return FORMULA + hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _existing(side: Server, names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those that are tables or views, by one statement: each part of it opens one table at most."""
    looked_up = " UNION ALL ".join(
        f"SELECT {at} FROM information_schema.TABLES WHERE TABLE_SCHEMA={_literal(schema)} AND"
        f" TABLE_NAME={_literal(name)}"
        for at, (schema, name) in enumerate(names)
        if schema
    )
    found = {row[0] for row in side.query(looked_up)} if looked_up else set()
    return [name for at, name in enumerate(names) if b"%d" % at in found]


def _definition(side: Server, schema: str, name: str) -> object:
    place = f"`{schema.replace('`', '``')}`.`{name.replace('`', '``')}`"
    return _rows(side, f"SHOW CREATE TABLE {place}")


def _innodb_tables(side: Server, schema: str) -> list[object]:
    """Numbers change when a table is made anew and go along when it is renamed. The view needs the
    PROCESS privilege."""
    pattern = _literal(schema.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%") + "/%")
    for view in _INNODB_VIEWS:
        found = _rows(
            side,
            f"SELECT NAME, TABLE_ID FROM information_schema.{view} WHERE NAME LIKE {pattern} ORDER"
            " BY NAME",
        )
        if found:
            return found
    return []


def _rows(side: Server, sql: str) -> list[object]:
    try:
        return list(side.query(sql))
    except ReplicationError as error:
        return [error.number]


def _literal(text: str) -> str:
    return f"CONVERT(X'{text.encode('utf-8', 'surrogateescape').hex()}' USING utf8)"
