"""The log's DDL, carried out on tables in memory.

Statements that change no table (views, users, ANALYZE, ...) are passed over with a word.
An ALTER TABLE makes the new definition and copies the rows over in physical order, as the server's
rebuild does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from applier.binlog.charsets import charset, charset_of_collation_name
from applier.errors import ReplicationError
from applier.tables.catalog import Database, Tables, table_of
from applier.tables.ddl.alter import CHECKED_PARTITIONS, alter_table
from applier.tables.ddl.create_select import create_from_select
from applier.tables.ddl.ddl_session import DdlSession
from applier.tables.ddl.index_statements import created_index, dropped_index, pass_wait
from applier.tables.definitions.schema import read_table_body
from applier.tables.definitions.sequences import read_sequence, sequence_definition
from applier.tables.definitions.table_draft import SchemaRules, TableParts
from applier.tables.definitions.table_options import option_ahead, read_option, refuse_substitute
from applier.tables.discarded_table import DiscardedTable
from applier.tables.engine import MemoryTable
from applier.tables.merge_tables import with_union
from applier.tables.partitioning.partition_conversion import conversion, converts
from applier.tables.sql.sql_text import Parser
from applier.tables.sql.statement_kind import (
    executed_statement,
    is_temporary,
    unknown_statement,
)
from lookup.table import TableDefinition

IGNORED_OBJECTS = frozenset(
    """
        VIEW TRIGGER PROCEDURE FUNCTION EVENT USER ROLE SERVER TABLESPACE LOGFILE UNDO RESOURCE
        SPATIAL_REFERENCE AGGREGATE PACKAGE LIBRARY
    """.split()
)
IGNORED_STATEMENTS = frozenset(
    """
        ANALYZE OPTIMIZE REPAIR CHECK FLUSH GRANT REVOKE SET INSTALL UNINSTALL LOCK UNLOCK KILL
        RESET PURGE CHANGE START STOP CACHE
    """.split()
)
ROUTINE_CALLS = frozenset({"SELECT", "DO", "CALL"})
"""In a log they stand for what a stored routine that they call changed; anywhere else they change
no table."""
DDL_STATEMENTS = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
OBJECTS = frozenset({"TABLE", "TABLES", "DATABASE", "SCHEMA", "INDEX", "SEQUENCE"})
DATABASE_OPTIONS = frozenset("CHARACTER DEFAULT COLLATE READ".split())
"""Words that name no database, behind ALTER DATABASE."""
MODIFIERS = frozenset(
    "OR REPLACE TEMPORARY UNIQUE FULLTEXT SPATIAL VECTOR ONLINE OFFLINE IGNORE".split()
)


def apply_ddl(tables: Tables, sql: str, database: str, session: DdlSession) -> str | None:
    """Carries a DDL statement out, behind the commit that it implies. Returns a note when the
    statement was passed over.

    Raises ReplicationError with the server's number, InputError for SQL that cannot be read.
    """
    return _Ddl(tables, sql, database, session).run()


class _Ddl:
    def __init__(self, tables: Tables, sql: str, database: str, session: DdlSession) -> None:
        self.tables = tables
        self.sql = sql
        self.database = database
        self.session = session
        self.modifiers: set[str] = set()
        self.parser = Parser(executed_statement(sql), session.lexis)

    def run(self) -> str | None:
        word = self.parser.word()
        if not is_temporary(self.sql):
            self.tables.commit()
        if self.parser.done:
            return "a comment is not replayed: it changes no table"
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
            raise unknown_statement(self.sql)
        self.parser.at += 1
        return handlers[word]()

    def _rules(self, database: str) -> SchemaRules:
        return self.session.schema_rules(self.tables.databases.get(database))

    def _object(self) -> str:
        """Steps over OR REPLACE, DEFINER=… and the like up to the word that says what is created,
        altered or dropped.

        Raises InputError where a table, an index, a database or a sequence has a prefix that is not
        known, or nothing known follows.
        """
        parser, start = self.parser, self.parser.at
        while not parser.done:
            word = parser.word()
            parser.at += 1
            if word in IGNORED_OBJECTS:
                return word
            if word in OBJECTS and word not in self.modifiers:
                unknown = self.modifiers - MODIFIERS
                if unknown:
                    parser.at = start
                    raise parser.refuse(f"unknown word {min(unknown)}")
                return word
            self.modifiers.add(word)
        parser.at = start
        raise parser.refuse("unknown kind of object")

    def _if_exists(self) -> bool:
        """Whether the statement passes over what is not there."""
        return self.parser.accept("IF", "EXISTS") or self.session.if_exists

    def _end(self) -> None:
        """Raises InputError unless the statement was read to its end."""
        if not self.parser.done:
            raise self.parser.refuse("the end was expected")

    # CREATE

    def _create(self) -> str | None:
        what = self._object()
        replacing, temporary = "REPLACE" in self.modifiers, "TEMPORARY" in self.modifiers
        if what in ("DATABASE", "SCHEMA"):
            return self._create_database(replacing)
        if what == "TABLE":
            return self._create_table(replacing, temporary)
        if what == "INDEX":
            self._alter_by(*created_index(self.parser, self.database, self.modifiers))
            return None
        if what == "SEQUENCE":
            return self._create_sequence(replacing, temporary)
        if what == "TRIGGER":
            dialect = self.session.expressions.dialect
            self.tables.triggers.create(self.parser, self.database, dialect)
            return None
        if what == "VIEW":
            self._create_view()
        return f"CREATE {what or 'of something unknown'} is not replayed"

    def _create_database(self, replacing: bool) -> str | None:
        parser = self.parser
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        name = parser.object_name()
        if name in self.tables.databases and not replacing:
            if not exists_ok and not self.session.executes_again:
                raise ReplicationError(1007, f"Can't create database '{name}'; database exists")
            return None if exists_ok else f"database `{name}` exists already and stays as it is"
        if replacing and name in self.tables.databases:
            self.tables.drop_database(name)
        charset_name, collation = self._database_options()
        if charset_name is None:
            charset_name, collation = self.session.server_charset, self.session.server_collation
        self.tables.databases[name] = Database(name, charset_name, collation)
        return None

    def _option_of_database(self) -> bool:
        """Whether an option stands at the cursor, not a database, which may be called comment."""
        following = self.parser.tokens[self.parser.at + 1 : self.parser.at + 2]
        valued = any(token.kind == "string" or token.value == "=" for token in following)
        return self.parser.word() in DATABASE_OPTIONS or (
            self.parser.word() in ("CHARSET", "COMMENT", "ENCRYPTION") and valued
        )

    def _database_options(self) -> tuple[str | None, str | None]:
        parser = self.parser
        parts, rules = TableParts(), self._rules("")
        while not parser.done:
            option = option_ahead(parser, rules)
            if parser.word() == "READ":
                parser.expect("READ", "ONLY")
                parser.accept("=")
                parser.next()
            elif option in ("CHARSET", "COLLATE", "ENCRYPTION", "COMMENT"):
                read_option(parser, rules, parts)
            else:
                raise parser.refuse("unknown database option")
        said = {name: text for name, text in parts.options.items() if text.upper() != "DEFAULT"}
        charset_name, collation = said.get("CHARSET"), said.get("COLLATE")
        if charset_name is not None:
            charset_name = charset(charset_name).name
        if collation is not None and charset_name is None:
            charset_name = charset_of_collation_name(collation)
        if charset_name is not None and collation is None:
            collation = self._rules("").collation_of(charset_name)
        return charset_name, collation

    def _create_view(self) -> None:
        exists_ok = self.parser.accept("IF", "NOT", "EXISTS")
        database, name = self.parser.table_name(self.database)
        if self.tables.base(database, name) is None:
            self.tables.views.add((database, name))
        elif not exists_ok:
            raise _taken(database, name)

    def _create_table(self, replacing: bool, temporary: bool) -> str | None:
        parser = self.parser
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        database, name = parser.table_name(self.database)
        if replacing and self.session.error_code:
            self._drop_replaced(database, name)
        old = (
            self.tables.temporary(database, name) if temporary else self.tables.base(database, name)
        )
        note = None
        taken = old is not None or (not temporary and (database, name) in self.tables.views)
        if taken and not replacing:
            if exists_ok:
                return (
                    f"`{database}`.`{name}` exists already; "
                    "CREATE TABLE IF NOT EXISTS leaves it alone"
                )
            if old is None or not self.session.executes_again:
                raise _taken(database, name)
            note = (
                f"`{database}`.`{name}` was there already and is replaced, as a replica of MariaDB"
                " does (slave_ddl_exec_mode=IDEMPOTENT)"
            )
        if parser.accept("LIKE") or parser.accept("(", "LIKE"):
            like = self.tables.named(*parser.table_name(self.database)).definition
            parser.accept(")")
            self._end()
            self._put(
                replace(like, database=database, name=name, foreign_keys=(), temporary=temporary),
                old,
            )
            return note
        definition, select = read_table_body(parser, database, name, self._rules(database))
        refuse_substitute(definition.engine, self._rules(database))
        definition = replace(
            with_union(definition, self.database or database, self.session.lexis),
            temporary=temporary,
        )
        if select is None:
            self._put(definition, old)
            return note
        create_from_select(self.tables, definition, select, self.database, self.session)
        return note

    def _drop_replaced(self, database: str, name: str) -> None:
        """MariaDB logs a CREATE OR REPLACE that fails when the old table is gone already (seen on
        10.11.18)."""
        if self.tables.get(database, name) is not None:
            self.tables.drop(database, name)
        raise ReplicationError(
            self.session.error_code,
            "CREATE OR REPLACE TABLE failed on the source behind its DROP of "
            f"`{database}`.`{name}`",
            table=f"{database}.{name}",
        )

    def _put(self, definition: TableDefinition, old: MemoryTable | None) -> MemoryTable:
        if old is not None:
            self.tables.drop_table(old)
        table = self.tables.create(definition)
        start = definition.options.get("AUTO_INCREMENT")
        if start is not None and start.isdigit():
            table.auto_increment = int(start)
        return table

    def _create_sequence(self, replacing: bool, temporary: bool) -> str | None:
        parser = self.parser
        exists_ok = parser.accept("IF", "NOT", "EXISTS")
        database, name = parser.table_name(self.database)
        find = self.tables.temporary if temporary else self.tables.base
        old = find(database, name)
        if old is not None and not replacing:
            if exists_ok:
                return (
                    f"`{database}`.`{name}` exists already; "
                    "CREATE SEQUENCE IF NOT EXISTS leaves it alone"
                )
            raise _taken(database, name)
        row = read_sequence(parser, self._rules(database))
        definition = replace(sequence_definition(database, name), temporary=temporary)
        self._put(definition, old).insert(row)
        return None

    def _alter_sequence(self) -> str | None:
        missing_ok = self.parser.accept("IF", "EXISTS")
        target = self.parser.table_name(self.database)
        if missing_ok and self.tables.get(*target) is None:
            return "ALTER SEQUENCE IF EXISTS of a sequence that is not there"
        table = self.tables.named(*target)
        rows = table.stored_rows()
        table.insert(read_sequence(self.parser, self._rules(target[0]), rows[0] if rows else None))
        return None

    # ALTER

    def _alter(self) -> str | None:
        what = self._object()
        if what in ("DATABASE", "SCHEMA"):
            name = self.database if self._option_of_database() else self.parser.object_name()
            charset_name, collation = self._database_options()
            database = self.tables.databases.get(name)
            if database is None:
                raise ReplicationError(1049, f"Unknown database '{name}'")
            if charset_name is not None:
                database.charset, database.collation = charset_name, collation
            return None
        if what == "SEQUENCE":
            return self._alter_sequence()
        if what != "TABLE":
            return f"ALTER {what or 'of something unknown'} is not replayed"
        missing_ok = self._if_exists()
        target = self.parser.table_name(self.database)
        pass_wait(self.parser)
        if missing_ok and self.tables.get(*target) is None:
            return "ALTER TABLE IF EXISTS of a table that is not there"
        if (
            self.parser.word() in CHECKED_PARTITIONS
            and self.parser.word(1) == "PARTITION"
            and self.tables.get(*target) is None
        ):
            return f"ALTER TABLE … {self.parser.word()} PARTITION of a table that is not there"
        if converts(self.parser):
            for sql in conversion(self.parser, target, self.database):
                apply_ddl(self.tables, sql, self.database, self.session)
            return None
        clause = "" if self.parser.done else self.parser.rest()
        self._alter_by(target, clause)
        return None

    def _alter_by(self, target: tuple[str, str], clause: str) -> None:
        table = self.tables.named(*target)
        rules, ignoring = self._rules(target[0]), "IGNORE" in self.modifiers
        alter_table(
            self.tables,
            table,
            clause,
            rules,
            database=self.database or target[0],
            ignoring=ignoring,
        )

    # DROP, RENAME, TRUNCATE

    def _drop(self) -> str | None:
        parser = self.parser
        temporary = parser.word() == "TEMPORARY"
        what = self._object()
        if what == "INDEX":
            self._alter_by(*dropped_index(parser, self.database, parser.accept("IF", "EXISTS")))
            return None
        exists_ok = self._if_exists()
        if what in ("DATABASE", "SCHEMA"):
            name = parser.object_name()
            self._end()
            if name in self.tables.databases:
                self.tables.drop_database(name)
            elif self.session.executes_again and not exists_ok:
                return f"DROP DATABASE of {name}, which is not there"
            elif not exists_ok:
                raise ReplicationError(
                    1008, f"Can't drop database '{name}'; database doesn't exist"
                )
            return None
        if what in ("TABLE", "TABLES", "SEQUENCE"):
            return self._drop_tables(exists_ok, temporary)
        if what == "TRIGGER":
            self.tables.triggers.drop(parser, self.database)
            return None
        if what == "VIEW":
            self.tables.drop_views(
                self._names(), number=0 if exists_ok else self.session.error_code
            )
        return f"DROP {what or 'of something unknown'} is not replayed"

    def _names(self) -> list[tuple[str, str]]:
        names = [self.parser.table_name(self.database)]
        while self.parser.accept(","):
            names.append(self.parser.table_name(self.database))
        return names

    def _drop_tables(self, exists_ok: bool, temporary: bool) -> str | None:
        """Up to 5.7 and in MariaDB each table by itself; from 8.0 on all or none
        (`mysql_rm_table_no_locks`)."""
        find = self.tables.temporary if temporary else self.tables.get
        names = self._names()
        pass_wait(self.parser)
        self.parser.accept_any("RESTRICT", "CASCADE")
        self._end()
        found = [table for name in names if (table := find(*name)) is not None]
        missing = [f"{database}.{name}" for database, name in names if find(database, name) is None]
        exists_ok = exists_ok or self.session.is_mariadb
        wrong = [] if exists_ok else missing
        parents = []
        if not self.session.drops_one_by_one:
            self._refuse_drop(wrong, self._parents(found, going=found))
        for table in found:
            if self.session.drops_one_by_one and self._parents([table], going=[]):
                parents.append(table)
            else:
                self.tables.drop_table(table)
        self._refuse_drop(wrong, parents)
        return f"DROP TABLE of {', '.join(missing)}, which is not there" if missing else None

    def _parents(self, tables: list[MemoryTable], going: list[MemoryTable]) -> list[MemoryTable]:
        """Those of `tables` that foreign keys of other tables point to, which do not go as well."""
        if not self.session.foreign_key_checks:
            return []
        leaving = {(table.definition.database, table.definition.name) for table in going}
        keys = self.tables.foreign_keys
        return [
            table
            for table in tables
            if not table.definition.temporary and keys.other_children(table.definition) - leaving
        ]

    def _refuse_drop(self, missing: list[str], parents: list[MemoryTable]) -> None:
        if parents:
            number, name = self.session.parent_error, parents[0].definition.full_name
            raise ReplicationError(
                number,
                f"Cannot drop table '{name}' referenced by a foreign key constraint",
                table=name,
            )
        if missing:
            raise ReplicationError(1051, f"Unknown table '{','.join(missing)}'", table=missing[0])

    def _rename(self) -> str | None:
        parser = self.parser
        if not parser.accept_any("TABLE", "TABLES"):
            return f"RENAME {parser.word()} is not replayed"
        missing_ok = self._if_exists()
        pairs = []
        while True:
            old = parser.table_name(self.database)
            pass_wait(self.parser)
            parser.expect("TO")
            pairs.append((old, parser.table_name(self.database)))
            if not parser.accept(","):
                break
        self._end()
        for old, new in pairs:
            self._rename_one(old, new, missing_ok)
        return None

    def _rename_one(self, old: tuple[str, str], new: tuple[str, str], missing_ok: bool) -> None:
        """MariaDB takes a temporary table first, MySQL none (seen on 5.7.29, 9.7.4, 10.11.18)."""
        own = self.tables.temporary(*old) if self.session.is_mariadb else None
        table = self.tables.base(*old) if own is None else own
        if table is None and old not in self.tables.views:
            if missing_ok:
                return
            if not self.session.is_mariadb:
                self._refuse_taken(*new)  # MySQL looks for the new name first (do_rename)
            table = self.tables.named(*old)
        if own is None:
            self._refuse_taken(*new)
        elif self.tables.temporary(*new) is not None:
            raise _taken(*new)
        if table is not None:
            self.tables.rename(table, *new)
        else:
            self.tables.views ^= {old, new}

    def _refuse_taken(self, database: str, name: str) -> None:
        if self.tables.base(database, name) is not None or (database, name) in self.tables.views:
            raise _taken(database, name)

    def _truncate(self) -> None:
        self.parser.accept("TABLE")
        table = self.tables.named(*self.parser.table_name(self.database))
        pass_wait(self.parser)
        if self.session.is_mariadb and self.parser.accept_any("DROP", "REUSE"):  # Oracle's
            self.parser.expect("STORAGE")
        self._end()
        if self._parents([table], going=[]):
            name = table.definition.full_name
            raise ReplicationError(
                1701,
                f"Cannot truncate a table referenced in a foreign key constraint ({name})",
                table=name,
            )
        if isinstance(table, DiscardedTable):
            self.tables.replace(table, table_of(table.definition))
        else:
            table.truncate()


def _taken(database: str, name: str) -> ReplicationError:
    return ReplicationError(1050, f"Table '{name}' already exists", table=f"{database}.{name}")
