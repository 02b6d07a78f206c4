"""The log's DDL, carried out on tables in memory.

Statements that change no table (views, triggers, users, ANALYZE, ...) are passed over with a word. An ALTER TABLE makes the new
definition and copies the rows over in physical order, as the server's rebuild does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from applier.binlog.charsets import charset, charset_of_collation_name
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.tables.alter import alter_table
from applier.tables.catalog import Database, Tables
from applier.tables.defaults import complete_rows
from applier.tables.engine import MemoryTable
from applier.tables.schema import read_table_body
from applier.tables.sql_text import Parser, statement_kind
from applier.tables.table_draft import SchemaRules
from lookup.table import Column, Key, KeyPart, TableDefinition
from lookup.versions import NEWEST

IGNORED_OBJECTS = frozenset(
    """
        VIEW TRIGGER PROCEDURE FUNCTION EVENT USER ROLE SERVER TABLESPACE LOGFILE UNDO RESOURCE SPATIAL_REFERENCE AGGREGATE
        PACKAGE LIBRARY
    """.split()
)
IGNORED_STATEMENTS = frozenset(
    """
        ANALYZE OPTIMIZE REPAIR CHECK FLUSH GRANT REVOKE SET INSTALL UNINSTALL LOCK UNLOCK KILL RESET PURGE CHANGE START STOP
        IMPORT CACHE CALL DO SELECT
    """.split()
)
DDL_STATEMENTS = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
OLD_SERVERS = ("5.6", "5.7")
SEQUENCE_COLUMNS = (
    ("next_not_cached_value", "bigint", False), ("minimum_value", "bigint", False), ("maximum_value", "bigint", False),
    ("start_value", "bigint", False), ("increment", "bigint", False), ("cache_size", "bigint", True),
    ("cycle_option", "tinyint", True), ("cycle_count", "bigint", False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DdlSession:
    """What the session of a statement decides. `server`: the name of a row of `lookup.versions.RULES`."""

    server: str = NEWEST
    ansi_quotes: bool = False
    server_charset: str | None = None
    server_collation: str | None = None
    utf8mb4_collation: str | None = None
    explicit_defaults_for_timestamp: bool | None = None
    foreign_key_checks: bool = True

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB's rules hold."""
        return self.server == "mariadb"

    @property
    def is_old(self) -> bool:
        """Whether the rules of 5.x hold."""
        return self.server in OLD_SERVERS

    def schema_rules(self, database: Database | None) -> SchemaRules:
        """What a CREATE TABLE leaves to defaults, in this database."""
        modern = not self.is_old and not self.is_mariadb
        name = (database.charset if database else None) or self.server_charset or ("utf8mb4" if modern else "latin1")
        collation = database.collation if database and database.charset else self.server_collation if self.server_charset else None
        explicit = self.explicit_defaults_for_timestamp
        return SchemaRules(
            charset=name,
            collation=collation,
            modern_utf8mb4=modern,
            utf8mb4_collation=self.utf8mb4_collation,
            implicit_timestamps=not explicit if explicit is not None else self.is_old,
            mariadb=self.is_mariadb,
            ansi_quotes=self.ansi_quotes,
        )


def apply_ddl(tables: Tables, sql: str, database: str, session: DdlSession) -> str | None:
    """Carries a DDL statement out. Returns a note when the statement was passed over.

    Raises ReplicationError with the server's number, InputError for SQL that cannot be read.
    """
    return _Ddl(tables, sql, database, session).run()


class _Ddl:
    def __init__(self, tables: Tables, sql: str, database: str, session: DdlSession) -> None:
        self.tables = tables
        self.sql = sql
        self.database = database
        self.session = session
        self.parser = Parser(sql, ansi_quotes=session.ansi_quotes)

    def run(self) -> str | None:
        word = self.parser.word()
        if word in IGNORED_STATEMENTS:
            return f"{word} is not replayed: it changes no table"
        handlers: dict[str, Callable[[], str | None]] = {
            "CREATE": self._create,
            "ALTER": self._alter,
            "DROP": self._drop,
            "RENAME": self._rename,
            "TRUNCATE": self._truncate,
        }
        if word not in handlers:
            raise InputError(f"statement that is not known: {self.sql[:80]!r}", code=Code.SCHEMA_SQL)
        self.parser.at += 1
        return handlers[word]()

    def _rules(self, database: str) -> SchemaRules:
        return self.session.schema_rules(self.tables.databases.get(database))

    def _object(self) -> str:
        """Steps over OR REPLACE, DEFINER=… and the like up to the word that says what is created, altered or dropped."""
        parser = self.parser
        while not parser.done:
            word = parser.word()
            if word in IGNORED_OBJECTS or word in ("TABLE", "DATABASE", "SCHEMA", "INDEX", "SEQUENCE", "TABLES"):
                parser.at += 1
                return word
            parser.at += 1
        return ""

    # CREATE

    def _create(self) -> str | None:
        replacing = "OR REPLACE" in " ".join(self.parser.word(ahead) for ahead in range(2))
        temporary = self.parser.word() == "TEMPORARY" or self.parser.word(2) == "TEMPORARY"
        unique = self.parser.word()
        what = self._object()
        if what in ("DATABASE", "SCHEMA"):
            self._create_database(replacing)
            return None
        if what == "TABLE":
            return self._create_table(replacing, temporary)
        if what == "INDEX":
            self._create_index(unique)
            return None
        if what == "SEQUENCE":
            self._create_sequence()
            return None
        return f"CREATE {what or 'of something unknown'} is not replayed"

    def _create_database(self, replacing: bool) -> None:
        parser = self.parser
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        name = parser.name()
        if name in self.tables.databases and not replacing:
            if not exists_ok:
                raise ReplicationError(1007, f"Can't create database '{name}'; database exists")
            return
        if replacing and name in self.tables.databases:
            self.tables.drop_database(name)
        charset_name, collation = self._database_options()
        self.tables.databases[name] = Database(name, charset_name, collation)

    def _database_options(self) -> tuple[str | None, str | None]:
        parser = self.parser
        charset_name = collation = None
        while not parser.done:
            word = parser.next().value.upper()
            if word == "CHARSET" or (word == "CHARACTER" and parser.accept("SET")):
                parser.accept("=")
                charset_name = charset(parser.name()).name
            elif word == "COLLATE":
                parser.accept("=")
                collation = parser.name()
        if collation is not None and charset_name is None:
            charset_name = charset_of_collation_name(collation)
        if charset_name is not None and collation is None:
            collation = self._rules("").collation_of(charset_name)
        return charset_name, collation

    def _create_table(self, replacing: bool, temporary: bool) -> str | None:
        parser = self.parser
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        database, name = parser.table_name(self.database)
        old = self.tables.get(database, name)
        if old is not None and not replacing:
            if exists_ok:
                return f"`{database}`.`{name}` exists already; CREATE TABLE IF NOT EXISTS leaves it alone"
            raise ReplicationError(1050, f"Table '{name}' already exists", table=f"{database}.{name}")
        if parser.accept("LIKE") or parser.accept("(", "LIKE"):
            definition = replace(self._table(parser.table_name(self.database)).definition, database=database, name=name, foreign_keys=())
            self._put(definition, old)
            return None
        definition, select = read_table_body(parser, database, name, self._rules(database))
        definition = replace(definition, temporary=temporary)
        if select is None:
            self._put(definition, old)
            return None
        from applier.tables.statements import create_from_select

        create_from_select(self.tables, definition, select, self.database, self.session)
        return None

    def _put(self, definition: TableDefinition, old: MemoryTable | None) -> None:
        if old is not None:
            self.tables.drop(definition.database, definition.name)
        table = self.tables.create(definition)
        start = definition.options.get("AUTO_INCREMENT")
        if start is not None and start.isdigit():
            table.auto_increment = int(start)

    def _create_index(self, unique: str) -> None:
        """CREATE INDEX is ALTER TABLE … ADD KEY."""
        parser = self.parser
        parser.accept("IF", "NOT", "EXISTS")
        name = parser.raw_name()
        using = parser.accept_any("USING", "TYPE") and parser.name()
        parser.expect("ON")
        target = parser.table_name(self.database)
        rest = parser.rest()
        kind = unique if unique in ("UNIQUE", "FULLTEXT", "SPATIAL") else ""
        clause = f"ADD {kind} INDEX {name} {'USING ' + using if using else ''} {rest}"
        self._alter_by(target, clause)

    def _create_sequence(self) -> None:
        """MariaDB keeps a sequence as a table of one row, and logs changes of that row."""
        parser = self.parser
        parser.accept("IF", "NOT", "EXISTS")
        database, name = parser.table_name(self.database)
        numbers = {"START": 1, "INCREMENT": 1, "MINVALUE": 1, "MAXVALUE": (1 << 63) - 2, "CACHE": 1000}
        while not parser.done:
            word = parser.next().value.upper()
            if word in numbers:
                parser.accept_any("WITH", "BY", "=")
                sign = -1 if parser.accept("-") else 1
                numbers[word] = sign * parser.integer()
        columns = tuple(Column(column, kind, unsigned=unsigned, nullable=False) for column, kind, unsigned in SEQUENCE_COLUMNS)
        table = self.tables.create(TableDefinition(database, name, columns, options={"SEQUENCE": "1"}))
        table.insert(
            (numbers["START"], numbers["MINVALUE"], numbers["MAXVALUE"], numbers["START"], numbers["INCREMENT"], numbers["CACHE"], 0, 0)
        )

    # ALTER

    def _alter(self) -> str | None:
        what = self._object()
        if what in ("DATABASE", "SCHEMA"):
            name = self.parser.name() if self.parser.word() not in ("CHARACTER", "CHARSET", "DEFAULT", "COLLATE") else self.database
            charset_name, collation = self._database_options()
            database = self.tables.databases.get(name)
            if database is None:
                raise ReplicationError(1049, f"Unknown database '{name}'")
            if charset_name is not None:
                database.charset, database.collation = charset_name, collation
            return None
        if what != "TABLE":
            return f"ALTER {what or 'of something unknown'} is not replayed"
        missing_ok = self.parser.accept("IF", "EXISTS")
        target = self.parser.table_name(self.database)
        if missing_ok and self.tables.get(*target) is None:
            return "ALTER TABLE IF EXISTS of a table that is not there"
        clause = "" if self.parser.done else self.parser.rest()
        self._alter_by(target, clause)
        return None

    def _alter_by(self, target: tuple[str, str], clause: str) -> None:
        table = self._table(target)
        alter_table(self.tables, table, clause, self._rules(target[0]))

    # DROP, RENAME, TRUNCATE

    def _drop(self) -> str | None:
        parser = self.parser
        what = self._object()
        exists_ok = parser.accept("IF", "EXISTS")
        if what in ("DATABASE", "SCHEMA"):
            name = parser.name()
            if name in self.tables.databases:
                self.tables.drop_database(name)
            elif not exists_ok:
                raise ReplicationError(1008, f"Can't drop database '{name}'; database doesn't exist")
            return None
        if what in ("TABLE", "TABLES", "SEQUENCE"):
            return self._drop_tables(exists_ok)
        if what == "INDEX":
            name = parser.raw_name()
            parser.expect("ON")
            self._alter_by(parser.table_name(self.database), f"DROP INDEX {name}")
            return None
        return f"DROP {what or 'of something unknown'} is not replayed"

    def _drop_tables(self, exists_ok: bool) -> str | None:
        missing = []
        while True:
            database, name = self.parser.table_name(self.database)
            if self.tables.get(database, name) is None:
                missing.append(f"{database}.{name}")
            else:
                self.tables.drop(database, name)
            if not self.parser.accept(","):
                break
        if missing and not exists_ok:
            raise ReplicationError(1051, f"Unknown table '{','.join(missing)}'", table=missing[0])
        return f"DROP TABLE IF EXISTS of {', '.join(missing)}, which is not there" if missing else None

    def _rename(self) -> str | None:
        parser = self.parser
        if not parser.accept_any("TABLE", "TABLES"):
            return f"RENAME {parser.word()} is not replayed"
        while True:
            parser.accept("IF", "EXISTS")
            table = self._table(parser.table_name(self.database))
            parser.expect("TO")
            self.rename(table, *parser.table_name(self.database))
            if not parser.accept(","):
                return None

    def rename(self, table: MemoryTable, database: str, name: str) -> None:
        if self.tables.get(database, name) is not None:
            raise ReplicationError(1050, f"Table '{name}' already exists", table=f"{database}.{name}")
        self.tables.rename(table, database, name)

    def _truncate(self) -> None:
        self.parser.accept("TABLE")
        self._table(self.parser.table_name(self.database)).truncate()

    def _table(self, target: tuple[str, str]) -> MemoryTable:
        table = self.tables.get(*target)
        if table is None:
            full_name = f"{target[0]}.{target[1]}"
            raise ReplicationError(
                1146,
                f"Table '{full_name}' doesn't exist",
                table=full_name,
                hint="give the tables that exist before the first event with --schema FILE.sql",
            )
        return table


__all__ = ["DDL_STATEMENTS", "DdlSession", "Key", "KeyPart", "apply_ddl", "complete_rows", "statement_kind"]
