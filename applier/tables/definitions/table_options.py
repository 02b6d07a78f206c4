"""The options behind the column list of CREATE TABLE, and in ALTER TABLE (`create_table_option`,
sql/sql_yacc.yy 9.7, MariaDB 10.11).

No option changes a row; but what is no option may, so nothing that is not in the table here is
passed over.
"""

from __future__ import annotations

from applier.errors import ReplicationError
from applier.tables.definitions.table_draft import SchemaRules, TableParts
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Parser

TWO_WORDS = {
    ("CHARACTER", "SET"): "CHARSET",
    ("DATA", "DIRECTORY"): "DATA DIRECTORY",
    ("INDEX", "DIRECTORY"): "INDEX DIRECTORY",
}
VALUED = frozenset(
    """
        ENGINE TYPE AUTO_INCREMENT AVG_ROW_LENGTH CHARSET CHECKSUM TABLE_CHECKSUM COLLATE COMMENT
        COMPRESSION CONNECTION
        DELAY_KEY_WRITE ENCRYPTION ENGINE_ATTRIBUTE SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
        INSERT_METHOD KEY_BLOCK_SIZE
        MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT
        STATS_SAMPLE_PAGES TABLESPACE STORAGE
        NODEGROUP AUTOEXTEND_SIZE TRANSACTIONAL PAGE_CHECKSUM UNION
    """.split()
)
ALTER_ONLY = frozenset({"ALGORITHM", "LOCK"})
SELECTS = frozenset({"SELECT", "AS", "IGNORE", "REPLACE", "VALUES", "TABLE", "WITH"})


def refuse_substitute(engine: str, rules: SchemaRules) -> None:
    """BLACKHOLE is a plugin of MariaDB: without it, and without NO_ENGINE_SUBSTITUTION, the table
    is one that keeps its rows.

    Raises ReplicationError 1235 where the log does not tell which it is.
    """
    if (
        rules.mariadb
        and engine.lower() == "blackhole"
        and not rules.session.sql_mode & SqlModeFlag.NO_ENGINE_SUBSTITUTION
    ):
        raise ReplicationError(
            1235,
            "ENGINE=BLACKHOLE is not supported in memory where sql_mode lacks"
            " NO_ENGINE_SUBSTITUTION: whether the source has this engine, or keeps the rows in"
            " another one, is not known",
            hint="leave the table out with --exclude-table, or replay into a test DB",
        )


def option_ahead(parser: Parser, rules: SchemaRules) -> str:
    """The name of the option at the cursor, "" where none stands. MariaDB takes options of engines:
    any name with a `=` behind it."""
    skipped = parser.word() == "DEFAULT"
    first, second = parser.word(skipped), parser.word(skipped + 1)
    name = TWO_WORDS.get((first, second), first)
    if name in VALUED or name in ALTER_ONLY or name in TWO_WORDS.values():
        return name
    if (
        rules.mariadb
        and not skipped
        and parser.op(1) == "="
        and parser.tokens[parser.at].kind in ("word", "quoted")
    ):
        return parser.tokens[parser.at].value.upper()
    return ""


def read_option(parser: Parser, rules: SchemaRules, parts: TableParts) -> None:
    """One option with its value, into `parts.options`. Raises InputError for anything else."""
    name = option_ahead(parser, rules)
    if not name:
        raise parser.refuse("unknown table option")
    parser.accept("DEFAULT")
    parser.at += 2 if name in TWO_WORDS.values() and parser.word() != name else 1
    parser.accept("=")
    parts.options[name] = parser.parenthesized() if parser.op() == "(" else _value(parser)
    if name == "SEQUENCE" and parts.options[name].upper() in ("0", "NO"):
        del parts.options[name]


def _value(parser: Parser) -> str:
    parser.accept_any("-", "+")
    token = parser.next()
    if token.kind in ("op", "open"):
        parser.at -= 1
        raise parser.refuse("expected the value of an option")
    return token.value


def read_table_options(parser: Parser, rules: SchemaRules, parts: TableParts) -> None:
    """All options of a CREATE TABLE, its PARTITION BY and its SELECT. Raises InputError where
    something else stands."""
    while not parser.done:
        if parser.accept(",") or parser.accept("START", "TRANSACTION"):
            continue
        if parser.accept("WITH", "SYSTEM", "VERSIONING"):
            parts.system_versioned = True
        elif parser.word() in SELECTS or parser.op() == "(":
            parts.select = parser.rest().rstrip("; ")
            parser.at = len(parser.tokens)
        elif parser.word() == "PARTITION":
            parts.partitioned = True
            parts.options["PARTITION"] = parser.skip_until(*SELECTS - {"TABLE", "VALUES", "WITH"})
        else:
            read_option(parser, rules, parts)
