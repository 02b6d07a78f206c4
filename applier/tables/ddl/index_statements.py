"""CREATE INDEX and DROP INDEX as the clauses of ALTER TABLE that they are.

MariaDB puts WAIT n and NOWAIT behind the names, and before the options of an index
(`opt_lock_wait_timeout`, sql/sql_yacc.yy 10.11).
"""

from __future__ import annotations

from collections.abc import Container

from applier.tables.sql.sql_text import Parser

_KINDS = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
Clause = tuple[tuple[str, str], str]
"""Database and name of a table, and what ALTER TABLE does with it."""


def created_index(parser: Parser, database: str, modifiers: Container[str]) -> Clause:
    """What stands behind CREATE INDEX. `modifiers`: the words between the two."""
    exists = "IF NOT EXISTS" if parser.accept("IF", "NOT", "EXISTS") else ""
    name = parser.raw_name()
    using = f"USING {parser.name()}" if parser.accept_any("USING", "TYPE") else ""
    parser.expect("ON")
    target = parser.table_name(database)
    kind = next((word for word in _KINDS if word in modifiers), "")
    dropping = f"DROP INDEX IF EXISTS {name}, " if "REPLACE" in modifiers else ""
    return target, f"{dropping}ADD {kind} INDEX {exists} {name} {using} {_without_wait(parser)}"


def dropped_index(parser: Parser, database: str, exists_ok: bool) -> Clause:
    """What stands behind DROP INDEX."""
    name = parser.raw_name()
    parser.expect("ON")
    target = parser.table_name(database)
    return target, f"DROP INDEX {'IF EXISTS' if exists_ok else ''} {name} {_without_wait(parser)}"


def pass_wait(parser: Parser) -> None:
    """Steps over MariaDB's WAIT n and NOWAIT."""
    if parser.lexis.mariadb and not parser.accept("NOWAIT") and parser.accept("WAIT"):
        parser.next()


def _without_wait(parser: Parser) -> str:
    """The SQL from the cursor on, without them."""
    before = parser.skip_until("WAIT", "NOWAIT")
    pass_wait(parser)
    return before if parser.done else f"{before} {parser.rest()}"
