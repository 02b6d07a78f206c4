"""What the session of a DDL statement decides: whose rules hold, and what is left to defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.tables.catalog import Database
from applier.tables.definitions.table_draft import SchemaRules
from applier.tables.expressions.operands import OLD_SERVERS, Session
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Lexis
from lookup.versions import NEWEST

COMMENT_VERSIONS = {
    "5.6": 50699,
    "5.7": 50799,
    "8.0": 80099,
    "8.4": 80499,
    "9.7": 99998,
    "mariadb": 999998,
}
"""What a server compares the numbers of version comments with: its series' last release; the newest
execute all that any does."""
COLUMN_REFERENCES = frozenset({"9.7", "mariadb"})
"""Where REFERENCES behind a column is more than a comment."""
STRICT_ZERO_DATES = frozenset({"5.6"})
"""Where CREATE TABLE … SELECT gives a DATE or DATETIME the default 0 in strict mode, too."""


@dataclass(frozen=True, slots=True)
class DdlSession:
    """What the session of a statement decides. `server`: the name of a row of
    `lookup.versions.RULES`."""

    server: str = NEWEST
    server_charset: str | None = None
    server_collation: str | None = None
    utf8mb4_collation: str | None = None
    explicit_defaults_for_timestamp: bool | None = None
    foreign_key_checks: bool = True
    executes_again: bool = False
    """A replica of MariaDB (slave_ddl_exec_mode=IDEMPOTENT): CREATE TABLE replaces a table, and
    CREATE DATABASE and DROP DATABASE pass where there is nothing to do."""
    if_exists: bool = False
    """sql_if_exists of MariaDB: ALTER, RENAME and DROP of tables, and DROP of databases and views,
    pass over what is not there (10.11.18)."""
    error_code: int = 0
    """With which the statement ended on the source."""
    expressions: Session = field(default_factory=Session)
    """The clock, the time zone and the SQL mode of the statement."""

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB's rules hold."""
        return self.server == "mariadb"

    @property
    def is_old(self) -> bool:
        """Whether the rules of 5.x hold."""
        return self.server in OLD_SERVERS

    @property
    def is_modern(self) -> bool:
        """Whether the rules of MySQL 8.0 or later hold."""
        return not self.is_old and not self.is_mariadb

    @property
    def lexis(self) -> Lexis:
        """How the session reads SQL text."""
        session, version = self.expressions, COMMENT_VERSIONS.get(self.server)
        return Lexis.of(
            session.sql_mode,
            client=session.client,
            mariadb=self.is_mariadb,
            version=version,
            lower_case_names=session.lower_case_names,
        )

    @property
    def has_zero_dates(self) -> bool:
        """Whether a DATE or DATETIME that CREATE TABLE … SELECT makes has the default 0."""
        return self.server in STRICT_ZERO_DATES or not self.expressions.sql_mode & (
            SqlModeFlag.STRICT
        )

    @property
    def drops_one_by_one(self) -> bool:
        """Whether a DROP TABLE that fails for one table drops the others; from 8.0 on it drops
        none."""
        return self.is_old or self.is_mariadb

    @property
    def parent_error(self) -> int:
        """The error of DROP TABLE for a table that foreign keys of others point to."""
        return 1451 if self.is_mariadb else 1217 if self.is_old else 3730

    def schema_rules(self, database: Database | None) -> SchemaRules:
        """What a CREATE TABLE leaves to defaults, in this database."""
        modern = self.is_modern
        name = (
            (database.charset if database else None)
            or self.server_charset
            or ("utf8mb4" if modern else "latin1")
        )
        collation = (
            database.collation
            if database and database.charset
            else self.server_collation
            if self.server_charset
            else None
        )
        explicit = self.explicit_defaults_for_timestamp
        return SchemaRules(
            charset=name,
            collation=collation,
            modern_utf8mb4=modern,
            utf8mb4_collation=self.utf8mb4_collation,
            implicit_timestamps=not explicit if explicit is not None else self.is_old,
            mariadb=self.is_mariadb,
            column_references=self.server in COLUMN_REFERENCES,
            lexis=self.lexis,
            session=self.expressions,
        )
