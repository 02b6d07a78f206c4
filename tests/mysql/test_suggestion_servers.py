"""Suggestions on real servers: each ALTER is carried out on a table with rows, keeps them, and
gives a key that the applier uses."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from servers.server import Server

from applier.schema_source import load_schema
from applier.tables.sql.quoting import quoted
from applier.tables.suggestion import Suggestion, suggestion
from lookup.decision import decide
from lookup.table import TableDefinition
from lookup.versions import rules_for
from tests.mysql.odd_tables import EXISTING, NEW, NOTHING, TABLES, TEXT, OddTable
from tests.mysql.server_support import THOROUGH
from tests.servers.fixtures import ServerFactory

DATABASE = "odd `db"
OPTIONS: dict[str, str | int | bool | None] = {
    "innodb_flush_log_at_trx_commit": 0,
    "sync_binlog": 0,
}
VERSIONS = ("5.7", "9.7", "mariadb") if THOROUGH else ("9.7",)


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(version: str, server_factory: ServerFactory) -> Iterator[Server]:
    server = server_factory(version, options=OPTIONS)
    yield server
    server.close()


class OnServer:
    """One odd table, made anew in a database of its own."""

    def __init__(self, server: Server, table: OddTable) -> None:
        self.name = quoted(table.name)
        self.connection = server.connect(autocommit=True, init_command="SET sql_mode = ''")
        database = quoted(DATABASE)
        self.run(
            f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}", f"USE {database}"
        )
        self.run(
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "INSERT INTO parent VALUES (1)",
            "CREATE TABLE part (a INT) ENGINE=MyISAM",
        )
        self.run(*(sql.format(t=self.name) for sql in (table.create, *table.rows)))

    def run(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def definition(self, version: str) -> TableDefinition:
        """What binlag reads in the server's own CREATE TABLE."""
        created = str(self.rows(f"SHOW CREATE TABLE {self.name}")[0][1])
        database = quoted(DATABASE)
        sql = f"SET FOREIGN_KEY_CHECKS=0; CREATE DATABASE {database}; USE {database}; {created};"
        (table,) = load_schema(sql, server=version)
        return table.definition

    def contents(self, definition: TableDefinition) -> list[str]:
        """The rows as they are, in the columns that the table had at first."""
        columns = ", ".join(
            quoted(column.name) for column in definition.columns if column.system_time is None
        )
        history = " FOR SYSTEM_TIME ALL" if definition.system_versioned else ""
        return sorted(map(repr, self.rows(f"SELECT {columns} FROM {self.name}{history}")))


def parameters() -> list[object]:
    return [pytest.param(table, id=table.label) for table in TABLES]


def outcome(found: Suggestion | None) -> str:
    if found is None:
        return NOTHING
    if found.sql is None:
        return TEXT
    return NEW if " ADD COLUMN " in found.sql else EXISTING


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("table", parameters())
def test_every_suggestion_is_accepted(version: str, server: Server, table: OddTable) -> None:
    if version not in table.servers:
        return
    rules = rules_for(version)
    on_server = OnServer(server, table)
    before = on_server.definition(version)
    contents = on_server.contents(before)
    found = suggestion(before, rules)
    assert outcome(found) == table.outcome, found
    if found is not None and found.sql is not None:
        # ALGORITHM and LOCK as they are said are taken, and no weaker lock is.
        clauses = found.sql.rstrip(";")
        if found.lock == "SHARED":
            with pytest.raises(pymysql.err.MySQLError):
                on_server.run(f"{clauses}, ALGORITHM={found.algorithm}, LOCK=NONE")
        if found.algorithm == "COPY":
            with pytest.raises(pymysql.err.MySQLError):
                on_server.run(f"{clauses}, ALGORITHM=INPLACE")
        on_server.run(found.sql)
        after = on_server.definition(version)
        assert on_server.contents(before) == contents
        on_server = OnServer(server, table)
        on_server.run(f"{clauses}, ALGORITHM={found.algorithm}, LOCK={found.lock}")
        assert on_server.definition(version) == after
        assert [column.invisible for column in after.columns if "my_row_id" in column.name][
            -1:
        ] == ([rules.invisible_columns] if table.outcome == NEW else [])
        again = suggestion(after, rules)
        assert (again is None) == (table.key == "PRIMARY"), again
    definition = on_server.definition(version)
    decision = decide(definition, range(len(definition.columns)), rules)
    if table.outcome != TEXT:
        assert (decision.key.name if decision.key else "") == table.key


@pytest.mark.parametrize(
    "table", [table for table in TABLES if table.outcome == TEXT], ids=lambda table: table.label
)
def test_what_is_not_suggested_would_have_failed(
    version: str, server: Server, table: OddTable
) -> None:
    """The plain new column, which a table without a suggestion lacks: the server refuses it, or it
    gives no key that is used."""
    if version not in table.servers or table.label == "MERGE":
        return
    on_server = OnServer(server, table)
    with pytest.raises(pymysql.err.MySQLError):
        on_server.run(
            f"ALTER TABLE {on_server.name} ADD COLUMN my_row_id BIGINT UNSIGNED NOT NULL "
            "AUTO_INCREMENT PRIMARY KEY"
        )
