"""Under DATABASE scheduling, rows of a table that foreign keys of another database refer to run
alone."""

from __future__ import annotations

import pytest

from applier.binlog.header import ROWS_TYPES, EventType
from applier.binlog.reader import LogReader
from applier.binlog.table_map import GENERATED_INVISIBLE_KEY_FLAG, TableMap, parse_table_map
from applier.binlog.transactions import with_formats
from applier.timing.timed import ALL_DATABASES, timed_transactions
from tests.servers.fixtures import ServerFactory


@pytest.mark.parametrize(("name", "child_too"), [("5.7", False), ("9.7", True)])
def test_a_parent_of_another_database_runs_alone(
    name: str, child_too: bool, server_factory: ServerFactory
) -> None:
    """5.7.29 sets the flag in the table map of the parent, 9.7.4 in that of the child, too."""
    server = server_factory(name)
    server.execute(
        "CREATE DATABASE fk_parents",
        "CREATE DATABASE fk_children",
        "CREATE TABLE fk_parents.p (id INT PRIMARY KEY)",
        "CREATE TABLE fk_parents.apart (id INT PRIMARY KEY)",
        "CREATE TABLE fk_children.c (id INT PRIMARY KEY,"
        " FOREIGN KEY (id) REFERENCES fk_parents.p (id))",
        "INSERT INTO fk_parents.p VALUES (1)",
        "INSERT INTO fk_parents.apart VALUES (1)",
        "INSERT INTO fk_children.c VALUES (1)",
    )
    server.execute("FLUSH BINARY LOGS")
    files = server.binlog_files()[:-1]
    maps: dict[str, TableMap] = {}
    for event, fde in with_formats(LogReader(files)):
        if event.type == EventType.TABLE_MAP:
            length = fde.post_header_length(EventType.TABLE_MAP)
            table = parse_table_map(event.buffer, event.body, event.end, length)
            maps[table.full_name] = table
    assert {table: one.crosses_databases for table, one in maps.items()} == {
        "fk_parents.p": True,
        "fk_parents.apart": False,
        "fk_children.c": child_too,
    }
    assert not any(one.flags & GENERATED_INVISIBLE_KEY_FLAG for one in maps.values())
    rows = [
        one.databases
        for one in timed_transactions(files, lambda event: float(event.type in ROWS_TYPES))
        if one.seconds
    ]
    assert rows == [
        ALL_DATABASES,
        ("fk_parents",),
        ALL_DATABASES if child_too else ("fk_children",),
    ]
